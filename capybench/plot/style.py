"""Themes and the sheet that every drawing is laid out on. Object API only: no pyplot, no rcParams.

A theme names colours by their role. LIGHT and DARK are plain; AUTO holds one mark for each role,
which `capybench.plot.svg` replaces by a CSS variable: one drawing, light and dark.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = "drawing needs matplotlib, which is not installed: pip install 'capybench[plot]'"

#: Steps of the diverging scale to each side of its middle.
HEAT_STEPS = 4


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by role. `heat` runs from much better over the same to much worse, `heat_ink` is the
    colour of text on each of its steps."""

    name: str
    paper: str
    ink: str
    quiet: str
    grid: str
    band: str
    better: str
    worse: str
    same: str
    series: tuple[str, ...]
    heat: tuple[str, ...]
    heat_ink: tuple[str, ...]

    def roles(self) -> dict[str, str]:
        """Colour of each role, by a name that fits into a CSS variable."""
        named = {
            role: getattr(self, role)
            for role in ("paper", "ink", "quiet", "grid", "band", "better", "worse", "same")
        }
        for group in ("series", "heat", "heat_ink"):
            for nth, colour in enumerate(getattr(self, group)):
                named[f"{group.replace('_', '-')}-{nth}"] = colour
        return named


# The series are Okabe and Ito's colours, darkened or lightened until each has a contrast of 3:1 to
# the paper; markers and line styles tell the series apart as well.
LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1b1f24",
    quiet="#5b636d",
    grid="#d9dde2",
    band="#e9edf2",
    better="#0067a8",
    worse="#c44e00",
    same="#5b636d",
    series=("#0072b2", "#d55e00", "#00805c", "#b2568c", "#a87400", "#3a8fc4", "#4a4f57"),
    heat=(
        *("#1f6aa5", "#5b9ccb", "#9dc6e3", "#d3e5f2"),
        "#f1f1ee",
        *("#fbdfc4", "#f4b783", "#df853f", "#b6560e"),
    ),
    heat_ink=(
        *("#ffffff", "#000000", "#000000", "#000000"),
        "#000000",
        *("#000000", "#000000", "#000000", "#ffffff"),
    ),
)
DARK = Theme(
    name="dark",
    paper="#14181d",
    ink="#e8ebef",
    quiet="#a3acb8",
    grid="#343b44",
    band="#222932",
    better="#62b8f0",
    worse="#ff9a4d",
    same="#a3acb8",
    series=("#56b4e9", "#ff9140", "#2bc59a", "#e59ac8", "#eec13f", "#9fb6ff", "#c9ced6"),
    heat=(
        *("#7cc4f5", "#3f8fc7", "#27628d", "#1f4058"),
        "#2b3037",
        *("#573a1f", "#8d5417", "#cf7a22", "#ffb066"),
    ),
    heat_ink=(
        *("#000000", "#000000", "#ffffff", "#ffffff"),
        "#ffffff",
        *("#ffffff", "#ffffff", "#000000", "#000000"),
    ),
)


def _marks() -> Theme:
    """A theme of colours that nobody would choose, one for each role."""
    numbers = iter(range(0xFE0101, 0xFE0201))

    def next_mark(_colour: str = "") -> str:
        return f"#{next(numbers):06x}"

    def row(colours: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(next_mark, colours))

    return Theme(
        name="auto",
        paper=next_mark(),
        ink=next_mark(),
        quiet=next_mark(),
        grid=next_mark(),
        band=next_mark(),
        better=next_mark(),
        worse=next_mark(),
        same=next_mark(),
        series=row(LIGHT.series),
        heat=row(LIGHT.heat),
        heat_ink=row(LIGHT.heat_ink),
    )


AUTO = _marks()
THEMES = {theme.name: theme for theme in (LIGHT, DARK, AUTO)}

#: Two blanks that no reader of SVG folds into one.
GAP = "\u2002"

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h")
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)))


def theme_of(name: str) -> Theme:
    """A theme by its name; UsageError naming the known ones."""
    if name not in THEMES:
        raise UsageError(f"unknown theme {name!r}; known: {', '.join(THEMES)}")
    return THEMES[name]


@dataclass(frozen=True, slots=True)
class Look:
    """How one contender looks in every panel of a drawing."""

    colour: str
    marker: str
    line: Any


