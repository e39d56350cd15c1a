"""The report of several runs, usually of several machines: ratios inside each, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from .. import plot, tables
from ..plot import data, svg
from ..plot.data import RatioRow
from ..results import CellResult, RunResult
from ..tables import MISSING, printable, ratio_text
from . import facts, layout, single
from .layout import Section

Rows = dict[str, RatioRow]
#: Cells of a drawing that fits on a printed page.
_ROWS = 24


def names(results: Sequence[RunResult]) -> list[str]:
    """A short name for each run: a letter, and its CPU."""
    made = []
    for nth, result in enumerate(results):
        fingerprint = result.machine.get("fingerprint") or {}
        cpu = printable(str(fingerprint.get("cpu") or "unknown CPU"))
        letter = chr(ord("A") + nth) if nth < 26 else str(nth + 1)
        made.append(f"{letter}: {cpu}")
    return made


def page(results: Sequence[RunResult], baseline: str | None, margin: float, title: str) -> str:
    """The whole page."""
    labels = names(results)
    chosen = [data.chosen(result) if result.cells else () for result in results]
    rows = [
        data.ratio_rows(result, cells, baseline, margin) if cells else {}
        for result, cells in zip(results, chosen, strict=True)
    ]
    merged = {cell.id: cell for cells in chosen for cell in cells}
    every = data.chosen(single.only(results[0], list(merged.values()))) if merged else ()
    suites = list(dict.fromkeys(cell.suite for cell in every))
    sections = [
        Section("summary", "Summary", _summary(results, labels, suites, rows, margin)),
        Section("machines", "Machines and builds", layout.facts(labels, facts.rows(results))),
    ]
    for nth, suite in enumerate(suites):
        cells = [cell for cell in every if cell.suite == suite]
        body = _suite(results, labels, cells, f"suite{nth}", rows, margin)
        sections.append(Section(f"suite{nth}", printable(suite), body))
    sections.append(Section("method", "Method", single.method_note(margin)))
    under = [
        f"{label} · {line}"
        for label, result in zip(labels, results, strict=True)
        for line in tables.heading_lines(result)[:1]
    ]
    return layout.document(title, under, sections)


def _summary(
    results: Sequence[RunResult],
    labels: Sequence[str],
    suites: Sequence[str],
    rows: Sequence[Rows],
    margin: float,
) -> str:
    parts = [
        layout.paragraph(
            "A column is a run. Every figure is a ratio inside its own run: absolute times of "
            "different machines are not compared, and not shown."
        )
    ]
    for label, result in zip(labels, results, strict=True):
        if found := layout.caution(facts.cautions(result), facts.warnings(result)):
            parts += [layout.paragraph(f"{label}:"), found]
    for label, own in zip(labels, rows, strict=True):
        counted = []
        for suite in suites:
            counts: dict[str, int] = {}
            for row in own.values():
                if row.cell.suite == suite:
                    counts[row.standing] = counts.get(row.standing, 0) + 1
            if counts:
                counted.append((printable(suite), counts))
        if counted:
            words = f"{label}. {single.summary_words(own.values(), margin)}"
            parts.append(layout.figure(layout.bars(counted), words))
    return "\n".join(parts)


def _suite(
    results: Sequence[RunResult],
    labels: Sequence[str],
    cells: Sequence[CellResult],
    key: str,
    rows: Sequence[Rows],
    margin: float,
) -> str:
    compared = [cell for cell in cells if any(cell.id in own for own in rows)]
    if not compared:
        return layout.paragraph("No case has two contenders with a number to compare.")
    parts = []
    pieces = [compared[at : at + _ROWS] for at in range(0, len(compared), _ROWS)]
    for nth, piece in enumerate(pieces):
        ids = [cell.id for cell in piece]
        figure = plot.side_by_side(
            list(zip(labels, rows, strict=True)), ids, margin=margin, theme="auto"
        )
        caption = "Ratio to the baseline of its case, in each run."
        if len(pieces) > 1:
            caption += f" Part {nth + 1} of {len(pieces)}."
        parts.append(layout.figure(svg.inline(figure, f"{key}-side-{nth}", caption), caption))
    parts.append(layout.table(_table(labels, compared, rows)))
    return "\n".join(parts)


def _table(
    labels: Sequence[str], compared: Sequence[CellResult], rows: Sequence[Rows]
) -> tables.Table:
    columns = []
    for nth, label in enumerate(labels):
        columns += [
            tables.Column(f"ratio{nth}", label),
            tables.Column(f"ends{nth}", _kind(rows[nth])),
        ]
    groups: dict[str, list[tables.Row]] = {}
    for cell in compared:
        texts = []
        base = ""
        for own in rows:
            row = own.get(cell.id)
            if row is None:
                texts += [MISSING, ""]
                continue
            base = printable(row.baseline.contender)
            ends = row.ends
            span = f"{ratio_text(ends[0])}–{ratio_text(ends[1])}" if ends else MISSING
            texts += [ratio_text(row.ratio.value), span]
        label = f"{printable(cell.contender)} / {base}"
        groups.setdefault(printable(cell.case), []).append(tables.Row(label, tuple(texts)))
    first = compared[0]
    better = "below" if first.direction == "lower" else "above"
    return tables.Table(
        f"{printable(first.suite)}: ratio to the baseline inside each run, {better} 1 is faster",
        tuple(columns),
        tuple(tables.Group(case, tuple(lines)) for case, lines in groups.items()),
        headings=("case", "contender / baseline"),
    )


def _kind(own: Rows) -> str:
    kinds = {
        f"range of {row.ratio.n}"
        if row.ratio.ci_level is None
        else f"{100 * row.ratio.ci_level:.1f} % interval"
        for row in own.values()
    }
    return kinds.pop() if len(kinds) == 1 else "interval or range"
