"""Drawings of ratios inside one run: forest and heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..results import CellResult, RunResult
from ..tables import printable, ratio_text
from . import data, style
from .data import FASTER, RANGE, SLOWER, UNCLEAR, WITHIN, Panel, RatioRow
from .options import FEW_BLOCKS, NO_CELLS, Options, absent_words
from .style import SMALL, TEXT, Frame, Look, Theme, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTHING = "There is nothing to compare: no case of this run has two contenders with a number."
_ROW = 0.235

#: Lines of a panel: a heading of a case (no row), or a row under it.
Line = tuple[str, RatioRow | None]


def forest(results: Sequence[RunResult], options: Options) -> Figure:
    """Ratios with their intervals, a line each; the band about 1 is the margin."""
    (result,) = results
    theme = options.theme
    cells = data.chosen(result, options.only)
    rows = data.ratio_rows(result, cells, options.baseline, options.margin)
    words = options.words("Ratio to the baseline of each case", data.heading(result))
    if not rows:
        return style.note_sheet(theme, words, NOTHING if cells else NO_CELLS)
    panels = [
        (panel, lines) for panel in data.panels(cells) if (lines := _lines(panel, rows, options))
    ]
    labels = [text for _, lines in panels for text, row in lines if row is not None]
    heads = [text for _, lines in panels for text, row in lines if row is None]
    left = min(3.6, 0.5 + max(style.text_inches(text) for text in labels))
    left = max(left, min(3.6, 0.25 + max(map(style.text_inches, heads), default=0)))
    frame = Frame(width=4.4, left=left, right=1.9, top=0.42, bottom=0.52)
    limits = [_limits(lines, options.margin) for _, lines in panels]
    foot = _forest_foot(rows.values(), options, absent_words(cells))
    words = Words(words.title, words.under, foot, _legend(rows.values(), theme))
    figure, axes = style.sheet(theme, words, [_ROW * len(lines) for _, lines in panels], frame)
    for (panel, lines), limit, place in zip(panels, limits, axes, strict=True):
        _draw_forest(place, panel, lines, limit, theme, options, left)
    return figure


def _forest_foot(rows: Any, options: Options, absent: tuple[str, ...]) -> tuple[str, ...]:
    listed = list(rows)
    foot = [
        f"Lines: {data.ratio_words(listed)}. Band: within {100 * options.margin:g} % of the "
        "baseline."
    ]
    if any(row.standing == RANGE for row in listed):
        foot.append(FEW_BLOCKS)
    if any(row.standing != RANGE for row in listed):
        foot.append("Each interval covers by itself; none is corrected for how many there are.")
    return (*foot, *absent)


#: How each standing is shown: marker, whether filled, and its words.
_SHOWN: dict[str, tuple[str, bool, str]] = {
    FASTER: ("v", True, "faster"),
    SLOWER: ("^", True, "slower"),
    WITHIN: ("s", True, "within the margin"),
    UNCLEAR: ("o", True, "unclear"),
    RANGE: ("o", False, "range, no verdict"),
}


def _colour(standing: str, theme: Theme) -> str:
    return {FASTER: theme.better, SLOWER: theme.worse}.get(standing, theme.same)


def _legend(rows: Any, theme: Theme) -> tuple[tuple[str, Look], ...]:
    present = {row.standing for row in rows}
    return tuple(
        (text, Look(_colour(standing, theme), marker, "-"))
        for standing, (marker, filled, text) in _SHOWN.items()
        if standing in present and filled
    )


def _lines(panel: Panel, rows: Mapping[str, RatioRow], options: Options) -> list[Line]:
    """Lines of a panel; headings only where some case has several rivals."""
    by_case = [
        (case, [rows[cell.id] for cell in cells if cell.id in rows]) for case, cells in panel.cases
    ]
    by_case = [(case, found) for case, found in by_case if found]
    nested = any(len(found) > 1 for _, found in by_case)
    lines: list[Line] = []
    for case, found in by_case:
        name = style.shortened(printable(case), 40)
        base = style.shortened(printable(found[0].baseline.contender), 20)
        if nested:
            lines.append((f"{name}{style.GAP}(1 = {base})", None))
        for row in found:
            contender = style.shortened(printable(row.cell.contender), 28)
            lines.append((contender if nested else f"{name}{style.GAP}{contender} / {base}", row))
    return lines


def _limits(lines: Sequence[Line], margin: float) -> tuple[float, float]:
    """Ends of the axis: every interval, the margin and 1, a little room; logarithmic."""
    values = [1 / (1 + 1.6 * margin), 1 + 1.6 * margin]
    for _, row in lines:
        if row is not None:
            values += [row.ratio.value or 1.0, *(row.ends or ())]
    least, most = min(v for v in values if v > 0), max(v for v in values if math.isfinite(v))
    least, most = max(least, 1e-12), min(most, 1e12)
    room = (most / least) ** 0.05
    return least / room, most * room


def _draw_forest(
    axes: Axes,
    panel: Panel,
    lines: Sequence[Line],
    limits: tuple[float, float],
    theme: Theme,
    options: Options,
    left: float,
) -> None:
    _ratio_axes(axes, panel, lines, limits, theme, options, left)
    for y, (_, row) in enumerate(lines):
        if row is not None:
            _draw_row(axes, y, row, limits, theme)


def _ratio_axes(
    axes: Axes,
    panel: Panel,
    lines: Sequence[Line],
    limits: tuple[float, float],
    theme: Theme,
    options: Options,
    left: float,
) -> None:
    """Everything of a panel of ratios but the ratios: axis, band, names of the lines."""
    style.titled(axes, printable(panel.suite), theme, left=left - 0.15)
    better = "left" if panel.direction == "lower" else "right"
    what = "times" if panel.direction == "lower" else "rates"
    style.labelled(
        axes, theme, x=f"ratio of {what} to the baseline (no unit, logarithmic; {better} is faster)"
    )
    axes.set_xscale("log")
    axes.set_xlim(limits)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    _ticks(axes, limits)
    style.grid(axes, theme, "x")
    axes.axvspan(
        1 / (1 + options.margin), 1 + options.margin, color=theme.band, linewidth=0, zorder=0.4
    )
    axes.axvline(1, color=theme.quiet, linewidth=1.0, zorder=0.6)
    axes.set_yticks([])
    style.ticks_above(axes, _ROW * len(lines))
    axes.spines["left"].set_visible(False)
    for y, (label, row) in enumerate(lines):
        head = row is None
        _beside(
            axes,
            -(left - 0.15) if head else -0.1,
            y,
            label,
            color=theme.quiet if head else theme.ink,
            ha="left" if head else "right",
            fontsize=TEXT,
        )


def _draw_row(axes: Axes, y: int, row: RatioRow, limits: tuple[float, float], theme: Theme) -> None:
    colour = _colour(row.standing, theme)
    marker, filled, _ = _SHOWN[row.standing]
    if row.ends is not None:
        low, high = (min(max(end, limits[0]), limits[1]) for end in row.ends)
        axes.plot([low, high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    value = min(max(row.ratio.value or 1.0, limits[0]), limits[1])
    axes.plot(
        [value],
        [y],
        marker=marker,
        color=colour,
        markerfacecolor=colour if filled else theme.paper,
        markersize=5.5,
        markeredgewidth=1.3,
        linestyle="none",
        zorder=3,
    )
    text = ratio_text(row.ratio.value)
    if row.ends is not None:
        text += f"{style.GAP}{ratio_text(row.ends[0])}–{ratio_text(row.ends[1])}"
    _beside(axes, None, y, text, color=theme.ink, ha="left", fontsize=SMALL)


def _beside(axes: Axes, inches: float | None, y: float, text: str, **how: Any) -> None:
    """Text at a height in data, so many inches from the left edge (None: right of the panel)."""
    axes.annotate(
        text,
        (0 if inches is not None else 1, y),
        xycoords=("axes fraction", "data"),
        xytext=(8 if inches is None else inches * 72, 0),
        textcoords="offset points",
        va="center",
        annotation_clip=False,
        parse_math=False,
        **how,
    )


def _ticks(axes: Axes, limits: tuple[float, float]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    ticks = data.ratio_ticks(*limits)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def side_by_side(
    sides: Sequence[tuple[str, Mapping[str, RatioRow]]], ids: Sequence[str], options: Options
) -> Figure:
    """Ratios of the same cells in several runs: a line a cell, a look a run."""
    theme = options.theme
    looks = style.looks([label for label, _ in sides], theme)
    known = {
        cell_id: own[cell_id] for _, own in reversed(sides) for cell_id in ids if cell_id in own
    }
    panels = data.panels(known[cell_id].cell for cell_id in ids if cell_id in known)
    if not panels:
        return style.note_sheet(theme, Words(""), NOTHING)
    lines = [(panel, _lines(panel, known, options)) for panel in panels]
    texts = [text for _, own_lines in lines for text, _ in own_lines]
    left = min(3.8, 0.5 + max(map(style.text_inches, texts)))
    every = [row for _, own in sides for cell_id, row in own.items() if cell_id in known]
    foot = (
        f"Lines: {data.ratio_words(every)}. Band: within {100 * options.margin:g} % of the "
        "baseline. Each ratio is inside its own run.",
        *((FEW_BLOCKS,) if any(row.standing == RANGE for row in every) else ()),
    )
    legend = tuple((printable(label), Look(k.colour, k.marker, "-")) for label, k in looks.items())
    frame = Frame(width=5.2, left=left, right=0.3, top=0.42, bottom=0.52)
    row_height = max(_ROW, 0.13 * len(sides) + 0.08)
    heights = [row_height * len(own_lines) for _, own_lines in lines]
    figure, axes = style.sheet(theme, Words("", (), foot, legend), heights, frame)
    for (panel, own_lines), place in zip(lines, axes, strict=True):
        shown = [row.cell.id if row else "" for _, row in own_lines]
        ends: list[Line] = [
            ("", own[cell_id]) for _, own in sides for cell_id in shown if cell_id in own
        ]
        limits = _limits(ends, options.margin)
        _ratio_axes(place, panel, own_lines, limits, theme, options, left)
        for y, cell_id in enumerate(shown):
            for nth, (label, own) in enumerate(sides):
                if cell_id in own:
                    aside = (nth - (len(sides) - 1) / 2) * 0.62 / len(sides)
                    _draw_side(place, y + aside, own[cell_id], looks[label], limits, theme)
    return figure


def _draw_side(
    axes: Axes,
    y: float,
    row: RatioRow,
    look: Look,
    limits: tuple[float, float],
    theme: Theme,
) -> None:
    if row.ends is not None:
        low, high = (min(max(end, limits[0]), limits[1]) for end in row.ends)
        axes.plot([low, high], [y, y], color=look.colour, linewidth=1.4)
    axes.plot(
        [min(max(row.ratio.value or 1.0, limits[0]), limits[1])],
        [y],
        marker=look.marker,
        color=look.colour,
        markerfacecolor=theme.paper if row.standing == RANGE else look.colour,
        markersize=5,
        linestyle="none",
        zorder=3,
    )


# ---- heat map ------------------------------------------------------------------------------------

#: Ends of the steps, as cost ratios beyond the margin.
_EDGES = (1.15, 1.5, 2.5)
_CELL = 0.27


def heatmap(results: Sequence[RunResult], options: Options) -> Figure:
    """A square for each cell, coloured by its ratio to the baseline of its case."""
    (result,) = results
    theme = options.theme
    cells = data.chosen(result, options.only)
    rows = data.ratio_rows(result, cells, options.baseline, options.margin)
    words = options.words("Ratio to the baseline, contender × case", data.heading(result))
    if not rows:
        return style.note_sheet(theme, words, NOTHING if cells else NO_CELLS)
    bases = {row.baseline.id for row in rows.values()}
    panels = [
        panel
        for whole in data.panels(cells)
        if (panel := _compared(whole, rows, bases)) is not None
    ]
    names = [printable(case) for panel in panels for case, _ in panel.cases]
    widest = max(len(_contenders(panel)) for panel in panels)
    left = min(3.6, 0.3 + max(style.text_inches(style.shortened(name, 44)) for name in names))
    heads = [printable(name) for panel in panels for name in _contenders(panel)]
    top = 0.45 + 0.55 * min(2.2, max(map(style.text_inches, heads)))
    frame = Frame(width=max(2.6, 0.72 * widest), left=left, top=top, bottom=0.3, right=0.9)
    foot = (
        _scale_words(options.margin),
        "Text: the ratio as measured; – has no number, an empty square does not exist.",
        "The colour is the estimate's, it is no verdict: the forest has the intervals.",
        *absent_words(cells),
    )
    words = Words(words.title, words.under, foot)
    heights = [_CELL * len(panel.cases) for panel in panels]
    figure, axes = style.sheet(theme, words, heights, frame)
    for panel, place in zip(panels, axes, strict=True):
        _draw_heat(place, panel, rows, bases, widest, theme, options, left)
    return figure


def _compared(panel: Panel, rows: Mapping[str, RatioRow], bases: set[str]) -> Panel | None:
    """The panel with the cases in which anything is compared."""
    kept = tuple(
        (case, cells) for case, cells in panel.cases if any(cell.id in rows for cell in cells)
    )
    return Panel(panel.suite, panel.unit, panel.direction, kept) if kept else None


def _contenders(panel: Panel) -> list[str]:
    """Columns: contenders, baselines of the cases first."""
    first = [cell.contender for cell in panel.cells if cell.baseline]
    return list(dict.fromkeys([*first, *(cell.contender for cell in panel.cells)]))


def _scale_words(margin: float) -> str:
    near = f"{100 * margin:g} %"
    edges = ", ".join(f"×{edge:g}" for edge in _EDGES)
    return (
        f"Colour: blue is faster, orange slower than the baseline, grey within {near}; "
        f"deeper beyond {edges}."
    )


def heat_step(worse: float, margin: float) -> int:
    """Index into a theme's `heat` of a cost ratio: 0 much better, the middle the same."""
    size = max(worse, 1 / worse) if worse > 0 else math.inf
    if size <= 1 + margin:
        return style.HEAT_STEPS
    step = 1 + sum(size > edge for edge in _EDGES)
    return style.HEAT_STEPS + (step if worse > 1 else -step)


