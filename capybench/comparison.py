"""What a comparison has found: frozen records, their document, and their tables.

Ratios are costs, head over base: 1.05 is 5 % more time an operation, for a rate 1/1.05 of it. The
numbers are made by capybench.judge; here nothing is decided.
"""

from __future__ import annotations

import html
import io
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from . import stats, tables
from .errors import UsageError
from .tables import MISSING, Column, Group, Row, Table, number, printable, ratio_text

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "capybench-comparison/1"
INVALID, UNSTABLE, SLOWER, FASTER = "invalid", "unstable", "slower", "faster"
SUSPECT, SAME, INCONCLUSIVE = "suspect", "within noise", "inconclusive"
NEW, GONE = "new", "gone"
VERDICTS = (INVALID, UNSTABLE, SLOWER, FASTER, SUSPECT, SAME, INCONCLUSIVE, NEW, GONE)
#: How the sides were measured: interleaved in one run, in two sessions, in many sessions, on two
#: machines (only counts and ratios are judged), or one run alone against limits.
KINDS = ("variants", "stored", "sessions", "portable", "alone")
#: What may be named by --fail-on beside what fails always.
FAIL_ON = (SUSPECT, NEW, INCONCLUSIVE, UNSTABLE)


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """One cell of a comparison.

    `base` and `head` are the medians of process medians in the cell's unit. `ratio` is the cost of
    head over base, `ratio_median` the median of the paired ratios, `ci_low`..`ci_high` the
    simultaneous interval (`ci_level`), `own_low`..`own_high` the cell's own 90 % interval. `margin`
    is a share (0.03), `noise` the session-to-session noise that comes on top of it against a stored
    baseline. `p` is adjusted for the family. `detectable` is the smallest true effect (a share)
    that this row would show in four of five runs, `blocks` the pairs (or processes of the smaller
    side) it rests on, `marked` how many pairs ran in different speed states by the probes, `gated`
    how many of those were left out, `blocks_needed` about how many
    would decide it (None: it is decided, or more than can be measured). `fails`: slower with the
    near end beyond the margin. `control`: the base against itself. `reason` is a sentence for what
    the numbers do not say. Numbers are None where there are none.
    """

    id: str
    verdict: str
    unit: str
    direction: str
    base: float | None = None
    head: float | None = None
    ratio: float | None = None
    ratio_median: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float | None = None
    own_low: float | None = None
    own_high: float | None = None
    margin: float | None = None
    noise: float | None = None
    p: float | None = None
    detectable: float | None = None
    blocks: int = 0
    marked: int = 0
    gated: int = 0
    blocks_needed: int | None = None
    fails: bool = False
    control: bool = False
    reason: str | None = None

    @property
    def change(self) -> float | None:
        """The ratio as a share: 0.05 for 5 % slower."""
        return None if self.ratio is None else self.ratio - 1

    @property
    def costlier(self) -> bool:
        """Whether the ratio is above 1."""
        return self.ratio is not None and self.ratio > 1

    @property
    def suite(self) -> str:
        """Its suite."""
        return self.id.partition("/")[0]

    def sentence(self) -> str:
        """The row as one line for people: verdict, change, interval, margin, what could be seen."""
        parts = [f"{printable(self.id)}: {self.verdict}"]
        if self.ratio is not None:
            parts.append(f"×{ratio_text(self.ratio)} ({percent_text(self.change)})")
        if self.ci_low is not None:
            parts.append(f"interval {ratio_text(self.ci_low)}–{ratio_text(self.ci_high)}")
        if self.margin is not None:
            parts.append(f"margin {100 * self.margin:.1f} %")
        if self.detectable is not None:
            parts.append(f"detectable {100 * self.detectable:.1f} %")
        if self.reason:
            parts.append(self.reason)
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """Geometric mean of the valid ratios of a suite ("" for all), with its interval."""

    suite: str
    cells: int
    ratio: float
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One threshold that is no margin, on one cell (or a ratio of two): `verdict` is "ok",
    "exceeded", "inconclusive" or "invalid", `base` and `now` what it was and is. `timed`: it rests
    on times, so that it is worth measuring again."""

    threshold: str
    id: str
    verdict: str
    base: float | None = None
    now: float | None = None
    limit: float | None = None
    reason: str | None = None
    timed: bool = False

    @property
    def fails(self) -> bool:
        """Whether the gate fails by it."""
        return self.verdict in ("exceeded", INVALID)

    def sentence(self) -> str:
        """One line for people."""
        now = "" if self.now is None else f", now {number(self.now)}"
        was = "" if self.base is None else f", was {number(self.base)}"
        why = f", {self.reason}" if self.reason else ""
        return f"{printable(self.id)}: {self.threshold} {self.verdict}{was}{now}{why}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """All rows of one comparison, in the order of the base's cells.

    `kind` is one of KINDS, `base` and `head` name the sides, `margin` is the default margin (a
    share, the noise floor included), `noise_floor` what the negative control gave (None without
    one), `family` the number of cells judged jointly, `level` the coverage of the simultaneous
    intervals, `correction` how the family was corrected, `seed` what all resampling started from.
    """

    kind: str
    base: str
    head: str
    rows: tuple[CellVerdict, ...]
    margin: float
    noise_floor: float | None = None
    family: int = 0
    level: float | None = None
    correction: str = "max-t"
    seed: int = 0
    suites: tuple[SuiteVerdict, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    # ---- what follows from it

    def row(self, cell_id: str) -> CellVerdict:
        """The row of a cell (not a control's); LookupError where there is none."""
        for row in self.rows:
            if row.id == cell_id and not row.control:
                return row
        raise LookupError(f"no cell {cell_id!r} in this comparison")

    @property
    def cells(self) -> tuple[CellVerdict, ...]:
        """The rows without the negative control."""
        return tuple(row for row in self.rows if not row.control)

    def counts(self) -> dict[str, int]:
        """How many cells have each verdict that occurs, in the order of VERDICTS."""
        found = [row.verdict for row in self.cells]
        return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}

    def failures(
        self, fail_on: Collection[str] = (), allow_gone: bool = False
    ) -> tuple[CellVerdict, ...]:
        """The rows by which a gate fails: slower beyond the margin, invalid, gone, and what
        `fail_on` names; of the suspect ones only those that cost more."""
        found = []
        for row in self.cells:
            always = row.fails or row.verdict == INVALID or (row.verdict == GONE and not allow_gone)
            asked = row.verdict in fail_on and (row.verdict != SUSPECT or row.costlier)
            if always or asked:
                found.append(row)
        return tuple(found)

    def exit_code(
        self, fail_on: Collection[str] = (), strict: bool = False, allow_gone: bool = False
    ) -> int:
        """0 ok; 1 a row or check fails; 4 with `strict` and undecided rows; 5 nothing judged."""
        if self.failures(fail_on, allow_gone) or any(check.fails for check in self.checks):
            return 1
        if not self.cells and not self.checks:
            return 5
        undecided = {row.verdict for row in self.cells} & {INCONCLUSIVE, UNSTABLE}
        if strict and (undecided or any(c.verdict == INCONCLUSIVE for c in self.checks)):
            return 4
        return 0

    def with_rows(
        self,
        rows: Mapping[str, CellVerdict],
        checks: Mapping[tuple[str, str], Check],
        notes: Sequence[str] = (),
    ) -> Comparison:
        """A copy with the rows of these cells and the checks of these thresholds and ids replaced,
        and with more notes."""
        return replace(
            self,
            rows=tuple(row if row.control else rows.get(row.id, row) for row in self.rows),
            checks=tuple(checks.get((check.threshold, check.id), check) for check in self.checks),
            notes=(*self.notes, *notes),
        )

    # ---- documents

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `{"schema", …, "rows": [{"id", "verdict", "ratio", "ci_low", …}]}`."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Comparison:
        """What `to_dict` wrote. UsageError for anything else."""
        if raw.get("schema") != SCHEMA:
            raise UsageError(f"its schema is {raw.get('schema')!r}, not {SCHEMA!r}")
        data = {key: value for key, value in raw.items() if key != "schema"}
        try:
            data["rows"] = tuple(CellVerdict(**row) for row in data["rows"])
            data["suites"] = tuple(SuiteVerdict(**row) for row in data["suites"])
            data["checks"] = tuple(Check(**row) for row in data["checks"])
            data["notes"] = tuple(data["notes"])
            return cls(**data)
        except (KeyError, TypeError) as error:
            raise UsageError(f"not a comparison of this version: {error}") from None

    def to_json(self) -> str:
        """`to_dict` as text; byte-identical for equal comparisons."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    # ---- views

    def tables(self) -> tuple[Table, ...]:
        """Tables as capybench.tables draws them: one a suite, then the summary and the checks."""
        return (*_suite_tables(self), *_summary_tables(self), *_check_tables(self))

    def heading_lines(self) -> tuple[str, ...]:
        """What is compared, and how."""
        how = {
            "variants": "interleaved in one run",
            "stored": "two sessions of one machine",
            "sessions": "several sessions of one machine",
            "portable": "on different machines: counts and ratios only",
            "alone": "limits and ratios of one run",
        }[self.kind]
        lines = [f"{printable(self.head)} against {printable(self.base)}, {how}"]
        if self.kind not in ("portable", "alone"):
            floor = "no negative control"
            if self.noise_floor is not None:
                floor = f"noise floor {100 * self.noise_floor:.1f} %"
            family = _many(self.family, "cell")
            lines.append(f"margin {100 * self.margin:.1f} %, {floor}, family of {family}")
        found = [f"{count} {verdict}" for verdict, count in self.counts().items()]
        verdicts = [check.verdict for check in self.checks]
        found += [
            f"{verdicts.count(verdict)} thresholds {verdict}" for verdict in dict.fromkeys(verdicts)
        ]
        lines.append(", ".join(found) or "nothing to judge")
        return tuple(lines)

    def legend_lines(self) -> tuple[str, ...]:
        """What the columns mean."""
        if not self.cells:
            return ()
        level = "" if self.level is None else f"{100 * self.level:.1f} % "
        return (
            "ratio: cost of head over base, above 1 is slower; "
            f"interval: {level}for all cells at once",
            "visible: the smallest true change that this row would show in four of five runs",
            *(
                ("noise: how far sessions of one build lie apart here, on top of the margin",)
                if self.kind == "stored"
                else ()
            ),
        )

    def draw(self, console: Console) -> None:
        """Print it on a rich console."""
        tables.draw(self.tables(), console, self.heading_lines(), self.legend_lines())

    def to_text(self, width: int = 100) -> str:
        """The tables as plain text."""
        from rich.console import Console

        out = io.StringIO()
        self.draw(Console(file=out, width=width, highlight=False, markup=False, emoji=False))
        return out.getvalue()

    def to_markdown(self) -> str:
        """The tables in GitHub's Markdown."""
        return tables.markdown(self.tables(), self.heading_lines(), self.legend_lines())

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        parts = ["<div>", *(f"<div>{html.escape(line)}</div>" for line in self.heading_lines())]
        for table in self.tables():
            parts.append(f"<table><caption>{html.escape(table.title)}</caption><thead><tr>")
            names = [table.headings[0], table.headings[1], *(c.title for c in table.columns)]
            parts += [f"<th>{html.escape(name)}</th>" for name in names]
            parts.append("</tr></thead><tbody>")
            for group in table.groups:
                for row in group.rows:
                    texts = [group.name, row.label, *row.values]
                    cells = "".join(f"<td>{html.escape(text)}</td>" for text in texts)
                    note = ""
                    if row.note:
                        note = f'<td colspan="{len(table.columns)}">{html.escape(row.note)}</td>'
                    parts.append(f"<tr>{cells}{note}</tr>")
            parts.append("</tbody></table>")
            parts += [f"<div>{html.escape(n)}</div>" for n in (*table.notes, *table.remarks)]
        parts += [f"<div><small>{html.escape(n)}</small></div>" for n in self.legend_lines()]
        return "".join(parts) + "</div>"


