"""A run as its cells' sides: log costs by block, paces, counts, and which cells make a pair.

Costs are time an operation (a byte, where bytes are counted), so that more is worse whatever the
unit of the metric.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import cases, stats
from .comparison import GONE, INVALID, NEW
from .errors import UsageError
from .results import BELOW_RESOLUTION, CellResult, ProcessResult, RunResult

#: What names a machine; memory and volatile state do not.
FINGERPRINT = ("cpu", "arch", "kernel", "libc", "cpus")


class MachinesDifferError(UsageError):
    """Times of different machines were to be compared; the message says how the machines differ."""


# ---- machines and variants -----------------------------------------------------------------------


def different_machine(one: RunResult, other: RunResult) -> str | None:
    """How the machines of two runs differ, as a phrase; None: not, as far as the runs tell."""
    first, second = (run.machine.get("fingerprint") or {} for run in (one, other))
    differing = [
        f"{key} {first[key]!r} and {second[key]!r}"
        for key in FINGERPRINT
        if first.get(key) is not None and second.get(key) is not None and first[key] != second[key]
    ]
    return "; ".join(differing) or None


#: The name under which a run holds its first variant once more: the negative control.
CONTROL = "control"


def variants_of(run: RunResult) -> tuple[str, ...]:
    """Names of the builds that a run measured side by side, the base first, without the control.

    Empty for a run of one build.
    """
    return tuple(name for name in variant_facts(run) if name != CONTROL)


def variant_facts(run: RunResult) -> Mapping[str, Mapping[str, Any]]:
    """Facts of all builds of a run by name, the control too, in the order of the file."""
    stored = run.run.get("variants")
    if not isinstance(stored, list):
        return {}
    return {str(facts["name"]): facts for facts in stored if isinstance(facts, Mapping)}


def control_of(run: RunResult, base: str) -> str | None:
    """The variant that is `base` once more: only the first one has it."""
    facts = variant_facts(run)
    return CONTROL if CONTROL in facts and base == next(iter(facts)) else None


def main_variant(run: RunResult) -> str | None:
    """Of a run of several builds the last one is what it was made for."""
    known = variants_of(run)
    return known[-1] if known else None


def few(n: int) -> str:
    """Why there is no interval."""
    return f"{n} of at least {stats.MIN_BLOCKS} blocks"


# ---- one side of a cell --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Side:
    """A cell as one variant of a run measured it: log costs and paces by block."""

    cell: CellResult
    status: str
    reason: str | None
    costs: Mapping[int, float]
    paces: Mapping[int, stats.Pace]
    counts: Mapping[str, Any]

    @property
    def median(self) -> float | None:
        """Median of process medians in the cell's unit."""
        if not self.costs or self.status != "ok":
            return None
        cost = math.exp(float(np.median(list(self.costs.values()))))
        if self.cell.unit == "ns/op":
            return cost
        return 1e9 / cost if cost else None

    @property
    def step(self) -> float:
        """One nanosecond relative to the cell's shortest process median."""
        if not self.costs:
            return 0.0
        shortest = math.exp(min(self.costs.values())) * _work(self.cell)
        return 1 / shortest if shortest else 0.0


def _work(cell: CellResult) -> float:
    """Operations of a sample, or bytes where bytes are what is counted."""
    ops = float(cell.ops or 1)
    return ops * cell.bytes_per_op if cell.unit == "bytes/s" else ops


def read_side(cell: CellResult, variant: str | None) -> Side:
    """Read one side. Of several processes of one block the last counts: it is the repeat."""
    own: Mapping[str, Any] = {}
    told = cell.extra.get("variants")
    if variant is not None and isinstance(told, list):
        own = next((facts for facts in told if facts.get("name") == variant), {})
    status, reason = own.get("status", cell.status), own.get("reason", cell.reason)
    if own.get("absent"):
        status = "absent"
    processes = [
        process
        for process in cell.processes
        if variant is None or process.extra.get("variant") in (None, variant)
    ]
    if status == "ok" and not any(process.samples_ns for process in processes):
        status, reason = "absent", "it was not measured"
    costs: dict[int, float] = {}
    paces: dict[int, stats.Pace] = {}
    if status == "ok":
        if fault := _fault(cell, processes):
            status, reason = "invalid", fault
        else:
            for process in processes:
                ns = process.median_ns()
                if ns:
                    costs[process.block] = math.log(ns / _work(cell))
                    paces[process.block] = _pace(process)
    counts = dict(own.get("ledger", cell.ledger) or {})
    extra = own.get("counters", cell.counters) or {}
    counts |= {
        name.removesuffix("_per_op"): value
        for name, value in extra.items()
        if value is not None and counts.get(name.removesuffix("_per_op")) is None
    }
    return Side(cell, status, reason, costs, paces, counts)