def _draw_heat(
    axes: Axes,
    panel: Panel,
    rows: Mapping[str, RatioRow],
    bases: set[str],
    widest: int,
    theme: Theme,
    options: Options,
    left: float,
) -> None:
    from matplotlib.patches import Rectangle

    columns = _contenders(panel)
    better = "below" if panel.direction == "lower" else "above"
    style.titled(
        axes,
        f"{printable(panel.suite)}: ratio in {panel.unit}, {better} 1 is faster",
        theme,
        left=left - 0.15,
    )
    # The title stands above the slanted names of the columns.
    lift = 0.55 * max(style.text_inches(printable(name), SMALL) for name in columns) + 0.12
    axes.texts[-1].set_position((-(left - 0.15) * 72, 7 + 72 * lift))
    axes.set_xlim(-0.5, max(widest, math.ceil(2.6 / 0.72)) - 0.5)
    axes.set_ylim(len(panel.cases) - 0.5, -0.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    for x, name in enumerate(columns):
        axes.annotate(
            printable(name),
            (x, -0.5),
            xytext=(-4, 4),
            textcoords="offset points",
            rotation=33,
            rotation_mode="anchor",
            ha="left",
            va="bottom",
            fontsize=SMALL,
            color=theme.ink,
            annotation_clip=False,
            parse_math=False,
        )
    for y, (case, cells) in enumerate(panel.cases):
        name = style.shortened(printable(case), 44)
        _beside(axes, -0.08, y, name, ha="right", color=theme.ink, fontsize=TEXT)
        for cell in cells:
            x = columns.index(cell.contender)
            colour, ink, text = _square(cell, rows.get(cell.id), cell.id in bases, theme, options)
            axes.add_patch(
                Rectangle(
                    (x - 0.48, y - 0.46),
                    0.96,
                    0.92,
                    facecolor=colour,
                    edgecolor=theme.grid,
                    linewidth=0.6,
                )
            )
            axes.text(
                x, y, text, ha="center", va="center", fontsize=SMALL, color=ink, parse_math=False
            )


def _square(
    cell: CellResult, row: RatioRow | None, base: bool, theme: Theme, options: Options
) -> tuple[str, str, str]:
    """Colour, colour of the text, and text of a square."""
    if base:
        return theme.paper, theme.quiet, "1"
    if row is None or row.ratio.value is None:
        return theme.paper, theme.quiet, "–"
    step = heat_step(data.cost(row.ratio.value, cell.direction), options.margin)
    return theme.heat[step], theme.heat_ink[step], ratio_text(row.ratio.value)
