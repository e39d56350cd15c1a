"""The command `capybench`: parses arguments, calls the package, maps errors to exit codes.

A command is one function that fills its parser and one that runs it, entered in COMMANDS. Results
go to stdout, progress and warnings to stderr; an error is one sentence that begins with
`capybench: `.

Exit codes: 0 ok, also with unavailable cells; 1 a failed, invalid, timed-out or crashed cell, one
that is slower beyond its margin, or gone; 2 bad usage or bad input file; 3 environment (clock,
disk, permission); 4 inconclusive or unstable under --strict; 5 everything selected is unavailable
or nothing was measured; 130 interrupted, with finished cells kept and shown.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from . import cli_compare, cli_explain, cli_plot, cli_report
from ._version import __version__
from .errors import CapybenchError, SaveError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from .cases import Cell, Listing
    from .plan import Plan, Step
    from .results import CellResult, RunResult
    from .settings import Settings
    from .tables import View

OK, CELL_FAILED, USAGE, ENVIRONMENT, NOTHING, INTERRUPTED = 0, 1, 2, 3, 5, 130

Handler = Callable[[argparse.Namespace], int]


# ---- parsing -------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are sentences like all others, not the usage again."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")


class _Help(argparse.RawDescriptionHelpFormatter):
    pass


@dataclass(frozen=True, slots=True)
class _Command:
    name: str
    summary: str
    example: str
    fill: Callable[[argparse.ArgumentParser], None]
    run: Handler


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="capybench",
        description="Measure what asynchronous machinery costs: coroutines, allocators, channels, "
        "sockets, processes.",
        epilog="example:\n  capybench run --quick coroutine frame_alloc",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"capybench {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"example:\n  {command.example}",
            formatter_class=_Help,
            allow_abbrev=False,
        )
        command.fill(sub)
        sub.set_defaults(handler=command.run)
    return parser


def _selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="globs on ids suite/case@contender: * crosses / and @, without @ every contender, "
        "a bare prefix all below it",
    )
    parser.add_argument("-k", dest="keyword", metavar="EXPR", help="'strand and not callback'")


def _plugin_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("plug-ins")
    group.add_argument(
        "--plugin",
        action="append",
        metavar="PATH",
        help="a shared object with cells of its own; may be given several times",
    )
    group.add_argument(
        "--no-plugins",
        action="store_true",
        default=None,
        help="leave the plug-ins of installed packages out",
    )


def _listing(settings: Settings) -> Listing:
    """What there is, with plug-ins; those left out become warning lines."""
    from . import cases, tables

    options: dict[str, Any] = {}
    if settings.was_set("plugin"):
        options["plugins"] = settings.get("plugin")
    if settings.get("no_plugins"):
        options["use_installed"] = False
    listing = cases.list_cells(**options)
    for warning in listing.warnings:
        _say(f"warning: {tables.printable(warning)}")
    return listing


def _view_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--format", metavar="FORMAT", help="table (default), markdown, json or csv")
    group.add_argument("--baseline", metavar="CONTENDER", help="what the others are compared with")
    group.add_argument("--style", metavar="STYLE", help="a published page's form: capy, cobalt")
    group.add_argument("--unit", metavar="UNIT", help="display unit, for instance ns, us, ms, MB/s")
    group.add_argument(
        "--sort", metavar="ORDER", help="listed (default), name, median, ratio or spread"
    )
    group.add_argument(
        "--columns",
        metavar="NAMES",
        help="with commas, for instance median,n,posts; a wrong name lists all that there are",
    )


# ---- run -----------------------------------------------------------------------------------------


def _fill_run(parser: argparse.ArgumentParser) -> None:
    _selection(parser)
    group = parser.add_argument_group("measurement")
    group.add_argument(
        "--quick",
        action="store_true",
        default=None,
        help="3 blocks of 3 samples of 10 ms; without a pattern a cross-section of every suite",
    )
    group.add_argument("--blocks", metavar="N", help="fresh processes of each cell (default 10)")
    group.add_argument("--samples", metavar="N", help="samples of a process")
    group.add_argument("--budget", metavar="TIME", help="5m, 90s: plan as many blocks as fit")
    group.add_argument("--seed", metavar="N", help="for the order of cases and contenders")
    group.add_argument("--pin", metavar="N|none", help="CPU to pin to (default: alternating CPUs)")
    group.add_argument(
        "--keep-env",
        action="store_true",
        default=None,
        help="keep LD_PRELOAD, MALLOC_* and GLIBC_TUNABLES in workers",
    )
    group.add_argument("--resume", metavar="FILE", help="finish an interrupted run")
    group.add_argument(
        "--list",
        "--dry-run",
        dest="dry_run",
        action="store_true",
        help="print the plan and the estimated time, measure nothing",
    )
    _plugin_flags(parser)
    _view_flags(parser)
    parser.add_argument(
        "--json", metavar="PATH|-", help="result file (default .capybench/runs/…), - for stdout"
    )


def _run(args: argparse.Namespace) -> int:
    settings = _settings(args)
    view = _view(settings)
    _check_view(settings, view)
    to_stdout = args.json == "-"
    if to_stdout and settings.get("format", "json") != "json":
        raise UsageError("--json - prints JSON on stdout: leave --format out")
    target = None if to_stdout or args.json is None else Path(args.json)
    progress = _progress(sys.stderr)
    try:
        if args.resume is not None:
            document = _resumed(args, settings, progress)
        else:
            plan = _plan(args, settings)
            if args.dry_run:
                _write(plan.describe().rstrip("\n") + "\n")
                return OK
            from . import runner

            document = runner.run_plan(plan, target=target, progress=progress, finish=_finished)
    except SaveError as error:
        # Results first: what was measured is worth more than the file that could not be written.
        _show(_result(error.document), settings, view, json=to_stdout)
        raise
    result = _result(document)
    _show(result, settings, view, json=to_stdout)
    path = result.run.get("path")
    if path:
        _say(f"saved {path}" if result.complete else f"kept what is finished in {path}")
    return _exit_code(result)


def measure(arguments: Sequence[str], progress: Any) -> RunResult | None:
    """What `capybench run ARGUMENTS` measures, for a caller that shows it in its own way.

    Settings of pyproject.toml and the environment count as on the command line. None for --list,
    whose plan is printed. An interrupted run comes back with what is finished. Raises
    CapybenchError.
    """
    words = ["run", *arguments]
    args = _parser().parse_args(words, argparse.Namespace(argv=words))
    for flag in ("format", "style", "unit", "sort", "columns"):
        if getattr(args, flag) is not None:
            raise UsageError(f"--{flag} belongs to the command line's tables: leave it out here")
    if args.json == "-":
        raise UsageError("--json - prints on stdout: name a file here")
    settings = _settings(args)
    from . import runner

    if args.resume is not None:
        return _result(_resumed(args, settings, progress))
    plan = _plan(args, settings)
    if args.dry_run:
        _write(plan.describe().rstrip("\n") + "\n")
        return None
    target = None if args.json is None else Path(args.json)
    return _result(runner.run_plan(plan, target=target, progress=progress, finish=_finished))


def _plan(args: argparse.Namespace, settings: Settings) -> Any:
    from . import cases, plan

    listing = _listing(settings)
    quick = settings.get("quick", False)
    chosen = cases.select(
        listing, args.patterns, args.keyword, quick_only=quick and not args.patterns
    )
    _check_view(settings, _view(settings), chosen)
    if not args.dry_run and not any(cell.available for cell in chosen):
        raise _NothingError(_all_unavailable(chosen))
    return plan.make_plan(
        listing,
        chosen,
        quick=quick,
        blocks=settings.get("blocks"),
        samples=settings.get("samples"),
        seed=settings.get("seed"),
        pin=settings.get("pin", "auto"),
        budget_s=settings.get("budget"),
        baseline=settings.get("baseline"),
        keep_env=settings.get("keep_env", False),
        patterns=list(args.patterns),
        keyword=args.keyword,
        command=["capybench", *args.argv],
    )


class _NothingError(CapybenchError):
    exit_code = NOTHING


def _all_unavailable(cells: Sequence[Cell]) -> str:
    reasons = [f"{cell.id}: {cell.reason or 'no reason given'}" for cell in cells]
    more = f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else ""
    return f"nothing selected can run here: {'; '.join(reasons[:3])}{more}"


#: Flags that a resumed run takes from its file.
_PLANNED = (
    "quick",
    "blocks",
    "samples",
    "budget",
    "seed",
    "pin",
    "keep_env",
    "plugin",
    "no_plugins",
)


def _resumed(args: argparse.Namespace, settings: Settings, progress: Any) -> dict[str, Any]:
    given = [name for name in _PLANNED if settings.origins.get(name, "").startswith("--")]
    extra = [f"--{name.replace('_', '-')}" for name in given]
    extra += [*args.patterns, *(["-k"] if args.keyword else [])]
    extra += [flag for flag, on in (("--list", args.dry_run), ("--json", args.json)) if on]
    if extra:
        raise UsageError(f"--resume takes the plan from its file: leave {extra[0]} out")
    from . import runner

    return runner.resume(args.resume, progress=progress, finish=_finished)


def _finished(document: dict[str, Any]) -> dict[str, Any]:
    return _result(document).to_dict()


def _result(document: dict[str, Any]) -> RunResult:
    from .results import RunResult

    return RunResult.from_dict(document)


def _exit_code(result: RunResult) -> int:
    if result.interrupted:
        return INTERRUPTED
    clock = result.run.get("clock")
    if isinstance(clock, dict) and 0 < clock.get("samples", 0) <= clock.get("stood_still", 0):
        _say("the clock of this machine did not advance in any sample")
        return ENVIRONMENT
    statuses = {cell.status for cell in result.cells}
    if statuses & {"failed", "invalid", "timeout", "crashed"}:
        return CELL_FAILED
    measured = any(cell.summary.n for cell in result.cells)
    return OK if measured else NOTHING


class _BarProgress:
    """A bar with the remaining time, redrawn between workers only: nothing runs beside them."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            auto_refresh=False,
            transient=True,
            expand=True,
        )
        self._task: Any = None

    def start(self, plan: Plan, done: int, total: int) -> None:
        """Show the bar before the first worker."""
        from .plan import duration

        left = "" if done else f"about {duration(plan.estimated_s)}"
        self._task = self._bar.add_task("measuring", total=total, completed=done, left=left)
        self._bar.start()
        self._bar.refresh()

    def worker_done(
        self, step: Step, status: str, done: int, total: int, remaining_s: float
    ) -> None:
        """Move the bar on after a worker."""
        from .plan import duration
        from .tables import printable

        name = printable(step.cell)
        self._bar.update(
            self._task,
            completed=done,
            total=total,
            description=name if len(name) <= 36 else "…" + name[-35:],
            left=f"{duration(remaining_s)} left",
        )
        self._bar.refresh()

    def end(self, interrupted: bool) -> None:
        """Take the bar away."""
        self._bar.stop()


