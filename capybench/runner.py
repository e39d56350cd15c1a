"""Parent side of a run: starts workers, watches them, keeps a journal, makes the document.

    listing = cases.list_cells()
    chosen = cases.select(listing, patterns, keyword, quick_only=quick)
    plan = make_plan(listing, chosen, quick=quick, patterns=patterns)
    document = run_plan(plan, target="result.json", progress=bar)

One worker at a time, never a retry. A cell that fails, hangs or crashes is reported and not run in
later blocks; the rest of the run goes on. Every finished worker is one line of the journal beside
the target (`FILE.journal`), synced before the next one starts, so that a killed run loses at most
one worker and `resume` goes on with the rest. The journal goes away when the run is complete.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol

from capybench import environment
from capybench._version import __version__
from capybench.cases import Case, Cell, Listing, Suite, Variant, ordered
from capybench.errors import (
    EnvironmentFault,
    JournalError,
    PluginError,
    SaveError,
    TargetError,
    UsageError,
)
from capybench.plan import Plan, Side, Step, count_ops, worker_seconds
from capybench.plugins import Plugin, PluginFile, accepted, changed
from capybench.worker import BOOT, CLOCK_BACK, CLOCK_STILL, PROTOCOL

SCHEMA = "capybench/1"
JOURNAL = 2
#: The folder of runs that were not given a name, in the current folder.
RUNS = Path(".capybench") / "runs"
#: Seconds after which a worker counts as hanging, start to end.
TIMEOUT_S = 60.0
#: Share of samples in which the clock may have stepped back before a cell is invalid.
CLOCK_FAULTS = 0.001
#: The events of a ledger (per op), in the order of the file.
LEDGER = (
    "heap_allocs",
    "resource_allocs",
    "invoker_frames",
    "indirect_calls",
    "atomic_rmws",
    "seq_cst_stores",
    "ref_changes",
    "mutex_pairs",
    "posts",
    "syscalls",
)

Finish = Callable[[dict[str, Any]], dict[str, Any]]
#: Told the process records of what is compared with one another in a block: the variants of a cell,
#: or, in a run of one build, the contenders of a case. True: measure them all again in new workers.
Rule = Callable[[Sequence[Mapping[str, Any]]], bool]


class Progress(Protocol):
    """What a run tells while it runs. Called between workers, never while one measures."""

    def start(self, plan: Plan, done: int, total: int) -> None:
        """The run begins; `done` of `total` workers have finished before (a resumed run)."""

    def worker_done(
        self, step: Step, status: str, done: int, total: int, remaining_s: float
    ) -> None:
        """A worker has finished; `remaining_s` is the estimated rest in seconds."""

    def end(self, interrupted: bool) -> None:
        """The run is over, by itself or by its user."""


# --- one worker ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a worker ended: `status` as of a cell, `reason` unless ok, and its result."""

    status: str
    reason: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)


def installed_variant() -> Variant:
    """This interpreter and this package."""
    return Variant(sys.executable, str(Path(__file__).resolve().parent.parent))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _crash_reason(returncode: int, errors: str, timeout_s: float) -> Outcome:
    """What a worker that ended without a result says by its exit status."""
    if returncode < 0:
        name = _signal_name(-returncode)
        hints = {
            "SIGKILL": " (killed from outside, for instance for want of memory)",
            "SIGALRM": f" (its own alarm: not done after {timeout_s:g} s)",
        }
        return Outcome("crashed", f"the worker was ended by {name}{hints.get(name, '')}")
    last = errors.strip().rpartition("\n")[2].strip()
    said = f": {last}" if last else ""
    return Outcome("crashed", f"the worker ended with exit code {returncode} and no result{said}")


class _Worker:
    """A started worker; always leave through `end`, which kills its whole process group."""

    def __init__(self, variant: Variant, env: Mapping[str, str], timeout_s: float) -> None:
        self._deadline = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._buffer = b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        self.started_ns = time.monotonic_ns()
        answers, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(
                [variant.python, "-I", "-S", "-c", BOOT, variant.path, str(theirs)],
                stdin=subprocess.PIPE,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(theirs,),
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            os.close(answers)
            self._errors.close()
            raise EnvironmentFault(
                f"cannot start a worker with {variant.python}: {error.strerror}"
            ) from None
        finally:
            os.close(theirs)
        self._answers = answers

    def ask(self, request: Mapping[str, Any]) -> None:
        """Send the request. The pipe stays open: its end ends the worker."""
        stdin = self._process.stdin
        if stdin is None:
            raise ValueError("the worker was started without a pipe")
        # A worker that is gone already is noticed by its missing answer.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()

    def lines(self) -> Iterator[dict[str, Any]]:
        """Answers until the worker ends. TimeoutError when the watchdog has to end it."""
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = rest
                yield json.loads(line)
                continue
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            # Short waits: a child of the worker may hold the pipe open after its death.
            if not select.select([self._answers], [], [], min(left, 0.25))[0]:
                if self._ended() and not select.select([self._answers], [], [], 0)[0]:
                    return
                continue
            data = os.read(self._answers, 1 << 16)
            if not data:
                return
            self._buffer += data

    def _ended(self) -> bool:
        """Whether it has ended. It is not reaped: its group's number must stay taken."""
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self._process.pid, how) is not None

    def end(self) -> int | None:
        """Wait for the end within the deadline, kill what is left of the group, reap.

        Returns the exit status as `subprocess` gives it, None when it had to be killed.
        """
        pause = 0.0005
        while not (ended := self._ended()) and time.monotonic() < self._deadline:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        self.kill()
        return self._process.returncode if ended else None

    def kill(self) -> None:
        """Kill the group and reap the worker; harmless when repeated."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1

    def errors(self) -> str:
        """The end of what it wrote to its standard output and error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 4096))
        return self._errors.read().decode("utf-8", "replace")

    def close(self) -> None:
        """Kill it if it lives and close everything."""
        self.kill()
        self._errors.close()


