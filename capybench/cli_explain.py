"""The command `capybench explain`: where the nanoseconds of a cell go, and why two cells differ."""

from __future__ import annotations

import argparse
import html
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from .explain import Difference, Explanation

OK = 0
FORMATS = ("table", "markdown", "json", "html")


def fill(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("cell", metavar="CELL", help="id of a cell: suite/case@contender")
    parser.add_argument("--against", metavar="CELL", help="which events make CELL differ from it")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="RUN",
        help="take both from a stored run that has the cell, `primitives` and `noop/op`; without "
        "it they are measured now",
    )
    parser.add_argument("--blocks", metavar="N", help="fresh processes of each cell (default 6)")
    parser.add_argument("--seed", metavar="N", help="for the order of cases")
    parser.add_argument(
        "--format", metavar="FORMAT", default="table", help="table (default), markdown, json, html"
    )


def run(args: argparse.Namespace) -> int:
    """Explain and show."""
    from . import cli, explain

    if args.format not in FORMATS:
        raise UsageError(f"--format is {args.format!r}, but should be one of {', '.join(FORMATS)}")
    ids = [args.cell, *([args.against] if args.against else [])]
    for cell_id in ids:
        if "@" not in cell_id or "*" in cell_id or "?" in cell_id:
            raise UsageError(
                f"{cell_id!r} is not one cell: write suite/case@contender (capybench list)"
            )
    if args.source is not None:
        for flag in ("blocks", "seed"):
            if getattr(args, flag) is not None:
                raise UsageError(f"--from measures nothing: leave --{flag} out")
        result = cli.open_run(args.source)
    else:
        import sys

        result = explain.measure(
            ids,
            blocks=_whole(args.blocks, "--blocks", 1) or explain.BLOCKS,
            seed=_whole(args.seed, "--seed", 0),
            progress=cli.progress_bar(sys.stderr),
            command=["capybench", *args.argv],
        )
    made: Explanation | Difference
    if args.against:
        made = explain.difference(result, args.against, args.cell)
    else:
        made = explain.explain(result, args.cell)
    _show(made, args.format)
    return OK


def _whole(text: str | None, flag: str, least: int) -> int | None:
    from .settings import whole

    if text is None:
        return None
    try:
        value: int = whole(least)(text)
    except ValueError as error:
        raise UsageError(f"{flag} is {text!r}, but should be {error}") from None
    return value


def _show(made: Explanation | Difference, form: str) -> None:
    from . import cli, htmltable, tables

    shown = made.tables()
    if form == "json":
        import json

        cli.write(json.dumps(made.to_dict(), indent=1, allow_nan=False) + "\n")
    elif form == "markdown":
        cli.write(tables.markdown(shown))
    elif form == "html":
        title = html.escape(f"capybench explain: {shown[-1].title}")
        cli.write(
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{title}</title>\n{htmltable.style()}</head>\n<body>\n"
            f"{htmltable.block(shown, styled=False)}\n</body>\n</html>\n"
        )
    else:
        cli.show_tables(shown)