def _progress(stream: TextIO) -> _BarProgress | None:
    """A progress bar where `stream` is a terminal that can move its cursor, else None."""
    if not stream.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        return None
    return _BarProgress(_console(stream))


# ---- list ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Companion:
    """Something optional that adds contenders, and what to do where it is missing. It is known by
    the name of its contender, or of its plug-in."""

    name: str
    hint: str

    def brings(self, cell: Cell) -> bool:
        """Whether the cell comes from it and can run."""
        return self.name in (cell.contender, cell.plugin) and cell.available


#: Companions that are known; one hint line each where none of their cells can run.
COMPANIONS = (
    _Companion(
        "mimalloc", "mimalloc is missing: pip install 'capybench[mimalloc]', or libmimalloc2.0"
    ),
    _Companion("jemalloc", "jemalloc is missing: install the system package libjemalloc2"),
    _Companion(
        "boost",
        "Boost.Asio and Boost.Cobalt are missing: pip install capybench-boost, or "
        "./csrc/plugins/boost in a clone",
    ),
)


def _fill_list(parser: argparse.ArgumentParser) -> None:
    _selection(parser)
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="table (default) or json"
    )
    _plugin_flags(parser)


def _plugin_settings(args: argparse.Namespace) -> Settings:
    """The two settings about plug-ins; --format of these commands is not the one of results."""
    from . import settings

    return settings.resolve({name: getattr(args, name) for name in ("plugin", "no_plugins")})