def ask_worker(
    request: Mapping[str, Any],
    variant: Variant,
    env: Mapping[str, str],
    *,
    timeout_s: float = TIMEOUT_S,
) -> Outcome:
    """Start a worker, let it serve one request, and see it (and its whole group) ended.

    `request` needs no protocol number. The result gains `startup_ns`: from the start of the process
    to the cell being ready for its first sample.

    Raises:
        EnvironmentFault: it cannot be started, or it speaks another protocol.
    """
    worker = _Worker(variant, env, timeout_s)
    loading: str | None = None

    def ended(outcome: Outcome) -> Outcome:
        """An outcome without a result; a plug-in that was being opened is named in it."""
        if loading is None:
            return outcome
        return Outcome(
            outcome.status,
            f"{outcome.reason} (while it opened the plug-in {loading})",
            {"loading": loading},
        )

    try:
        core = variant.ledger if request["op"] == "count" else variant.core
        defaults = {"protocol": PROTOCOL, "plugins": [], "core": core, "limit_s": timeout_s}
        worker.ask({**defaults, **request})
        result: dict[str, Any] | None = None
        try:
            for message in worker.lines():
                if message["event"] == "hello" and message["protocol"] != PROTOCOL:
                    raise EnvironmentFault(
                        f"the measured build (capybench {message['version']}) speaks worker "
                        f"protocol {message['protocol']}, this capybench {__version__} protocol "
                        f"{PROTOCOL}; measure with matching versions"
                    )
                if message["event"] == "loading":
                    loading = message["path"]
                if message["event"] == "refused":
                    raise EnvironmentFault(message["reason"])
                if message["event"] == "result":
                    result = message
                    break
        except TimeoutError:
            worker.kill()
            reason = f"no result after {timeout_s:g} s; the worker was killed"
            return ended(Outcome("timeout", reason))
        returncode = worker.end()
        if returncode is None:
            return Outcome(
                "timeout", f"the worker did not end within {timeout_s:g} s; it was killed"
            )
        if result is None or returncode != 0:
            return ended(_crash_reason(returncode, worker.errors(), timeout_s))
        if "ready_ns" in result:
            result["startup_ns"] = result.pop("ready_ns") - worker.started_ns
        return Outcome(result["status"], result.get("reason"), result)
    finally:
        worker.close()


def library_folders_of(variant: Variant) -> list[str]:
    """Where workers of a variant may find allocators that came as packages."""
    return environment.library_folders([variant.path, *sys.path])


def blame(cell: Cell, plugins: Iterable[Plugin], outcome: Outcome) -> Outcome:
    """The outcome, with the plug-in named in it where a plug-in's cell ended its worker."""
    guilty = next((plugin for plugin in plugins if plugin.name == cell.plugin), None)
    if guilty is None or outcome.status not in ("crashed", "timeout") or outcome.result:
        return outcome
    reason = f"{outcome.reason} (in the plug-in {guilty.name}, {guilty.path})"
    return Outcome(outcome.status, reason, outcome.result)


def _list_with(
    variant: Variant, files: Sequence[PluginFile], timeout_s: float
) -> tuple[Outcome, dict[str, str]]:
    """List the core with plug-ins, and why each of the others was refused, by path.

    One worker does it all, unless a plug-in ends the process: then another lists without it.
    """
    env = environment.worker_environment(
        os.environ, static_tls=True, folders=library_folders_of(variant)
    )
    refused: dict[str, str] = {}
    while True:
        asked = [{"path": file.path} for file in files if file.path not in refused]
        request = {"op": "list", "plugins": asked}
        outcome = ask_worker(request, variant, env, timeout_s=timeout_s)
        guilty = outcome.result.get("loading")
        if guilty is None:
            break
        refused[guilty] = f"{outcome.status}: {outcome.reason}"
    for told in outcome.result.get("plugins", ()):
        if "error" in told:
            refused[told["path"]] = told["error"]
    return outcome, refused


