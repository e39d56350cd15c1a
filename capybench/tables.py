"""Tables of a run: built once as plain texts, then drawn for a terminal or Markdown; JSON and CSV.

`summary_tables` makes the usual view (a table a suite, a group a case, a row a contender);
published forms (capybench.styles) make the same Table objects. rich is imported only when a
terminal table is drawn.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import reference, stats
from .cases import natural_key
from .errors import UsageError
from .results import CellResult, RunResult, document_text

if TYPE_CHECKING:
    from rich.console import Console

MISSING = "–"
#: Orders of rows. `listed` is the order of the core, which follows the published tables, with
#: numbers in natural order and the baseline first; the others go by name or by number, least first.
SORTS = ("listed", "name", "median", "ratio", "spread")


class TableError(UsageError):
    """A column, unit or order that does not exist; the message names those that do."""


# ---- the model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers. Where a terminal is too narrow, columns of the highest `drop` go first
    (0: never)."""

    key: str
    title: str
    drop: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A line: a label, one text for each column, or a `note` in their place. `tone` is "", "dim"
    or "bad"."""

    label: str
    values: tuple[str, ...] = ()
    note: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under one heading: the contenders of a case."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title. `headings` name the group and the label of a row; below stand `notes`,
    which a reader must heed, and `remarks`, such as a source."""

    title: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    headings: tuple[str, str] = ("case", "contender")
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """What a user asked for: display unit, order, columns (None: the usual), baseline contender."""

    unit: str | None = None
    sort: str = "listed"
    columns: tuple[str, ...] | None = None
    baseline: str | None = None


# ---- text of numbers -----------------------------------------------------------------------------


def printable(text: str) -> str:
    """The text with control and other unprintable characters escaped: names come from files."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def number(value: float | None, like: float | None = None) -> str:
    """Four significant digits, at most three decimals (as many as `like` would have)."""
    if value is None or math.isnan(value):
        return MISSING
    size = abs(value if like is None else like)
    if math.isinf(value) or (size and not 1e-3 <= size < 1e7):
        return f"{value:.3e}"
    digits = 3 if size < 1 else min(3, max(0, 3 - math.floor(math.log10(size))))
    return f"{value:,.{digits}f}"


def ratio_text(value: float | None) -> str:
    """A ratio with three decimals; below 0.1 with four, from 10 on with four digits in all."""
    if value is None:
        return MISSING
    if not 1e-3 <= value < 10:
        return number(value)
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"


def percent(value: float | None) -> str:
    """A share as per cent with one decimal; `n/a` where it is undefined."""
    return "n/a" if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def count(value: float | None) -> str:
    """An event count an op: integers as such, others with three digits."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.3g}"


def span(low: float | None, high: float | None, like: float | None, scale: float = 1.0) -> str:
    """Both ends of an interval or range, with the decimals of the value between them."""
    if low is None or high is None:
        return MISSING
    middle = None if like is None else like / scale
    return f"{number(low / scale, middle)}–{number(high / scale, middle)}"


# ---- units ---------------------------------------------------------------------------------------