def _list(args: argparse.Namespace) -> int:
    from . import cases

    listing = _listing(_plugin_settings(args))
    chosen = cases.select(listing, args.patterns, args.keyword)
    if args.format == "json":
        import json

        told = {
            "cells": [cell.to_dict() for cell in chosen],
            "plugins": [plugin.to_dict() for plugin in listing.plugins],
        }
        _write(json.dumps(told, indent=1) + "\n")
        return OK
    from . import tables

    suites = {suite.name: suite.summary for suite in listing.suites}
    legend = (*_plugin_lines(listing), *hints(tuple(listing)))
    _draw(_listing_tables(chosen, suites), legend=legend, module=tables)
    return OK


def _plugin_lines(listing: Listing) -> tuple[str, ...]:
    """A line for each plug-in that takes part."""
    from .tables import printable

    lines = []
    for plugin in listing.plugins:
        own = sum(cell.plugin == plugin.name for cell in listing)
        counts = "with" if plugin.counting else "without"
        lines.append(
            f"plug-in {plugin.name} {printable(plugin.version)}: {own} "
            f"{'cell' if own == 1 else 'cells'}, {counts} counts, {printable(plugin.path)}"
        )
    return tuple(lines)


def _listing_tables(cells: Sequence[Cell], suites: dict[str, str]) -> list[Any]:
    from .tables import Group, Row, Table, printable

    found = []
    for suite in dict.fromkeys(cell.suite for cell in cells):
        rows = []
        for cell in cells:
            if cell.suite == suite:
                mark = " (quick)" if cell.quick else ""
                mark += f" (plug-in {cell.plugin})" if cell.plugin else ""
                note = cell.summary + mark if cell.available else f"unavailable: {cell.reason}"
                tone = "" if cell.available else "dim"
                rows.append(Row(printable(cell.id), note=printable(note), tone=tone))
        summary = suites.get(suite)
        title = f"{printable(suite)}: {summary}" if summary else printable(suite)
        groups = tuple(Group(row.label, (Row("", note=row.note, tone=row.tone),)) for row in rows)
        found.append(Table(title, (), groups, headings=("cell", "")))
    return found