def list_in_worker(
    variant: Variant | None = None,
    *,
    plugins: Iterable[PluginFile] = (),
    warnings: Iterable[str] = (),
    timeout_s: float = 30.0,
) -> Listing:
    """What the core of `variant` and plug-in files have; see `cases.list_cells`, which is this.

    Raises:
        EnvironmentFault: no extension there, or its worker fails; the message says how.
        PluginError: a required plug-in was refused. Any other becomes a warning of the listing.
    """
    variant = variant or installed_variant()
    files = tuple(plugins)
    outcome, refused = _list_with(variant, files, timeout_s)
    if outcome.status != "ok":
        reason = outcome.reason or outcome.status
        if "cannot import name '_core'" in reason or "No module named" in reason:
            raise EnvironmentFault(
                f"the extension capybench._core is not built in {variant.path}; "
                "pip install builds it"
            )
        raise EnvironmentFault(f"the core cannot be listed: {reason}")
    said = [*warnings]
    for file in files:
        if file.path in refused:
            reason = f"the plug-in {file.path} ({file.source}) is left out: {refused[file.path]}"
            if file.required:
                raise PluginError(reason.replace(" is left out: ", ": "))
            said.append(reason)
    result = outcome.result
    told = {one["path"]: one for one in result.get("plugins", ()) if "error" not in one}
    cells = ordered(Cell.from_dict(raw) for raw in result["cells"])
    suites = [Suite.from_dict(raw) for raw in result["suites"]]
    known = {suite.name for suite in suites}
    foreign = {cell.suite: cell.plugin for cell in cells if cell.suite not in known}
    suites += [Suite(name, f"from the plug-in {plugin}") for name, plugin in foreign.items()]
    return Listing(
        cells=cells,
        suites=tuple(suites),
        build={**result["build"], "python": result["python"]},
        variant=variant,
        plugins=tuple(accepted(file, told[file.path]) for file in files if file.path in told),
        warnings=tuple(said),
    )


# --- the journal --------------------------------------------------------------------------------


def journal_path(target: str | os.PathLike[str]) -> Path:
    """The journal that belongs to a result file."""
    return Path(f"{os.fspath(target)}.journal")


def _target_of(path: str | os.PathLike[str]) -> Path:
    """The result file that is meant by a file or by its journal."""
    return Path(os.fspath(path).removesuffix(".journal"))


class _TakenError(TargetError):
    """Another run that lives writes there."""


