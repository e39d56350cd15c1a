"""`--style cobalt`: the forms of the Boost.Cobalt benchmark page.

Whole milliseconds for the published number of ops, beside the page's two compilers. Under a row of
the page stand our model and, where a plug-in provides it, the real library; what the page lacks
follows without its figures. `op_alloc` adds the requests per op that its resource passed upstream.
"""

from __future__ import annotations

import dataclasses

from ..cases import natural_key
from ..reference import Figure, tables_of
from ..reference import Table as Published
from ..results import CellResult, RunResult
from ..stats import Ratio
from ..tables import MISSING, Column, Group, Row, Table, count, number, printable, ratio_text
from .forms import cell_ratio, figure_row, measured_cell, ratio_texts, ratio_title, source_lines

TITLE = "Cobalt page: channels and operation allocation in ms, with the published figures"


SUITES = ("channel", "op_alloc")


def tables(result: RunResult) -> tuple[Table, ...]:
    """A table for each published one of which the run holds a cell of the same case."""
    cells = {cell.id: cell for cell in result.cells}
    made = []
    for suite in SUITES:
        for page in tables_of(suite):
            prefix = page.figures[0].cells[0].rpartition("@")[0] + "@"
            of_case = {
                cell_id: cell for cell_id, cell in cells.items() if cell_id.startswith(prefix)
            }
            if of_case:
                made.append(_table(result, of_case, page))
    return tuple(made)


def milliseconds(cell: CellResult | None, ops: int) -> float | None:
    """Time in ms of the page's whole program: ns an op times its ops."""
    if cell is None or cell.summary.median is None or cell.unit != "ns/op":
        return None
    return cell.summary.median * ops / 1e6


def _table(result: RunResult, cells: dict[str, CellResult], page: Published) -> Table:
    compilers = tuple(dict.fromkeys(figure.column for figure in page.figures))
    base_figure = page.figures[0]
    base = measured_cell(cells, base_figure)
    counts_upstream = page.suite == "op_alloc"
    named: set[str] = set()
    ratios: list[Ratio | None] = []
    shown: list[tuple[str, CellResult | None, tuple[Figure, ...]]] = []
    for name in dict.fromkeys(figure.row for figure in page.figures):
        figures = tuple(page.figure(name, compiler) for compiler in compilers)
        ids = [cell_id for cell_id in figures[0].cells if cell_id in cells]
        named.update(ids)
        present: list[CellResult | None] = [cells[cell_id] for cell_id in ids]
        shown += [(name, cell, figures) for cell in present or [None]]
    others = sorted(
        (c for c in cells.values() if c.id not in named), key=lambda c: natural_key(c.id)
    )
    shown += [(printable(cell.contender), cell, ()) for cell in others]
    rows: dict[str, list[Row]] = {}
    for name, cell, figures in shown:
        to_base = cell_ratio(result, cell, base)
        ratios.append(to_base)
        ms = milliseconds(cell, base_figure.ops or 1)
        published = [f"{figure.value:.0f}" for figure in figures]
        values = [
            number(ms) if ms is None else f"{ms:.0f}",
            *(published or [MISSING] * len(compilers)),
            *ratio_texts(to_base),
            *([ratio_text(page.ratio(f)) for f in figures] or [MISSING] * len(compilers)),
        ]
        if counts_upstream:
            values += [
                count(None if cell is None else cell.per_op(event))
                for event in ("upstream_allocs", "heap_allocs")
            ]
        label = printable(cell.contender) if cell and figures else ""
        beside = [
            f"{text} ms {compiler}" for text, compiler in zip(published, compilers, strict=False)
        ]
        rows.setdefault(name, []).append(figure_row(label, cell, values, beside))
    groups: list[Group] = []
    for name, lines in rows.items():
        if len(lines) == 1 and lines[0].label == name:
            lines = [dataclasses.replace(lines[0], label="")]
        groups.append(Group(name, tuple(lines)))
    columns = [
        Column("ms", "ms"),
        *(Column(f"page_{name}_ms", f"page {name} ms") for name in compilers),
        Column("to_first", f"to {base_figure.row}"),
        Column("to_first_interval", ratio_title(ratios), 2),
        *(
            Column(f"page_{name}_to_first", f"page {name} to {base_figure.row}", 3)
            for name in compilers
        ),
    ]
    if counts_upstream:
        columns += [
            Column("upstream", "upstream/op", 1),
            Column("heap", "heap/op", 4),
        ]
    return Table(
        title=f"Cobalt {page.suite}: {page.title}",
        columns=tuple(columns),
        groups=tuple(groups),
        headings=("row", "contender"),
        remarks=source_lines(page),
    )
