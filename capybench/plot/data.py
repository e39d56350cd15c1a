"""What the drawings show, taken from results: rows, panels and ticks. No matplotlib here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from .. import cases, stats
from ..results import CellResult, RunResult
from ..tables import printable, ratios_to_baseline

if TYPE_CHECKING:
    from ..cases import Cell

#: Differences up to this share are of no interest unless a user says otherwise.
MARGIN = 0.03

FASTER, SLOWER, WITHIN, UNCLEAR, RANGE = "faster", "slower", "within", "unclear", "range"


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A contender against the baseline of its case. `standing` is FASTER, SLOWER, WITHIN or
    UNCLEAR by its interval, RANGE below the number of blocks that an interval needs."""

    cell: CellResult
    baseline: CellResult
    ratio: stats.Ratio
    standing: str

    @property
    def ends(self) -> tuple[float, float] | None:
        """Interval, or range below the number of blocks for one; None for a single block."""
        ratio = self.ratio
        if ratio.ci_low is not None and ratio.ci_high is not None:
            return ratio.ci_low, ratio.ci_high
        if ratio.n < 2 or ratio.low is None or ratio.high is None:
            return None
        return ratio.low, ratio.high


@dataclass(frozen=True, slots=True)
class Panel:
    """Cells of a suite that share unit and direction; `cases` in natural order."""

    suite: str
    unit: str
    direction: str
    cases: tuple[tuple[str, tuple[CellResult, ...]], ...]

    @property
    def cells(self) -> list[CellResult]:
        """All cells, case by case."""
        return [cell for _, row in self.cases for cell in row]


def chosen(result: RunResult, only: Sequence[str] | str = ()) -> tuple[CellResult, ...]:
    """Cells that the patterns select, in natural order; SelectionError if one selects nothing."""
    patterns = [only] if isinstance(only, str) else list(only)
    # `select` and `ordered` look at names alone, which stored cells have as well.
    cells = cast("Iterable[Cell]", result.cells)
    if not patterns:
        return cast("tuple[CellResult, ...]", cases.ordered(cells))
    return cast("tuple[CellResult, ...]", cases.select(cells, patterns))


def panels(cells: Iterable[CellResult]) -> list[Panel]:
    """Cells by suite, unit and direction."""
    found: dict[tuple[str, str, str], dict[str, list[CellResult]]] = {}
    for cell in cells:
        place = found.setdefault((cell.suite, cell.unit, cell.direction), {})
        place.setdefault(cell.case, []).append(cell)
    return [
        Panel(*key, tuple((case, tuple(row)) for case, row in by_case.items()))
        for key, by_case in found.items()
    ]


def ratio_rows(
    result: RunResult, cells: Iterable[CellResult], baseline: str | None, margin: float
) -> dict[str, RatioRow]:
    """The row of every cell that has a rival and a number, by cell id."""
    wanted = {cell.id for cell in cells}
    stored = result.run.get("baseline")
    chosen_baseline = baseline or (stored if isinstance(stored, str) else None)
    bases = result.baselines(chosen_baseline)
    rows = {}
    for cell_id, ratio in ratios_to_baseline(result, baseline)[1].items():
        cell = result.cell(cell_id)
        if cell_id in wanted and ratio.value is not None:
            rows[cell_id] = RatioRow(
                cell,
                bases[cell.suite, cell.case],
                ratio,
                standing(ratio, cell.direction, margin),
            )
    return rows


def standing(ratio: stats.Ratio, direction: str, margin: float) -> str:
    """Where an interval lies: to one side of 1, inside the margin, or neither."""
    if ratio.ci_low is None or ratio.ci_high is None:
        return RANGE
    if ratio.ci_low > 1 or ratio.ci_high < 1:
        higher = ratio.ci_low > 1
        return FASTER if higher == (direction == "higher") else SLOWER
    inside = ratio.ci_low >= 1 / (1 + margin) and ratio.ci_high <= 1 + margin
    return WITHIN if inside else UNCLEAR


def cost(value: float, direction: str) -> float:
    """A ratio so that more means worse; infinite for a rate of nothing."""
    if direction == "lower":
        return value
    return 1 / value if value else math.inf


def range_words(cells: Iterable[CellResult]) -> str:
    """What the whiskers of medians are, as a sentence for the foot."""
    kinds: dict[str, None] = {}
    for cell in cells:
        summary = cell.summary
        if summary.median is None:
            continue
        if summary.ci_level is None:
            kinds[f"the range of {summary.n} processes"] = None
        else:
            kinds[f"a {100 * summary.ci_level:.1f} % interval over {summary.n} processes"] = None
    return _either(kinds)


