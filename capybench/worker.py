"""Child side of a run: one fresh process that measures, verifies or counts one cell, or lists all.

The parent starts `python -I -S -c BOOT PATH FD`, where PATH is the folder that holds `capybench`
and FD the descriptor for answers. It writes one JSON line to standard input and leaves that pipe
open; the worker answers with JSON lines on FD and ends by itself when the pipe closes, also in the
middle of a cell that hangs.

Request: {"protocol": 2, "op": "list" | "measure" | "count" | "verify", "limit_s": seconds,
          "plugins": [{"path": text, "name": text, "version": text}, ..], "core": file | null,
          "cell": id, "python": bool, "cpus": [..] | null, "samples": n, "target_ns": ns,
          "ops": n | null, "step": n, "single": bool}
Answers: {"event": "hello", "protocol": 2, "version": text}, then
         {"event": "loading", "path": text | null} before each plug-in is opened and after the
         last one, so that the parent knows which one ended the process, then one of
         {"event": "refused", "reason": text}
         {"event": "result", "status": "ok", ...}
         {"event": "result", "status": "failed" | "invalid" | "unavailable", "reason": text}

Everything that is imported here runs in the process that measures, so it is next to nothing: no
`json`, `signal`, `os` or `typing` (they cost 15 ms together), above all nothing that makes a
thread: for good, that ends glibc's fast paths for single-threaded programs.
"""

import _signal  # type: ignore[import-not-found, unused-ignore]
import fcntl
import posix
import sys
import time
from array import array

from capybench._version import __version__

#: Type checkers take this for true; at run time `typing` stays away.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 2

#: What the parent passes to `python -c`. Appended, so that nothing there hides standard modules.
BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from capybench.worker import main; main(int(sys.argv[2]))"
)

#: Warm-up ends when the median of the last WINDOW samples is within TOLERANCE of the least of them:
#: a series that still falls or rises is not steady, one late disturbance does not hold it up.
WINDOW = 3
TOLERANCE = 0.05
#: It is given up after so many samples, or when it took so many times the length of a sample.
WARMUP_LIMIT = 10

#: Flag bits of a sample, as the core sets them.
SINGLE_BEFORE, SINGLE_AFTER, CLOCK_BACK, CLOCK_STILL = 1, 2, 4, 8

STATUSES = ("failed", "invalid", "unavailable")

#: Cells that the core only names and Python measures: cell id -> "module:class". Such a class has
#: the methods of `_core.Run`; the module is imported in the worker, when its cell is asked for.
PYTHON_RUNS: dict[str, str] = {}

#: `verify` sets a cell up so often before it looks at what the process holds, and then so often in
#: each of a few spells. What grows in every spell is a leak; what a first use leaves behind for
#: good (a pool, a cache, the interpreter's own) is none.
SETTLING = 5
SPELLS, SPELL_ROUNDS = 3, 5
#: What counts as growth, for each set-up: a descriptor, malloc's smallest block, a page.
LEAST_GROWTH = (("descriptors", 1), ("heap bytes", 16), ("mapped bytes", 4096))


class Refusal(Exception):
    """The request cannot be served; the message says why."""


# --- JSON without the json package --------------------------------------------------------------


