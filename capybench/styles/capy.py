"""`--style capy`: the forms of the Capy benchmark page.

Coroutines in ns per op. Frame allocation in whole milliseconds for 2,000,000 passes with the page's
percentage, which says how much longer std takes than a row, round((std / row - 1) * 1000) / 10, and
not the share of time that the row saves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import stats
from ..cases import natural_key
from ..reference import FRAME_ALLOC_PASSES, FRAMES_PER_PASS, Figure, tables_of
from ..reference import Table as Published
from ..results import CellResult, RunResult
from ..tables import (
    MISSING,
    Column,
    Group,
    Row,
    Table,
    number,
    printable,
    ratio_text,
)

TITLE = "Capy page: ns/op for coroutines, ms and per cent for frame allocation, published beside"


SUITES = ("coroutine", "frame_alloc")


def tables(result: RunResult) -> tuple[Table, ...]:
    """One table for each suite of the run that the page has."""
    cells = {cell.id: cell for cell in result.cells}
    found = []
    for suite, form in zip(SUITES, (_coroutine, _frame_alloc), strict=True):
        if any(cell.suite == suite for cell in result.cells):
            found.append(form(result, cells, tables_of(suite)[0]))
    return tuple(found)


def _measured(cells: dict[str, CellResult], figure: Figure) -> CellResult | None:
    """The cell that stands for a published figure; our model goes before real libraries."""
    for cell_id in figure.cells:
        if cell_id in cells:
            return cells[cell_id]
    return None


def _row(label: str, cell: CellResult | None, values: Sequence[str], page: Sequence[str]) -> Row:
    """A row with numbers; one whose cell has none says why, with the page's figure."""
    if cell is None or cell.summary.median is not None:
        return Row(label, tuple(values), tone="" if cell else "dim")
    reason = printable(cell.reason or cell.summary.reason or "no reason given")
    beside = f" (page: {', '.join(page)})" if page else ""
    tone = "dim" if cell.status == "unavailable" else "bad"
    return Row(label, note=f"{cell.status}: {reason}{beside}", tone=tone)


def _ratio(
    result: RunResult, cell: CellResult | None, base: CellResult | None
) -> stats.Ratio | None:
    """Ratio of two cells of the run; None where there is none, and for the baseline itself."""
    if cell is None or base is None or cell is base or cell.unit != base.unit:
        return None
    return result.ratio_of(cell, base)


def _ratio_texts(ratio: stats.Ratio | None) -> tuple[str, str]:
    if ratio is None or ratio.value is None:
        return MISSING, ""
    if ratio.n < 2:
        return ratio_text(ratio.value), MISSING
    low, high = (ratio.low, ratio.high) if ratio.ci_low is None else (ratio.ci_low, ratio.ci_high)
    return ratio_text(ratio.value), f"{ratio_text(low)}–{ratio_text(high)}"


def _ratio_title(ratios: Sequence[stats.Ratio | None]) -> str:
    """Heading of the column beside the ratios: interval, range of n, or both kinds."""
    present = [ratio for ratio in ratios if ratio and ratio.value is not None]
    if present and all(ratio.ci_low is None for ratio in present):
        counts = {ratio.n for ratio in present}
        return f"range of {counts.pop()}" if len(counts) == 1 else "range"
    return "ratio interval"


def _coroutine(result: RunResult, cells: dict[str, CellResult], page: Published) -> Table:
    base = _measured(cells, page.figures[0])
    groups, ratios = [], []
    for figure in page.figures:
        cell = _measured(cells, figure)
        ratio = _ratio(result, cell, base)
        ratios.append(ratio)
        median = cell.summary.median if cell else None
        published = page.ratio(figure)
        values = (
            number(median) if median is None else f"{median:.1f}",
            f"{figure.value:.1f}",
            *_ratio_texts(ratio),
            ratio_text(published),
        )
        page_texts = (f"{figure.value:.1f} ns/op",)
        groups.append(Group(figure.row, (_row("", cell, values, page_texts),)))
    return Table(
        title="Capy: launch, chain and switch, ns per op",
        columns=(
            Column("ns", "ns/op"),
            Column("page_ns", "page ns/op"),
            Column("to_depth1", "to depth1"),
            Column("to_depth1_interval", _ratio_title(ratios), 1),
            Column("page_to_depth1", "page to depth1"),
        ),
        groups=tuple(groups),
        headings=("case", "contender"),
        remarks=_source(page),
    )


def slowdown_percent(ms: float, std_ms: float) -> float | None:
    """The page's percentage: how much longer std takes than a row; None for a time of 0."""
    return math.floor((std_ms / ms - 1) * 1000 + 0.5) / 10 if ms > 0 else None


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.1f} %"


def _frame_alloc(result: RunResult, cells: dict[str, CellResult], page: Published) -> Table:
    std = page.figure("std", "time")
    base = _measured(cells, std)
    base_ms = _milliseconds(base)
    published = {figure.cells[0]: figure for figure in page.figures}
    others = sorted(
        (c for c in cells.values() if c.suite == "frame_alloc" and c.id not in published),
        key=lambda cell: natural_key(cell.id),
    )
    shown: list[tuple[str, CellResult | None, Figure | None]] = [
        (figure.row, _measured(cells, figure), figure) for figure in page.figures
    ]
    shown += [(printable(cell.contender), cell, None) for cell in others]
    groups, ratios = [], []
    for label, cell, figure in shown:
        ms = _milliseconds(cell)
        relative = None
        if ms is not None and base_ms is not None and cell is not base:
            relative = slowdown_percent(ms, base_ms)
        ratio = _ratio(result, cell, base)
        ratios.append(ratio)
        values = (
            number(ms) if ms is None else f"{ms:.0f}",
            f"{figure.value:.0f}" if figure else MISSING,
            _percent(relative),
            _percent(slowdown_percent(figure.value, std.value))
            if figure and figure is not std
            else MISSING,
            *_ratio_texts(ratio),
            ratio_text(page.ratio(figure)) if figure else MISSING,
            _per_frame(ms),
            _per_frame(figure.value) if figure else MISSING,
        )
        page_texts = (f"{figure.value:.0f} ms",) if figure else ()
        groups.append(Group(label, (_row("", cell, values, page_texts),)))
    return Table(
        title="Capy: frame allocation, ms for 2,000,000 passes of 66 frames",
        columns=(
            Column("ms", "ms"),
            Column("page_ms", "page ms"),
            Column("percent", "std longer"),
            Column("page_percent", "page: std longer"),
            Column("to_std", "to std"),
            Column("to_std_interval", _ratio_title(ratios), 2),
            Column("page_to_std", "page to std"),
            Column("frame", "ns per frame", 3),
            Column("page_frame", "page per frame", 4),
        ),
        groups=tuple(groups),
        headings=("allocator", "contender"),
        remarks=_source(page),
    )


def _milliseconds(cell: CellResult | None) -> float | None:
    """Time of the page's whole program: ns a pass times 2,000,000 passes, in ms."""
    if cell is None or cell.summary.median is None or cell.unit != "ns/op":
        return None
    return cell.summary.median * FRAME_ALLOC_PASSES / 1e6


def _per_frame(ms: float | None) -> str:
    if ms is None:
        return MISSING
    return f"{ms * 1e6 / FRAME_ALLOC_PASSES / FRAMES_PER_PASS:.1f}"


def _source(page: Published) -> tuple[str, ...]:
    source = page.source
    return (
        f"page: {source.title}; {source.machine}; {source.compiler}; {source.method}",
        "compare ratios with ratios: the page's times belong to its machine",
    )