# ---- tables --------------------------------------------------------------------------------------


def _many(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def percent_text(share: float | None) -> str:
    """A signed change: "+5.0 %"."""
    if share is None or not math.isfinite(share):
        return MISSING
    return f"{100 * share:+.1f} %" if abs(share) < 100 else f"{100 * share:+.2e} %"


def _margin_text(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f} %"


def _interval_text(row: CellVerdict) -> str:
    if row.ci_low is None or row.ci_high is None:
        return MISSING
    return f"{ratio_text(row.ci_low)}–{ratio_text(row.ci_high)}"


_COLUMNS = (
    (Column("verdict", "verdict"), lambda row: row.verdict + ("!" if row.fails else "")),
    (Column("ratio", "ratio"), lambda row: ratio_text(row.ratio)),
    (Column("change", "change", 3), lambda row: percent_text(row.change)),
    (Column("interval", "interval", 1), _interval_text),
    (Column("margin", "margin", 2), lambda row: _margin_text(row.margin)),
    (Column("noise", "noise", 4), lambda row: _margin_text(row.noise)),
    (Column("visible", "visible", 5), lambda row: _margin_text(row.detectable)),
    (Column("n", "n", 6), lambda row: str(row.blocks)),
    (Column("needed", "blocks needed", 7), lambda row: str(row.blocks_needed or MISSING)),
)


def _suite_tables(comparison: Comparison) -> list[Table]:
    made = []
    for suite in dict.fromkeys(row.suite for row in comparison.rows):
        rows = [row for row in comparison.rows if row.suite == suite]
        columns = [
            (column, text)
            for column, text in _COLUMNS
            if (column.key != "noise" or comparison.kind == "stored")
            and (column.key != "needed" or any(row.blocks_needed for row in rows))
        ]
        cases: dict[str, list[Row]] = {}
        for row in rows:
            case, _, contender = row.id.removeprefix(f"{suite}/").rpartition("@")
            label = f"{contender} (control)" if row.control else contender
            tone = "bad" if row.fails or row.verdict in (INVALID, GONE) else ""
            values = tuple(text(row) for _, text in columns)
            cases.setdefault(case, []).append(Row(printable(label), values, tone=tone))
        notes = [f"{printable(row.id)}: {row.reason}" for row in rows if row.reason]
        if any(row.fails for row in rows):
            notes.append("!: slower beyond the margin, the whole interval")
        notes += _pace_notes(rows)
        groups = tuple(Group(printable(case), tuple(group)) for case, group in cases.items())
        titled = tuple(column for column, _ in columns)
        made.append(Table(printable(suite), titled, groups, notes=tuple(notes)))
    return made


def _pace_notes(rows: Sequence[CellVerdict]) -> list[str]:
    """What the probes said, once for the table."""
    notes = []
    if gated := [row.gated for row in rows if row.gated]:
        notes.append(
            f"the CPU changed its speed: up to {max(gated)} pairs of a cell are left out "
            f"({_many(len(gated), 'row')})"
        )
    if kept := [row.marked for row in rows if row.marked > row.gated]:
        notes.append(
            f"the CPU changed its speed in up to {max(kept)} pairs of a cell, too few were clean: "
            f"all are used ({_many(len(kept), 'row')})"
        )
    return notes


def _summary_tables(comparison: Comparison) -> list[Table]:
    if not comparison.suites:
        return [Table("", (), (), notes=comparison.notes)] if comparison.notes else []
    columns = (Column("ratio", "ratio"), Column("interval", "interval"), Column("cells", "cells"))
    groups = []
    for suite in comparison.suites:
        span = MISSING
        if suite.ci_low is not None:
            span = f"{ratio_text(suite.ci_low)}–{ratio_text(suite.ci_high)}"
        values = (ratio_text(suite.ratio), span, str(suite.cells))
        name = printable(suite.suite) or "all cells"
        groups.append(Group(name, (Row("", values),)))
    title = "geometric mean of the ratios"
    headings = ("suite", "")
    return [Table(title, columns, tuple(groups), headings, notes=comparison.notes)]


def _check_tables(comparison: Comparison) -> list[Table]:
    if not comparison.checks:
        return []
    columns = (
        Column("verdict", "verdict"),
        Column("base", "baseline", 2),
        Column("now", "now"),
        Column("limit", "limit", 1),
    )
    groups: dict[str, list[Row]] = {}
    held: dict[str, int] = {}
    for check in comparison.checks:
        name = printable(check.threshold)
        if check.verdict == "ok" and check.base is not None:
            # A count that has not grown is worth a number, not a line.
            held[name] = held.get(name, 0) + 1
            continue
        values = (check.verdict, number(check.base), number(check.now), number(check.limit))
        tone = "bad" if check.fails else ""
        groups.setdefault(name, []).append(Row(printable(check.id), values, tone=tone))
    for name, count in held.items():
        groups.setdefault(name, []).append(Row(_many(count, "cell"), ("ok",)))
    notes = [f"{printable(c.id)}: {c.reason}" for c in comparison.checks if c.reason]
    made = tuple(Group(name, tuple(rows)) for name, rows in groups.items())
    return [Table("thresholds", columns, made, ("threshold", "cell"), notes=tuple(notes))]


#: Fewest blocks that can decide anything; a gate with fewer is refused before it measures.
MIN_BLOCKS = stats.MIN_BLOCKS