class _Plain:
    """The settings that the scanner in `_json` reads: everything as it is."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def loads(line: str) -> "Any":
    """Value of one line of JSON."""
    try:
        from _json import make_scanner
    except ImportError:
        from json import loads as slow_loads

        return slow_loads(line)
    return make_scanner(_Plain())(line, 0)[0]  # type: ignore[arg-type]


def dumps(value: object) -> str:
    """One line of JSON, without the newline."""
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:
        from json import dumps as slow_dumps

        return slow_dumps(value, separators=(",", ":"))
    encoder = make_encoder(
        None, _not_json, encode_basestring_ascii, None, ":", ",", False, False, False
    )
    return "".join(encoder(value, 0))


def _not_json(value: object) -> None:
    raise TypeError(f"{type(value).__name__} cannot be told to the parent")


# --- the pipe to the parent ---------------------------------------------------------------------


def _read_request() -> str:
    """The line on standard input; ends the process when the parent is gone."""
    data = b""
    while not data.endswith(b"\n"):
        part = posix.read(0, 65536)
        if not part:
            posix._exit(0)
        data += part
    return data.decode("utf-8")


def _end_with_parent() -> None:
    """From now on the kernel ends this process when the parent's end of the pipe closes.

    A pipe with O_ASYNC sends SIGIO when its last writer goes, and SIGIO's default action ends the
    process whatever it is doing, without a thread and without the GIL.
    """
    # Whatever this process inherited: a parent may have ignored or blocked these two.
    for number in (_signal.SIGIO, _signal.SIGALRM):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGIO, _signal.SIGALRM))
    fcntl.fcntl(0, fcntl.F_SETOWN, posix.getpid())
    flags = fcntl.fcntl(0, fcntl.F_GETFL)
    fcntl.fcntl(0, fcntl.F_SETFL, flags | posix.O_ASYNC | posix.O_NONBLOCK)
    try:
        closed = posix.read(0, 1) == b""
    except BlockingIOError:
        closed = False
    if closed:  # It was closed before the signal was armed.
        posix._exit(0)


def _say(answers: int, message: dict[str, object]) -> None:
    data = (dumps(message) + "\n").encode("ascii")
    while data:
        data = data[posix.write(answers, data) :]


# --- the work -----------------------------------------------------------------------------------


def _from_file(name: str, path: str) -> "Any":
    """An extension module from a file that need not lie in the package."""
    # What `import` itself is made of: importlib would cost more than all the rest.
    import _frozen_importlib as machinery
    import _frozen_importlib_external as external

    loader = external.ExtensionFileLoader(name, path)
    spec: Any = external.spec_from_file_location(name, path, loader=loader)
    module = machinery.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _load(counting: bool, file: "str | None") -> "Any":
    """The extension: `_ledger` for counts, `_core` for time; never both in one process. `file` is
    the one to take instead of the package's own."""
    core: Any
    if file is not None:
        core = _from_file("capybench._ledger" if counting else "capybench._core", file)
    elif counting:
        from capybench import _ledger as core
    else:
        from capybench import _core as core
    if core.counting is not counting:
        says = "counts" if core.counting else "does not count"
        raise Refusal(f"{core.__name__} says that it {says}: the two builds are mixed up")
    return core


def _load_plugins(core: "Any", answers: int, request: "dict[str, Any]") -> None:
    """Open the plug-ins that the cell needs; they must be what the parent has listed."""
    for wanted in request.get("plugins") or ():
        path = wanted["path"]
        _say(answers, {"event": "loading", "path": path})
        try:
            told = core.load_plugin(path)
        except core.CoreError as error:
            raise Refusal(f"the plug-in {path} is refused: {error}") from None
        for key in ("name", "version"):
            if told[key] != wanted.get(key, told[key]):
                raise Refusal(f"the plug-in {path} has {key} {told[key]!r}, not {wanted[key]!r}")
    _say(answers, {"event": "loading", "path": None})


def _open(core: "Any", request: "dict[str, Any]") -> "Any":
    """The run object of the cell: the core's, or a Python one where Python measures."""
    cell = request["cell"]
    if not request.get("python"):
        return core.Run(cell)
    where = PYTHON_RUNS.get(cell)
    if where is None:
        raise Refusal(f"{cell} is measured by Python code, which this version does not have")
    module, _, name = where.partition(":")
    return getattr(__import__(module, fromlist=[name]), name)(cell)


def _list(core: "Any", answers: int, request: "dict[str, Any]") -> dict[str, object]:
    """What the core and plug-ins have; a plug-in that is refused has an error instead of cells."""
    cells = core.cases()
    plugins = []
    for wanted in request.get("plugins") or ():
        told: dict[str, object] = {"path": wanted["path"]}
        _say(answers, {"event": "loading", **told})
        try:
            made = core.load_plugin(wanted["path"])
            cells += made.pop("cells")
            told.update(made)
        except Exception as error:
            known = isinstance(error, core.CoreError)
            told["error"] = str(error) if known else f"{type(error).__name__}: {error}"
        plugins.append(told)
    _say(answers, {"event": "loading", "path": None})
    return {
        "plugins": plugins,
        "build": core.build(),
        "abi_version": core.abi_version,
        "python": sys.version.split()[0],
        "suites": core.suites(),
        "cells": cells,
    }


