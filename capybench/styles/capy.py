"""`--style capy`: the forms of the Capy benchmark page.

Coroutines in ns per op. Frame allocation in whole milliseconds for 2,000,000 passes with the page's
percentage, which says how much longer std takes than a row, round((std / row - 1) * 1000) / 10, and
not the share of time that the row saves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..cases import natural_key
from ..reference import FRAME_ALLOC_PASSES, FRAMES_PER_PASS, Figure, tables_of
from ..reference import Table as Published
from ..results import CellResult, RunResult
from ..tables import MISSING, Column, Group, Row, Table, number, printable, ratio_text
from .forms import (
    cell_ratio,
    figure_row,
    measured_cell,
    ratio_texts,
    ratio_title,
    source_lines,
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
        if suite != "read_stream" or any(measured_cell(cells, figure) for figure in page.figures)
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
        cell = measured_cell(cells, figure)
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
        remarks=(f"mean ± population sd of process medians, n = {n}", *source_lines(page)),
    )


def _coroutine(result: RunResult, cells: dict[str, CellResult], page: Published) -> Table:
    base = measured_cell(cells, page.figures[0])
    groups, ratios = [], []
    for figure in page.figures:
        cell = measured_cell(cells, figure)
        to_base = cell_ratio(result, cell, base)
        ratios.append(to_base)
        median = cell.summary.median if cell else None
        published = page.ratio(figure)
        values = (
            number(median) if median is None else f"{median:.1f}",
            f"{figure.value:.1f}",
            *ratio_texts(to_base),
            ratio_text(published),
        )
        page_texts = (f"{figure.value:.1f} ns/op",)
        groups.append(Group(figure.row, (figure_row("", cell, values, page_texts),)))
    return Table(
        title="Capy: launch, chain and switch, ns per op",
        columns=(
            Column("ns", "ns/op"),
            Column("page_ns", "page ns/op"),
            Column("to_depth1", "to depth1"),
            Column("to_depth1_interval", ratio_title(ratios), 1),
            Column("page_to_depth1", "page to depth1"),
        ),
        groups=tuple(groups),
        headings=("case", "contender"),
        remarks=source_lines(page),
    )


def slowdown_percent(ms: float, std_ms: float) -> float | None:
    """The page's percentage: how much longer std takes than a row; None for a time of 0."""
    return math.floor((std_ms / ms - 1) * 1000 + 0.5) / 10 if ms > 0 else None


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.1f} %"


def _frame_alloc(result: RunResult, cells: dict[str, CellResult], page: Published) -> Table:
    std = page.figure("std", "time")
    base = measured_cell(cells, std)
    base_ms = _milliseconds(base)
    published = {figure.cells[0]: figure for figure in page.figures}
    others = sorted(
        (c for c in cells.values() if c.suite == "frame_alloc" and c.id not in published),
        key=lambda cell: natural_key(cell.id),
    )
    shown: list[tuple[str, CellResult | None, Figure | None]] = [
        (figure.row, measured_cell(cells, figure), figure) for figure in page.figures
    ]
    shown += [(printable(cell.contender), cell, None) for cell in others]
    groups, ratios = [], []
    for label, cell, figure in shown:
        ms = _milliseconds(cell)
        relative = None
        if ms is not None and base_ms is not None and cell is not base:
            relative = slowdown_percent(ms, base_ms)
        to_base = cell_ratio(result, cell, base)
        ratios.append(to_base)
        values = (
            number(ms) if ms is None else f"{ms:.0f}",
            f"{figure.value:.0f}" if figure else MISSING,
            _percent(relative),
            _percent(slowdown_percent(figure.value, std.value))
            if figure and figure is not std
            else MISSING,
            *ratio_texts(to_base),
            ratio_text(page.ratio(figure)) if figure else MISSING,
            _per_frame(ms),
            _per_frame(figure.value) if figure else MISSING,
        )
        page_texts = (f"{figure.value:.0f} ms",) if figure else ()
        groups.append(Group(label, (figure_row("", cell, values, page_texts),)))
    return Table(
        title="Capy: frame allocation, ms for 2,000,000 passes of 66 frames",
        columns=(
            Column("ms", "ms"),
            Column("page_ms", "page ms"),
            Column("percent", "std longer"),
            Column("page_percent", "page: std longer"),
            Column("to_std", "to std"),
            Column("to_std_interval", ratio_title(ratios), 2),
            Column("page_to_std", "page to std"),
            Column("frame", "ns per frame", 3),
            Column("page_frame", "page per frame", 4),
        ),
        groups=tuple(groups),
        headings=("allocator", "contender"),
        remarks=source_lines(page),
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
