"""The command `capybench report`: one HTML file about one run, or about several machines."""

from __future__ import annotations

import argparse
from pathlib import Path

from .errors import UsageError

OK = 0


def fill(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="file, or name in .capybench/runs (default: the newest there); several stand side by "
        "side as ratios",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="FILE.html")
    parser.add_argument("--baseline", metavar="CONTENDER", help="what the others are compared with")
    parser.add_argument("--margin", default="3%", metavar="SHARE", help="margin (default 3%%)")
    parser.add_argument("--title", default="capybench report", metavar="TEXT", help="of the page")


def run(args: argparse.Namespace) -> int:
    """Make the page and write it."""
    from . import report
    from .cli import open_run
    from .cli_plot import share
    from .plot import style

    target = Path(args.output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{target} should end in .html")
    margin = share(args.margin)
    style.require()
    results = [open_run(name) for name in args.runs] or [open_run(None)]
    report.write(results, target, baseline=args.baseline, margin=margin, title=args.title)
    return OK
