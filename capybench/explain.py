"""Where the nanoseconds of a cell go: its ledger times what each event costs alone here.

    explanation = explain(result, "coroutine/run_async/depth2@task")
    print(explanation.predicted, explanation.measured, explanation.rest)

Prices come from the cells of suite `primitives` of the same run, block by block, each without the
loop around it (`noop/op`). The prediction is a sum, as if events did not overlap and caches were
always warm: the rest is what events do to each other, and work that no ledger counts.

Three overlaps are taken out, so that nothing is paid for twice:

- `frame_recycling` contains two direct calls, into the allocator and back. On the way through a
  resource's table they are indirect calls, which the ledger counts by themselves; on the short cut
  they are not made at all. Its price is therefore the primitive less two direct calls.
- A resource that itself allocates from the heap is paid for as heap allocation, not as both.
- Posts and invoker frames consist of calls, locks and atomics, which are counted by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import stats
from .errors import CapybenchError, UsageError
from .results import CellResult, RunResult
from .tables import (
    LEDGER_KEYS,
    MISSING,
    Column,
    Group,
    Row,
    Table,
    count,
    number,
    percent,
    printable,
)

if TYPE_CHECKING:
    from .runner import Progress

LOOP = "noop/op@core"
_HEAP = {size: f"primitives/malloc_{size}@core" for size in (64, 128, 256)}
_SINGLE = {
    "resource_allocs": "primitives/frame_recycling@core",
    "indirect_calls": "primitives/call_indirect@core",
    "atomic_rmws": "primitives/exchange@core",
    "seq_cst_stores": "primitives/store_seq_cst@core",
    "mutex_pairs": "primitives/mutex_single@core",
    "syscalls": "primitives/syscall@core",
}
_DIRECT = "primitives/call_direct@core"
_THREADED_MUTEX = "primitives/mutex_threaded@core"
#: Every cell that a price may need.
PRIMITIVES = (LOOP, _DIRECT, *_SINGLE.values(), _THREADED_MUTEX, *_HEAP.values())
#: Events without a price of their own, and why.
_PARTS = {
    "posts": "calls, locks and atomics of a post are counted by themselves",
    "invoker_frames": "cached by the strand, not allocated; its calls are counted by themselves",
}
_PLAIN_REFS = "plain additions while the process has one thread"
#: Fresh processes of each cell when the command measures itself: the least with an interval.
BLOCKS = stats.MIN_BLOCKS

_LOOP_EVENT = "loop"


class NothingMeasuredError(CapybenchError):
    """The cell to explain has no number here."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median over blocks in ns an op, with an interval of coverage `level`, or (None) a range."""

    value: float
    low: float
    high: float
    level: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Estimate of one value a block, at least one."""
        interval = stats.median_interval(values)
        middle = float(np.median(values))
        if interval is None:
            return cls(middle, min(values), max(values), None, len(values))
        return cls(middle, interval.low, interval.high, interval.level, len(values))

    def __str__(self) -> str:
        return f"{number(self.value)} ns"

    def to_dict(self) -> dict[str, Any]:
        """For documents."""
        return {
            "ns": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "n": self.n,
        }


@dataclass(frozen=True, slots=True)
class Item:
    """An event of a ledger: how often an op has it, what one costs, what they cost together.

    `each_ns` and `ns` are None for an event without a price; `how` says what the price is, or why
    there is none.
    """

    event: str
    times: float
    each_ns: float | None
    ns: float | None
    how: str

    def to_dict(self) -> dict[str, Any]:
        """For documents."""
        return {
            "event": self.event,
            "times": self.times,
            "each_ns": self.each_ns,
            "ns": self.ns,
            "how": self.how,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """A cell's items, their sum, what was measured, and what the sum leaves unexplained.

    Without a ledger `items` is empty, `predicted` and `rest` are None, and `reason` says why.
    """

    cell: CellResult
    items: tuple[Item, ...]
    measured: Estimate
    predicted: Estimate | None
    rest: Estimate | None
    reason: str | None
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For documents."""
        return {
            "cell": self.cell.id,
            "items": [item.to_dict() for item in self.items],
            "measured": self.measured.to_dict(),
            "predicted": self.predicted.to_dict() if self.predicted else None,
            "rest": self.rest.to_dict() if self.rest else None,
            "reason": self.reason,
            "remarks": list(self.remarks),
        }

    def tables(self) -> tuple[Table, ...]:
        """What a terminal, Markdown or HTML shows."""
        title = f"{printable(self.cell.id)}: where the nanoseconds go (ns/op)"
        interval = _interval_title([self.measured])
        columns = (
            Column("times", "times"),
            Column("each", "ns each"),
            Column("ns", "ns"),
            Column("interval", interval),
        )
        rows = [
            Row(item.event, (count(item.times), number(item.each_ns), number(item.ns), ""))
            if item.ns is not None
            else Row(item.event, (count(item.times), MISSING, MISSING, ""), tone="dim")
            for item in self.items
        ]
        sums = [
            Row(name, ("", "", number(estimate.value), _ends(estimate)))
            for name, estimate in (("predicted", self.predicted), ("measured", self.measured))
            if estimate is not None
        ]
        if self.rest is not None:
            share = percent(self.rest.value / self.measured.value if self.measured.value else None)
            sums.append(Row("unexplained", (share, "", number(self.rest.value), _ends(self.rest))))
        groups = [Group("events", tuple(rows))] if rows else []
        groups.append(Group("an op", tuple(sums)))
        notes = (self.reason,) if self.reason else ()
        how = tuple(f"{item.event}: {item.how}" for item in self.items)
        return (Table(title, columns, tuple(groups), ("", "event"), notes, (*how, *self.remarks)),)

    def _repr_html_(self) -> str:
        from . import htmltable

        return htmltable.block(self.tables())


