"""The report of one run: summary, machine, a section a suite, and the method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .. import plot, published, stats, tables
from ..plot import data, svg
from ..plot.data import Panel, RatioRow
from ..results import CellResult, RunResult
from ..tables import View, printable, ratio_text
from . import facts, layout
from .layout import Section

#: Lines of a drawing that fit on a printed page.
_LINES = 34


def page(result: RunResult, baseline: str | None, margin: float, title: str) -> str:
    """The whole page."""
    cells = data.chosen(result) if result.cells else ()
    rows = data.ratio_rows(result, cells, baseline, margin) if cells else {}
    suites = list(dict.fromkeys(cell.suite for cell in cells))
    sections = [
        Section("summary", "Summary", _summary(result, cells, suites, rows, margin)),
        Section("machine", "Machine and build", layout.facts(["value"], facts.rows([result]))),
    ]
    for nth, suite in enumerate(suites):
        body = _suite(result, suite, f"suite{nth}", rows, baseline, margin)
        sections.append(Section(f"suite{nth}", printable(suite), body))
    sections.append(Section("method", "Method", method_note(margin)))
    return layout.document(title, tables.heading_lines(result), sections)


def _summary(
    result: RunResult,
    cells: Sequence[CellResult],
    suites: Sequence[str],
    rows: dict[str, RatioRow],
    margin: float,
) -> str:
    parts = [layout.caution(facts.cautions(result), facts.warnings(result))]
    measured = sum(cell.summary.median is not None for cell in cells)
    parts.append(layout.paragraph(f"{measured} of {len(cells)} cells have a number."))
    by_suite = [
        (printable(suite), _standings(row for row in rows.values() if row.cell.suite == suite))
        for suite in suites
    ]
    counted = [(suite, found) for suite, found in by_suite if found]
    if counted:
        element = layout.bars(counted)
        parts.append(layout.figure(element, summary_words(rows.values(), margin)))
        parts.append(layout.table(_means(rows)))
    elif cells:
        parts.append(layout.paragraph("No case has two contenders with a number to compare."))
    else:
        parts.append(layout.paragraph("This run has no cells."))
    if bad := [cell for cell in cells if cell.status not in ("ok", "unavailable")]:
        names = [f"{printable(c.id)}: {c.status}: {printable(c.reason or '')}" for c in bad]
        parts += [layout.paragraph("Cells that went wrong:"), layout.items(names)]
    return "\n".join(parts)


def _standings(rows: Iterable[RatioRow]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row.standing] = found.get(row.standing, 0) + 1
    return found


def summary_words(rows: Iterable[RatioRow], margin: float) -> str:
    """What the bars count, as a caption."""
    text = (
        "Contenders against the baseline of their case. Faster and slower: the whole interval of "
        f"the ratio lies on one side of 1; within: inside ±{100 * margin:g} %; unclear: neither. "
        "Each interval covers by itself."
    )
    if any(row.standing == data.RANGE for row in rows):
        text += f" Below {stats.MIN_BLOCKS} blocks there is no interval, and no verdict."
    return text


def _means(rows: dict[str, RatioRow]) -> tables.Table:
    """Geometric means of the ratios of each contender of a suite."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows.values():
        cell = row.cell
        worse = data.cost(row.ratio.value or math.nan, cell.direction)
        key = (cell.suite, cell.contender, row.baseline.contender)
        if math.isfinite(worse) and worse > 0:
            found.setdefault(key, []).append(worse)
    groups: dict[str, list[tables.Row]] = {}
    for (suite, contender, base), values in found.items():
        mean = math.exp(math.fsum(map(math.log, values)) / len(values))
        texts = (ratio_text(mean), ratio_text(min(values)), ratio_text(max(values)),
                 str(len(values)))  # fmt: skip
        label = f"{printable(contender)} / {printable(base)}"
        groups.setdefault(printable(suite), []).append(tables.Row(label, texts))
    return tables.Table(
        "Cost in each suite: geometric mean over cases of the ratio to the baseline",
        (
            tables.Column("mean", "mean ratio"),
            tables.Column("least", "least"),
            tables.Column("greatest", "greatest"),
            tables.Column("cases", "cases"),
        ),
        tuple(tables.Group(suite, tuple(lines)) for suite, lines in groups.items()),
        headings=("suite", "contender / baseline"),
        remarks=("cost: a time as it is, a rate turned over; below 1 is faster",),
    )


def only(result: RunResult, cells: Sequence[CellResult]) -> RunResult:
    """The run with these cells alone."""
    return RunResult(result.run, result.machine, tuple(cells), result.extra)