class _Journal:
    """An append-only file of JSON lines, locked while its run lives; first line: the plan."""

    def __init__(self, path: Path, descriptor: int, *, replaced: bool = False) -> None:
        self.path = path
        self.replaced = replaced
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, head: Mapping[str, Any]) -> _Journal:
        """Start a new journal; what an unfinished run left there is replaced."""
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                _lock(descriptor, path)
                # Without a name, its run has ended and removed it before it was locked here.
                found = os.fstat(descriptor)
                if found.st_nlink > 0:
                    os.ftruncate(descriptor, 0)
                    journal = cls(path, descriptor, replaced=found.st_size > 0)
                    journal.add(head)
                    _sync_folder(path)
                    return journal
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    @classmethod
    def reopen(cls, path: Path) -> tuple[_Journal, list[dict[str, Any]]]:
        """Go on with a journal; also its lines. A line that a kill cut short is removed."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _lock(descriptor, path)
            data = path.read_bytes()
            lines, whole = _read_lines(path, data)
            os.ftruncate(descriptor, whole)
            os.lseek(descriptor, whole, os.SEEK_SET)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor), lines

    def add(self, line: Mapping[str, Any]) -> None:
        """Append one line and see it on the disk."""
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)

    def close(self, *, remove: bool) -> None:
        """Let go of the file; `remove` it when the result file holds everything."""
        if remove:
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        os.close(self._descriptor)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _TakenError(
            f"another run is writing {_target_of(path)}; wait for it or choose another file"
        ) from None


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_lines(path: Path, data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The whole lines of a journal and how many bytes they take."""
    lines: list[dict[str, Any]] = []
    whole = 0
    for number, raw in enumerate(data.split(b"\n")[:-1], 1):
        try:
            line = json.loads(raw)
            if not isinstance(line, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise JournalError(f"{path}: line {number} is damaged ({error})") from None
        lines.append(line)
        whole += len(raw) + 1
    if not lines or lines[0].get("journal") != JOURNAL:
        found = lines[0].get("journal") if lines else None
        raise JournalError(
            f"{path} is not a journal of this version (journal {found!r}, expected {JOURNAL})"
        )
    return lines, whole


# --- where results go ---------------------------------------------------------------------------


def default_target(seed: int, created: datetime | None = None) -> Path:
    """`.capybench/runs/<UTC time>-<seed>.json`; with -2, -3 … where that is taken."""
    moment = created or datetime.now(UTC)
    stem = f"{moment:%Y%m%dT%H%M%SZ}-{seed}"
    nth = 1
    while True:
        path = RUNS / (f"{stem}.json" if nth == 1 else f"{stem}-{nth}.json")
        if not path.exists() and not journal_path(path).exists():
            return path
        nth += 1


def newest_run(folder: str | os.PathLike[str] = RUNS) -> Path | None:
    """The newest result file (by name: names begin with the time), or None."""
    return max(Path(folder).glob("*.json"), key=lambda path: path.name, default=None)


def _open_target(target: Path, head: Mapping[str, Any]) -> _Journal:
    """Make sure that the result can be written, and start its journal.

    Raises TargetError with one sentence; nothing has been measured then.
    """
    try:
        # Only the store's own folder is made; a folder that a user misspelt is an error.
        if target.parent == RUNS:
            target.parent.mkdir(parents=True, exist_ok=True)
        elif not target.parent.is_dir():
            raise TargetError(f"cannot write {target}: there is no folder {target.parent}")
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        # Replacing a file needs its folder only, but a file that its owner made read-only stays.
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is not writable")
        return _Journal.create(journal_path(target), head)
    except OSError as error:
        raise TargetError(f"cannot write {target}: {error.strerror}") from None


# --- a run --------------------------------------------------------------------------------------


def _with_summaries(document: dict[str, Any]) -> dict[str, Any]:
    # Imported here: it needs numpy, which planning and listing do without.
    from capybench.results import RunResult

    return RunResult.from_dict(document).to_dict()


def save_document(document: Mapping[str, Any], target: Path) -> None:
    """Write a document whole or not at all; SaveError carries it when that fails."""
    from capybench.results import document_text, write_atomic

    try:
        write_atomic(target, document_text(document))
    except OSError as error:
        raise SaveError(f"cannot save {target}: {error.strerror}", dict(document)) from error


def run_plan(
    plan: Plan,
    *,
    target: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    timeout_s: float = TIMEOUT_S,
    finish: Finish | None = None,
    rule: Rule | None = None,
) -> dict[str, Any]:
    """Carry out a plan and save the document.

    Args:
        plan: from `make_plan`.
        target: the result file; `default_target` when None. An existing one is replaced.
        progress: told between workers.
        timeout_s: seconds after which a worker counts as hanging and is killed.
        finish: what is made of the document before it is saved and returned; by default the
            summaries of `capybench.results` are added.
        rule: decides, from what a block's workers said about their conditions, whether they are
            measured again at once; at most blocks/2 times a cell. What was measured before stays
            in the document; the last process of a block counts.

    Returns:
        The document. After Ctrl-C it holds the finished workers, `run.interrupted` is true and the
        journal stays, so that `resume` can go on. `run.path` names the file.

    Raises:
        TargetError: the file cannot be written; nothing was measured.
        SaveError: saving failed; its `document` is what would have been saved.
        EnvironmentFault: a worker cannot be started at all.
        UsageError: there is nothing to run.
    """
    if not plan.cells:
        raise UsageError("the plan has no cells")
    created = datetime.now(UTC)
    path = Path(target) if target is not None else default_target(plan.seed, created)
    head = {
        "journal": JOURNAL,
        "id": f"{created:%Y%m%dT%H%M%S.%fZ}-{plan.seed}",
        "created_utc": created.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "environment": environment.influences(os.environ),
        "fingerprint": environment.fingerprint(),
        "before": environment.volatile(),
        "plan": plan.to_dict(),
    }
    while True:
        try:
            journal = _open_target(path, head)
            break
        except _TakenError:
            # Another run with this seed began in the same second and took the name.
            if target is not None:
                raise
            path = default_target(plan.seed, created)
    run = _Run(plan, head, path, journal, timeout_s, rule)
    if journal.replaced:
        run.warnings.append(f"{journal.path} of an unfinished run was replaced")
    return run.carry_out(progress, finish or _with_summaries)


def resume(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    timeout_s: float = TIMEOUT_S,
    finish: Finish | None = None,
    rule: Rule | None = None,
) -> dict[str, Any]:
    """Go on with a run that was killed or interrupted; `path` is its file or its journal.

    What has finished is kept, also failures; the rest of the plan is carried out as planned. `rule`
    is the one that the run began with.

    Raises:
        JournalError: no journal, a damaged one, or one of another build or machine.
        others: as `run_plan`.
    """
    target = _target_of(path)
    journal_file = journal_path(target)
    if not journal_file.exists():
        known = "is complete" if target.exists() else "does not exist"
        raise JournalError(
            f"nothing to resume: {target} {known} and there is no journal {journal_file}"
        )
    try:
        journal, lines = _Journal.reopen(journal_file)
    except OSError as error:
        raise TargetError(f"cannot resume {target}: {error.strerror}") from None
    try:
        head, plan = _head(journal_file, lines)
        _same_place(head, plan)
        run = _Run(plan, head, target, journal, timeout_s, rule)
        run.replay(lines[1:])
    except BaseException:
        journal.close(remove=False)
        raise
    return run.carry_out(progress, finish or _with_summaries)


def recover(path: str | os.PathLike[str], *, finish: Finish | None = None) -> dict[str, Any]:
    """The document of an unfinished run, from its journal, marked incomplete; changes no file.

    `path` is its result file (which need not exist) or its journal.

    Raises:
        JournalError: there is no journal or it cannot be read.
    """
    journal_file = journal_path(_target_of(path))
    try:
        lines, _ = _read_lines(journal_file, journal_file.read_bytes())
    except OSError as error:
        raise JournalError(f"cannot read {journal_file}: {error.strerror}") from None
    head, plan = _head(journal_file, lines)
    run = _Run(plan, head, _target_of(path), None, TIMEOUT_S)
    run.replay(lines[1:])
    return (finish or _with_summaries)(run.document())


def _head(path: Path, lines: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], Plan]:
    try:
        return lines[0], Plan.from_dict(lines[0]["plan"])
    except (KeyError, TypeError, IndexError) as error:
        raise JournalError(f"{path}: its plan cannot be read ({error})") from None