@dataclass(frozen=True, slots=True)
class Difference:
    """Two explanations of one run: which events make `right` cost more or less than `left`.

    `items` are the events that differ; `predicted`, `measured` and `rest` are right less left.
    """

    left: Explanation
    right: Explanation
    items: tuple[Item, ...]
    measured: Estimate
    predicted: Estimate | None
    rest: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """For documents."""
        return {
            "left": self.left.to_dict(),
            "right": self.right.to_dict(),
            "items": [item.to_dict() for item in self.items],
            "measured": self.measured.to_dict(),
            "predicted": self.predicted.to_dict() if self.predicted else None,
            "rest": self.rest.to_dict() if self.rest else None,
        }

    def tables(self) -> tuple[Table, ...]:
        """Both explanations, then the difference."""
        own = (*self.left.tables(), *self.right.tables())
        left, right = printable(self.left.cell.id), printable(self.right.cell.id)
        columns = (
            Column("left", "times before"),
            Column("right", "times after"),
            Column("ns", "difference, ns"),
            Column("interval", _interval_title([self.measured])),
        )
        before = {item.event: item.times for item in self.left.items}
        after = {item.event: item.times for item in self.right.items}
        rows = [
            Row(
                item.event,
                (
                    count(before.get(item.event, 0)),
                    count(after.get(item.event, 0)),
                    _signed(item.ns),
                    "",
                ),
                tone="" if item.ns is not None else "dim",
            )
            for item in self.items
        ]
        sums = [
            Row(name, ("", "", _signed(estimate.value), _ends(estimate, signed=True)))
            for name, estimate in (
                ("predicted", self.predicted),
                ("measured", self.measured),
                ("unexplained", self.rest),
            )
            if estimate is not None
        ]
        groups = [Group("events that differ", tuple(rows))] if rows else []
        groups.append(Group("an op", tuple(sums)))
        notes: tuple[str, ...] = ()
        if self.predicted is None:
            notes = ("Without both ledgers the difference cannot be told by event.",)
        elif not rows:
            notes = ("No event differs: what is measured comes from work that is not counted.",)
        title = f"from {left} to {right}"
        return (*own, Table(title, columns, tuple(groups), ("", "event"), notes))

    def _repr_html_(self) -> str:
        from . import htmltable

        return htmltable.block(self.tables())


