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

TITLE = "Capy pages: coroutines, frame allocation, read streams, with the published figures"


SUITES = ("coroutine", "frame_alloc", "read_stream")


def tables(result: RunResult) -> tuple[Table, ...]:
    """A table for each published one of which the run holds a cell."""
    cells = {cell.id: cell for cell in result.cells}
    forms = {"coroutine": _coroutine, "frame_alloc": _frame_alloc, "read_stream": _read_stream}
    return tuple(
        forms[suite](result, cells, page)
        for suite in SUITES
        if any(cell.suite == suite for cell in result.cells)
        for page in tables_of(suite)
        if suite != "read_stream" or any(_measured(cells, figure) for figure in page.figures)
    )


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and population standard deviation (divided by n), as the page prints them."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _read_stream(result: RunResult, cells: dict[str, CellResult], page: Published) -> Table:
    """Rows are stream kinds; columns the native and the bridge side, each beside the page."""
    sides = tuple(dict.fromkeys(figure.column for figure in page.figures))
    rows: dict[str, list[str]] = {}
    notes, counts = [], set()
    for figure in page.figures:
        cell = _measured(cells, figure)
        medians = list(cell.by_block().values()) if cell and cell.summary.median else []
        allocs = None
        if cell is not None:
            heap, resource = cell.per_op("heap_allocs"), cell.per_op("resource_allocs")
            allocs = None if heap is None or resource is None else heap + resource
        if medians:
            counts.add(len(medians))
        elif cell is not None:
            notes.append(f"{cell.id}: {cell.status}: {printable(cell.reason or 'no reason given')}")
        mean, deviation = mean_and_deviation(medians) if medians else (0.0, 0.0)
        rows.setdefault(figure.row, []).extend(
            (
                f"{mean:.1f} ± {deviation:.1f}" if medians else MISSING,
                MISSING if allocs is None else f"{allocs:.0f}",
                f"{figure.value:.1f}",
                MISSING if figure.allocs is None else f"{figure.allocs}",
            )
        )
    columns = []
    for nth, side in enumerate(sides):
        columns += [
            Column(f"{side}_ns", f"{side} ns/op"),
            Column(f"{side}_allocs", f"{side} al/op"),
            Column(f"{side}_page_ns", "page ns/op", 2 + nth),
            Column(f"{side}_page_allocs", "page al/op", 4 + nth),
        ]
    n = " and ".join(str(count) for count in sorted(counts)) or "0"
    return Table(
        title=f"Capy read_stream, {page.title}",
        columns=tuple(columns),
        groups=tuple(Group(row, (Row("", tuple(values)),)) for row, values in rows.items()),
        headings=("stream", ""),
        notes=tuple(notes),
        remarks=(f"mean ± population sd of process medians, n = {n}", *_source(page)),
    )


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
