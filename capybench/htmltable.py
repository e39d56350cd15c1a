"""Tables (of `capybench.tables`) as HTML: one element, texts escaped, no style of its own.

The report brings its own style sheet; `block` wraps tables for a notebook, with a small one that
keeps to its own elements.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from .tables import MISSING, Row, Table, table_value

_STYLE = """
<style>
.capybench { font-size: 90%; line-height: 1.35; }
.capybench table { border-collapse: collapse; margin: 0.4em 0 0.8em; }
.capybench caption { text-align: left; font-weight: bold; padding: 0.3em 0; }
.capybench th, .capybench td { padding: 0.1em 0.7em; border: none; background: none; }
.capybench thead th { border-bottom: 1px solid currentColor; text-align: right; }
.capybench td { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.capybench tbody th { text-align: left; font-weight: normal; }
.capybench tbody th.case { font-weight: bold; padding-top: 0.4em; }
.capybench td.note { text-align: left; white-space: normal; }
.capybench .dim { opacity: 0.65; }
.capybench .bad { color: #c44e00; }
.capybench p { margin: 0.15em 0; opacity: 0.75; max-width: 60em; }
</style>
"""


def element(table: Table, caption: bool = True) -> str:
    """The `<table>` element; its notes and remarks are not in it (see `notes`)."""
    width = 1 + len(table.columns)
    nested = any(len(group.rows) > 1 for group in table.groups)
    lines = ["<table>"]
    if caption:
        lines.append(f"<caption>{_text(table.title)}</caption>")
    heads = "".join(f'<th scope="col">{_text(column.title)}</th>' for column in table.columns)
    corner = table.headings[1] if nested else table.headings[0]
    lines.append(f'<thead><tr><th scope="col">{_text(corner)}</th>{heads}</tr></thead>')
    for group in table.groups:
        lines.append("<tbody>")
        if nested and group.name:
            lines.append(
                f'<tr><th class="case" scope="rowgroup" colspan="{width}">'
                f"{_text(group.name)}</th></tr>"
            )
        for row in group.rows:
            label = row.label if nested else " ".join(filter(None, (group.name, row.label)))
            lines.append(_row(label, row, width))
        lines.append("</tbody>")
    return "\n".join([*lines, "</table>"])


def _row(label: str, row: Row, width: int) -> str:
    tone = f' class="{row.tone}"' if row.tone else ""
    cells = f'<th scope="row">{_text(label)}</th>'
    if row.note:
        span = f' colspan="{width - 1}"' if width > 2 else ""
        cells += f'<td class="note"{span}>{_text(row.note)}</td>'
    else:
        for index in range(width - 1):
            text = table_value(row, index)
            dim = ' class="dim"' if text in (MISSING, "baseline", "n/a") else ""
            cells += f"<td{dim}>{_text(text)}</td>"
    return f"<tr{tone}>{cells}</tr>"


def notes(table: Table) -> str:
    """Notes and remarks as a list, empty without any."""
    texts = (*table.notes, *table.remarks)
    if not texts:
        return ""
    items = "\n".join(f"<li>{_text(text)}</li>" for text in texts)
    return f'<ul class="notes">\n{items}\n</ul>'


def style() -> str:
    """The `<style>` element that `block` brings along unless told not to."""
    return _STYLE


def block(
    tables: Sequence[Table],
    above: Sequence[str] = (),
    below: Sequence[str] = (),
    *,
    styled: bool = True,
) -> str:
    """Tables with lines above and below, for `_repr_html_`."""
    parts = [_STYLE if styled else "", '<div class="capybench">']
    parts += [f"<p>{_text(line)}</p>" for line in above]
    for table in tables:
        parts += [element(table), notes(table)]
    parts += [f"<p>{_text(line)}</p>" for line in below]
    return "\n".join([*filter(None, parts), "</div>"])


def _text(text: str) -> str:
    return html.escape(text)