def _interval_title(estimates: Sequence[Estimate]) -> str:
    (one,) = estimates
    if one.level is None:
        return f"range of {one.n}"
    return f"{100 * one.level:.1f} % interval"


def _ends(estimate: Estimate, signed: bool = False) -> str:
    if estimate.n < 2:
        return MISSING
    text = _signed if signed else number
    # The decimals of the value, so that ends and value can be compared by eye.
    low, high = (text(end) for end in (estimate.low, estimate.high))
    return f"{low} to {high}" if signed or estimate.low < 0 else f"{low}–{high}"


def _signed(value: float | None) -> str:
    if value is None:
        return MISSING
    return ("+" if value >= 0 else "−") + number(abs(value))


# ---- prices --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Priced:
    """An item by block."""

    event: str
    times: float
    each: dict[int, float] | None
    how: str


def time_by_block(cell: CellResult) -> dict[int, float]:
    """ns an op of each process by block, whatever unit the cell is shown in."""
    if cell.status != "ok" or not cell.ops:
        return {}
    return {
        process.block: ns / cell.ops
        for process in cell.processes
        if (ns := process.median_ns()) is not None
    }


class _Prices:
    """Prices of one run, by block; a missing primitive is an error that names it."""

    def __init__(self, result: RunResult) -> None:
        self._times: dict[str, dict[int, float]] = {}
        for cell in result.cells:
            if cell.id in PRIMITIVES:
                self._times[cell.id] = time_by_block(cell)

    def require(self, cell_ids: Sequence[str]) -> None:
        missing = [cell_id for cell_id in cell_ids if not self._times.get(cell_id)]
        if missing:
            raise UsageError(
                f"the run has no number for {', '.join(missing)}: measure the cell together with "
                "`primitives` and `noop/op`, or leave --from out"
            )

    def loop(self) -> dict[int, float]:
        """The loop around an op."""
        self.require([LOOP])
        return self._times[LOOP]

    def net(self, cell_id: str) -> dict[int, float]:
        """A primitive without its loop, never below nothing."""
        self.require([LOOP, cell_id])
        loop = self._times[LOOP]
        own = self._times[cell_id]
        return {block: max(0.0, own[block] - loop[block]) for block in own.keys() & loop.keys()}

    def frame(self) -> dict[int, float]:
        """Taking and freeing a recycled frame, without the primitive's two direct calls."""
        whole, call = self.net(_SINGLE["resource_allocs"]), self.net(_DIRECT)
        return {
            block: max(0.0, whole[block] - 2 * call[block]) for block in whole.keys() & call.keys()
        }


def _short(cell_id: str) -> str:
    return cell_id.removeprefix("primitives/").removesuffix("@core")


def _priced(cell: CellResult, prices: _Prices) -> list[_Priced]:
    """Every event of a cell's ledger, and the loop."""
    found = [_Priced(_LOOP_EVENT, 1, prices.loop(), "noop/op, the loop around an op")]
    threaded = cell.thread_mode == "threaded"
    events = {name: cell.per_op(name) or 0.0 for name in LEDGER_KEYS}
    for name, times in events.items():
        if not times:
            continue
        if name in _PARTS:
            found.append(_Priced(name, times, None, _PARTS[name]))
        elif name == "heap_allocs":
            size, how = _heap_size(cell, times)
            found.append(_Priced(name, times, prices.net(_HEAP[size]), f"malloc_{size}, {how}"))
        elif name == "resource_allocs":
            found += _resource(times, events["heap_allocs"], prices)
        elif name == "ref_changes" and not threaded:
            found.append(_Priced(name, times, None, _PLAIN_REFS))
        elif name == "ref_changes":
            cell_id = _SINGLE["atomic_rmws"]
            found.append(_Priced(name, times, prices.net(cell_id), "exchange, being atomic here"))
        else:
            cell_id = _THREADED_MUTEX if name == "mutex_pairs" and threaded else _SINGLE[name]
            found.append(_Priced(name, times, prices.net(cell_id), _short(cell_id)))
    return found