def looks(contenders: Sequence[str], theme: Theme) -> dict[str, Look]:
    """A look for each contender, in order; colours repeat after seven, markers and lines differ."""
    colours = theme.series
    made = {}
    for nth, name in enumerate(dict.fromkeys(contenders)):
        turn = nth // len(colours)
        made[name] = Look(
            colours[nth % len(colours)],
            MARKERS[nth % len(MARKERS)],
            LINES[(nth + turn) % len(LINES)],
        )
    return made


# ---- the sheet -----------------------------------------------------------------------------------

#: Resolution of a drawing in a notebook: sharp enough, and small in the file.
NOTEBOOK_DPI = 80
_INCH = 72.0
TEXT = 9.0
SMALL = 8.0
#: Advance of a character of 9 points in DejaVu Sans, in inches, on the safe side of the mean.
CHAR = 0.0775
_LINE = 0.165
_MARGIN = 0.15


def text_inches(text: str, size: float = TEXT) -> float:
    """About how wide a text is; wide characters (East Asian, emoji) count twice."""
    wide = sum(ord(char) > 0x2E7F for char in text)
    return (len(text) + wide) * CHAR * size / TEXT


def shortened(text: str, length: int) -> str:
    """At most so many characters, the middle left out: both ends of a name tell."""
    if len(text) <= length:
        return text
    left = (length - 1) // 2
    return f"{text[:left]}…{text[len(text) - (length - 1 - left) :]}"


@dataclass(frozen=True, slots=True)
class Words:
    """What stands around the panels: a title, lines under it, legend entries, lines at the foot."""

    title: str
    under: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()
    legend: tuple[tuple[str, Look], ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """Inches around the plotting area of each panel, and how wide that is."""

    width: float
    left: float
    right: float = 0.25
    top: float = 0.4
    bottom: float = 0.55
    columns: int = 1


def sheet(
    theme: Theme, words: Words, heights: Sequence[float], frame: Frame
) -> tuple[Figure, list[Axes]]:
    """A Figure as large as its panels need, and an Axes for each of `heights` (inches).

    Panels are filled in row by row, `frame.columns` in each; a row is as high as its highest panel.
    """
    figure_class = _figure_class()
    columns = max(1, min(frame.columns, len(heights)))
    panel = frame.left + frame.width + frame.right
    width = max(columns * panel + _MARGIN, 5.0)
    under = [line for text in words.under for line in _wrapped(text, width)]
    foot = [line for text in words.foot for line in _wrapped(text, width)]
    title = _wrapped(words.title, width, TEXT * 1.3) if words.title else []
    legend = _legend_lines(words.legend, width)
    rows = [heights[at : at + columns] for at in range(0, len(heights), columns)]
    # The axes' own size is exact; everything else follows from numbers of lines.
    above = _MARGIN + 0.24 * len(title) + _LINE * len(under) + 0.2 * len(legend) + 0.06
    below = _MARGIN + _LINE * len(foot)
    body = sum(max(row) + frame.top + frame.bottom for row in rows)
    height = above + body + below
    figure = figure_class(figsize=(width, height), facecolor=theme.paper)

    def write(x: float, y: float, text: str, **how: Any) -> None:
        figure.text(x / width, 1 - y / height, text, va="top", parse_math=False, **how)

    y = _MARGIN
    for line in title:
        write(_MARGIN, y, line, color=theme.ink, fontsize=TEXT * 1.3, fontweight="bold")
        y += 0.24
    for line in under:
        write(_MARGIN, y, line, color=theme.quiet, fontsize=SMALL)
        y += _LINE
    y += 0.03
    for entries in legend:
        _draw_legend(figure, entries, y, theme)
        y += 0.2
    axes = []
    top = above
    for row in rows:
        tallest = max(row)
        for column, size in enumerate(row):
            left = column * panel + frame.left
            base = height - top - frame.top - size
            box = (left / width, base / height, frame.width / width, size / height)
            axes.append(figure.add_axes(box, facecolor="none"))
            dress(axes[-1], theme)
        top += tallest + frame.top + frame.bottom
    for nth, line in enumerate(foot):
        at = height - below + nth * _LINE + 0.02
        write(_MARGIN, at, line, color=theme.quiet, fontsize=SMALL)
    return figure, axes


def note_sheet(theme: Theme, words: Words, note: str) -> Figure:
    """A Figure that only says why there is nothing to draw."""
    lines = textwrap.wrap(note, 76)
    figure, (axes,) = sheet(theme, words, [0.3 + 0.2 * len(lines)], Frame(width=6.5, left=0.3))
    axes.axis("off")
    axes.text(
        0.5,
        0.5,
        "\n".join(lines),
        ha="center",
        va="center",
        color=theme.ink,
        fontsize=TEXT + 1,
        transform=axes.transAxes,
        parse_math=False,
    )
    return figure


def dress(axes: Axes, theme: Theme) -> None:
    """Colours, spines and ticks of a panel."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(theme.quiet)
        spine.set_linewidth(0.8)
    axes.tick_params(
        which="both",
        colors=theme.quiet,
        labelcolor=theme.ink,
        labelsize=SMALL,
        width=0.8,
        length=3,
    )
    axes.tick_params(which="minor", length=0)
    axes.set_axisbelow(True)


def grid(axes: Axes, theme: Theme, axis: Any = "both") -> None:
    """Thin lines at the major ticks."""
    axes.grid(True, which="major", axis=axis, color=theme.grid, linewidth=0.7)


#: Panels higher than this many inches show their ticks above as well.
TALL = 8.0


def ticks_above(axes: Axes, height: float) -> None:
    """Ticks of the x axis at the top as well where the panel is too high to look down from it."""
    if height > TALL:
        axes.tick_params(axis="x", top=True, labeltop=True)


def titled(axes: Axes, text: str, theme: Theme, *, left: float = 0.0) -> None:
    """Title of a panel, from `left` inches before its plotting area."""
    axes.annotate(
        text,
        (0, 1),
        xycoords="axes fraction",
        xytext=(-left * _INCH, 10),
        textcoords="offset points",
        ha="left",
        va="bottom",
        color=theme.ink,
        fontsize=TEXT,
        fontweight="bold",
        annotation_clip=False,
        parse_math=False,
    )


def labelled(axes: Axes, theme: Theme, x: str = "", y: str = "") -> None:
    """Names and units of the axes."""
    how: dict[str, Any] = {"color": theme.ink, "fontsize": SMALL, "parse_math": False}
    if x:
        axes.set_xlabel(x, labelpad=3, **how)
    if y:
        axes.set_ylabel(y, labelpad=4, **how)


@cache
def _figure_class() -> type[Figure]:
    """matplotlib's Figure, one that shows itself in a notebook without pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(MISSING) from None

    class Drawing(Figure):
        """A Figure with a picture of itself for notebooks."""

        def _repr_png_(self) -> bytes | None:
            if self.get_facecolor() == to_rgba(AUTO.paper):
                return None  # Its colours are marks, which only a saved SVG resolves.
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=NOTEBOOK_DPI, facecolor=self.get_facecolor())
            return out.getvalue()

    from matplotlib.colors import to_rgba

    return Drawing


