"""The commands `capybench compare` and `capybench check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CapybenchError, EnvironmentFault, UsageError

if TYPE_CHECKING:
    from .comparison import Comparison
    from .gate import Gate
    from .results import RunResult
    from .settings import Settings

OK = 0
#: Stored runs of this machine that are read to learn how far its sessions lie apart.
HISTORY = 12


# ---- parsing -------------------------------------------------------------------------------------


def _judging_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("judgement")
    group.add_argument(
        "--threshold",
        action="append",
        metavar="SPEC",
        help="median:5%%, 'timer/*: median:1%%', throughput:-3%%, allocs:0, allocs<=2, "
        "'ratio(A, B)<1.3'; may be given again",
    )
    group.add_argument(
        "--margin",
        metavar="SHARE",
        help="what a cost may differ by where no threshold says (default 3%%)",
    )
    group.add_argument(
        "--fail-on",
        metavar="VERDICTS",
        help="fail also on these, with commas: suspect, new, inconclusive, unstable",
    )
    group.add_argument(
        "--allow-gone", action="store_true", default=None, help="a cell that is gone is no failure"
    )
    group.add_argument(
        "--strict",
        action="store_true",
        default=None,
        help="exit with 4 where a cell is inconclusive or unstable",
    )


def _measuring_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("measurement")
    group.add_argument(
        "--variant",
        action="append",
        metavar="NAME=WHAT",
        help="a build to measure, twice: an environment, a python, a folder with the package, a "
        "core file, a plug-in file, or 'installed'",
    )
    group.add_argument("-k", dest="keyword", metavar="EXPR", help="'strand and not callback'")
    group.add_argument(
        "--quick",
        action="store_true",
        default=None,
        help="samples of 10 ms; without a pattern a cross-section of every suite",
    )
    group.add_argument("--blocks", metavar="N", help="fresh processes of each cell (default 20)")
    group.add_argument("--samples", metavar="N", help="samples of a process")
    group.add_argument("--budget", metavar="TIME", help="5m, 90s: plan as many blocks as fit")
    group.add_argument("--seed", metavar="N", help="for the orders, and for all resampling")
    group.add_argument("--pin", metavar="N|none", help="CPU to pin to (default: alternating CPUs)")
    group.add_argument(
        "--keep-env",
        action="store_true",
        default=None,
        help="keep LD_PRELOAD, MALLOC_* and GLIBC_TUNABLES in workers",
    )
    group.add_argument(
        "--no-control",
        action="store_true",
        help="do not measure a few cells of the base against themselves",
    )
    group.add_argument(
        "--list",
        "--dry-run",
        dest="dry_run",
        action="store_true",
        help="print the plan, the time and the smallest visible effect, measure nothing",
    )


def _output_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--format", metavar="FORMAT", help="table (default), markdown or json")
    group.add_argument(
        "--json", metavar="PATH|-", help="write the comparison as JSON as well, - for stdout only"
    )


def fill_compare(parser: argparse.ArgumentParser) -> None:
    """Arguments of `compare`."""
    from .cli import plugin_flags

    parser.add_argument(
        "names",
        nargs="*",
        metavar="RUN|PATTERN",
        help="base and head: files, or names in .capybench/runs; one run of two variants; with "
        "--variant patterns of the cells to measure",
    )
    parser.add_argument("--against", metavar="RUN", help="the base, when only one run is named")
    parser.add_argument(
        "--sessions",
        type=int,
        metavar="N",
        help="the first N runs are sessions of the base, the others of the head (4 or more each)",
    )
    parser.add_argument(
        "--correction",
        default="max-t",
        metavar="HOW",
        help="for the family of cells: max-t (default), holm or bh",
    )
    _judging_flags(parser)
    _measuring_flags(parser)
    plugin_flags(parser)
    _output_flags(parser)


def fill_check(parser: argparse.ArgumentParser) -> None:
    """Arguments of `check`."""
    from .cli import plugin_flags

    parser.add_argument(
        "names",
        nargs="*",
        metavar="PATTERN",
        help="globs on ids suite/case@contender; against a stored run its cells by default",
    )
    parser.add_argument(
        "--against", metavar="RUN", help="a stored run of this machine as the baseline"
    )
    parser.add_argument(
        "--no-confirm",
        action="store_true",
        help="do not measure what fails once more in fresh blocks",
    )
    _judging_flags(parser)
    _measuring_flags(parser)
    plugin_flags(parser)
    _output_flags(parser)


# ---- compare -------------------------------------------------------------------------------------


def run_compare(args: argparse.Namespace) -> int:
    """Compare stored runs, or measure two variants and compare them."""
    settings, options = _options(args)
    if args.variant:
        if args.against or args.sessions:
            raise UsageError("--variant measures both sides: leave --against and --sessions out")
        gate = _variants_gate(args, settings, options)
        if args.dry_run:
            return _describe(gate)
        from .gate import measure

        _announce(gate)
        comparison = gate.judge(_measured(lambda: measure(gate.plan, progress=_progress())))
        return _finish(args, settings, options, comparison)
    _refuse_measuring(args, "compare measures only with --variant")
    return _finish(args, settings, options, _compare_stored(args, settings, options))


def _compare_stored(
    args: argparse.Namespace, settings: Settings, options: Mapping[str, Any]
) -> Comparison:
    from . import judge
    from .cli import open_run

    names = list(args.names)
    if args.against is not None:
        names.insert(0, args.against)
    runs = [open_run(name) for name in names]
    more: dict[str, Any] = {
        "thresholds": options["thresholds"],
        "margin": options["margin"],
        "correction": args.correction,
        "seed": settings.get("seed"),
    }
    if args.sessions is not None:
        if not 0 < args.sessions < len(runs):
            raise UsageError(
                f"--sessions {args.sessions} leaves nothing to compare of {len(runs)} runs"
            )
        return judge.compare_runs(runs[: args.sessions], runs[args.sessions :], **more)
    if len(runs) == 1 and len(judge.variants_of(runs[0])) > 1:
        return judge.compare_runs(runs[0], runs[0], **more)
    if len(runs) != 2:
        raise UsageError(
            f"compare takes two runs, base and head, here {'is' if len(runs) == 1 else 'are'} "
            f"{len(runs)}; or one run of two variants, or --sessions N with more"
        )
    base, head = runs
    if base.run.get("id") is not None and base.run.get("id") == head.run.get("id"):
        raise UsageError(f"{names[0]} and {names[1]} are one and the same run")
    return judge.compare_runs(
        base, head, names=(names[0], names[1]), history=_history(head, (base, head)), **more
    )


def _refuse_measuring(args: argparse.Namespace, why: str) -> None:
    """A flag that would be ignored is an error."""
    given = {
        "-k": args.keyword,
        "--quick": args.quick,
        "--blocks": args.blocks,
        "--samples": args.samples,
        "--budget": args.budget,
        "--pin": args.pin,
        "--keep-env": args.keep_env,
        "--no-control": args.no_control,
        "--dry-run": args.dry_run,
        "--plugin": args.plugin,
    }
    for flag, value in given.items():
        if value:
            raise UsageError(f"{why}: leave {flag} out")


# ---- check ---------------------------------------------------------------------------------------


def run_check(args: argparse.Namespace) -> int:
    """The gate."""
    settings, options = _options(args)
    if args.variant and args.against:
        raise UsageError("--variant and --against name two baselines: give one of them")
    if args.variant:
        gate = _variants_gate(args, settings, options)
    elif args.against:
        gate = _stored_gate(args, settings, options)
    elif options["thresholds"] and not any(t.needs_baseline for t in options["thresholds"]):
        return _check_alone(args, settings, options)
    else:
        raise UsageError(
            "there is no baseline: give --variant base=WHAT --variant head=installed (both are "
            "measured, the stronger gate) or --against RUN; thresholds such as ratio(A, B)<1.3 "
            "or allocs<=2 need none"
        )
    gate.enough_blocks()
    if args.dry_run:
        return _describe(gate)
    _announce(gate)
    comparison = _measured(lambda: gate.check(confirm=not args.no_confirm, progress=_progress()))
    return _finish(args, settings, options, comparison)


def _check_alone(args: argparse.Namespace, settings: Settings, options: Mapping[str, Any]) -> int:
    """Limits and ratios of one run, without a baseline."""
    from . import cases, gate, judge, plan
    from .cli import listing_of
    from .comparison import Comparison

    listing = listing_of(settings)
    quick = settings.get("quick", False)
    patterns = list(args.names)
    if not patterns and all(t.kind == "ratio" for t in options["thresholds"]):
        patterns = [name for t in options["thresholds"] for name in t.ids or ()]
    chosen = cases.select(listing, patterns, args.keyword, quick_only=quick and not patterns)
    planned = plan.make_plan(
        listing, chosen, **_plan_settings(args, settings), patterns=patterns, keyword=args.keyword
    )
    if args.dry_run:
        from .cli import write

        write(planned.describe().rstrip("\n") + "\n")
        return OK
    run = _measured(lambda: gate.measure(planned, progress=_progress()))
    comparison = Comparison(
        kind="alone",
        base="thresholds",
        head=str(run.run.get("id")),
        rows=(),
        margin=options["margin"],
        seed=run.seed,
        checks=judge.limit_checks(run, options["thresholds"]),
    )
    return _finish(args, settings, options, comparison)


# ---- what both share -----------------------------------------------------------------------------


def _options(args: argparse.Namespace) -> tuple[Settings, dict[str, Any]]:
    """Settings of all sources, and what judging needs of them."""
    from . import settings, thresholds
    from .comparison import FAIL_ON

    found = settings.resolve({name: getattr(args, name, None) for name in settings.CONVERTERS})
    fail_on = found.get("fail_on", ())
    for verdict in fail_on:
        if verdict not in FAIL_ON:
            raise UsageError(f"--fail-on takes {', '.join(FAIL_ON)}, not {verdict!r}")
    form = found.get("format", "table")
    if form not in FORMATS:
        raise UsageError(f"a comparison is printed as {', '.join(FORMATS)}, not {form}")
    if args.json == "-" and found.was_set("format") and form != "json":
        raise UsageError("--json - prints JSON on stdout: leave --format out")
    return found, {
        "thresholds": thresholds.parse(found.get("threshold", ())),
        "margin": found.get("margin", 0.03),
        "fail_on": fail_on,
        "strict": found.get("strict", False),
        "allow_gone": found.get("allow_gone", False),
    }


def _plan_settings(args: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    from .gate import BLOCKS

    return {
        "quick": settings.get("quick", False),
        "blocks": settings.get("blocks", BLOCKS),
        "samples": settings.get("samples"),
        "seed": settings.get("seed"),
        "pin": settings.get("pin", "auto"),
        "budget_s": settings.get("budget"),
        "keep_env": settings.get("keep_env", False),
        "command": ["capybench", *args.argv],
    }


def named_variants(texts: Sequence[str]) -> dict[str, str]:
    """NAME=WHAT of `--variant`, in order."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, what = text.partition("=")
        if not equals or not name or not what:
            raise UsageError(f"--variant takes NAME=WHAT, for instance base=../old/.venv: {text!r}")
        if name in found:
            raise UsageError(f"the variant {name!r} is named twice")
        found[name] = what
    return found


