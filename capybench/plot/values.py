"""Drawings of measured values: bars, strip, ECDF, history."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from ..errors import UsageError
from ..results import CellResult, RunResult
from ..tables import display_scale, number, printable
from . import data, style
from .data import Panel
from .options import FEW_BLOCKS, NO_CELLS, Options, absent_words, few
from .style import SMALL, TEXT, Frame, Look, Theme, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_NUMBERS = "No cell of this run has a number."
_BAR = 0.205
_GAP = 0.55


def _measured(cells: Sequence[CellResult]) -> list[CellResult]:
    return [cell for cell in cells if cell.summary.median is not None]


def _nothing(cells: Sequence[CellResult]) -> str:
    return NO_NUMBERS if cells else NO_CELLS


def _better(direction: str) -> str:
    return f"{direction} is better"


def _quantity(unit: str) -> str:
    return "time" if unit.endswith("/op") else "rate"


# ---- bars ----------------------------------------------------------------------------------------


def bars(results: Sequence[RunResult], options: Options) -> Figure:
    """Medians as bars from 0, contenders of a case together, with intervals or ranges."""
    (result,) = results
    theme = options.theme
    cells = data.chosen(result, options.only)
    shown = _measured(cells)
    words = options.words("Median of the processes", data.heading(result))
    if not shown:
        return style.note_sheet(theme, words, _nothing(cells))
    panels = data.panels(shown)
    looks = style.looks([cell.contender for cell in shown], theme)
    # With one contender in each case its name is not worth a line of the label.
    labels = {cell.id: _bar_label(panel, cell) for panel in panels for cell in panel.cells}
    left = min(3.8, 0.35 + max(map(style.text_inches, labels.values())))
    heads = [printable(case) for panel in panels if _nested(panel) for case, _ in panel.cases]
    left = max(left, min(3.8, 0.25 + max(map(style.text_inches, heads), default=0.0)))
    foot = (
        f"Whiskers: {data.range_words(shown)}.",
        *((FEW_BLOCKS,) if few(shown) else ()),
        *absent_words(cells),
    )
    words = Words(words.title, words.under, foot)
    heights = [_BAR * _extent(panel) for panel in panels]
    frame = Frame(width=4.6, left=left, right=1.0, top=0.42, bottom=0.52)
    figure, axes = style.sheet(theme, words, heights, frame)
    for panel, place in zip(panels, axes, strict=True):
        _draw_bars(place, panel, labels, looks, theme, left)
    return figure


def _nested(panel: Panel) -> bool:
    return any(len(row) > 1 for _, row in panel.cases)


def _bar_label(panel: Panel, cell: CellResult) -> str:
    contender = style.shortened(printable(cell.contender), 34)
    if _nested(panel):
        return contender
    names = {other.contender for other in panel.cells}
    case = style.shortened(printable(cell.case), 34)
    return case if len(names) == 1 else f"{case}{style.GAP}{contender}"


def _extent(panel: Panel) -> float:
    """Height of a panel in bars: a heading a case where cases have several contenders."""
    extra = 1 + _GAP if _nested(panel) else 0
    return sum(len(row) + extra for _, row in panel.cases) + 0.3


def _draw_bars(
    axes: Axes,
    panel: Panel,
    labels: Mapping[str, str],
    looks: Mapping[str, Look],
    theme: Theme,
    left: float,
) -> None:
    unit, scale = display_scale(panel.cells, None)
    style.titled(axes, printable(panel.suite), theme, left=left - 0.15)
    style.labelled(axes, theme, x=f"{_quantity(panel.unit)} ({unit}), {_better(panel.direction)}")
    ends = [high for cell in panel.cells for high in (data.whiskers(cell) or (0.0, 0.0))[1:]]
    medians = [cell.summary.median or 0.0 for cell in panel.cells]
    axes.set_xlim(0, 1.04 * max(*ends, *medians, 1e-300) / scale)
    axes.set_ylim(_extent(panel) - 0.5, -0.5)
    axes.set_yticks([])
    style.ticks_above(axes, _BAR * _extent(panel))
    style.grid(axes, theme, "x")
    y = 0.0
    for case, row in panel.cases:
        if _nested(panel):
            _label(axes, -(left - 0.15), y, style.shortened(printable(case), 44), theme, head=True)
            y += 1
        for cell in row:
            median = (cell.summary.median or 0.0) / scale
            axes.barh(y, median, height=0.72, color=looks[cell.contender].colour, linewidth=0)
            whisker = data.whiskers(cell)
            edge = median
            if whisker is not None:
                low, high = (end / scale for end in whisker)
                edge = max(edge, high)
                known = cell.summary.ci_low is not None
                axes.plot(
                    [low, high],
                    [y, y],
                    color=theme.ink,
                    linewidth=1.3,
                    linestyle="-" if known else (0, (1.5, 1)),
                    marker="|",
                    markersize=5,
                )
            _label(axes, -0.08, y, labels[cell.id], theme)
            axes.annotate(
                number(median),
                (edge, y),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
                color=theme.ink,
                annotation_clip=False,
            )
            y += 1
        if _nested(panel):
            y += _GAP


def _label(
    axes: Axes, inches: float, y: float, text: str, theme: Theme, *, head: bool = False
) -> None:
    axes.annotate(
        text,
        (0, y),
        xycoords=("axes fraction", "data"),
        xytext=(72 * inches, 0),
        textcoords="offset points",
        ha="left" if head else "right",
        va="center",
        fontsize=TEXT,
        color=theme.quiet if head else theme.ink,
        annotation_clip=False,
        parse_math=False,
    )


# ---- small multiples -----------------------------------------------------------------------------


def _small(panels: int) -> Frame:
    """Frame of small multiples: three in a row, fewer of them wider."""
    columns = min(3, max(1, panels))
    width = {1: 5.6, 2: 3.6, 3: 2.75}[columns]
    return Frame(width=width, left=0.75, right=0.2, top=0.42, bottom=0.52, columns=columns)


_SMALL_HEIGHT = 1.45
_SMALL_TITLE = 42


def _case_panels(cells: Sequence[CellResult]) -> list[Panel]:
    """A panel for each case."""
    return [
        Panel(panel.suite, panel.unit, panel.direction, ((case, row),))
        for panel in data.panels(cells)
        for case, row in panel.cases
    ]


def _panel_title(panel: Panel, axes: Axes, theme: Theme) -> None:
    name = f"{printable(panel.suite)}/{printable(panel.cases[0][0])}"
    style.titled(axes, style.shortened(name, _SMALL_TITLE), theme, left=0.5)


def strip(results: Sequence[RunResult], options: Options) -> Figure:
    """Process medians of each case in the order in which they ran: drift and states show."""
    (result,) = results
    theme = options.theme
    cells = data.chosen(result, options.only)
    shown = _measured(cells)
    words = options.words("Process medians in the order in which they ran", data.heading(result))
    if not shown:
        return style.note_sheet(theme, words, _nothing(cells))
    looks = style.looks([cell.contender for cell in shown], theme)
    foot = (
        "A point is a process, the median of its samples; thin lines part the blocks.",
        *absent_words(cells),
    )
    legend = tuple((printable(name), _dots(look)) for name, look in looks.items())
    words = Words(words.title, words.under, foot, legend)
    panels = _case_panels(shown)
    figure, axes = style.sheet(theme, words, [_SMALL_HEIGHT] * len(panels), _small(len(panels)))
    for panel, place in zip(panels, axes, strict=True):
        _draw_strip(place, panel, looks, theme)
    return figure


def _dots(look: Look) -> Look:
    return Look(look.colour, look.marker, "none")


def _draw_strip(axes: Axes, panel: Panel, looks: Mapping[str, Look], theme: Theme) -> None:
    from matplotlib.ticker import MaxNLocator

    unit, scale = display_scale(panel.cells, None)
    _panel_title(panel, axes, theme)
    style.labelled(axes, theme, x="place in the run (process)", y=f"{unit}")
    style.grid(axes, theme, "y")
    ran = data.executed(panel.cells)
    before = None
    for place, (block, _, _) in enumerate(ran, start=1):
        if before is not None and block != before:
            axes.axvline(place - 0.5, color=theme.grid, linewidth=0.7)
        before = block
    for cell in panel.cells:
        points = [
            (place, value / scale)
            for place, (_, owner, value) in enumerate(ran, start=1)
            if owner is cell
        ]
        look = looks[cell.contender]
        axes.plot(
            [place for place, _ in points],
            [value for _, value in points],
            color=look.colour,
            marker=look.marker,
            markersize=4,
            linestyle="none",
        )
    axes.set_xlim(0.4, len(ran) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    _room(axes, [value / scale for _, _, value in ran])


def _room(axes: Axes, values: Sequence[float]) -> None:
    """Limits of the value axis: logarithmic where the values lie far apart."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = min(values), max(values)
    if low > 0 and high > 8 * low:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.3, high * 1.3)
        digits = (1.0, 2.0, 5.0) if high < 500 * low else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(subs=digits, numticks=8))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        room = 0.12 * (high - low) or 0.05 * abs(high) or 1.0
        axes.set_ylim(low - room, high + room)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))


