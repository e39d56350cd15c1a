"""Thresholds that are no margins: event counts, limits of one run, ratios inside one run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import stats
from .comparison import INCONCLUSIVE, INVALID, Check
from .results import RunResult
from .sides import Pair, Side, few, main_variant, read_side
from .thresholds import COUNTS, TIMES, Threshold


def _count(counts: Mapping[str, Any], metric: str) -> float | None:
    """An event count; `allocs` is heap plus resource, as far as each is known."""
    names = ("heap_allocs", "resource_allocs") if metric == "allocs" else (metric,)
    found = [
        float(value)
        for name in names
        if isinstance(value := counts.get(name), int | float) and math.isfinite(value)
    ]
    return sum(found) if found else None


def _last(thresholds: Sequence[Threshold], kind: str, cell_id: str) -> list[Threshold]:
    """For each metric the last threshold of a kind that covers a cell."""
    chosen = {t.metric: t for t in thresholds if t.kind == kind and t.covers(cell_id)}
    return list(chosen.values())


def count_checks(pairs: Iterable[Pair], thresholds: Sequence[Threshold]) -> list[Check]:
    """Counts of both sides against thresholds such as allocs:0."""
    made: list[Check] = []
    judged: set[str] = set()
    for pair in pairs:
        if pair.control or pair.base is None or pair.head is None or pair.verdict == INVALID:
            continue
        for threshold in _last(thresholds, "change", pair.id):
            if threshold.metric in TIMES:
                continue
            judged.add(threshold.text)
            if threshold.metric not in COUNTS:
                reason = "no latency histogram was recorded"
                made.append(Check(threshold.text, pair.id, INVALID, reason=reason))
                continue
            base = _count(pair.base.counts, threshold.metric)
            now = _count(pair.head.counts, threshold.metric)
            if base is None or now is None:
                side = "baseline" if base is None else "run"
                reason = f"the {side} has no count of {threshold.metric}"
                made.append(Check(threshold.text, pair.id, INVALID, base, now, reason=reason))
                continue
            extra = threshold.amount * base if threshold.unit == "%" else threshold.amount
            limit = base + extra
            verdict = "ok" if now <= limit * (1 + 1e-12) else "exceeded"
            made.append(Check(threshold.text, pair.id, verdict, base, now, limit))
    return made


def limit_checks(
    run: RunResult,
    thresholds: Sequence[Threshold],
    *,
    variant: str | None = None,
    seed: int | None = None,
) -> tuple[Check, ...]:
    """Limits and ratios that a run must hold by itself: `allocs<=2`, `median<20us`,
    `ratio(A, B)<1.3`.

    A median exceeds its limit when its whole interval does. Ratios are paired by block and judged
    jointly, like cells of one family.
    """
    seed = run.seed if seed is None else seed
    variant = main_variant(run) if variant is None else variant
    sides = {cell.id: read_side(cell, variant) for cell in run.cells}
    made = []
    for cell_id, side in sides.items():
        if side.status == "absent":
            continue
        for threshold in _last(thresholds, "limit", cell_id):
            if side.status != "unavailable":
                made.append(_limit_check(threshold, cell_id, side))
    return (*made, *_ratio_checks([t for t in thresholds if t.kind == "ratio"], sides, seed))


def _limit_check(threshold: Threshold, cell_id: str, side: Side) -> Check:
    def check(verdict: str, now: float | None = None, reason: str | None = None) -> Check:
        timed = threshold.metric not in COUNTS
        return Check(threshold.text, cell_id, verdict, None, now, threshold.amount, reason, timed)

    if side.status != "ok":
        return check(INVALID, None, f"{side.status}: {side.reason}")
    if threshold.metric in COUNTS:
        now = _count(side.counts, threshold.metric)
        if now is None:
            return check(INVALID, None, f"the run has no count of {threshold.metric}")
        return check("ok" if threshold.allows(now) else "exceeded", now)
    if threshold.metric != "median":
        return check(INVALID, None, "no latency histogram was recorded")
    costs = np.exp(np.array(list(side.costs.values())))
    now, interval = float(np.median(costs)), stats.median_interval(costs)
    if interval is None:
        return check(INCONCLUSIVE, now, few(costs.size))
    if not threshold.allows(interval.low):
        return check("exceeded", now)
    if threshold.allows(interval.high):
        return check("ok", now)
    return check(INCONCLUSIVE, now, "the limit lies inside the interval of the median")


def _ratio_checks(
    thresholds: Sequence[Threshold], sides: Mapping[str, Side], seed: int
) -> list[Check]:
    """Ratios inside one run: the interval of cost over cost, paired by block, against the limit."""
    made: list[Check | None] = [None] * len(thresholds)
    columns: dict[int, dict[int, float]] = {}
    for at, threshold in enumerate(thresholds):
        if threshold.ids is None:
            raise ValueError(f"{threshold.text!r} names no cells")
        name = f"{threshold.ids[0]} / {threshold.ids[1]}"
        pair = [sides.get(cell_id) for cell_id in threshold.ids]
        missing = [
            f"{cell_id}: {'not in this run' if side is None else side.reason or side.status}"
            for cell_id, side in zip(threshold.ids, pair, strict=True)
            if side is None or side.status != "ok"
        ]
        above, below = pair
        if missing or above is None or below is None:
            reason = "; ".join(missing)
            made[at] = Check(threshold.text, name, INVALID, limit=threshold.amount, reason=reason)
        elif (above.cell.unit == "bytes/s") != (below.cell.unit == "bytes/s"):
            reason = f"{above.cell.unit} and {below.cell.unit} have no ratio of costs"
            made[at] = Check(threshold.text, name, INVALID, limit=threshold.amount, reason=reason)
        else:
            common = sorted(above.costs.keys() & below.costs.keys())
            columns[at] = {block: above.costs[block] - below.costs[block] for block in common}
    blocks = sorted({block for logs in columns.values() for block in logs})
    matrix = np.full((len(blocks), len(columns)), np.nan)
    for column, (at, logs) in enumerate(columns.items()):
        for block, value in logs.items():
            matrix[blocks.index(block), column] = value - math.log(thresholds[at].amount)
    joint = stats.max_t(matrix, seed=seed)
    for column, (at, logs) in enumerate(columns.items()):
        threshold = thresholds[at]
        name = " / ".join(threshold.ids or ())
        now = math.exp(float(np.mean(list(logs.values())))) if logs else None
        why: str | None = None
        if joint.quantile is None or math.isnan(joint.low[column]):
            verdict, why = INCONCLUSIVE, few(len(logs))
        elif joint.low[column] > 0:
            verdict = "exceeded"
        elif joint.high[column] < 0:
            verdict = "ok"
        else:
            spread = float(joint.error[column]) * math.sqrt(len(logs))
            mean = float(joint.mean[column])
            needed = stats.blocks_needed(mean, spread, len(columns), 0.0)
            verdict = INCONCLUSIVE
            why = "the limit lies inside the interval of the ratio"
            if needed is not None:
                why += f"; about {needed} blocks would decide"
        made[at] = Check(
            threshold.text, name, verdict, None, now, threshold.amount, why, timed=True
        )
    return [check for check in made if check is not None]