def hints(cells: Sequence[Cell]) -> tuple[str, ...]:
    """A line for each known companion none of whose cells can run."""
    return tuple(
        companion.hint
        for companion in COMPANIONS
        if not any(companion.brings(cell) for cell in cells)
    )


# ---- verify --------------------------------------------------------------------------------------


def _fill_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="PLUGIN|PATTERN",
        help="a plug-in's file or name (all its cells), or globs on ids; nothing means all cells",
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="table (default) or json"
    )
    _plugin_flags(parser)


def _verify(args: argparse.Namespace) -> int:
    from . import verification

    listing, chosen = _verify_targets(args)
    as_json = args.format == "json"

    def show(one: verification.Verification) -> None:
        if not as_json:
            from .tables import printable

            _write("\n".join(map(printable, one.describe().split("\n"))) + "\n")

    found = verification.verify_cells(listing, chosen, done=show)
    if as_json:
        import json

        _write(json.dumps({"cells": [one.to_dict() for one in found]}, indent=1) + "\n")
    statuses = [one.status for one in found]
    bad, out = statuses.count("failed"), statuses.count("unavailable")
    if not as_json:
        _say(f"{statuses.count('ok')} ok, {bad} failed, {out} unavailable")
    return CELL_FAILED if bad else OK if "ok" in statuses else NOTHING