def ecdf(results: Sequence[RunResult], options: Options) -> Figure:
    """Share of the processes whose median is at most a value, contender by contender."""
    (result,) = results
    theme = options.theme
    cells = data.chosen(result, options.only)
    shown = _measured(cells)
    words = options.words("Share of processes at or below a value", data.heading(result))
    if not shown:
        return style.note_sheet(theme, words, _nothing(cells))
    looks = style.looks([cell.contender for cell in shown], theme)
    legend = tuple((printable(name), look) for name, look in looks.items())
    foot = ("One step is one process, the median of its samples.", *absent_words(cells))
    words = Words(words.title, words.under, foot, legend)
    panels = _case_panels(shown)
    figure, axes = style.sheet(theme, words, [_SMALL_HEIGHT] * len(panels), _small(len(panels)))
    for panel, place in zip(panels, axes, strict=True):
        _draw_ecdf(place, panel, looks, theme)
    return figure


def _draw_ecdf(axes: Axes, panel: Panel, looks: Mapping[str, Look], theme: Theme) -> None:
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
    )

    unit, scale = display_scale(panel.cells, None)
    _panel_title(panel, axes, theme)
    style.labelled(axes, theme, x=f"{unit}", y="share of processes")
    style.grid(axes, theme)
    everything: list[float] = []
    steps = {}
    for cell in panel.cells:
        values = np.sort(np.array(list(cell.by_block().values()))) / scale
        steps[cell.contender] = values
        everything += values.tolist()
    low, high = min(everything), max(everything)
    if low > 0 and high > 8 * low:
        axes.set_xscale("log")
        left, right = low / 1.2, high * 1.2
        digits = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(subs=digits, numticks=7))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
        left, right = low - room, high + room
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    axes.set_xlim(left, right)
    axes.set_ylim(-0.03, 1.06)
    axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{100 * value:g} %"))
    for contender, values in steps.items():
        look = looks[contender]
        shares = np.arange(1, values.size + 1) / values.size
        axes.step(
            np.concatenate(([left], values, [right])),
            np.concatenate(([0.0], shares, [1.0])),
            where="post",
            color=look.colour,
            linestyle=look.line,
            linewidth=1.3,
        )
        axes.plot(
            values, shares, color=look.colour, marker=look.marker, markersize=3.5, linestyle="none"
        )