def require() -> None:
    """UsageError, one sentence, where matplotlib is missing."""
    _figure_class()


def _wrapped(text: str, width: float, size: float = SMALL) -> list[str]:
    room = max(20, math.floor((width - 2 * _MARGIN) / (CHAR * size / TEXT)))
    return textwrap.wrap(text, room) or [""]


_KEY = 0.32


def _legend_lines(
    entries: Sequence[tuple[str, Look]], width: float
) -> list[list[tuple[float, str, Look]]]:
    """Entries with their place from the left, in inches, line by line."""
    lines: list[list[tuple[float, str, Look]]] = []
    x = width
    for label, look in entries:
        need = _KEY + text_inches(label) + 0.22
        if x + need > width - _MARGIN or not lines:
            lines.append([])
            x = _MARGIN
        lines[-1].append((x, label, look))
        x += need
    return lines


def _draw_legend(
    figure: Figure, entries: Sequence[tuple[float, str, Look]], y: float, theme: Theme
) -> None:
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    middle = 1 - (y + 0.09) / height
    for x, label, look in entries:
        key = Line2D(
            [x / width, (x + _KEY / 2) / width, (x + _KEY - 0.06) / width],
            [middle] * 3,
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
            markevery=[1],
            markersize=5,
            linewidth=1.3,
            transform=figure.transFigure,
        )
        figure.add_artist(key)
        figure.text(
            (x + _KEY) / width,
            middle,
            label,
            va="center",
            color=theme.ink,
            fontsize=TEXT,
            parse_math=False,
        )