def _variants_gate(
    args: argparse.Namespace, settings: Settings, options: Mapping[str, Any]
) -> Gate:
    from .gate import variants_gate

    plugins = settings.get("plugin", ())
    return variants_gate(
        named_variants(args.variant),
        args.names,
        keyword=args.keyword,
        thresholds=options["thresholds"],
        margin=options["margin"],
        control=not args.no_control,
        history=_history(None, ()),
        plugins=plugins,
        use_installed=not settings.get("no_plugins", False),
        **_plan_settings(args, settings),
    )


def _stored_gate(args: argparse.Namespace, settings: Settings, options: Mapping[str, Any]) -> Gate:
    from .cli import listing_of, open_run
    from .gate import stored_gate

    stored = open_run(args.against)
    return stored_gate(
        stored,
        listing_of(settings),
        args.names,
        keyword=args.keyword,
        thresholds=options["thresholds"],
        margin=options["margin"],
        history=_history(stored, (stored,)),
        **_plan_settings(args, settings),
    )


def _history(like: RunResult | None, without: Sequence[RunResult]) -> tuple[RunResult, ...]:
    """Stored runs of this machine (or of the one of `like`), oldest first, without those given.

    A run that cannot be read is left out: it can make a guess no worse than no history.
    """
    from . import environment, judge, results, runner

    here = like
    if here is None:
        here = results.RunResult({}, {"fingerprint": environment.fingerprint()}, (), {})
    known = {run.run.get("id") for run in without}
    found: list[RunResult] = []
    for path in sorted(Path(runner.RUNS).glob("*.json"), reverse=True)[: 2 * HISTORY]:
        try:
            run = results.load(path)
        except (CapybenchError, OSError):
            continue
        if run.run.get("id") not in known and judge.different_machine(run, here) is None:
            found.append(run)
        if len(found) == HISTORY:
            break
    return tuple(reversed(found))


