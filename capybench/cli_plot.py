"""The command `capybench plot`: one drawing of a stored run, or of several for a history."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from .results import RunResult

OK = 0


def fill(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="file, or name in .capybench/runs (default: the newest there); history takes several, "
        "and without any all stored runs of the newest one's machine",
    )
    parser.add_argument(
        "--kind",
        default="forest",
        metavar="KIND",
        help="forest (default), strip, ecdf, percentiles, throughput, bars, heatmap or history",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="FILE.svg, FILE.png or FILE.pdf"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="glob on cell ids; may be given again",
    )
    parser.add_argument("--baseline", metavar="CONTENDER", help="what the others are compared with")
    parser.add_argument(
        "--margin", default="3%", metavar="SHARE", help="band about 1 (default 3%%)"
    )
    parser.add_argument(
        "--theme",
        metavar="THEME",
        help="light, dark, or auto: an SVG that follows its reader (default auto for SVG)",
    )


def run(args: argparse.Namespace) -> int:
    """Draw and write."""
    from . import plot

    target = Path(args.output)
    theme = args.theme or ("auto" if plot.format_of(target) == "svg" else "light")
    margin = share(args.margin)
    plot.check(args.kind, theme, target)
    figure = plot.draw(
        args.kind,
        *_runs(args.kind, args.runs),
        only=args.only,
        baseline=args.baseline,
        margin=margin,
        theme=theme,
    )
    plot.save(figure, target, label=f"capybench: {plot.KINDS[args.kind].summary}")
    return OK


def share(text: str) -> float:
    """A share such as 3% or 0.03, above 0 and below 1."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise UsageError(f"--margin is {text!r}, but should be a share such as 3% or 0.03")
    return value


def _runs(kind: str, names: list[str]) -> list[RunResult]:
    from .cli import open_run

    if names:
        return [open_run(name) for name in names]
    newest = open_run(None)
    if kind != "history":
        return [newest]
    from . import results, runner
    from .plot.values import machine_of

    stored = [results.load(path) for path in sorted(runner.RUNS.glob("*.json"))]
    return [found for found in stored if machine_of(found) == machine_of(newest)] or [newest]
