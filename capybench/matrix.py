"""The table of suite `read_stream`: stream kinds down, models across, a block for each side.

A model's native side is the protocol that it was made for: Capy's task reads awaitables, sender
pipelines and the senders' task read senders. The bridge side is the other one. A block of a family
compares the models on one side; ratios are to the block's task, paired by block of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import stats
from .results import CellResult, RunResult
from .tables import (
    MISSING,
    Column,
    Group,
    Row,
    Table,
    modes_note,
    number,
    printable,
    ratio_text,
    span,
)

STREAMS = ("native", "abstract", "erased", "sync")
#: The side of the other models where Capy's task reads this.
OTHER = {"awaitable": "sender", "sender": "awaitable"}


def matrix_tables(
    result: RunResult, cells: Sequence[CellResult], unit: str, scale: float
) -> list[Table]:
    """A table for each family and side of which there is a cell; times in `unit`, ns / `scale`."""
    families = dict.fromkeys(cell.case.split("/")[0] for cell in cells)
    tables = []
    for family in families:
        for side, task_io in (("native side", "awaitable"), ("bridge side", "sender")):
            block = {
                (cell.case.split("/")[1], cell.contender): cell
                for cell in cells
                if cell.case.split("/")[0] == family
                and cell.case.split("/")[2]
                == (task_io if cell.contender == "task" else OTHER[task_io])
            }
            if block:
                title = f"read_stream, {family}, {side}: {unit}, lower is better"
                tables.append(_table(result, title, block, scale))
    return tables


def _table(
    result: RunResult, title: str, block: dict[tuple[str, str], CellResult], scale: float
) -> Table:
    listed = dict.fromkeys(contender for _, contender in block)
    models = (*(["task"] if "task" in listed else []), *(m for m in listed if m != "task"))
    streams = sorted(
        dict.fromkeys(stream for stream, _ in block),
        key=lambda stream: STREAMS.index(stream) if stream in STREAMS else len(STREAMS),
    )
    notes = [
        f"{cell.id}: {cell.status}: {printable(cell.reason or 'no reason given')}"
        for cell in block.values()
        if cell.summary.median is None
    ]
    notes += [note for cell in block.values() if (note := modes_note(cell, scale))]
    groups = []
    for stream in streams:
        row = [block.get((stream, model)) for model in models]
        base = block.get((stream, "task"))
        ratios = [_ratio(result, cell, base) for cell in row]
        intervals = tuple(_interval(cell, scale) for cell in row)
        lines = [
            Row("median", tuple(_median(cell, scale) for cell in row)),
            Row(_kind(row), intervals),
            Row("allocs", tuple(_allocs(cell) for cell in row)),
        ]
        if base is not None and len(models) > 1:
            lines.append(Row("to task", tuple(text for text, _ in ratios)))
            lines.append(Row("", tuple(interval for _, interval in ratios), tone="dim"))
        groups.append(Group(printable(stream), tuple(lines)))
    return Table(
        title=title,
        columns=tuple(
            Column(f"model_{nth}", printable(model).replace("_", " "))
            for nth, model in enumerate(models)
        ),
        groups=tuple(groups),
        headings=("stream", ""),
        notes=tuple(notes),
        remarks=(
            "to task: ratio to the block's task, paired by block; allocs: per read, heap and "
            "memory resource together",
        ),
    )


def _median(cell: CellResult | None, scale: float) -> str:
    value = cell.summary.median if cell else None
    return number(None if value is None else value / scale)


def _kind(row: Sequence[CellResult | None]) -> str:
    """What the line of intervals holds, by the cells that have one."""
    kinds = {
        (cell.summary.ci_level, cell.summary.n)
        for cell in row
        if cell is not None and cell.summary.median is not None
    }
    if len(kinds) != 1:
        return "interval"
    level, n = kinds.pop()
    return f"range of {n}" if level is None else f"{100 * level:.1f} % interval"


def _interval(cell: CellResult | None, scale: float) -> str:
    if cell is None or cell.summary.median is None or cell.summary.n < 2:
        return MISSING
    summary = cell.summary
    if summary.ci_low is not None:
        return span(summary.ci_low, summary.ci_high, summary.median, scale)
    return span(summary.low, summary.high, summary.median, scale)


def _allocs(cell: CellResult | None) -> str:
    if cell is None:
        return MISSING
    heap, resource = cell.per_op("heap_allocs"), cell.per_op("resource_allocs")
    if heap is None or resource is None:
        return MISSING
    return f"{heap + resource:g}"


def _ratio(result: RunResult, cell: CellResult | None, base: CellResult | None) -> tuple[str, str]:
    """A ratio and its interval or range, as texts."""
    if cell is None or base is None:
        return MISSING, ""
    if cell is base:
        return "baseline", ""
    ratio: stats.Ratio = result.ratio_of(cell, base)
    if ratio.value is None:
        return MISSING, ""
    if ratio.n < 2:
        return ratio_text(ratio.value), MISSING
    low, high = (ratio.low, ratio.high) if ratio.ci_low is None else (ratio.ci_low, ratio.ci_high)
    return ratio_text(ratio.value), f"{ratio_text(low)}–{ratio_text(high)}"