def _suite(
    result: RunResult,
    suite: str,
    key: str,
    rows: dict[str, RatioRow],
    baseline: str | None,
    margin: float,
) -> str:
    part = only(result, [cell for cell in result.cells if cell.suite == suite])
    parts = []
    compared = [cell for cell in part.cells if cell.id in rows]
    kinds = ["forest"] if compared else ["bars"]
    if data.sizes(part.cells):
        kinds.append("throughput")
    if any(cell.latency for cell in part.cells):
        kinds.append("percentiles")
    for kind in kinds:
        pieces = chunks(part, rows) if kind == "forest" else [part]
        for nth, piece in enumerate(pieces):
            name = f"{key}-{kind}-{nth}"
            parts.append(drawing(kind, piece, name, baseline, margin, len(pieces), nth))
    view = View(baseline=baseline) if _has(part, baseline) else View()
    made = tables.summary_tables(part, view)
    parts += [layout.table(table) for table in made]
    parts.append(layout.items(tables.legend_lines(made)).replace("<ul>", '<ul class="notes">'))
    if pages := published.tables(result, suite):
        parts.append("<h3>Beside the published figures</h3>")
        parts.append(
            layout.paragraph("Only ratios inside one page and inside this run mean something.")
        )
        parts += [layout.table(table) for table in pages]
    if described := _descriptions(part):
        parts.append(layout.details("What the contenders of each case do", described))
    return "\n".join(parts)


def _has(part: RunResult, baseline: str | None) -> bool:
    return any(cell.contender == baseline for cell in part.cells)


def chunks(part: RunResult, rows: dict[str, RatioRow]) -> list[RunResult]:
    """Pieces of a suite with so many compared cells that a drawing fits on a page."""
    pieces: list[list[CellResult]] = [[]]
    lines = 0
    for panel in data.panels(data.chosen(part)):
        for _, cells in panel.cases:
            need = sum(cell.id in rows for cell in cells)
            if not need:
                continue
            need += len(cells) > 2
            if lines and lines + need > _LINES:
                pieces.append([])
                lines = 0
            pieces[-1] += cells
            lines += need
    return [only(part, piece) for piece in pieces if piece]


def drawing(
    kind: str,
    result: RunResult,
    name: str,
    baseline: str | None,
    margin: float,
    pieces: int,
    nth: int,
) -> str:
    """A figure element of one drawing."""
    figure = plot.draw(
        kind,
        result,
        baseline=baseline if _has(result, baseline) else None,
        margin=margin,
        theme="auto",
        bare=True,
    )
    caption = plot.KINDS[kind].summary
    caption = caption[0].upper() + caption[1:] + "."
    if pieces > 1:
        caption += f" Part {nth + 1} of {pieces}."
    return layout.figure(svg.inline(figure, name, caption), caption)


def _descriptions(part: RunResult) -> str:
    lines = []
    for panel in data.panels(data.chosen(part)):
        for case, cells in described(panel):
            lines.append(f"<dt>{layout.text(printable(case))}</dt>")
            lines += [f"<dd>{layout.text(text)}</dd>" for text in cells]
    return "<dl>\n" + "\n".join(lines) + "\n</dl>" if lines else ""


def described(panel: Panel) -> list[tuple[str, list[str]]]:
    """Cases with the descriptions of their cells."""
    made = []
    for case, cells in panel.cases:
        texts = [
            f"{printable(cell.contender)}: {printable(str(cell.extra['summary_text']))}"
            for cell in cells
            if cell.extra.get("summary_text")
        ]
        if texts:
            made.append((case, texts))
    return made


def method_note(margin: float) -> str:
    """How numbers came to be, for a reader who has never seen the tool."""
    paragraphs = (
        "Every cell, one contender of one case, runs in a fresh process in every block. The "
        "contenders of a case run back to back on one CPU in an order that changes from block to "
        "block. A process takes several samples; their median is one value. Intervals rest on "
        "processes, never on pooled samples.",
        "A cell's number is the median of its processes, with the interval of order statistics "
        "and the coverage that it really has. A ratio is the mean of the log-ratios paired by "
        f"block, with a sign-flip interval. Below {stats.MIN_BLOCKS} blocks there is no interval "
        "of at least 95 %: the range is shown, named so, and nothing is called faster or slower.",
        f"The margin is {100 * margin:g} %. Intervals of this report each cover by themselves; "
        "none is corrected for how many there are.",
        "Every cell proves that it did its work, or has no number. Event counts are exact "
        "integers from a second build of the same sources.",
        "Times belong to this machine at that time. Between machines only ratios inside one run, "
        "and event counts, mean something.",
    )
    return "\n".join(layout.paragraph(text) for text in paragraphs)
