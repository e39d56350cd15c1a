"""Facts about the machine, and the environment that workers get.

`fingerprint` names the machine (stable), `volatile` its state at one moment (before and after a
run). What the build is comes from the core itself. A fact that cannot be read is null, and
`missing` says why.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

#: Variables that change how memory is allocated or what is loaded; workers do not inherit them.
DROPPED = re.compile(r"LD_PRELOAD|MALLOC_.*|GLIBC_TUNABLES", re.DOTALL)
#: Makes the environment larger; its value means nothing.
PADDING_VARIABLE = "CAPYBENCH_PADDING"
#: Where the core looks for allocators that come as Python packages; folders joined by ":".
LIBRARY_PATH_VARIABLE = "CAPYBENCH_LIBRARY_PATH"
#: Room for jemalloc's thread-local storage (2.6 KB), which must lie in the static block.
STATIC_TLS = "glibc.rtld.optional_static_tls=4096"


# --- environment of workers ---------------------------------------------------------------------


def influences(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of `env` that workers do not inherit by default, sorted."""
    return {name: env[name] for name in sorted(env) if DROPPED.fullmatch(name)}


def library_folders(paths: Iterable[str]) -> list[str]:
    """Folders with shared libraries that Python packages brought along, under `paths`."""
    found = dict.fromkeys(Path(path) / "cmeel.prefix" / "lib" for path in paths if path)
    return [str(folder) for folder in found if folder.is_dir()]


def worker_environment(
    env: Mapping[str, str],
    *,
    keep: bool = False,
    static_tls: bool = False,
    padding: int = 0,
    folders: Iterable[str] = (),
) -> dict[str, str]:
    """The environment of one worker.

    Args:
        env: the parent's.
        keep: keep what `influences` names.
        static_tls: add the tunable that makes room for jemalloc.
        padding: bytes by which to make it larger.
        folders: where the core may look for allocator libraries, before the system's own places.
    """
    made = {name: value for name, value in env.items() if keep or not DROPPED.fullmatch(name)}
    if static_tls:
        kept = made.get("GLIBC_TUNABLES", "")
        if "glibc.rtld.optional_static_tls=" not in kept:
            made["GLIBC_TUNABLES"] = f"{kept}:{STATIC_TLS}" if kept else STATIC_TLS
    given = made.get(LIBRARY_PATH_VARIABLE)
    joined = ":".join([*([given] if given else []), *folders])
    if joined:
        made[LIBRARY_PATH_VARIABLE] = joined
    made[PADDING_VARIABLE] = "x" * padding
    return made


# --- facts --------------------------------------------------------------------------------------


class _Facts:
    """Collects facts; one that cannot be read becomes None with a reason in `missing`."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.missing: dict[str, str] = {}

    def add(self, name: str, read: Callable[[], Any]) -> None:
        try:
            value = read()
            why = "not told by this system" if value is None else ""
        except (OSError, ValueError, KeyError, IndexError) as error:
            value, why = None, f"{type(error).__name__}: {error}"
        self.values[name] = value
        if value is None:
            self.missing[name] = why

    def done(self) -> dict[str, Any]:
        return {**self.values, "missing": self.missing}


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _cpu_model() -> str | None:
    info = _text("/proc/cpuinfo")
    for key in ("model name", "Model", "Hardware", "cpu"):
        found = re.search(rf"^{key}\s*:\s*(.+)$", info, re.MULTILINE)
        if found:
            return found[1].strip()
    # aarch64 tells numbers only.
    parts = re.findall(r"^CPU (implementer|part)\s*:\s*(\S+)$", info, re.MULTILINE)
    return " ".join(f"{name} {value}" for name, value in dict(parts).items()) or None


def _libc() -> str:
    return str(os.confstr("CS_GNU_LIBC_VERSION"))


def fingerprint() -> dict[str, Any]:
    """What names this machine: CPU, kernel, libc, architecture, CPUs and memory (bytes)."""
    facts = _Facts()
    facts.add("cpu", _cpu_model)
    facts.add("arch", platform.machine)
    facts.add("kernel", lambda: f"{platform.system()} {platform.release()}")
    facts.add("libc", _libc)
    facts.add("cpus", os.cpu_count)
    facts.add("memory_bytes", lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return facts.done()


def build_facts(build: Mapping[str, str], version: str) -> dict[str, Any]:
    """What the measured build is: the core's own facts, this package's version and Python's."""
    return {**build, "capybench": version, "python": platform.python_version()}


def _cgroup_folder() -> str:
    for line in _text("/proc/self/cgroup").splitlines():
        number, _, path = line.split(":", 2)
        if number == "0":
            return "/sys/fs/cgroup" + path.rstrip("/")
    raise ValueError("no cgroup v2")


def _cgroup_stat() -> dict[str, int]:
    rows = (line.split() for line in _text(f"{_cgroup_folder()}/cpu.stat").splitlines())
    stat = {name: int(value) for name, value in rows}
    wanted = ("usage_usec", "nr_periods", "nr_throttled", "throttled_usec")
    return {name: stat[name] for name in wanted if name in stat}


def _cgroup_quota() -> str:
    return _text(f"{_cgroup_folder()}/cpu.max").strip()


def _jiffies() -> dict[str, int]:
    """Whole-machine CPU time since boot in ms: of users, the system, idle, and stolen."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    values = _text("/proc/stat").splitlines()[0].split()[1:]
    tick_ms = 1000 // os.sysconf("SC_CLK_TCK")
    return {name: int(value) * tick_ms for name, value in zip(names, values, strict=False)}


def _frequencies() -> dict[str, int]:
    """Present frequency of each CPU of the mask in kHz."""
    return {
        str(cpu): int(_text(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"))
        for cpu in sorted(os.sched_getaffinity(0))
    }


def _governors() -> list[str]:
    folder = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    return sorted({_text(folder.format(cpu)).strip() for cpu in os.sched_getaffinity(0)})


def _pressure() -> float:
    """Share of the last 10 s in which some task waited for a CPU, in per cent."""
    found = re.search(r"some avg10=([\d.]+)", _text("/proc/pressure/cpu"))
    if not found:
        raise ValueError("/proc/pressure/cpu has no avg10")
    return float(found[1])


def volatile() -> dict[str, Any]:
    """The machine's state now. Times since boot are in ms, so that two states can be subtracted."""
    facts = _Facts()
    facts.add("load_1_min", lambda: round(os.getloadavg()[0], 2))
    facts.add("cpu_time_ms", _jiffies)
    facts.add("pressure_cpu_percent", _pressure)
    facts.add("frequency_khz", _frequencies)
    facts.add("governors", _governors)
    facts.add("cgroup_cpu_max", _cgroup_quota)
    facts.add("cgroup_cpu", _cgroup_stat)
    facts.add("affinity", lambda: sorted(os.sched_getaffinity(0)))
    clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    facts.add("clock_source", lambda: _text(clock).strip())
    return facts.done()
