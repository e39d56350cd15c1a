"""Published figures beside this machine's: ratios only, each inside its own page or run.

Absolute times of another machine are shown as published and never set against those measured here.
"""

from __future__ import annotations

from . import reference
from .reference import Figure
from .reference import Table as Page
from .results import CellResult, RunResult
from .tables import MISSING, Column, Group, Row, Table, number, printable, ratio_text


def base_of(page: Page, figure: Figure) -> tuple[Page, Figure] | None:
    """What a published figure is compared with; None where there is nothing.

    The page's own baseline. Read streams have none in their tables: there it is the page's first
    model, Capy's task, at the same place.
    """
    if figure.baseline is not None:
        return page, page.figure(figure.baseline, figure.column)
    if page.suite != "read_stream":
        return None
    family = page.key.partition("-")[0]
    first = next(p for p in reference.tables_of(page.suite) if p.key.startswith(f"{family}-"))
    return first, first.figure(figure.row, figure.column)


def tables(result: RunResult, suite: str) -> tuple[Table, ...]:
    """A table for each published page of a suite of which the run has a ratio."""
    cells = {cell.id: cell for cell in result.cells}
    made = []
    for page in reference.tables_of(suite):
        groups: dict[str, list[Row]] = {}
        kinds: set[str] = set()
        known = False
        for figure in page.figures:
            row, has_ratio = _row(result, cells, page, figure, kinds)
            known = known or has_ratio
            groups.setdefault(figure.column, []).append(row)
        if known:
            made.append(_table(page, groups, kinds))
    return tuple(made)


def _measured(cells: dict[str, CellResult], figure: Figure) -> CellResult | None:
    """Our model first, then real libraries; only cells with a number."""
    found = (cells.get(cell_id) for cell_id in figure.cells)
    return next((cell for cell in found if cell and cell.summary.median is not None), None)


def _row(
    result: RunResult,
    cells: dict[str, CellResult],
    page: Page,
    figure: Figure,
    kinds: set[str],
) -> tuple[Row, bool]:
    base = base_of(page, figure)
    there = figure.value / base[1].value if base else None
    cell = _measured(cells, figure)
    below = _measured(cells, base[1]) if base else None
    published = number(figure.value)
    contender = printable(cell.contender) if cell else MISSING
    if base is not None and base[1] is figure and cell is not None:
        return Row(figure.row, (published, "baseline", "baseline", "", contender)), False
    ratio = None
    if cell is not None and below is not None and cell is not below and cell.unit == below.unit:
        ratio = result.ratio_of(cell, below)
    if ratio is None or ratio.value is None:
        row = Row(figure.row, (published, ratio_text(there), MISSING, "", contender), tone="dim")
        return row, False
    ends = (ratio.low, ratio.high) if ratio.ci_low is None else (ratio.ci_low, ratio.ci_high)
    kinds.add(f"range of {ratio.n}" if ratio.ci_level is None else f"{100 * ratio.ci_level:.1f} %")
    span = f"{ratio_text(ends[0])}–{ratio_text(ends[1])}" if ratio.n > 1 else MISSING
    texts = (published, ratio_text(there), ratio_text(ratio.value), span, contender)
    return Row(figure.row, texts), True


def _table(page: Page, groups: dict[str, list[Row]], kinds: set[str]) -> Table:
    (kind,) = kinds if len(kinds) == 1 else ("interval or range",)
    title = kind if not kind.endswith("%") else f"{kind} interval"
    source = page.source
    return Table(
        title=f"{source.title}: {page.title}",
        columns=(
            Column("published", f"published {page.unit}"),
            Column("there", "ratio there"),
            Column("here", "ratio here"),
            Column("interval", title),
            Column("cell", "measured here by"),
        ),
        groups=tuple(Group(name, tuple(rows)) for name, rows in groups.items()),
        headings=("column", "row"),
        remarks=(f"published on {source.machine}, {source.compiler}; {source.method}",),
    )