# ---- history -------------------------------------------------------------------------------------


def machine_of(result: RunResult) -> tuple[str, ...]:
    """What must agree before absolute times of two runs may stand side by side."""
    fingerprint = result.machine.get("fingerprint") or {}
    return tuple(str(fingerprint.get(key)) for key in ("cpu", "arch", "cpus", "kernel", "libc"))


def history(results: Sequence[RunResult], options: Options) -> Figure:
    """Medians of each case from run to run. All runs must be of one machine."""
    theme = options.theme
    machines = {machine_of(result): result for result in results}
    if len(machines) > 1:
        names = "; ".join(", ".join(part for part in m if part != "None") for m in machines)
        raise UsageError(
            f"a history compares times, so its runs must be of one machine, not of: {names}"
        )
    dated = sorted(results, key=lambda result: str(result.run.get("created_utc")))
    series: dict[str, list[tuple[int, CellResult]]] = {}
    cells: dict[str, CellResult] = {}
    for place, result in enumerate(dated):
        for cell in result.cells:
            if cell.summary.median is not None:
                kept = cells.setdefault(cell.id, cell)
                # A cell whose unit changed is another quantity; its older runs go.
                if kept.unit == cell.unit:
                    series.setdefault(cell.id, []).append((place, cell))
    last = dated[-1]
    every = RunResult(last.run, last.machine, tuple(cells.values()), last.extra)
    shown = list(data.chosen(every, options.only)) if cells else []
    under = (f"{len(dated)} runs · {', '.join(p for p in machine_of(last)[:1] if p != 'None')}",)
    words = options.words("Medians from run to run", *under)
    if not shown:
        return style.note_sheet(theme, words, _nothing([c for r in dated for c in r.cells]))
    looks = style.looks([cell.contender for cell in shown], theme)
    legend = tuple((printable(name), look) for name, look in looks.items())
    whole = [cell for cell_id in cells for _, cell in series[cell_id]]
    foot = (
        f"Lines: {data.range_words(whole)}. Runs stand in order, not at their distance in time.",
        *((FEW_BLOCKS,) if few(whole) else ()),
    )
    words = Words(words.title, words.under, foot, legend)
    panels = _case_panels(shown)
    figure, axes = style.sheet(theme, words, [_SMALL_HEIGHT] * len(panels), _small(len(panels)))
    stamps = [_stamp(result) for result in dated]
    for panel, panel_axes in zip(panels, axes, strict=True):
        _draw_history(panel_axes, panel, series, stamps, looks, theme)
    return figure