#: Display units of each dimension with their factors; the first is the base unit of the file.
_SCALES: dict[str, tuple[tuple[str, float], ...]] = {
    "ns/op": (("ns/op", 1.0), ("µs/op", 1e3), ("ms/op", 1e6), ("s/op", 1e9)),
    "ops/s": (("ops/s", 1.0), ("kops/s", 1e3), ("Mops/s", 1e6), ("Gops/s", 1e9)),
    "items/s": (("items/s", 1.0), ("kitems/s", 1e3), ("Mitems/s", 1e6), ("Gitems/s", 1e9)),
    "bytes/s": (("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)),
}
_MORE_UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "bytes/s": (("bytes/s", 1.0), ("KiB/s", 2.0**10), ("MiB/s", 2.0**20), ("GiB/s", 2.0**30)),
}
#: A scale is taken when the smallest value of the table is at least this many of its units.
_LEAST_IN_SCALE = 10


def display_scale(cells: Sequence[CellResult], asked: str | None) -> tuple[str, float]:
    """Name and factor of the display unit for cells of one unit."""
    unit = cells[0].unit
    if asked is not None and (chosen := find_unit(asked)) and chosen[0] == unit:
        return chosen[1], chosen[2]
    medians = [cell.summary.median for cell in cells if cell.summary.median]
    least = min(medians, default=0.0)
    fitting = [pair for pair in _SCALES[unit] if least >= _LEAST_IN_SCALE * pair[1]]
    return fitting[-1] if fitting else _SCALES[unit][0]


def find_unit(name: str) -> tuple[str, str, float]:
    """(unit of the file, display name, factor) of a display unit; `/op` may be left out, u is µ."""
    wanted = name.strip().replace("us", "µs", 1) if name.strip().startswith("us") else name.strip()
    known = []
    for unit, base in _SCALES.items():
        for label, factor in (*base, *_MORE_UNITS.get(unit, ())):
            known.append(label)
            if wanted in (label, label.removesuffix("/op")):
                return unit, label, factor
    raise TableError(f"unknown unit {name!r}; known: {', '.join(known)}")


# ---- the usual view ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Context:
    """What the texts of one table need beside the cell."""

    unit: str
    scale: float
    ratios: Mapping[str, stats.Ratio]
    baselines: frozenset[str]
    interval_title: str
    mixed: bool
    notes: list[str] = field(default_factory=list)


def _median(cell: CellResult, context: _Context) -> str:
    value = cell.summary.median
    return number(None if value is None else value / context.scale)


def relative_spread(cell: CellResult) -> float | None:
    """1.4826 * MAD of the process medians as a share of their median; None where undefined."""
    summary = cell.summary
    return summary.mad / summary.median if summary.mad is not None and summary.median else None


def _interval(cell: CellResult, context: _Context) -> str:
    summary = cell.summary
    if summary.ci_low is not None:
        return span(summary.ci_low, summary.ci_high, summary.median, context.scale)
    if summary.n < 2:
        return MISSING
    text = span(summary.low, summary.high, summary.median, context.scale)
    return f"{text} (of {summary.n})" if context.mixed and text != MISSING else text


def _allocs(cell: CellResult, _context: _Context) -> str:
    heap, resource = cell.per_op("heap_allocs"), cell.per_op("resource_allocs")
    if heap is None and resource is None:
        return MISSING
    return f"{count(heap)}/{count(resource)}"


def _ratio(cell: CellResult, context: _Context) -> str:
    if cell.id in context.baselines:
        return "baseline"
    ratio = context.ratios.get(cell.id)
    return ratio_text(ratio.value) if ratio else ""


def _ratio_interval(cell: CellResult, context: _Context) -> str:
    ratio = context.ratios.get(cell.id)
    if ratio is None or ratio.value is None:
        return ""
    if ratio.ci_low is not None:
        return f"{ratio_text(ratio.ci_low)}–{ratio_text(ratio.ci_high)}"
    if ratio.n < 2:
        return MISSING
    text = f"{ratio_text(ratio.low)}–{ratio_text(ratio.high)}"
    return f"{text} (of {ratio.n})" if context.mixed else text


def _frame(cell: CellResult, _context: _Context) -> str:
    if cell.suite != "frame_alloc" or cell.unit != "ns/op" or cell.summary.median is None:
        return MISSING
    return number(cell.summary.median / reference.FRAMES_PER_PASS)


def _end(name: str) -> Callable[[CellResult, _Context], str]:
    def text(cell: CellResult, context: _Context) -> str:
        value = getattr(cell.summary, name)
        return number(None if value is None else value / context.scale)

    return text


def _per_op(name: str) -> Callable[[CellResult, _Context], str]:
    return lambda cell, _context: count(cell.per_op(name))


_Text = Callable[[CellResult, _Context], str]
#: Every column that --columns knows, apart from the event counts of the file itself.
_COLUMNS: dict[str, tuple[Column, _Text]] = {
    "median": (Column("median", "median"), _median),
    "spread": (Column("spread", "spread", 3), lambda cell, _: percent(relative_spread(cell))),
    "interval": (Column("interval", "interval"), _interval),
    "frame": (Column("frame", "ns per frame", 2), _frame),
    "allocs": (Column("allocs", "allocs", 1), _allocs),
    "ratio": (Column("ratio", "ratio"), _ratio),
    "ratio_interval": (Column("ratio_interval", "ratio interval", 4), _ratio_interval),
    "n": (Column("n", "n", 5), lambda cell, _: str(cell.summary.n)),
    "low": (Column("low", "least", 5), _end("low")),
    "high": (Column("high", "greatest", 5), _end("high")),
    "ops": (Column("ops", "ops/sample", 6), lambda cell, _: count(cell.ops)),
}
#: Keys of a cell's ledger; they and whatever else a file counts can be asked for as columns.
LEDGER_KEYS = (
    "heap_allocs",
    "resource_allocs",
    "invoker_frames",
    "indirect_calls",
    "atomic_rmws",
    "seq_cst_stores",
    "ref_changes",
    "mutex_pairs",
    "posts",
    "syscalls",
)


def summary_tables(result: RunResult, view: View | None = None) -> tuple[Table, ...]:
    """The usual tables: one for each suite and unit, in the order of the run.

    Raises TableError for an unknown column, unit or order, UnknownContenderError for a baseline
    that no case has.
    """
    view = view or View()
    check_view(view, {cell.unit for cell in result.cells}, counted_events(result.cells))
    baselines, ratios = ratios_to_baseline(result, view.baseline)
    suites: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in result.cells:
        suites.setdefault((cell.suite, cell.unit, cell.direction), []).append(cell)
    tables: list[Table] = []
    for (suite, _, direction), cells in suites.items():
        if suite == "read_stream" and view == View(unit=view.unit):
            # Imported here: it draws with this module.
            from .matrix import matrix_tables

            tables += matrix_tables(result, cells, *display_scale(cells, view.unit))
        else:
            tables.append(_suite_table(suite, direction, cells, view, baselines, ratios))
    return tuple(tables)


def counted_events(cells: Iterable[CellResult]) -> set[str]:
    """Names of all events that some ledger of the cells counts."""
    return {name for cell in cells for name in cell.ledger or {}}


def check_view(view: View, units: Collection[str], events: Collection[str]) -> None:
    """TableError for a view that cells of these units (none: not known yet), with ledgers of these
    events, cannot be shown in."""
    if view.sort not in SORTS:
        raise TableError(f"unknown order {view.sort!r}; known: {', '.join(SORTS)}")
    if view.unit is not None and find_unit(view.unit)[0] not in (units or _SCALES):
        present = ", ".join(sorted(units))
        raise TableError(f"{view.unit!r} does not fit: the cells are in {present}")
    known = [*_COLUMNS, *LEDGER_KEYS, *sorted(set(events) - set(LEDGER_KEYS))]
    for key in view.columns or ():
        if key not in known:
            raise TableError(f"unknown column {key!r}; known: {', '.join(known)}")


def ratios_to_baseline(
    result: RunResult, contender: str | None = None
) -> tuple[frozenset[str], dict[str, stats.Ratio]]:
    """Ids of the baselines that have rivals, and the ratio of every rival to its baseline.

    A `contender` of None means the one that the run itself was told, else each case's own.
    """
    if contender is None:
        stored = result.run.get("baseline")
        contender = stored if isinstance(stored, str) else None
    chosen = result.baselines(contender)
    ratios: dict[str, stats.Ratio] = {}
    compared = set()
    for cell in result.cells:
        baseline = chosen.get((cell.suite, cell.case))
        if baseline is None or baseline.id == cell.id or baseline.unit != cell.unit:
            continue
        compared.add(baseline.id)
        ratios[cell.id] = result.ratio_of(cell, baseline)
    return frozenset(compared), ratios


def _suite_table(
    suite: str,
    direction: str,
    cells: Sequence[CellResult],
    view: View,
    baselines: frozenset[str],
    ratios: Mapping[str, stats.Ratio],
) -> Table:
    unit, scale = display_scale(cells, view.unit)
    title, mixed = _interval_title([cell for cell in cells if cell.summary.median is not None])
    context = _Context(unit, scale, ratios, baselines, title, mixed)
    keys = _usual_keys(suite, cells, ratios) if view.columns is None else view.columns
    columns = [_column(key) for key in keys]
    cases: dict[str, list[CellResult]] = {}
    for cell in cells:
        cases.setdefault(cell.case, []).append(cell)
    groups = [
        Group(
            printable(case),
            tuple(
                _row(cell, columns, context) for cell in _sorted(cases[case], view.sort, context)
            ),
        )
        for case in _case_order(cases, view.sort, context)
    ]
    return Table(
        title=f"{printable(suite)}: {unit}, {direction} is better",
        columns=tuple(_titled(column, context) for column, _ in columns),
        groups=tuple(groups),
        notes=tuple(_notes(cells, view, baselines)),
    )


def _usual_keys(
    suite: str, cells: Sequence[CellResult], ratios: Mapping[str, stats.Ratio]
) -> tuple[str, ...]:
    keys = ["median", "spread", "interval"]
    if suite == "frame_alloc":
        keys.append("frame")
    if any(cell.per_op("heap_allocs") is not None for cell in cells):
        keys.append("allocs")
    if any(cell.id in ratios for cell in cells):
        keys += ["ratio", "ratio_interval"]
    return tuple(keys)


def _column(key: str) -> tuple[Column, _Text]:
    """A column by its name; whatever is not known by name is an event of the ledger."""
    return _COLUMNS.get(key) or (Column(key, key, 5), _per_op(key))


def _titled(column: Column, context: _Context) -> Column:
    if column.key == "interval":
        return Column(column.key, context.interval_title, column.drop)
    if column.key == "ratio_interval" and context.interval_title.startswith("range"):
        return Column(column.key, context.interval_title, column.drop)
    return column


def _interval_title(cells: Sequence[CellResult]) -> tuple[str, bool]:
    """Heading of the interval column, and whether its rows differ in kind or in n."""
    kinds = {(cell.summary.ci_level, cell.summary.n) for cell in cells}
    if len(kinds) != 1:
        return "interval", bool(kinds)
    level, n = kinds.pop()
    return (f"range of {n}", False) if level is None else (f"{100 * level:.1f} % interval", False)


def _case_order(
    cases: Mapping[str, Sequence[CellResult]], sort: str, context: _Context
) -> list[str]:
    """Cases of a suite: as listed or by name; by a number only where each has one contender."""
    if sort not in ("listed", "name") and all(len(cells) == 1 for cells in cases.values()):
        alone = [cells[0] for cells in cases.values()]
        return [cell.case for cell in _sorted(alone, sort, context)]
    if sort != "listed":
        return sorted(cases, key=natural_key)
    shapes: dict[str, int] = {}
    for case in cases:
        shapes.setdefault(re.sub("[0-9]+", "0", case), len(shapes))
    return sorted(cases, key=lambda case: (shapes[re.sub("[0-9]+", "0", case)], natural_key(case)))


def _sorted(cells: Sequence[CellResult], sort: str, context: _Context) -> list[CellResult]:
    """Cells in one order; ties keep theirs, cells without the number come last."""

    def by_number(cell: CellResult) -> tuple[bool, float]:
        if sort == "median":
            value = cell.summary.median
        elif sort == "spread":
            value = relative_spread(cell)
        else:
            ratio = context.ratios.get(cell.id)
            value = ratio.value if ratio else 1.0 if cell.id in context.baselines else None
        return (value is None, value or 0.0)

    if sort == "listed":
        return sorted(cells, key=lambda cell: cell.id not in context.baselines)
    if sort == "name":
        return sorted(cells, key=lambda cell: natural_key(cell.contender))
    return sorted(cells, key=by_number)


def _row(cell: CellResult, columns: Sequence[tuple[Column, _Text]], context: _Context) -> Row:
    label = printable(cell.contender)
    if cell.status == "ok" and cell.summary.median is not None:
        return Row(label, tuple(text(cell, context) for _, text in columns))
    reason = printable(" ".join((cell.reason or cell.summary.reason or "no reason given").split()))
    word = "not measured" if cell.status == "ok" else cell.status
    return Row(label, note=f"{word}: {reason}", tone="dim" if word == "unavailable" else "bad")


def modes_note(cell: CellResult, scale: float = 1.0) -> str | None:
    """A line about a cell whose processes ran at two speeds; None for any other."""
    levels = stats.two_levels(list(cell.by_block().values()))
    if levels is None:
        return None
    low, high = (number(level / scale) for level in levels)
    return f"{printable(cell.id)}: two speeds from process to process, about {low} and {high}"


def _notes(cells: Sequence[CellResult], view: View, baselines: frozenset[str]) -> Iterable[str]:
    for cell in cells:
        for note in cell.summary.notes:
            yield f"{printable(cell.id)}: {note}"
        severe = cell.summary.outliers[1]
        if severe:
            yield f"{printable(cell.id)}: {severe} of {cell.summary.n} processes far off the others"
        if modes := modes_note(cell, display_scale(cells, view.unit)[1]):
            yield modes
    if view.baseline is not None:
        cases = {cell.case for cell in cells}
        having = {cell.case for cell in cells if cell.contender == view.baseline}
        if having and having != cases:
            missing = ", ".join(sorted(map(printable, cases - having), key=natural_key))
            yield f"no {printable(view.baseline)!r} to compare with in: {missing}"
    for cell in cells:
        if cell.id in baselines and cell.status != "ok":
            contender = printable(cell.contender)
            yield f"no ratios in {printable(cell.case)}: its baseline {contender} has no number"


# ---- what stands above and below -----------------------------------------------------------------


def heading_lines(result: RunResult) -> tuple[str, ...]:
    """Lines that say what run this is: identity, size, machine; and whether it is incomplete."""
    run, machine = result.run, result.machine
    parts = [f"run {printable(str(run.get('id', 'without a name')))}"]
    blocks, samples, target = run.get("blocks"), run.get("samples"), run.get("target_ns")
    if blocks is not None and samples is not None:
        length = f" of {number(target / 1e6)} ms" if isinstance(target, int) else ""
        length = re.sub(r"\.0+ ms$", " ms", length)
        parts.append(f"{blocks} blocks × {samples} samples{length}")
    facts = []
    for section, key in (("fingerprint", "cpu"), ("fingerprint", "kernel"), ("build", "compiler")):
        value = (machine.get(section) or {}).get(key)
        if value:
            facts.append(printable(str(value)))
    lines = [" · ".join(parts), *([" · ".join(facts)] if facts else [])]
    if not result.complete:
        done = run.get("blocks_done")
        so_far = f": {done} of {blocks} blocks are whole" if done is not None else ""
        why = "interrupted, " if result.interrupted else ""
        lines.append(f"{why}INCOMPLETE{so_far}; each row states what it has")
    return tuple(lines)


_RATIO_LEGEND = "ratio: to the case's baseline, paired by block"


def legend_lines(tables: Sequence[Table]) -> tuple[str, ...]:
    """One line for each kind of column that needs a word."""
    keys = {column.key: column.title for table in tables for column in table.columns}
    lines = []
    if "spread" in keys:
        lines.append("spread: 1.4826 × median absolute deviation of processes, in % of the median")
    if any(
        column.key == "interval" and column.title.startswith("range")
        for table in tables
        for column in table.columns
    ):
        lines.append(f"range: a 95\u00a0% interval of a median needs {stats.MIN_BLOCKS} blocks")
    if "ratio" in keys:
        intervals = any(c.title == "ratio interval" for table in tables for c in table.columns)
        lines.append(_RATIO_LEGEND + "; its interval covers at least 95\u00a0%" * intervals)
    if "allocs" in keys:
        lines.append("allocs: per op, from the heap / from the memory resource")
    return tuple(lines)


# ---- drawing -------------------------------------------------------------------------------------

_STYLES = {"dim": "dim", "bad": "red", "": ""}


def draw(
    tables: Sequence[Table],
    console: Console,
    heading: Sequence[str] = (),
    legend: Sequence[str] = (),
) -> None:
    """Print tables on a rich console, as wide as it is at most."""
    from rich.text import Text

    def line(*pieces: tuple[str, str]) -> None:
        console.print(Text.assemble(*pieces), soft_wrap=True)

    for text in heading:
        for piece in _folded(text, console.width):
            line((piece, "dim"))
    for table in tables:
        line(("", ""))
        _draw_table(table, console.width, line)
    if legend:
        line(("", ""))
    for text in legend:
        for piece in _folded(text, console.width):
            line((piece, "dim"))


_GAPS = (3, 2, 1)
_INDENT = 2
_LEAST_LABEL = 10
_Line = Callable[..., None]


def _draw_table(table: Table, width: int, line: _Line) -> None:
    nested = any(len(group.rows) > 1 for group in table.groups)
    labels = [
        " " * _INDENT + row.label if nested else _flat_label(table, group, row)
        for group in table.groups
        for row in group.rows
    ]
    layout = _fit(table, labels, width)
    for piece in _folded(table.title, width):
        line((piece, "bold"))
    for text in _heading(table, layout):
        line((text, "dim"))
    line(("─" * (layout.total if layout.shown else min(width, 80)), "dim"))
    remaining = iter(labels)
    for group in table.groups:
        if nested:
            for piece in _folded(group.name, width):
                line((piece, "bold cyan"))
        for row in group.rows:
            _draw_row(row, next(remaining), layout, width, line)
    dropped = [c.title for i, c in enumerate(table.columns) if i not in layout.shown]
    if dropped:
        for piece in _folded(f"not shown at this width: {', '.join(dropped)}", width):
            line((piece, "dim"))
    for texts, style in ((table.notes, "yellow"), (table.remarks, "dim")):
        for text in texts:
            for piece in _folded(text, width):
                line((piece, style))


def _heading(table: Table, layout: _Layout) -> list[str]:
    """Lines of the column titles: aligned like the numbers, those of fewer lines at the bottom."""
    titles = [_folded(table.columns[i].title, layout.widths[i]) for i in layout.shown]
    height = max(map(len, titles), default=0)
    filled = [[""] * (height - len(title)) + title for title in titles]
    lines = []
    for level in range(height):
        texts = (
            " " * layout.gap + _pad(title[level], layout.widths[i])
            for i, title in zip(layout.shown, filled, strict=True)
        )
        lines.append((" " * layout.label + "".join(texts)).rstrip())
    return lines


def _flat_label(table: Table, group: Group, row: Row) -> str:
    """Label of a row that has its case for itself; its contender only where contenders differ."""
    names = {other.label for each in table.groups for other in each.rows}
    return group.name if len(names) <= 1 or not row.label else f"{group.name} {row.label}"


@dataclass(frozen=True, slots=True)
class _Layout:
    label: int
    widths: tuple[int, ...]
    shown: tuple[int, ...]
    gap: int

    @property
    def total(self) -> int:
        return self.label + sum(self.widths[i] + self.gap for i in self.shown)


def _fit(table: Table, labels: Sequence[str], width: int) -> _Layout:
    """Widths that fit: first a narrower gap, then columns dropped, last a folded label."""
    from rich.cells import cell_len

    rows = [row for group in table.groups for row in group.rows if row.values]
    widths = tuple(
        max(
            _heading_width(column.title),
            *(cell_len(table_value(row, i)) for row in rows),
            1,
        )
        for i, column in enumerate(table.columns)
    )
    natural = max(map(cell_len, labels), default=0)
    # A label of more than a third of the line is folded rather than paid for with columns.
    label = natural if natural <= width // 3 else max(_LEAST_LABEL, width // 3)
    shown = tuple(range(len(widths)))
    while True:
        for gap in _GAPS:
            layout = _Layout(label, widths, shown, gap)
            if layout.total <= width:
                return _Layout(min(natural, label + width - layout.total), widths, shown, gap)
        worst = max(shown, key=lambda i: (table.columns[i].drop, i), default=None)
        if worst is None or table.columns[worst].drop == 0:
            return _Layout(min(label, _LEAST_LABEL), widths, shown, 1)
        shown = tuple(i for i in shown if i != worst)


def _heading_width(title: str) -> int:
    """Least width in which a heading takes one or two lines; it shall not widen its column."""
    from rich.cells import cell_len

    words = title.split(" ")
    return min(
        max(cell_len(" ".join(words[:split])), cell_len(" ".join(words[split:])))
        for split in range(1, len(words) + 1)
    )


def _pad(text: str, width: int) -> str:
    from rich.cells import cell_len

    return " " * (width - cell_len(text)) + text


def _draw_row(row: Row, label: str, layout: _Layout, width: int, line: _Line) -> None:
    from rich.cells import cell_len

    indent = len(label) - len(label.lstrip(" "))
    pieces = [
        " " * indent + piece for piece in _folded(label.strip(" "), max(1, layout.label - indent))
    ] or [""]
    style = _STYLES[row.tone]
    # The numbers stand beside the last line of a folded label, a note beside its first.
    if row.note:
        room = max(20, width - layout.label - layout.gap)
        notes = _folded(row.note, room)
        for index in range(max(len(pieces), len(notes))):
            left = pieces[index] if index < len(pieces) else ""
            right = notes[index] if index < len(notes) else ""
            space = " " * (layout.label - cell_len(left) + layout.gap)
            line(((left + space + right).rstrip(), style))
        return
    for piece in pieces[:-1]:
        line((piece, style))
    left = pieces[-1] + " " * (layout.label - cell_len(pieces[-1]))
    texts: list[tuple[str, str]] = [(left, style)]
    for i in layout.shown:
        column, value = table_value(row, i), layout.widths[i]
        texts.append((" " * layout.gap + _pad(column, value), _value_style(column, i, style)))
    line(*texts)


def table_value(row: Row, index: int) -> str:
    """Text of a row in a column; empty where the row has fewer."""
    return row.values[index] if index < len(row.values) else ""


def _value_style(text: str, index: int, style: str) -> str:
    if text in (MISSING, "baseline", "n/a"):
        return "dim"
    return "bold" if index == 0 and not style else style


def _folded(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken at spaces where there are any."""
    from rich.cells import cell_len, chop_cells

    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        pieces = chop_cells(word, max(2, width)) or [""]
        lines += pieces[:-1]
        current = pieces[-1]
    return [*lines, current] if current or not lines else lines


def markdown(
    tables: Sequence[Table], heading: Sequence[str] = (), legend: Sequence[str] = ()
) -> str:
    """The tables in GitHub's Markdown, every row with its case and contender."""
    blocks = []
    if heading:
        blocks.append("\n".join(f"> {_escaped(text)}  " for text in heading))
    for table in tables:
        blocks.append(f"### {_escaped(table.title)}")
        labelled = any(row.label for group in table.groups for row in group.rows)
        names = table.headings if labelled else table.headings[:1]
        lines = [
            _markdown_row([*names, *(column.title for column in table.columns)]),
            _markdown_row(["---"] * len(names) + ["---:"] * len(table.columns)),
        ]
        for group in table.groups:
            for row in group.rows:
                values = [table_value(row, i) for i in range(len(table.columns))]
                if row.note:
                    values[0] = row.note
                left = [group.name, row.label] if labelled else [group.name]
                lines.append(_markdown_row([*left, *values]))
        blocks.append("\n".join(lines))
        if below := (*table.notes, *table.remarks):
            blocks.append("\n".join(f"- {_escaped(text)}" for text in below))
    if legend:
        blocks.append("\n".join(f"<sub>{_escaped(text)}</sub>  " for text in legend))
    return "\n\n".join(blocks) + "\n"


def _markdown_row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text if _is_rule(text) else _escaped(text) for text in texts) + " |"


def _is_rule(text: str) -> bool:
    return text in ("---", "---:")


def _escaped(text: str) -> str:
    """Text in which no name of a cell can end a field or become markup."""
    return re.sub(r"([\\`*\[\]<>|~]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", text)


# ---- documents -----------------------------------------------------------------------------------


def document(result: RunResult, baseline: str | None = None) -> dict[str, Any]:
    """The run's document with summaries, and with the ratio of each cell to its baseline."""
    baselines = result.baselines(baseline or _stored_baseline(result))
    ratios = ratios_to_baseline(result, baseline)[1]
    data = result.to_dict()
    for cell in data["cells"]:
        ratio = ratios.get(cell["id"])
        if ratio is None:
            cell["ratio"] = None
            continue
        cell["ratio"] = {
            "to": baselines[cell["suite"], cell["case"]].id,
            "ratio": ratio.value,
            "median": ratio.median,
            "low": ratio.low,
            "high": ratio.high,
            "ci_low": ratio.ci_low,
            "ci_high": ratio.ci_high,
            "ci_level": ratio.ci_level,
            "n": ratio.n,
            "reason": ratio.reason,
        }
    return data


def _stored_baseline(result: RunResult) -> str | None:
    stored = result.run.get("baseline")
    return stored if isinstance(stored, str) else None


def json_text(result: RunResult, baseline: str | None = None) -> str:
    """`document` as text."""
    return document_text(document(result, baseline))


_CSV_OWN = ("id", "suite", "case", "contender", "unit", "direction", "status", "reason")
_CSV_SUMMARY = ("n", "median", "mad", "ci_low", "ci_high", "ci_level", "low", "high")
_CSV_RATIO = ("to", "ratio", "ci_low", "ci_high", "ci_level", "low", "high")
_CSV_COUNTS = ("heap_allocs", "resource_allocs")


def csv_text(result: RunResult, baseline: str | None = None) -> str:
    """One line a cell in full precision, in the units of the file; empty fields for null."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ratio_heads = ("ratio" if key == "ratio" else f"ratio_{key}" for key in _CSV_RATIO)
    writer.writerow((*_CSV_OWN, *_CSV_SUMMARY, *_CSV_COUNTS, *ratio_heads))
    for cell, data in zip(result.cells, document(result, baseline)["cells"], strict=True):
        ratio = data["ratio"] or {}
        writer.writerow(
            (
                *(data[key] for key in _CSV_OWN),
                *(data["summary"][key] for key in _CSV_SUMMARY),
                *(cell.per_op(key) for key in _CSV_COUNTS),
                *(ratio.get(key) for key in _CSV_RATIO),
            )
        )
    return out.getvalue()