def _heap_size(cell: CellResult, times: float) -> tuple[int, str]:
    """Which malloc primitive suits the cell's mean request, and a word about it."""
    total = cell.per_op("heap_bytes")
    if not total:
        return 128, "as the sizes are not known"
    mean = total / times
    size = min(_HEAP, key=lambda known: abs(known - mean))
    return size, f"the nearest to {mean:.0f} bytes on average"


def _resource(times: float, heap: float, prices: _Prices) -> list[_Priced]:
    from_heap = min(times, heap)
    recycled = times - from_heap
    found = []
    if recycled:
        how = "frame_recycling less two direct calls, which are counted as indirect or not made"
        found.append(_Priced("resource_allocs", recycled, prices.frame(), how))
    if from_heap:
        how = "paid for as heap_allocs"
        name = "resource_allocs" if not recycled else "resource_allocs from the heap"
        found.append(_Priced(name, from_heap, None, how))
    return found


# ---- explanations --------------------------------------------------------------------------------


def explain(result: RunResult, cell_id: str) -> Explanation:
    """Explain a cell by the prices of its own run.

    Raises UsageError where the run has no such cell or lacks a primitive that is needed,
    NothingMeasuredError where the cell has no number.
    """
    cell = _cell(result, cell_id)
    measured = time_by_block(cell)
    if not cell.ledger:
        reason = cell.extra.get("ledger_reason")
        why = f": {printable(str(reason))}" if reason else ""
        note = f"This cell has no ledger{why}. Only its time can be shown."
        return Explanation(cell, (), Estimate.of([*measured.values()]), None, None, note, ())
    priced = _priced(cell, _Prices(result))
    blocks = _common(measured, priced)
    predicted = {block: _sum(priced, block) for block in blocks}
    return Explanation(
        cell=cell,
        items=tuple(_item(entry, blocks) for entry in priced),
        measured=Estimate.of([measured[block] for block in blocks]),
        predicted=Estimate.of([predicted[block] for block in blocks]),
        rest=Estimate.of([measured[block] - predicted[block] for block in blocks]),
        reason=None,
        remarks=_remarks(cell),
    )


def difference(result: RunResult, left_id: str, right_id: str) -> Difference:
    """Explain what makes `right` differ from `left`, both cells of one run, block by block.

    Raises as `explain` does.
    """
    left, right = explain(result, left_id), explain(result, right_id)
    times = [time_by_block(one.cell) for one in (left, right)]
    if left.predicted is None or right.predicted is None:
        shared = _shared(times, left_id, right_id)
        measured = Estimate.of([times[1][block] - times[0][block] for block in shared])
        return Difference(left, right, (), measured, None, None)
    prices = _Prices(result)
    priced = [_priced(one.cell, prices) for one in (left, right)]
    blocks = sorted(set(_common(times[0], priced[0])) & set(_common(times[1], priced[1])))
    if not blocks:
        blocks = _shared([], left_id, right_id)
    measured_by = {block: times[1][block] - times[0][block] for block in blocks}
    predicted_by = {block: _sum(priced[1], block) - _sum(priced[0], block) for block in blocks}
    return Difference(
        left=left,
        right=right,
        items=tuple(_changes(priced[0], priced[1], blocks)),
        measured=Estimate.of([measured_by[block] for block in blocks]),
        predicted=Estimate.of([predicted_by[block] for block in blocks]),
        rest=Estimate.of([measured_by[block] - predicted_by[block] for block in blocks]),
    )


def _shared(times: Sequence[Mapping[int, float]], left: str, right: str) -> list[int]:
    blocks = sorted(set.intersection(*(set(side) for side in times))) if times else []
    if not blocks:
        raise UsageError(f"no block of the run has both {left} and {right}")
    return blocks


def _cell(result: RunResult, cell_id: str) -> CellResult:
    try:
        cell = result.cell(cell_id)
    except LookupError:
        import difflib

        names = [cell.id for cell in result.cells]
        near = difflib.get_close_matches(cell_id, names, n=3, cutoff=0.4)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise UsageError(f"no cell {cell_id!r} in this run{hint}") from None
    if not time_by_block(cell):
        reason = printable(cell.reason or cell.summary.reason or "no reason given")
        raise NothingMeasuredError(f"{printable(cell.id)} has no number: {cell.status}: {reason}")
    return cell