def _same_place(head: Mapping[str, Any], plan: Plan) -> None:
    """A run goes on only where it began: same build, same machine, its CPUs still allowed."""
    for side in plan.sides:
        _same_build(side)
    machine = environment.fingerprint()
    for key in ("cpu", "kernel", "libc", "cpus"):
        if machine[key] != head["fingerprint"].get(key):
            raise JournalError(
                f"the run began on another machine ({key} was {head['fingerprint'].get(key)!r}, "
                f"is {machine[key]!r}); start a new run"
            )
    wanted = {cpu for step in plan.steps for cpu in step.cpus or ()}
    gone = sorted(wanted - os.sched_getaffinity(0))
    if gone:
        listed = ", ".join(map(str, gone))
        raise JournalError(f"the run needs CPU {listed}, which this process may not use now")


def _same_build(side: Side) -> None:
    """JournalError where the core or a plug-in of a side is another one now."""
    where = f" of the variant {side.name}" if side.name else ""
    try:
        listing = list_in_worker(side.variant, plugins=[plugin.file for plugin in side.plugins])
        difference = changed(side.plugins, listing.plugins)
    except PluginError as error:
        difference = str(error)
    if difference is not None:
        raise JournalError(f"{difference} since the run began; start a new run")
    now = listing.build
    for key in ("build_id", "compiler", "flags", "version"):
        if now.get(key) != side.build.get(key):
            raise JournalError(
                f"the core{where} has changed since the run began "
                f"({key} was {side.build.get(key)!r}, is {now.get(key)!r}); start a new run"
            )


@dataclass(slots=True)
class _State:
    """What is known so far of one cell in one build."""

    cell: Cell
    label: str = ""
    status: str = "ok"
    reason: str | None = None
    processes: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, Any] | None = None
    ledger: dict[str, Any] | None = None
    ledger_reason: str | None = None
    uncounted: bool = False
    clock_back: int = 0
    clock_still: int = 0
    samples: int = 0

    def fail(self, status: str, reason: str) -> None:
        """The first failure stands."""
        if self.status == "ok":
            self.status, self.reason = status, reason