def _count(core: "Any", request: "dict[str, Any]") -> dict[str, object]:
    with _open(core, request) as run:
        ledger = run.ledger(request["ops"])
        run.verify()
    return {"ledger": ledger, "ops": request["ops"]}


def _warm_up(run: "Any", ops: int, target_ns: int) -> dict[str, object]:
    """Measure until the series is steady; `steady` is null where too few samples could tell."""
    one, flag = array("Q", [0]), array("Q", [0])
    seen: list[int] = []
    steady = None
    while steady is not True and len(seen) < WARMUP_LIMIT and sum(seen) < WARMUP_LIMIT * target_ns:
        run.measure(ops, one, flag)
        seen.append(one[0])
        if len(seen) >= WINDOW:
            last = sorted(seen[-WINDOW:])
            steady = last[WINDOW // 2] <= (1 + TOLERANCE) * last[0]
    return {"samples_ns": seen, "steady": steady}


def _host_ms(cpus: "list[int]") -> "tuple[int, int]":
    """Busy and stolen time of these CPUs since boot, in ms (granularity: the kernel's tick)."""
    busy = stolen = 0
    wanted = {f"cpu{number}" for number in cpus}
    try:
        with open("/proc/stat") as file:
            for line in file:
                name, *fields = line.split()
                if name in wanted:
                    user, nice, system, _idle, _wait, irq, soft, steal = map(int, fields[:8])
                    busy += user + nice + system + irq + soft
                    stolen += steal
    except (OSError, ValueError):
        return 0, 0
    tick = 1000 // posix.sysconf("SC_CLK_TCK")
    return busy * tick, stolen * tick


def _sample(
    core: "Any", run: "Any", ops: int, count: int
) -> "tuple[array[int], array[int], list[int]]":
    """Samples, their flags, and the pace probes: pace[i] before sample i, pace[i + 1] after it."""
    samples, flags = array("Q", bytes(8 * count)), array("Q", bytes(8 * count))
    one, flag = array("Q", [0]), array("Q", [0])
    pace = [core.pace()]
    for i in range(count):
        if run.measure(ops, one, flag) != 1:
            raise Refusal("a sample did not come back")
        pace.append(core.pace())
        samples[i], flags[i] = one[0], flag[0]
    return samples, flags, pace


def _measure(core: "Any", request: "dict[str, Any]") -> dict[str, object]:
    count, target_ns = request["samples"], request["target_ns"]
    with _open(core, request) as run:
        ready_ns = time.monotonic_ns()
        # A step that suits the other variants, too, may be larger than the cell's own.
        step = request.get("step") or 1
        ops = request["ops"] or -(-run.calibrate(target_ns) // step) * step
        warmup = _warm_up(run, ops, target_ns)
        cpus = request.get("cpus") or list(posix.sched_getaffinity(0))
        before, host = run.usage(), _host_ms(cpus)
        samples, flags, pace = _sample(core, run, ops, count)
        usage, host_after = run.usage(), _host_ms(cpus)
        threads = len(posix.listdir("/proc/self/task"))
        run.verify()
        facts = run.facts()
    for key, value in before.items():
        usage[key] -= value  # The core's sums include the warm-up.
    usage["threads"] = threads
    return {
        "ops": ops,
        "samples_ns": list(samples),
        "flags": list(flags),
        "pace_ns": pace,
        "cpu_busy_ms": host_after[0] - host[0],
        "cpu_steal_ms": host_after[1] - host[1],
        "single_before": all(flag & SINGLE_BEFORE for flag in flags),
        "single_after": all(flag & SINGLE_AFTER for flag in flags),
        "usage": usage,
        "warmup": warmup,
        "facts": facts,
        "ready_ns": ready_ns,
    }


# --- verification ------------------------------------------------------------------------------


def _threads() -> int:
    """Threads of this process. The kernel may need a moment to forget one that was joined."""
    for _ in range(200):
        count = len(posix.listdir("/proc/self/task"))
        if count == 1:
            return 1
        time.sleep(0.005)
    return count


def _has_children() -> bool:
    try:
        posix.waitid(posix.P_ALL, 0, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _held() -> "tuple[int, int]":
    """Open descriptors and mapped bytes."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[0])
    return len(posix.listdir("/proc/self/fd")), pages * posix.sysconf("SC_PAGE_SIZE")


def _spell(core: "Any", cycle: "Any") -> "tuple[int, ...]":
    """Growth over a few set-ups and tear-downs, in the order of LEAST_GROWTH.

    The heap is read right around them: reading the rest takes some of it.
    """
    descriptors, mapped = _held()
    heap = core.heap_in_use()
    for _ in range(SPELL_ROUNDS):
        cycle(1)
    grown = core.heap_in_use() - heap
    after = _held()
    return after[0] - descriptors, grown, after[1] - mapped


def _growth(spells: "list[tuple[int, ...]]") -> list[str]:
    """What grew in every spell, as sentences. Mappings are only worth a word where nothing else
    explains them."""
    found: list[str] = []
    for nth, (name, bound) in enumerate(LEAST_GROWTH):
        least = min(spell[nth] for spell in spells)
        if least >= bound * SPELL_ROUNDS and (name != "mapped bytes" or not found):
            each = least // SPELL_ROUNDS
            found.append(f"{each} {name} more after each set-up and tear-down")
    return found


def _verify(core: "Any", request: "dict[str, Any]") -> dict[str, object]:
    """Set the cell up again and again with several op counts, then look at what is left."""
    step = request["ops"]
    one, flag = array("Q", [0]), array("Q", [0])
    rounds = 0

    def cycle(*counts: int) -> None:
        nonlocal rounds
        rounds += 1
        with _open(core, request) as run:
            for count in counts:
                run.measure(count * step, one, flag)
                run.verify()
        if _has_children():
            raise Refusal("leaks: a child process is left after tear-down")

    threads = _threads()
    leaks = []
    try:
        cycle(1)
        cycle(1, 2, 3)
        cycle(7, 1)
        while rounds < SETTLING:
            cycle(1)
        left = _threads() - threads
        if left > 0:
            leaks.append(f"{left} threads are left after {rounds} set-ups and tear-downs")
        if request["single"] and not core.single_threaded():
            raise Refusal("the cell says CPB_SINGLE, but it has made a thread")
        spells = [_spell(core, cycle) for _ in range(SPELLS)]
    except (core.CoreError, Refusal) as error:
        if rounds == 1 and getattr(error, "status", "") == "unavailable":
            raise
        return {"status": "failed", "reason": f"set-up {rounds}: {error}"}
    if not leaks:  # A thread left behind explains everything else that grows.
        leaks = _growth(spells)
    return {"leaks": leaks, "rounds": rounds}


def _serve(answers: int, request: "dict[str, Any]") -> dict[str, object]:
    if request.get("cpus"):
        posix.sched_setaffinity(0, request["cpus"])
    op = request["op"]
    work = {"measure": _measure, "count": _count, "verify": _verify}
    if op != "list" and op not in work:
        raise Refusal(f"there is no request {op!r}; there are list, {', '.join(work)}")
    core = _load(op == "count", request.get("core"))
    try:
        if op == "list":
            return _list(core, answers, request)
        _load_plugins(core, answers, request)
        return work[op](core, request)
    except core.CoreError as error:
        status = getattr(error, "status", "failed")
        known = status if status in STATUSES else "failed"
        return {"status": known, "reason": str(error)}


def main(answers: int) -> None:
    """Serve one request, answer on the descriptor `answers`, and end."""
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    # Children of a cell must not hold the parent's pipe open.
    posix.set_inheritable(answers, False)
    request = loads(_read_request())
    _end_with_parent()
    # The parent's watchdog is the first line; this holds should the parent itself be stopped.
    _signal.alarm(int(request.get("limit_s", 60)) + 5)
    _say(answers, {"event": "hello", "protocol": PROTOCOL, "version": __version__})
    theirs = request.get("protocol")
    if theirs != PROTOCOL:
        reason = (
            f"the measured build (capybench {__version__}) speaks worker protocol {PROTOCOL}, "
            f"the calling one protocol {theirs}"
        )
        _say(answers, {"event": "refused", "reason": reason})
        return
    try:
        result = {"event": "result", "status": "ok", **_serve(answers, request)}
    except Refusal as error:
        result = {"event": "result", "status": "failed", "reason": str(error)}
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        result = {"event": "result", "status": "failed", "reason": reason}
    if request.get("inspect"):
        result["modules"] = sorted(sys.modules)
        result["threads"] = len(posix.listdir("/proc/self/task"))
    _say(answers, result)
