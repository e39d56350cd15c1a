"""Drawings of runs, as matplotlib Figures made without pyplot and without touching its settings.

    figure = capybench.load("run.json").plot("forest")
    capybench.plot.save(figure, "forest.svg")           # readable on light and on dark

matplotlib is the extra `capybench[plot]`; it is imported when something is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..results import RunResult, write_atomic
from . import curves, data, ratios, style, values
from .options import Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "KINDS", "Kind", "check", "draw", "format_of", "save", "side_by_side"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of drawing: what it shows, and the function that makes it."""

    summary: str
    make: Callable[[Sequence[RunResult], Options], Figure]


KINDS: dict[str, Kind] = {
    "forest": Kind("ratios to the baseline with intervals, and the margin", ratios.forest),
    "strip": Kind("medians of processes in the order in which they ran", values.strip),
    "ecdf": Kind("the share of processes below a value", values.ecdf),
    "percentiles": Kind("latency of single operations by percentile", curves.percentiles),
    "throughput": Kind("throughput over the size of a chunk", curves.throughput),
    "bars": Kind("medians with intervals, grouped by case", values.bars),
    "heatmap": Kind("ratios to the baseline, contender × case", ratios.heatmap),
    "history": Kind("medians from run to run on one machine", values.history),
}

#: File formats, by suffix.
FORMATS = ("svg", "png", "pdf")
_PNG_DPI = 144


def draw(
    kind: str,
    *results: RunResult,
    only: Sequence[str] | str = (),
    baseline: str | None = None,
    margin: float = data.MARGIN,
    theme: str = "light",
    bare: bool = False,
) -> Figure:
    """Draw a run (for `history`: several runs).

    Args:
        kind: one of KINDS.
        results: the runs; every other kind than `history` takes exactly one.
        only: globs on cell ids, as of a selection; all cells when empty.
        baseline: contender that the others are compared with; None: each case's own.
        margin: width of the band about 1 in ratios, as a share.
        theme: `light`, `dark`, or `auto`, which only `save` to SVG understands.
        bare: without title and run, for a page that has them.

    Raises:
        UsageError: an unknown kind or theme, patterns that select nothing, too many or too few
            runs, or no matplotlib.
    """
    check(kind, theme)
    if not results:
        raise UsageError(f"a {kind} plot needs a run")
    if len(results) > 1 and kind != "history":
        raise UsageError(f"a {kind} plot shows one run, not {len(results)}; history shows several")
    if not 0 < margin < 1:
        raise UsageError(f"the margin is {margin:g}, but should be a share between 0 and 1")
    options = Options(
        tuple([only] if isinstance(only, str) else only), baseline, margin, theme, bare
    )
    return KINDS[kind].make(results, options)


def side_by_side(
    sides: Sequence[tuple[str, Mapping[str, data.RatioRow]]],
    ids: Sequence[str],
    *,
    margin: float = data.MARGIN,
    theme: str = "light",
) -> Figure:
    """Ratios of cells in several runs, each inside its own: `sides` are names with their rows (as
    of `data.ratio_rows`), `ids` the cells in the order of lines."""
    style.require()
    return ratios.side_by_side(sides, ids, Options((), None, margin, theme))


def check(kind: str, theme: str, target: Path | None = None) -> None:
    """UsageError for what `draw` and `save` would refuse, before anything is read or drawn."""
    if kind not in KINDS:
        raise UsageError(f"unknown kind of plot {kind!r}; known: {', '.join(KINDS)}")
    style.theme_of(theme)
    if target is not None and format_of(target) != "svg" and theme == style.AUTO.name:
        raise UsageError(f"the theme auto exists in SVG only: choose light or dark for {target}")
    style.require()


def save(figure: Figure, path: str | os.PathLike[str], label: str = "capybench plot") -> None:
    """Write a Figure, whole or not at all, in the format of the path's suffix (FORMATS).

    The theme `auto` becomes an SVG that follows the reader's setting; `label` is the drawing's name
    for those who cannot see it. Raises UsageError for another suffix, or `auto` in a format without
    variables; OSError where the file cannot be written.
    """
    target = Path(path)
    form = format_of(target)
    auto = figure.get_facecolor() == _face(style.AUTO.paper)
    if form == "svg":
        from . import svg

        write_atomic(target, svg.standalone(figure, label))
        return
    if auto:
        raise UsageError(f"the theme auto exists in SVG only: choose light or dark for {target}")
    partial = target.with_name(f".{target.name}.part")
    try:
        figure.savefig(partial, format=form, dpi=_PNG_DPI, facecolor=figure.get_facecolor())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def format_of(path: Path) -> str:
    """The format that a path's suffix names; UsageError for another."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise UsageError(f"{path} should end in {', '.join('.' + f for f in FORMATS)}")
    return form


def _face(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgba

    return to_rgba(colour)
