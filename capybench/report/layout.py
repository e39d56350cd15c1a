"""Pieces of a page: its frame and style, sections, lists, and the bars of the summary."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .. import htmltable
from ..plot import style as plot_style
from ..plot import svg
from ..tables import Table

_CSS = """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 64rem; background: var(--cb-paper);
  color: var(--cb-ink); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 0.3rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.5rem; border-bottom: 1px solid var(--cb-grid); }
h3 { font-size: 1rem; margin: 1.3rem 0 0.3rem; }
a { color: var(--cb-better); }
p, li { max-width: 48rem; }
.quiet, .notes { color: var(--cb-quiet); font-size: 0.9rem; }
.notes { margin: 0.3rem 0 1rem; padding-left: 1.2rem; }
nav ul { list-style: none; margin: 0.8rem 0; padding: 0; }
nav li { display: inline-block; margin-right: 1.1rem; }
.caution { border-left: 4px solid var(--cb-worse); padding: 0.2rem 0.9rem; margin: 1rem 0;
  background: var(--cb-band); }
figure { margin: 0.8rem 0; }
figcaption { color: var(--cb-quiet); font-size: 0.9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.6rem 0; font-size: 0.87rem; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { padding: 0.12rem 0.75rem; text-align: right; vertical-align: baseline; }
td { font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th { border-bottom: 1px solid var(--cb-quiet); font-weight: 600; }
th:first-child { text-align: left; padding-left: 0; }
tbody th { font-weight: normal; padding-left: 1.2rem; }
tbody th:first-child { padding-left: 1.2rem; }
tbody th.case { font-weight: 600; padding: 0.5rem 0 0; }
tbody th.case:first-child { padding-left: 0; }
table.facts th { text-align: left; padding-left: 0; }
table.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
td.note { text-align: left; white-space: normal; }
.dim { color: var(--cb-quiet); }
.bad { color: var(--cb-worse); }
dt { font-weight: 600; margin-top: 0.4rem; }
dd { margin: 0 0 0 1.2rem; }
summary { cursor: pointer; color: var(--cb-quiet); }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, summary { display: none; }
  h2, h3, caption { break-after: avoid; }
  figure, tr, .caution { break-inside: avoid; }
  figcaption, th.case { break-before: avoid; break-after: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
  details::details-content { content-visibility: visible; display: block; }
}
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with an id for the list of contents, and its body."""

    key: str
    title: str
    body: str


def text(raw: str) -> str:
    """Escaped for use between tags and in attributes."""
    return html.escape(raw)


def document(title: str, under: Sequence[str], sections: Sequence[Section]) -> str:
    """A whole page."""
    light = "".join(f" --cb-{r}: {c};" for r, c in plot_style.LIGHT.roles().items())
    lines = "\n".join(f'<p class="quiet">{text(line)}</p>' for line in under)
    links = "\n".join(
        f'<li><a href="#{section.key}">{text(section.title)}</a></li>' for section in sections
    )
    bodies = "\n".join(
        f'<section id="{section.key}">\n<h2>{text(section.title)}</h2>\n{section.body}\n</section>'
        for section in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n"
        f"<style>\n{svg.css()}@media print {{ :root {{{light} }} }}\n{_CSS}</style>\n"
        f"</head>\n<body>\n<header>\n<h1>{text(title)}</h1>\n{lines}\n</header>\n"
        f'<nav aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>\n'
        f"<main>\n{bodies}\n</main>\n</body>\n</html>\n"
    )


def paragraph(raw: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{kind}">{text(raw)}</p>' if kind else f"<p>{text(raw)}</p>"


def items(lines: Iterable[str]) -> str:
    """A list of plain texts, empty without any."""
    rows = "\n".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul>\n{rows}\n</ul>" if rows else ""


def caution(lines: Sequence[str], more: Sequence[str] = ()) -> str:
    """A marked list of warnings, empty without any; a long list of `more` opens on a click."""
    if len(more) <= 5:
        lines, more = [*lines, *more], ()
    folded = details(f"{len(more)} warnings of the run itself", items(more)) if more else ""
    shown = "\n".join(filter(None, (items(lines), folded)))
    return f'<div class="caution">\n{shown}\n</div>' if shown else ""


def table(made: Table) -> str:
    """A table with its notes, scrolled sideways where a page is narrower."""
    return f'<div class="scroll">\n{htmltable.element(made)}\n</div>\n{htmltable.notes(made)}'


def facts(head: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table of texts: a name, then a value for each column of `head`."""
    titles = "".join(f'<th scope="col">{text(title)}</th>' for title in head)
    lines = [
        f'<tr><th scope="row">{text(name)}</th>'
        + "".join(f"<td>{text(value)}</td>" for value in values)
        + "</tr>"
        for name, values in rows
    ]
    body = "\n".join(lines)
    return (
        '<div class="scroll">\n<table class="facts">\n'
        f'<thead><tr><th scope="col">fact</th>{titles}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def figure(element: str, caption: str) -> str:
    """A drawing with a caption."""
    return f"<figure>\n{element}<figcaption>{text(caption)}</figcaption>\n</figure>"


def details(summary: str, body: str) -> str:
    """Something that opens on a click, and is printed."""
    return f"<details>\n<summary>{text(summary)}</summary>\n{body}\n</details>"


# ---- the bars of the summary ---------------------------------------------------------------------

#: Order from left to right, the role of the colour, and the colour of the text on it.
BARS = (
    ("slower", "worse", "paper"),
    ("unclear", "grid", "ink"),
    ("within", "same", "paper"),
    ("faster", "better", "paper"),
    ("range", "band", "ink"),
)
_WORDS = {
    "slower": "slower",
    "unclear": "unclear",
    "within": "within the margin",
    "faster": "faster",
    "range": "without a verdict",
}
_LABEL, _WIDTH, _LINE, _COUNT = 200.0, 440.0, 26.0, 300.0


def bars(counts: Sequence[tuple[str, dict[str, int]]]) -> str:
    """An SVG with a bar for each suite: how many contenders are slower, within, faster.

    All bars share a scale; numbers stand in their parts and as a sentence at the end.
    """
    most = max((sum(found.values()) for _, found in counts), default=0) or 1
    height = _LINE * len(counts) + 8
    total = _LABEL + _WIDTH + _COUNT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:g} {height:g}" '
        f'width="{total:g}" height="{height:g}" role="img" '
        f'style="max-width: 100%; height: auto; font: 13px {svg.FONT}">',
        "<title>Contenders slower, within the margin and faster, by suite</title>",
    ]
    for nth, (suite, found) in enumerate(counts):
        y = 4 + nth * _LINE
        middle = y + _LINE / 2
        parts.append(_svg_text(_LABEL - 10, middle, "end", "ink", suite))
        x = _LABEL
        for kind, role, ink in BARS:
            size = found.get(kind, 0)
            if not size:
                continue
            width = _WIDTH * size / most
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3:.1f}" width="{max(1.0, width - 1):.1f}" '
                f'height="{_LINE - 6:g}" style="fill: var(--cb-{role})"/>'
            )
            if width >= 10 + 8 * len(str(size)):
                parts.append(_svg_text(x + width / 2, middle, "middle", ink, str(size)))
            x += width
        words = ", ".join(f"{found[kind]} {_WORDS[kind]}" for kind, _, _ in BARS if found.get(kind))
        parts.append(_svg_text(x + 8, middle, "start", "quiet", words))
    return "\n".join([*parts, "</svg>\n"])


def _svg_text(x: float, y: float, anchor: str, role: str, raw: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="{anchor}" '
        f'style="fill: var(--cb-{role})">{text(raw)}</text>'
    )