def ratio_words(rows: Iterable[RatioRow]) -> str:
    """The same for the intervals of ratios."""
    kinds: dict[str, None] = {}
    for row in rows:
        if row.ratio.ci_level is None:
            kinds[f"the range of {row.ratio.n} blocks"] = None
        else:
            kinds[f"a {100 * row.ratio.ci_level:.1f} % interval over {row.ratio.n} blocks"] = None
    return _either(kinds)


def _either(kinds: Iterable[str]) -> str:
    listed = list(kinds)
    if len(listed) <= 3:
        return " or ".join(listed)
    return f"{listed[0]}, or what its own number of processes allows"


def whiskers(cell: CellResult) -> tuple[float, float] | None:
    """Interval of a cell's median, else its range; None for a single process."""
    summary = cell.summary
    if summary.ci_low is not None and summary.ci_high is not None:
        return summary.ci_low, summary.ci_high
    if summary.n < 2 or summary.low is None or summary.high is None:
        return None
    return summary.low, summary.high


def executed(cells: Iterable[CellResult]) -> list[tuple[int, CellResult, float]]:
    """(block, cell, process median in the cell's unit) in the order in which they ran."""
    rows = []
    for cell in cells:
        by_block = cell.by_block()
        places = {process.block: process.order for process in cell.processes}
        for block, value in by_block.items():
            place = places.get(block)
            rows.append((block, math.inf if place is None else place, cell, value))
    rows.sort(key=lambda row: row[:2])
    return [(block, cell, value) for block, _, cell, value in rows]


_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Curve:
    """A contender over the sizes that the last number of its cases' names gives."""

    contender: str
    points: tuple[tuple[int, CellResult], ...]


def sizes(cells: Iterable[CellResult]) -> dict[tuple[str, str], list[Curve]]:
    """Curves of throughput by (suite, family): a case's name with its last number as N.

    Only cells in bytes/s that have a number and a size; a family of one size is a point.
    """
    found: dict[tuple[str, str], dict[str, list[tuple[int, CellResult]]]] = {}
    for cell in cells:
        numbers = list(_NUMBER.finditer(cell.case))
        if cell.unit != "bytes/s" or not numbers or cell.summary.median is None:
            continue
        last = numbers[-1]
        family = f"{cell.case[: last.start()]}N{cell.case[last.end() :]}"
        curves = found.setdefault((cell.suite, family), {})
        curves.setdefault(cell.contender, []).append((int(last[0]), cell))
    return {
        key: [
            Curve(name, tuple(sorted(points, key=lambda point: point[0])))
            for name, points in curves.items()
        ]
        for key, curves in found.items()
    }


def size_text(size: int) -> str:
    """A number of bytes as people say it: 1 KiB, 64 KiB, 1 MiB; 1500 B otherwise."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def ratio_ticks(low: float, high: float) -> list[float]:
    """About four to nine places for ticks of a logarithmic axis of ratios, 1 among them."""
    span = math.log10(high / low)
    if span > 2:
        step = max(1, math.ceil(span / 8))
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [10.0**power for power in powers if power % step == 0]
    elif span > 0.9:
        ticks = [
            digit * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for digit in (1, 2, 5)
        ]
    elif span > 0.35:
        ticks = [0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4]
    else:
        wanted = (high - low) / 7
        steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
        step_width = next((s for s in steps if s >= wanted), 0.2)
        first, last = math.ceil((low - 1) / step_width), math.floor((high - 1) / step_width)
        ticks = [round(1 + nth * step_width, 6) for nth in range(first, last + 1)]
    return [tick for tick in ticks if low <= tick <= high]


def heading(result: RunResult) -> str:
    """One line that says what run this is."""
    run, fingerprint = result.run, result.machine.get("fingerprint") or {}
    parts = [f"run {printable(str(run.get('id', 'without a name')))}"]
    if run.get("blocks") is not None and run.get("samples") is not None:
        parts.append(f"{run['blocks']} blocks × {run['samples']} samples")
    if fingerprint.get("cpu"):
        parts.append(printable(str(fingerprint["cpu"])))
    if not result.complete:
        parts.append("INCOMPLETE")
    return " · ".join(parts)
