"""Drawings of curves: latency by percentile, throughput over chunk size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..latency import BEYOND, QUANTILES, Histogram
from ..results import CellResult, RunResult
from ..tables import display_scale, printable
from . import data, style
from .data import Curve
from .options import FEW_BLOCKS, NO_CELLS, Options, few
from .style import Frame, Look, Theme, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_LATENCY = "No cell of this run has recorded latencies of single operations."
NO_SIZES = "No cell of this run has a throughput in bytes/s and a chunk size in its name."
_FRAME = Frame(width=3.6, left=0.8, right=0.25, top=0.42, bottom=0.52, columns=2)
_HEIGHT = 2.2


def percentiles(results: Sequence[RunResult], options: Options) -> Figure:
    """Latency of single ops by percentile, on an axis that widens towards 100 %."""
    (result,) = results
    theme = options.theme
    cells = data.chosen(result, options.only)
    words = options.words("Latency by percentile", data.heading(result))
    found: dict[tuple[str, str], list[tuple[CellResult, Histogram]]] = {}
    for cell in cells:
        histogram = cell.latency
        if histogram is not None and histogram.count:
            found.setdefault((cell.suite, cell.case), []).append((cell, histogram))
    if not found:
        return style.note_sheet(theme, words, NO_LATENCY if cells else NO_CELLS)
    looks = style.looks([cell.contender for rows in found.values() for cell, _ in rows], theme)
    legend = tuple((printable(name), look) for name, look in looks.items())
    foot = (
        f"A curve ends where fewer than {BEYOND} observations lie beyond it; "
        "the hollow mark at the edge is the greatest latency of all.",
    )
    words = Words(words.title, words.under, foot, legend)
    figure, axes = style.sheet(theme, words, [_HEIGHT] * len(found), _FRAME)
    for ((suite, case), rows), place in zip(found.items(), axes, strict=True):
        name = style.shortened(f"{printable(suite)}/{printable(case)}", 52)
        style.titled(place, name, theme, left=0.5)
        _draw_percentiles(place, rows, looks, theme)
    return figure


def _draw_percentiles(
    axes: Axes,
    rows: Sequence[tuple[CellResult, Histogram]],
    looks: Mapping[str, Look],
    theme: Theme,
) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    most = max(histogram.count for _, histogram in rows)
    # Quantiles q and 0.9 lie as far apart as 0.9 and 0.99: the axis is -log10(1 - q).
    furthest = math.log10(max(most, 2 * BEYOND) / BEYOND)
    edge = furthest + 0.25
    values: list[float] = []
    for cell, histogram in rows:
        look = looks[cell.contender]
        points = [(-math.log10(1 - share), ns) for share, ns in histogram.curve()]
        points = _thinned([(0.0, float(histogram.least or 0)), *points], edge)
        axes.step(
            [x for x, _ in points],
            [ns for _, ns in points],
            where="pre",
            color=look.colour,
            linestyle=look.line,
            linewidth=1.3,
        )
        greatest = float(histogram.greatest or 0)
        axes.plot(
            [edge],
            [greatest],
            marker=look.marker,
            markersize=5,
            color=look.colour,
            markerfacecolor=theme.paper,
            linestyle="none",
            clip_on=False,
        )
        values += [ns for _, ns in points] + [greatest]
    ticks = [0.0, *(-math.log10(1 - q) for q in QUANTILES if -math.log10(1 - q) <= furthest)]
    names = ["0", *(f"{100 * q:.10g} %" for q in QUANTILES)]
    axes.set_xlim(0, edge)
    axes.xaxis.set_major_locator(FixedLocator([*ticks, edge]))
    named = dict(zip([*ticks, edge], [*names[: len(ticks)], "max"], strict=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: named.get(value, "")))
    _log_times(axes, values)
    style.grid(axes, theme)
    style.labelled(axes, theme, x="share of operations at or below", y="latency of an operation")


def _thinned(points: Sequence[tuple[float, float]], width: float) -> list[tuple[float, float]]:
    """Points of a curve without those that lie where the one before them does, to the eye."""
    kept = [points[0]]
    for x, y in points[1:]:
        far = x - kept[-1][0] > width / 400
        if far or y > 1.015 * kept[-1][1]:
            kept.append((x, y))
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def _log_times(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis of ns whose ticks are told as ns, µs, ms or s."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    axes.set_yscale("log")
    axes.set_ylim(low / 1.25, high * 1.25)
    near = high < 50 * low
    axes.yaxis.set_major_locator(
        LogLocator(subs=(1.0, 2.0, 3.0, 5.0, 7.0) if high < 5 * low else (1.0, 2.0, 5.0))
        if near
        else LogLocator(subs=(1.0,), numticks=9)
    )
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: time_text(value)))


def time_text(ns: float) -> str:
    """A time with the unit that suits it: 850 ns, 12 µs, 3.4 ms."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.4g} {unit}"
    return f"{ns:.4g} ns"


def throughput(results: Sequence[RunResult], options: Options) -> Figure:
    """Throughput over the size of a chunk, both axes logarithmic."""
    (result,) = results
    theme = options.theme
    cells = data.chosen(result, options.only)
    words = options.words("Throughput over chunk size", data.heading(result))
    families = data.sizes(cells)
    if not families:
        return style.note_sheet(theme, words, NO_SIZES if cells else NO_CELLS)
    shown = [cell for curves in families.values() for c in curves for _, cell in c.points]
    looks = style.looks([cell.contender for cell in shown], theme)
    legend = tuple((printable(name), look) for name, look in looks.items())
    foot = (
        f"Lines: {data.range_words(shown)}.",
        *((FEW_BLOCKS,) if few(shown) else ()),
    )
    words = Words(words.title, words.under, foot, legend)
    figure, axes = style.sheet(theme, words, [_HEIGHT] * len(families), _FRAME)
    for ((suite, family), curves), place in zip(families.items(), axes, strict=True):
        name = style.shortened(f"{printable(suite)}/{printable(family)}", 52)
        style.titled(place, name, theme, left=0.5)
        _draw_throughput(place, curves, looks, theme)
    return figure


def _draw_throughput(
    axes: Axes, curves: Sequence[Curve], looks: Mapping[str, Look], theme: Theme
) -> None:
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        NullFormatter,
        NullLocator,
    )

    cells = [cell for curve in curves for _, cell in curve.points]
    unit, scale = display_scale(cells, None)
    values = []
    for curve in curves:
        look = looks[curve.contender]
        medians = [(cell.summary.median or math.nan) / scale for _, cell in curve.points]
        values += medians
        for size, cell in curve.points:
            if (ends := data.whiskers(cell)) is not None:
                low, high = (end / scale for end in ends)
                values += [low, high]
                axes.plot([size, size], [low, high], color=look.colour, linewidth=1)
        axes.plot(
            [size for size, _ in curve.points],
            medians,
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
            markersize=4.5,
            linewidth=1.3,
        )
    sizes = sorted({size for curve in curves for size, _ in curve.points if size > 0})
    axes.set_xscale("log", base=2)
    axes.set_xlim(sizes[0] / 1.4, sizes[-1] * 1.4)
    every = sizes[:: max(1, math.ceil(len(sizes) / 6))]
    axes.xaxis.set_major_locator(FixedLocator(every))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _place: data.size_text(round(value)))
    )
    low, high = min(values), max(values)
    axes.set_yscale("log")
    axes.set_ylim(low / 1.25, high * 1.25)
    digits = (1.0, 2.0, 5.0) if high < 200 * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=digits, numticks=9))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    style.grid(axes, theme)
    style.labelled(axes, theme, x="size of a chunk", y=f"throughput ({unit})")