class _Run:
    """The state of a run: its plan, its cells, and the journal they are recorded in."""

    def __init__(
        self,
        plan: Plan,
        head: Mapping[str, Any],
        target: Path,
        journal: _Journal | None,
        timeout_s: float,
        rule: Rule | None = None,
    ) -> None:
        self.plan = plan
        self.head = head
        self.target = target
        self.journal = journal
        self.timeout_s = timeout_s
        self.rule = rule
        self.warnings: list[str] = [*plan.warnings, *_environment_warnings(plan, head)]
        self.finished: set[Step] = set()
        self.interrupted = False
        self.after: dict[str, Any] | None = None
        self.sides = {side.name: side for side in plan.sides}
        self.cells = {cell.id: cell for cell in plan.cells}
        self.case_of = {cell.id: case.id for case in plan.cases for cell in case.cells}
        self.states = {
            (cell.id, side.name): _state(cell, side) for cell in plan.cells for side in plan.sides
        }
        # Shared by the variants of a cell: an op count, its processes in the order they ran, and
        # the rounds that were measured again.
        self.ops: dict[str, int] = {}
        self.processes: dict[str, list[dict[str, Any]]] = {cell.id: [] for cell in plan.cells}
        self.again: dict[str, set[tuple[int, int]]] = {cell.id: set() for cell in plan.cells}
        self._folders = {side.name: library_folders_of(side.variant) for side in plan.sides}
        # jemalloc's thread-locals fit only where the loader reserves room; all contenders of its
        # case get the same environment.
        self._static_tls = {
            cell.id for case in plan.cases if "jemalloc" in case.contenders for cell in case.cells
        }

    # --- carrying out

    def carry_out(self, progress: Progress | None, finish: Finish) -> dict[str, Any]:
        """Run what is not done, save, and let go of the journal."""
        try:
            if progress is not None:
                progress.start(self.plan, len(self.finished), len(self.plan.steps))
            try:
                self._run_steps(progress)
            except KeyboardInterrupt:
                self.interrupted = True
            self.after = environment.volatile()
            if progress is not None:
                progress.end(self.interrupted)
            document = finish(self.document())
            save_document(document, self.target)
            self._close(remove=self.complete)
            return document
        finally:
            self._close(remove=False)

    def _close(self, *, remove: bool) -> None:
        if self.journal is not None:
            self.journal.close(remove=remove)
            self.journal = None

    @property
    def complete(self) -> bool:
        """Whether nothing of the plan is left to do."""
        return all(step in self.finished or self._dead(step) for step in self.plan.steps)

    def _dead(self, step: Step) -> bool:
        """A cell that has failed is not run again in that build."""
        return self.states[step.cell, step.variant].status != "ok"

    # --- what is run, and what again

    def _turns(self) -> Iterator[tuple[int, Step]]:
        """All steps in order, each with the number of planned ones up to it; repeats in between.

        Whoever asks for the next one has taken what the last one said.
        """
        place = 0
        for _, group in itertools.groupby(self.plan.steps, self._compared):
            steps = list(group)
            for step in steps:
                place += 1
                yield place, step
            while self._marked(steps):
                steps = [replace(step, repeat=step.repeat + 1) for step in steps]
                for step in steps:
                    yield place, step

    def _compared(self, step: Step) -> tuple[str, int, str]:
        """Steps with one key are compared with one another, and follow one another."""
        whole = step.cell if len(self.sides) > 1 else self.case_of[step.cell]
        return step.kind, step.block, whole

    def _marked(self, steps: Sequence[Step]) -> bool:
        """Whether the rule wants these steps measured again, and may have it."""
        if self.rule is None or steps[0].kind != "measure" or any(map(self._dead, steps)):
            return False
        # Only what came before counts, so that a resumed run decides as it did the first time.
        limit, here = self.plan.blocks // 2, (steps[0].block, steps[0].repeat + 1)
        if any(sum(again < here for again in self.again[step.cell]) >= limit for step in steps):
            return False
        records = [self._record(step) for step in steps]
        known = [record for record in records if record is not None]
        return len(known) == len(steps) and self.rule(known)

    def _record(self, step: Step) -> dict[str, Any] | None:
        """What the step's worker said; None where it has not run."""
        for record in reversed(self.processes[step.cell]):
            key = (record["block"], record.get("variant", ""), record.get("repeat", 0))
            if key == (step.block, step.variant, step.repeat):
                return dict(record)
        return None

    def _run_steps(self, progress: Progress | None) -> None:
        began = time.monotonic()
        expected = self._expected(step for step in self.plan.steps if step not in self.finished)
        repeats = 0
        for place, step in self._turns():
            repeats += step.repeat > 0
            if step in self.finished:
                continue
            status = "skipped"
            if not self._dead(step):
                line = {"step": _key(step), **self._work(step)}
                if self.journal is None:
                    raise ValueError("a run without a journal cannot go on")
                try:
                    self.journal.add(line)
                except OSError as error:
                    raise self._no_journal(error) from error
                self._take(step, line)
                status = self.states[step.cell, step.variant].status
            if progress is not None:
                left = self._expected(self.plan.steps[place:])
                # The estimate is corrected by how long the finished part took in truth.
                past = expected - left
                pace = (time.monotonic() - began) / past if past > 0 else 1.0
                done, total = place + repeats, len(self.plan.steps) + repeats
                progress.worker_done(step, status, done, total, left * pace)

    def _no_journal(self, error: OSError) -> SaveError:
        """The disk is full or gone in the middle of a run: what there is must not be lost."""
        self.after = environment.volatile()
        return SaveError(
            f"cannot write {journal_path(self.target)}: {error.strerror}; the run was stopped",
            self.document(),
        )

    def _expected(self, steps: Any) -> float:
        measure = worker_seconds(self.plan.samples, self.plan.target_ns)
        count = worker_seconds(0, 0)
        return sum(
            measure if step.kind == "measure" else count for step in steps if not self._dead(step)
        )

    def _work(self, step: Step) -> dict[str, Any]:
        """Run the step's worker; the journal's record of it."""
        cell, side = self.cells[step.cell], self.sides[step.variant]
        env = environment.worker_environment(
            os.environ,
            keep=self.plan.keep_env,
            static_tls=step.cell in self._static_tls,
            padding=step.padding,
            folders=self._folders[step.variant],
        )
        request: dict[str, Any] = {
            "op": step.kind,
            "cell": step.cell,
            "python": cell.python,
            "cpus": step.cpus,
            "step": cell.step,
        }
        plugin = side.plugin(cell)
        if plugin is not None:
            request["plugins"] = plugin.request(counting=step.kind == "count")
        if step.kind == "count":
            request["ops"] = count_ops(cell)
        else:
            request["ops"] = self.ops.get(cell.id)
            request["samples"] = self.plan.samples
            request["target_ns"] = self.plan.target_ns
        outcome = ask_worker(request, side.variant, env, timeout_s=self.timeout_s)
        outcome = blame(cell, side.plugins, outcome)
        keep = {
            key: value
            for key, value in outcome.result.items()
            if key not in ("event", "status", "reason")
        }
        return {"status": outcome.status, "reason": outcome.reason, **keep}

    # --- what workers said

    def replay(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Take the workers of an earlier part of the run from its journal."""
        steps = {_key(step): step for step in self.plan.steps}
        for line in lines:
            step = _step(line.get("step"), steps)
            if step is None:
                raise JournalError(f"the journal names a worker {line.get('step')!r} not planned")
            self._take(step, line)

    def _take(self, step: Step, line: Mapping[str, Any]) -> None:
        self.finished.add(step)
        state = self.states[step.cell, step.variant]
        if step.kind == "count":
            self._take_counts(state, line)
            return
        if line["status"] != "ok":
            where = f"block {step.block + 1}: " if self.plan.blocks > 1 else ""
            state.fail(line["status"], f"{where}{line['reason']}")
            return
        self.ops.setdefault(step.cell, line["ops"])
        if step.repeat:
            self.again[step.cell].add((step.block, step.repeat))
        state.samples += len(line["flags"])
        state.clock_back += sum(bool(flag & CLOCK_BACK) for flag in line["flags"])
        state.clock_still += sum(bool(flag & CLOCK_STILL) for flag in line["flags"])
        cpus = step.cpus
        record = {
            **({"variant": step.variant} if step.variant else {}),
            **({"repeat": step.repeat} if step.repeat else {}),
            "block": step.block,
            "order": step.order,
            "cpu": cpus[0] if cpus and len(cpus) == 1 else list(cpus) if cpus else None,
            "samples_ns": line["samples_ns"],
            "flags": line["flags"],
            "pace_ns": line.get("pace_ns"),
            "cpu_busy_ms": line.get("cpu_busy_ms"),
            "cpu_steal_ms": line.get("cpu_steal_ms"),
            "single_before": line["single_before"],
            "single_after": line["single_after"],
            "usage": line["usage"],
            "warmup": line["warmup"],
            "facts": line["facts"],
            "startup_ns": line.get("startup_ns"),
        }
        state.processes.append(record)
        self.processes[step.cell].append(record)
        if state.cell.thread_mode == "single" and not (
            line["single_before"] and line["single_after"]
        ):
            when = "before" if not line["single_before"] else "after"
            state.fail(
                "invalid",
                f"block {step.block + 1}: the process was not single-threaded {when} a sample",
            )

    def _take_counts(self, state: _State, line: Mapping[str, Any]) -> None:
        if line["status"] != "ok":
            state.ledger_reason = str(line["reason"])
            state.uncounted = True
            return
        counts: Mapping[str, Any] = line["ledger"]
        state.ledger = {name: counts.get(name) for name in LEDGER}
        others = sorted(name for name in counts if name not in LEDGER)
        first = ("heap_allocs", "resource_allocs", "heap_bytes")
        extra = (name for name in others if name not in first)
        state.counters = {f"{name}_per_op": counts.get(name) for name in (*first, *extra)}

    # --- the document

    def document(self) -> dict[str, Any]:
        """The run so far, in schema capybench/1, without summaries."""
        plan = self.plan
        for state in self.states.values():
            _judge_clock(state)
        dropped = {} if plan.keep_env else dict(self.head["environment"])
        warnings = [*self.warnings]
        for state in self.states.values():
            shaky = [p["block"] + 1 for p in state.processes if p["warmup"]["steady"] is False]
            if shaky:
                listed = ", ".join(map(str, shaky))
                warnings.append(f"{state.label}: never steady in warm-up (block {listed})")
            if state.uncounted:
                warnings.append(f"{state.label}: no counts: {state.ledger_reason}")
        return {
            "schema": SCHEMA,
            "run": {
                "id": self.head["id"],
                "created_utc": self.head["created_utc"],
                "path": str(self.target),
                "seed": plan.seed,
                "blocks": plan.blocks,
                "blocks_asked": plan.blocks_asked,
                "blocks_done": self._blocks_done(),
                "samples": plan.samples,
                "target_ns": plan.target_ns,
                "quick": plan.quick,
                "patterns": list(plan.patterns),
                "keyword": plan.keyword,
                "command": list(plan.command),
                "baseline": plan.baseline,
                "pin": plan.pin,
                "complete": self.complete,
                "interrupted": self.interrupted,
                "variants": [_told(side) for side in plan.sides] if plan.variants else None,
                "measured_again": sum(map(len, self.again.values())),
                "workers": len(plan.steps),
                "workers_done": sum(step.repeat == 0 for step in self.finished),
                "kept_env": dict(self.head["environment"]) if plan.keep_env else {},
                "dropped_env": dropped,
                "clock": {
                    "samples": sum(state.samples for state in self.states.values()),
                    "stepped_back": sum(state.clock_back for state in self.states.values()),
                    "stood_still": sum(state.clock_still for state in self.states.values()),
                },
                "warnings": warnings,
            },
            "machine": {
                "fingerprint": self.head["fingerprint"],
                "build": _build(plan.sides[-1]),
                "before": self.head["before"],
                "after": self.after,
            },
            "cells": [
                self._cell(case, cell)
                for case in plan.cases
                for cell in case.cells
                # A cell that an interrupted run has not come to has nothing to say.
                if self.processes[cell.id]
                or any(self.states[cell.id, name].status != "ok" for name in self.sides)
            ],
        }

    def _cell(self, case: Case, cell: Cell) -> dict[str, Any]:
        states = {name: self.states[cell.id, name] for name in self.sides}
        state = states[self.plan.sides[-1].name]
        more: dict[str, Any] = {}
        if self.plan.variants:
            more["variants"] = [
                {
                    "name": name,
                    "absent": cell.id in side.missing and side.missing[cell.id].absent,
                    "status": states[name].status,
                    "reason": states[name].reason,
                    "counters": states[name].counters,
                    "ledger": states[name].ledger,
                    "ledger_reason": states[name].ledger_reason,
                }
                for name, side in self.sides.items()
            ]
        return {
            "id": cell.id,
            "suite": cell.suite,
            "case": cell.case,
            "contender": cell.contender,
            "summary_text": cell.summary,
            "unit": cell.unit,
            "direction": cell.direction,
            "thread_mode": cell.thread_mode,
            "bytes_per_op": cell.bytes_per_op,
            "status": state.status,
            "reason": state.reason,
            "ops": self.ops.get(cell.id),
            "baseline": cell.contender == case.baseline,
            "plugin": cell.plugin,
            **more,
            "processes": self.processes[cell.id],
            "counters": state.counters,
            "ledger": state.ledger,
            "ledger_reason": state.ledger_reason,
        }

    def _blocks_done(self) -> int:
        """Blocks of which nothing is left to do, from the first on."""
        left = [
            step.block
            for step in self.plan.steps
            if step.kind == "measure" and step not in self.finished and not self._dead(step)
        ]
        return min(left, default=self.plan.blocks)


def _key(step: Step) -> str:
    """Names a step in the journal: kind, block, repeat, variant and cell."""
    return f"{step.kind}:{step.block}:{step.repeat}:{step.variant}:{step.cell}"


def _step(key: object, planned: Mapping[str, Step]) -> Step | None:
    """The step that a key of the journal names, also a repeat of a planned one."""
    parts = str(key).split(":", 4)
    if len(parts) != 5 or not parts[2].isdecimal():
        return None
    step = planned.get(":".join([*parts[:2], "0", *parts[3:]]))
    return None if step is None else replace(step, repeat=int(parts[2]))


def _state(cell: Cell, side: Side) -> _State:
    """What is known of a cell in a build before the run."""
    state = _State(cell, f"{cell.id} ({side.name})" if side.name else cell.id)
    missing = side.missing.get(cell.id)
    if missing is not None:
        state.fail(missing.status, missing.reason)
    state.ledger_reason = side.uncounted(cell)
    return state


def _build(side: Side) -> dict[str, Any]:
    """Facts of a build, as they stand in the document."""
    own = {**side.build, "plugins": [plugin.to_dict() for plugin in side.plugins]}
    return {**environment.build_facts(side.build, __version__), **own}


def _told(side: Side) -> dict[str, Any]:
    """A variant, as it stands in the document."""
    return {"name": side.name, **asdict(side.variant), "build": _build(side)}


def _judge_clock(state: _State) -> None:
    if state.clock_back > CLOCK_FAULTS * state.samples:
        state.fail(
            "invalid", f"the clock stepped back in {state.clock_back} of {state.samples} samples"
        )
    if state.samples and state.clock_still == state.samples:
        state.fail("invalid", "the clock did not advance in any sample")


def _environment_warnings(plan: Plan, head: Mapping[str, Any]) -> list[str]:
    names = ", ".join(head["environment"])
    if not names:
        return []
    if plan.keep_env:
        return [f"{names} reached the workers (--keep-env): allocation may differ from a plain run"]
    return [f"{names} did not reach the workers (--keep-env keeps what is set)"]