def _stamp(result: RunResult) -> str:
    text = str(result.run.get("created_utc", ""))
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).strftime("%m-%d %H:%M")
    except ValueError:
        return style.shortened(printable(text), 11) or "?"


def _draw_history(
    axes: Axes,
    panel: Panel,
    series: Mapping[str, Sequence[tuple[int, CellResult]]],
    stamps: Sequence[str],
    looks: Mapping[str, Look],
    theme: Theme,
) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    unit, scale = display_scale(panel.cells, None)
    _panel_title(panel, axes, theme)
    style.labelled(axes, theme, x="run (UTC)", y=unit)
    style.grid(axes, theme, "y")
    values = []
    for nth, cell in enumerate(panel.cells):
        look = looks[cell.contender]
        # A little aside, so that whiskers of contenders do not cover each other.
        aside = (nth - (len(panel.cells) - 1) / 2) * 0.06
        places, medians = [], []
        for place, run_cell in series[cell.id]:
            median = (run_cell.summary.median or math.nan) / scale
            places.append(place + aside)
            medians.append(median)
            values.append(median)
            if (ends := data.whiskers(run_cell)) is not None:
                low, high = (end / scale for end in ends)
                values += [low, high]
                axes.plot([places[-1]] * 2, [low, high], color=look.colour, linewidth=1)
        axes.plot(
            places,
            medians,
            color=look.colour,
            marker=look.marker,
            markersize=4,
            linestyle=look.line,
            linewidth=1,
        )
    axes.set_xlim(-0.4, len(stamps) - 0.6)
    step = max(1, math.ceil(len(stamps) / 3))
    axes.xaxis.set_major_locator(FixedLocator(list(range(0, len(stamps), step))))
    axes.xaxis.set_major_formatter(
        FuncFormatter(
            lambda value, _place: stamps[round(value)] if 0 <= value < len(stamps) else ""
        )
    )
    _room(axes, values)
