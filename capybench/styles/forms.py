"""What the published forms share: cells of figures, rows with reasons, ratios, sources."""

from __future__ import annotations

from collections.abc import Sequence

from .. import stats
from ..reference import Figure
from ..reference import Table as Published
from ..results import CellResult, RunResult
from ..tables import MISSING, Row, printable, ratio_text


def measured_cell(cells: dict[str, CellResult], figure: Figure) -> CellResult | None:
    """The cell that stands for a published figure; our model goes before real libraries."""
    for cell_id in figure.cells:
        if cell_id in cells:
            return cells[cell_id]
    return None


def figure_row(
    label: str, cell: CellResult | None, values: Sequence[str], page: Sequence[str]
) -> Row:
    """A row with numbers; one whose cell has none says why, with the page's figure."""
    if cell is None or cell.summary.median is not None:
        return Row(label, tuple(values), tone="" if cell else "dim")
    reason = printable(cell.reason or cell.summary.reason or "no reason given")
    beside = f" (page: {', '.join(page)})" if page else ""
    tone = "dim" if cell.status == "unavailable" else "bad"
    return Row(label, note=f"{cell.status}: {reason}{beside}", tone=tone)


def cell_ratio(
    result: RunResult, cell: CellResult | None, base: CellResult | None
) -> stats.Ratio | None:
    """Ratio of two cells of the run; None where there is none, and for the baseline itself."""
    if cell is None or base is None or cell is base or cell.unit != base.unit:
        return None
    return result.ratio_of(cell, base)


def ratio_texts(ratio: stats.Ratio | None) -> tuple[str, str]:
    """A ratio, and its interval or range; MISSING for what there is not."""
    if ratio is None or ratio.value is None:
        return MISSING, ""
    if ratio.n < 2:
        return ratio_text(ratio.value), MISSING
    low, high = (ratio.low, ratio.high) if ratio.ci_low is None else (ratio.ci_low, ratio.ci_high)
    return ratio_text(ratio.value), f"{ratio_text(low)}–{ratio_text(high)}"


def ratio_title(ratios: Sequence[stats.Ratio | None]) -> str:
    """Heading of the column beside the ratios: interval, range of n, or both kinds."""
    present = [ratio for ratio in ratios if ratio and ratio.value is not None]
    if present and all(ratio.ci_low is None for ratio in present):
        counts = {ratio.n for ratio in present}
        return f"range of {counts.pop()}" if len(counts) == 1 else "range"
    return "ratio interval"


def source_lines(page: Published) -> tuple[str, ...]:
    """Remarks below a table: where the page's figures come from, and what they are good for."""
    source = page.source
    return (
        f"page: {source.title}; {source.machine}; {source.compiler}; {source.method}",
        "compare ratios with ratios: the page's times belong to its machine",
    )
