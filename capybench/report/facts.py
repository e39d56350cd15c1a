"""What a report says about machines: a table of facts, and what to be wary of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from ..results import RunResult
from ..tables import printable

_NAMES = {
    "cpu": "CPU",
    "cpus": "CPUs",
    "arch": "architecture",
    "kernel": "kernel",
    "libc": "C library",
    "memory_bytes": "memory",
    "compiler": "compiler",
    "flags": "compiler flags",
    "build_id": "build of the core",
    "libc_built_with": "C library at build",
    "python": "Python",
    "capybench": "capybench",
    "load_1_min": "load, 1 minute",
    "pressure_cpu_percent": "CPU pressure",
    "frequency_khz": "CPU frequency",
    "governors": "governors",
    "cgroup_cpu_max": "cgroup quota",
    "affinity": "allowed CPUs",
    "clock_source": "clock source",
    "virtualisation": "virtualisation",
}
#: Facts that say little as they are, or that only differences say anything about.
_SKIPPED = {"missing", "cpu_time_ms", "cgroup_cpu", "counting"}


def rows(results: Sequence[RunResult]) -> list[tuple[str, list[str]]]:
    """Facts of all runs, one column a run; a fact that no run has is left out."""
    found: dict[str, list[str]] = {}
    for nth, result in enumerate(results):
        for name, value in _facts(result):
            found.setdefault(name, [""] * len(results))[nth] = value
    return list(found.items())


def _facts(result: RunResult) -> list[tuple[str, str]]:
    run = result.run
    machine = result.machine
    made = [
        ("run", printable(str(run.get("id", "–")))),
        ("begun (UTC)", printable(str(run.get("created_utc", "–")))),
        ("blocks × samples", f"{run.get('blocks', '–')} × {run.get('samples', '–')}"),
        ("seed", str(run.get("seed", "–"))),
    ]
    for section in ("fingerprint", "build"):
        for key, value in (machine.get(section) or {}).items():
            if key not in _SKIPPED:
                made.append((_NAMES.get(key, printable(key)), _value(key, value)))
    before, after = (machine.get(when) or {} for when in ("before", "after"))
    for key in dict.fromkeys([*before, *after]):
        if key in _SKIPPED:
            continue
        first = _value(key, before.get(key))
        last = _value(key, after.get(key))
        same = first == last or not after
        made.append((_NAMES.get(key, printable(key)), first if same else f"{first} → {last}"))
    if (steal := _steal(before, after)) is not None:
        made.append(("stolen CPU time during the run", f"{100 * steal:.1f} %"))
    return made


def _value(key: str, value: Any) -> str:
    if value is None:
        return "not told by this system"
    if key == "memory_bytes" and isinstance(value, int):
        return f"{value / 2**30:.1f} GiB"
    if key == "pressure_cpu_percent":
        return f"{value} %"
    if isinstance(value, list):
        return ", ".join(printable(str(item)) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(str(k))} {printable(str(v))}" for k, v in value.items())
    return printable(str(value))


def _steal(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """Share of all CPU time that the hypervisor gave to others while the run went on."""
    first, last = before.get("cpu_time_ms"), after.get("cpu_time_ms")
    if not isinstance(first, Mapping) or not isinstance(last, Mapping):
        return None
    try:
        spent = {key: last[key] - first[key] for key in first.keys() & last.keys()}
    except TypeError:
        return None
    total = sum(spent.values())
    return spent["steal"] / total if total > 0 and "steal" in spent else None


#: Beyond these shares a reader should be wary.
_STEAL, _PRESSURE = 0.01, 10.0


def warnings(result: RunResult) -> list[str]:
    """Warnings that the run itself stored."""
    return [printable(str(warning)) for warning in result.run.get("warnings") or ()]


def cautions(result: RunResult) -> list[str]:
    """What the run's state and that of its machine give reason for, as sentences."""
    run, machine = result.run, result.machine
    found = []
    if not result.complete:
        word = "was interrupted and " if result.interrupted else ""
        done = run.get("blocks_done")
        so_far = f": {done} of {run.get('blocks')} blocks are whole" if done is not None else ""
        found.append(f"This run {word}is incomplete{so_far}; each row states what it has.")
    before, after = (machine.get(when) or {} for when in ("before", "after"))
    fingerprint = machine.get("fingerprint") or {}
    load, cpus = before.get("load_1_min"), fingerprint.get("cpus")
    if _number(load) and _number(cpus) and load > cpus / 2:
        found.append(
            f"The machine was busy when the run began (load {load:g} on {cpus} CPUs): "
            "other programs disturb what is measured."
        )
    steal = _steal(before, after)
    if steal is not None and steal > _STEAL:
        found.append(
            f"{100 * steal:.1f} % of CPU time was stolen by other virtual machines during the run."
        )
    pressure = after.get("pressure_cpu_percent")
    if _number(pressure) and pressure > _PRESSURE:
        found.append(f"Programs waited for a CPU in {pressure:g} % of the time before the end.")
    governors = before.get("governors")
    if isinstance(governors, list) and set(governors) - {"performance"}:
        names = ", ".join(sorted({printable(str(name)) for name in governors}))
        found.append(f"The frequency governor is {names}: clock rates change with load.")
    quota = before.get("cgroup_cpu_max")
    if isinstance(quota, str) and not quota.startswith("max"):
        found.append(f"The control group limits CPU time ({printable(quota)}).")
    for key, name in (("governors", "governor"), ("affinity", "allowed CPUs"),
                      ("clock_source", "clock source")):  # fmt: skip
        if after and before.get(key) != after.get(key):
            found.append(f"The {name} changed during the run.")
    if kept := run.get("kept_env"):
        names = ", ".join(printable(str(name)) for name in kept)
        found.append(f"Workers kept variables that change allocation or loading: {names}.")
    return found


def _number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