def _verify_targets(args: argparse.Namespace) -> tuple[Listing, tuple[Cell, ...]]:
    """The listing with the files that were named, and the cells that were meant."""
    from . import cases

    files = [word for word in args.targets if word.endswith(".so") or Path(word).is_file()]
    words = [word for word in args.targets if word not in files]
    args.plugin = [*(args.plugin or ()), *files] or None
    plain = _plugin_settings(args)
    listing = _listing(plain)
    paths = {str(Path(file).absolute()) for file in files}
    names = {plugin.name for plugin in listing.plugins if plugin.path in paths}
    names |= {plugin.name for plugin in listing.plugins if plugin.name in words}
    patterns = [word for word in words if word not in names]
    if not names:
        return listing, cases.select(listing, patterns)
    ids = {cell.id for cell in cases.select(listing, patterns)} if patterns else set()
    return listing, tuple(cell for cell in listing if cell.plugin in names or cell.id in ids)


# ---- show ----------------------------------------------------------------------------------------


def _fill_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        nargs="?",
        metavar="RUN",
        help="file, or name in .capybench/runs (default: the newest there)",
    )
    _view_flags(parser)


def _show_command(args: argparse.Namespace) -> int:
    settings = _settings(args)
    view = _view(settings)
    result = open_run(args.run)
    _check_view(settings, view, result.cells)
    _show(result, settings, view)
    return OK