def _fault(cell: CellResult, processes: Iterable[ProcessResult]) -> str | None:
    """Why samples that claim to be ok give no number to compare."""
    for process in processes:
        if not process.median_ns():
            return f"block {process.block + 1}: {BELOW_RESOLUTION}"
        if cell.thread_mode == "single" and False in (process.single_before, process.single_after):
            return f"block {process.block + 1}: the process was not single-threaded"
    return None


def _pace(process: ProcessResult) -> stats.Pace:
    """The pace by the probes around its samples: one before the first and one after each."""
    return _probed(process.extra.get("pace_ns"), len(process.samples_ns))


def _probed(probes: object, samples: int) -> stats.Pace:
    if not isinstance(probes, list) or len(probes) != samples + 1:
        return stats.Pace(None)
    return stats.pace_of(probes[:-1], probes[1:])


def measure_again(records: Sequence[Mapping[str, Any]]) -> bool:
    """The rule of a run: whether processes that are compared with one another must be measured
    again, by the probes around their samples alone."""
    paces = [_probed(r.get("pace_ns"), len(r.get("samples_ns") or ())) for r in records]
    return stats.classify_pair(paces) is not None


# ---- what is compared ----------------------------------------------------------------------------


@dataclass(slots=True)
class Pair:
    """A row in the making: both sides, where there are any, and what is known so far."""

    id: str
    base: Side | None
    head: Side | None
    control: bool = False
    verdict: str | None = None
    reason: str | None = None
    marked: int = 0
    gated: int = 0

    @property
    def cell(self) -> CellResult:
        """What describes it: head's record, base's where head has none."""
        side = self.head or self.base
        if side is None:
            raise ValueError(f"{self.id} has no side")
        return side.cell

    @property
    def step(self) -> float:
        """Relative clock step of both sides together."""
        return sum(side.step for side in (self.base, self.head) if side is not None)


def _judgeable(pair: Pair, head_selected: bool, base_selected: bool) -> bool:
    """Settle what needs no statistics; False: there is nothing to judge at all."""
    absent = ("absent", "unavailable")
    base = "absent" if pair.base is None else pair.base.status
    head = "absent" if pair.head is None else pair.head.status
    if base in absent and head in absent:
        return False
    broken = [
        f"{name}: {side.status}: {side.reason or 'no reason given'}"
        for name, side in (("base", pair.base), ("head", pair.head))
        if side is not None and side.status not in ("ok", *absent)
    ]
    if broken:
        pair.verdict, pair.reason = INVALID, "; ".join(broken)
    elif head in absent:
        if not head_selected:
            return False
        pair.verdict = GONE
        pair.reason = pair.head.reason if pair.head is not None else "head does not have it"
    elif base in absent:
        if not base_selected:
            return False
        pair.verdict = NEW
        pair.reason = pair.base.reason if pair.base is not None else "base does not have it"
    elif pair.base is not None and pair.head is not None:
        one, other = pair.base.cell, pair.head.cell
        if one.unit != other.unit:
            pair.verdict = INVALID
            pair.reason = f"base is in {one.unit}, head in {other.unit}"
        elif one.direction != other.direction:
            pair.verdict = INVALID
            pair.reason = f"in base {one.direction} is better, in head {other.direction}"
    return True


def _selects(run: RunResult, cell: CellResult) -> bool:
    """Whether a run, as far as its file tells, was asked to measure such a cell."""
    patterns, keyword = run.run.get("patterns"), run.run.get("keyword")
    if isinstance(patterns, list) and patterns:
        if not any(cases.matches(str(pattern), cell.id) for pattern in patterns):
            return False
    elif run.run.get("quick") is True:
        # A quick run without patterns takes a cross-section that the file does not name.
        return any(other.suite == cell.suite and other.case == cell.case for other in run.cells)
    return not isinstance(keyword, str) or cases.keyword_matches(keyword, cell.id)


def make_pairs(
    base: RunResult,
    head: RunResult,
    variants: tuple[str | None, str | None],
    expected: Collection[str] | None = None,
) -> tuple[list[Pair], int]:
    """Rows to be, in base's order and then head's; and how many cells are on no side."""
    first = {cell.id: read_side(cell, variants[0]) for cell in base.cells}
    second = {cell.id: read_side(cell, variants[1]) for cell in head.cells}
    made, unjudged = [], 0
    for cell_id in dict.fromkeys((*first, *second)):
        pair = Pair(cell_id, first.get(cell_id), second.get(cell_id))
        asked = cell_id in expected if expected is not None else _selects(head, pair.cell)
        if _judgeable(pair, asked, _selects(base, pair.cell)):
            made.append(pair)
        else:
            unjudged += 1
    return made, unjudged