def _common(measured: Mapping[int, float], priced: Sequence[_Priced]) -> list[int]:
    """Blocks in which the cell and all its primitives have a number."""
    blocks = set(measured)
    for entry in priced:
        if entry.each is not None:
            blocks &= entry.each.keys()
    if not blocks:
        raise UsageError("no block of the run has both the cell and the primitives that it needs")
    return sorted(blocks)


def _sum(priced: Sequence[_Priced], block: int) -> float:
    return sum(entry.times * entry.each[block] for entry in priced if entry.each is not None)


def _item(entry: _Priced, blocks: Sequence[int]) -> Item:
    if entry.each is None:
        return Item(entry.event, entry.times, None, None, entry.how)
    each = float(np.median([entry.each[block] for block in blocks]))
    return Item(entry.event, entry.times, each, entry.times * each, entry.how)


def _changes(
    left: Sequence[_Priced], right: Sequence[_Priced], blocks: Sequence[int]
) -> list[Item]:
    """Events whose number or price differs, the largest difference first, unpriced ones last."""
    before, after = ({entry.event: entry for entry in side} for side in (left, right))
    found = []
    for event in dict.fromkeys([*before, *after]):
        sides = [side.get(event) for side in (before, after)]
        times = [entry.times if entry else 0.0 for entry in sides]
        each = [entry.each for entry in sides if entry is not None]
        known = next((entry for entry in sides if entry is not None), None)
        if known is None or (times[0] == times[1] and each[0] == each[-1]):
            continue
        if any(price is None for price in each):
            found.append(Item(event, times[1] - times[0], None, None, known.how))
            continue
        costs = [
            [entry.times * entry.each[block] if entry and entry.each else 0.0 for block in blocks]
            for entry in sides
        ]
        ns = float(np.median(np.array(costs[1]) - np.array(costs[0])))
        single = float(np.median([each[-1][block] for block in blocks])) if each[-1] else None
        found.append(Item(event, times[1] - times[0], single, ns, known.how))
    return sorted(found, key=lambda item: (item.ns is None, -abs(item.ns or 0.0)))


def _remarks(cell: CellResult) -> tuple[str, ...]:
    remarks = [
        "predicted: the sum of all prices, as if no two events overlapped and every cache was "
        "warm; unexplained: what events do to each other, and work that is not counted; all are "
        "medians over blocks, which need not add up to the digit",
    ]
    if cell.thread_mode == "threaded":
        remarks.append(
            "this process has several threads: they work beside each other, which a sum cannot "
            "say, and all prices but mutex_threaded are of a process without threads"
        )
    return tuple(remarks)


# ---- measuring -----------------------------------------------------------------------------------


def measure(
    cell_ids: Sequence[str],
    *,
    blocks: int = BLOCKS,
    seed: int | None = None,
    progress: Progress | None = None,
    command: Sequence[str] = (),
) -> RunResult:
    """Measure cells together with the primitives, quickly: a run like any other, and stored.

    Raises SelectionError for a cell that does not exist, NothingMeasuredError for one that cannot
    run here, KeyboardInterrupt after Ctrl-C.
    """
    from . import cases, plan, runner

    listing = cases.list_cells()
    asked = cases.select(listing, list(cell_ids))
    for cell in asked:
        if not cell.available:
            raise NothingMeasuredError(f"{cell.id} cannot run here: {cell.reason}")
    patterns = list(dict.fromkeys([*cell_ids, *PRIMITIVES]))
    planned = plan.make_plan(
        listing,
        cases.select(listing, patterns),
        quick=True,
        blocks=blocks,
        seed=seed,
        patterns=patterns,
        command=list(command),
    )
    document = runner.run_plan(planned, progress=progress)
    if document["run"]["interrupted"]:
        raise KeyboardInterrupt("interrupted before everything was measured")
    return RunResult.from_dict(document)