def _progress() -> Any:
    from .cli import progress_bar

    return progress_bar(sys.stderr)


def _measured(work: Callable[[], Any]) -> Any:
    """Run what measures; Ctrl-C says where the finished workers are."""
    from .cli import say

    try:
        return work()
    except KeyboardInterrupt as stop:
        if str(stop):
            say(str(stop))
        raise


def _announce(gate: Gate) -> None:
    from .cli import say

    for line in gate.preview():
        say(line)
    for warning in gate.plan.warnings:
        say(f"warning: {warning}")


def _describe(gate: Gate) -> int:
    from .cli import write

    # That the control has few cells is said once, not for each of the others.
    plan = [line for line in gate.plan.describe().splitlines() if " in control: " not in line]
    write("\n".join((*gate.preview(), *plan)) + "\n")
    return OK


FORMATS = ("table", "markdown", "json")


def _finish(
    args: argparse.Namespace,
    settings: Settings,
    options: Mapping[str, Any],
    comparison: Comparison,
) -> int:
    """Print the comparison, write its document, give the exit code."""
    from .cli import console_of, say, write
    from .results import write_atomic

    form = "json" if args.json == "-" else settings.get("format", "table")
    if form == "json":
        write(comparison.to_json())
    elif form == "markdown":
        write(comparison.to_markdown())
    else:
        console = console_of(sys.stdout)
        with console.capture() as captured:
            comparison.draw(console)
        write(captured.get())
    if args.json not in (None, "-"):
        try:
            write_atomic(args.json, comparison.to_json())
        except OSError as error:
            raise EnvironmentFault(f"cannot write {args.json}: {error.strerror}") from None
    for row in comparison.failures(options["fail_on"], options["allow_gone"]):
        say(f"fails: {row.sentence()}")
    for check in comparison.checks:
        if check.fails:
            say(f"fails: {check.sentence()}")
    return comparison.exit_code(
        options["fail_on"], strict=options["strict"], allow_gone=options["allow_gone"]
    )