def open_run(name: str | None) -> RunResult:
    """A stored run by file name, by its name in .capybench/runs, or the newest there (None).

    A run that was killed is read from its journal, marked incomplete. Raises UsageError where there
    is none or where it cannot be read; a broken newest run is an error, never a reason to take the
    one before it.
    """
    from . import runner
    from .results import load

    path = _find_run(name, runner.RUNS)
    try:
        if path.suffix == ".journal":
            return _result(runner.recover(path))
        return load(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def _find_run(name: str | None, folder: Path) -> Path:
    """File of a run, or its journal where that is all there is or the newer of the two."""
    if name is not None and Path(name).is_file():
        return Path(name)
    stored = {path.stem: path for path in folder.glob("*.json")}
    for journal in folder.glob("*.json.journal"):
        stem = journal.name.removesuffix(".json.journal")
        if stem not in stored or journal.stat().st_mtime_ns > stored[stem].stat().st_mtime_ns:
            stored[stem] = journal
    if name is None:
        if not stored:
            raise UsageError(f"no run in {folder} yet: measure one with `capybench run`")
        # Names begin with the time of the run in UTC.
        return stored[max(stored)]
    if name.removesuffix(".json") in stored:
        return stored[name.removesuffix(".json")]
    near = difflib.get_close_matches(name, stored, n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise UsageError(f"no run {name!r}, neither a file nor in {folder}{hint}")


# ---- output --------------------------------------------------------------------------------------


def _settings(args: argparse.Namespace) -> Settings:
    from . import settings

    return settings.resolve({name: getattr(args, name, None) for name in settings.CONVERTERS})


def _view(settings: Settings) -> View:
    from .tables import View

    return View(
        unit=settings.get("unit"),
        sort=settings.get("sort", "listed"),
        columns=settings.get("columns"),
        baseline=settings.get("baseline"),
    )


def _check_view(
    settings: Settings, view: View, cells: Sequence[Cell] | Sequence[CellResult] = ()
) -> None:
    """Find out before anything is measured (or drawn) what a wrong view would end with."""
    from . import styles, tables

    if settings.was_set("style"):
        suites = {cell.suite for cell in cells} or None
        styles.check(settings.get("style"), suites)
    units = {cell.unit for cell in cells}
    events = {name for cell in cells for name in cell.ledger or {}}
    tables.check_view(view, units, events)


def _show(result: RunResult, settings: Settings, view: View, json: bool = False) -> None:
    from . import tables

    for warning in result.run.get("warnings") or ():
        _say(f"warning: {tables.printable(str(warning))}")
    form = "json" if json else settings.get("format", "table")
    if form == "json":
        _write(tables.json_text(result, view.baseline))
    elif form == "csv":
        _write(tables.csv_text(result, view.baseline))
    else:
        if settings.was_set("style"):
            from . import styles

            made = styles.style_tables(settings.get("style"), result)
        else:
            made = tables.summary_tables(result, view)
        heading, legend = tables.heading_lines(result), tables.legend_lines(made)
        if form == "markdown":
            _write(tables.markdown(made, heading, legend))
        else:
            _draw(made, heading, legend, module=tables)


def _draw(
    made: Sequence[Any], heading: Sequence[str] = (), legend: Sequence[str] = (), *, module: Any
) -> None:
    console = _console(sys.stdout)
    with console.capture() as captured:
        module.draw(made, console, heading, legend)
    _write(captured.get())


def _console(stream: TextIO) -> Console:
    """A console that follows NO_COLOR, FORCE_COLOR, COLUMNS and TERM, without guessing markup."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


#: What an encoding without these characters gets in their place.
_PLAIN = str.maketrans(
    {"─": "-", "–": "-", "×": "x", "·": "|", "µ": "u", "±": "+-", "…": "...", "\u00a0": " "}
)


def _write(text: str) -> None:
    if "utf" not in (sys.stdout.encoding or "").lower():
        text = text.translate(_PLAIN)
    with _Pipe():
        sys.stdout.write(text)
        sys.stdout.flush()


class _Pipe:
    """A reader that went away (`capybench show | head -1`) is no error of this command."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, BrokenPipeError):
            return False
        # Whatever the interpreter flushes at its end must not fail again.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        return True


def _say(text: str) -> None:
    # Where nobody reads stderr any more, the exit code still tells.
    with contextlib.suppress(OSError):
        print(f"capybench: {text}", file=sys.stderr, flush=True)


#: For the commands that have modules of their own.
write, progress_bar, say = _write, _progress, _say
plugin_flags, listing_of, console_of = _plugin_flags, _listing, _console


def show_tables(
    made: Sequence[Any], heading: Sequence[str] = (), legend: Sequence[str] = ()
) -> None:
    """Print tables as `show` does."""
    from . import tables

    _draw(made, heading, legend, module=tables)


# ---- entry ---------------------------------------------------------------------------------------

COMMANDS: tuple[_Command, ...] = (
    _Command(
        "run",
        "measure cells and show the table",
        "capybench run --quick 'coroutine/run_async/*' frame_alloc --baseline recycling",
        _fill_run,
        _run,
    ),
    _Command(
        "list",
        "list what can be measured here",
        "capybench list 'primitives' -k 'malloc or mutex'",
        _fill_list,
        _list,
    ),
    _Command(
        "verify",
        "check without timing that cells work, count what they promise and leak nothing",
        "capybench verify ./my_runtime.so",
        _fill_verify,
        _verify,
    ),
    _Command(
        "show",
        "show a stored run",
        "capybench show --style capy",
        _fill_show,
        _show_command,
    ),
    _Command(
        "plot",
        "draw a stored run",
        "capybench plot --kind forest --only 'read_stream/*' -o forest.svg",
        cli_plot.fill,
        cli_plot.run,
    ),
    _Command(
        "report",
        "write one HTML page about a run, or several side by side",
        "capybench report run.json -o report.html",
        cli_report.fill,
        cli_report.run,
    ),
    _Command(
        "explain",
        "tell where the nanoseconds of a cell go",
        "capybench explain coroutine/strand/depth1@task --from run.json",
        cli_explain.fill,
        cli_explain.run,
    ),
    _Command(
        "compare",
        "judge a run against another, or two builds that are measured side by side",
        "capybench compare --variant base=../old/.venv --variant head=installed noop",
        cli_compare.fill_compare,
        cli_compare.run_compare,
    ),
    _Command(
        "check",
        "measure, judge, and fail where a cell has become slower",
        "capybench check --variant base=../old/.venv --variant head=installed --quick",
        cli_compare.fill_check,
        cli_compare.run_check,
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (None: the process') and return its exit code."""
    if sys.stdout is None:  # Started with stdout closed: nobody wants the results now.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end a run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with _Pipe():
            args = _parser().parse_args(arguments, argparse.Namespace(argv=arguments))
            handler: Handler = args.handler
            return handler(args)
        return OK
    except SystemExit as stop:  # --help and --version
        return stop.code if isinstance(stop.code, int) else OK
    except CapybenchError as error:
        _say(" ".join(str(error).split("\n")))
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _say(f"the system refused{where}: {error.strerror or error}")
        return ENVIRONMENT
