"""Runs of different sessions: their sides are independent, and sessions differ by themselves.

Matrices have a row a block (or a session) and a column a cell; NaN is a value that is missing.
Values are logarithms of process medians in cost direction. Papers: Kalibera & Jones, "Rigorous
Benchmarking in Reasonable Time" (2013), for ratios of independent sides; Westfall & Young (1993).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .estimators import CONFIDENCE, MIN_BLOCKS, Floats, Interval
from .joint import LEAST_ERROR, STEP, TIE, _matrix
from .student import t_quantile

BOOTSTRAPS = 1_999
#: Up to this many ways to share out the labels all are taken, beyond it LABELLINGS are drawn.
ENUMERATED_LABELS = 20_000
LABELLINGS = 9_999
#: Sessions on each side from which labels can be permuted.
MIN_SESSIONS = 4
#: How far two sessions of the same build may lie apart where no history tells.
DEFAULT_NOISE = 0.25
#: Pairs of successive sessions of one build that make an estimate.
MIN_PAIRS = 3


@dataclass(frozen=True, slots=True)
class StoredRatios:
    """Log-ratios of independent sides with simultaneous intervals; arrays of one entry a cell.

    `own_low` and `own_high` are the ends of each cell's own 90 % interval; `p` is NaN where the
    method gives none. NaN where a side has too few values.
    """

    value: Floats
    error: Floats
    low: Floats
    high: Floats
    own_low: Floats
    own_high: Floats
    p: Floats
    quantile: float | None
    level: float | None


def _medians(rows: Floats) -> Floats:
    """Medians over the second axis of draws x rows x cells, without the missing values."""
    ordered = np.sort(rows, axis=1)  # NaN goes last.
    count = (~np.isnan(rows)).sum(axis=1)
    low = np.maximum(count - 1, 0) // 2
    high = np.minimum(count // 2, rows.shape[1] - 1)
    first = np.take_along_axis(ordered, low[:, None, :], axis=1)[:, 0]
    second = np.take_along_axis(ordered, high[:, None, :], axis=1)[:, 0]
    middle: Floats = (first + second) / 2
    return middle


def _resampled(side: Floats, random: np.random.Generator) -> Floats:
    """Medians of `side` with whole rows drawn with replacement: draws x cells."""
    n, cells = side.shape
    drawn = random.integers(0, n, size=(BOOTSTRAPS, n))
    result = np.empty((BOOTSTRAPS, cells))
    step = max(1, STEP // max(1, n * cells))
    for start in range(0, BOOTSTRAPS, step):
        result[start : start + step] = _medians(side[drawn[start : start + step]])
    return result


def stored_ratios(
    head: ArrayLike,
    base: ArrayLike,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    resolution: ArrayLike = 0.0,
) -> StoredRatios:
    """Ratios of the medians of process medians, the two sides resampled independently.

    Blocks are drawn whole on each side; the simultaneous interval is value ± quantile * error with
    the quantile of the greatest studentised deviation over all cells. The medians of two values in
    the middle are averaged as logarithms.
    """
    above, below = _matrix(head), _matrix(base)
    if above.shape[1] != below.shape[1]:
        raise ValueError(f"{above.shape[1]} cells cannot be compared with {below.shape[1]}")
    cells = above.shape[1]
    nothing = np.full(cells, np.nan)
    counts = [(~np.isnan(side)).sum(axis=0) for side in (above, below)]
    value = nothing.copy()
    seen = (counts[0] > 0) & (counts[1] > 0)
    if seen.any():
        value[seen] = (_medians(above[None, :, seen]) - _medians(below[None, :, seen]))[0]
    part = np.flatnonzero((counts[0] >= MIN_BLOCKS) & (counts[1] >= MIN_BLOCKS))
    if part.size == 0:
        blank = nothing
        return StoredRatios(value, blank, blank, blank, blank, blank, blank, None, None)
    random = np.random.Generator(np.random.PCG64([seed, above.shape[0], below.shape[0], 3]))
    drawn = _resampled(above[:, part], random) - _resampled(below[:, part], random)
    # A draw that has no value of a cell says nothing about it.
    deviation = np.where(np.isnan(drawn), 0.0, drawn - value[part])
    step = np.broadcast_to(np.asarray(resolution, dtype=np.float64), (cells,))[part]
    spread = np.sqrt((deviation**2).mean(axis=0))
    errors = np.maximum(spread, np.maximum(step, LEAST_ERROR))
    greatest = np.sort((np.abs(deviation) / errors).max(axis=1))
    rank = math.ceil(confidence * (BOOTSTRAPS + 1) * (1 - TIE))
    # Medians of a few values move in steps: the quantile of one cell can fall below the normal's.
    quantile = max(float(greatest[rank - 1]), 1.96)
    own = np.sort(np.abs(deviation) / errors, axis=0)
    own_quantile = np.maximum(own[math.ceil(0.90 * (BOOTSTRAPS + 1) * (1 - TIE)) - 1], 1.645)
    error, low, high = nothing.copy(), nothing.copy(), nothing.copy()
    own_low, own_high = nothing.copy(), nothing.copy()
    error[part] = errors
    low[part], high[part] = value[part] - quantile * errors, value[part] + quantile * errors
    own_low[part] = value[part] - own_quantile * errors
    own_high[part] = value[part] + own_quantile * errors
    return StoredRatios(
        value, error, low, high, own_low, own_high, nothing, quantile, rank / (BOOTSTRAPS + 1)
    )


def stored_geometric_mean(
    head: ArrayLike, base: ArrayLike, confidence: float = CONFIDENCE, seed: int = 0
) -> tuple[float, Interval | None]:
    """Mean log-ratio over the cells that both sides have, and its interval, for `stored_ratios`."""
    above, below = _matrix(head), _matrix(base)
    seen = ~np.isnan(above).all(axis=0) & ~np.isnan(below).all(axis=0)
    if not seen.any():
        raise ValueError("a geometric mean needs at least one cell with both sides")
    above, below = above[:, seen], below[:, seen]
    value = float((_medians(above[None]) - _medians(below[None])).mean())
    if min(above.shape[0], below.shape[0]) < MIN_BLOCKS:
        return value, None
    random = np.random.Generator(np.random.PCG64([seed, above.shape[0], below.shape[0], 5]))
    drawn = np.sort(
        np.nanmean(_resampled(above, random), axis=1)
        - np.nanmean(_resampled(below, random), axis=1)
    )
    rank = math.floor((1 - confidence) / 2 * (BOOTSTRAPS + 1) * (1 + TIE))
    low, high = float(drawn[rank - 1]), float(drawn[BOOTSTRAPS - rank])
    return value, Interval(low, high, 1 - 2 * rank / (BOOTSTRAPS + 1))


def permuted_sessions(
    head: ArrayLike,
    base: ArrayLike,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    resolution: ArrayLike = 0.0,
) -> StoredRatios:
    """Difference of the mean log medians of sessions, by permuting the labels of whole sessions.

    `head` and `base` have a row a session. All ways to share out the labels are taken where they
    are few (exact), else a seeded sample; the statistic is studentised and its greatest value over
    cells gives the family-wise p-value. Only cells that every session has take part.
    """
    above, below = _matrix(head), _matrix(base)
    if above.shape[1] != below.shape[1]:
        raise ValueError(f"{above.shape[1]} cells cannot be compared with {below.shape[1]}")
    if min(above.shape[0], below.shape[0]) < MIN_SESSIONS:
        raise ValueError(f"labels are permuted over at least {MIN_SESSIONS} sessions a side")
    every = np.concatenate([above, below])
    cells = every.shape[1]
    nothing = np.full(cells, np.nan)
    part = np.flatnonzero(~np.isnan(every).any(axis=0))
    if part.size == 0:
        blank = nothing
        return StoredRatios(blank, blank, blank, blank, blank, blank, blank, None, None)
    values = every[:, part] - every[:, part].mean(axis=0)
    step = np.broadcast_to(np.asarray(resolution, dtype=np.float64), (cells,))[part]
    least = np.maximum(step, LEAST_ERROR)
    labels = _labels(above.shape[0], below.shape[0], seed)
    greatest, own = np.empty(labels.shape[0]), np.empty((labels.shape[0], part.size))
    rows = max(1, STEP // part.size)
    for start in range(0, labels.shape[0], rows):
        difference, errors = _two_sides(values, labels[start : start + rows], least)
        own[start : start + rows] = np.abs(difference) / errors
        greatest[start : start + rows] = own[start : start + rows].max(axis=1)
    difference, errors = _two_sides(values, labels[:1], least)
    t = np.abs(difference[0]) / errors[0]
    ordered = np.sort(greatest)
    reached = ordered.size - np.searchsorted(ordered, t * (1 - TIE), side="left")
    allowed = math.floor((1 - confidence) * ordered.size * (1 + TIE))
    quantile = float(ordered[ordered.size - 1 - allowed]) * (1 + TIE) if allowed else None
    singly = np.sort(own, axis=0)[ordered.size - 1 - math.floor(0.10 * ordered.size)]
    value, error, p = nothing.copy(), nothing.copy(), nothing.copy()
    value[part], error[part], p[part] = difference[0], errors[0], reached / ordered.size
    own_low, own_high = nothing.copy(), nothing.copy()
    own_low[part], own_high[part] = (
        difference[0] - singly * errors[0],
        difference[0] + singly * errors[0],
    )
    if quantile is None:
        return StoredRatios(value, error, nothing, nothing, own_low, own_high, p, None, None)
    return StoredRatios(
        value,
        error,
        value - quantile * error,
        value + quantile * error,
        own_low,
        own_high,
        p,
        quantile,
        1 - allowed / ordered.size,
    )


def _two_sides(values: Floats, labels: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Differences of the sides' means and their standard errors (Welch) for each labelling."""
    total, squares = values.sum(axis=0), (values**2).sum(axis=0)
    first = labels.sum(axis=1, keepdims=True)
    second = values.shape[0] - first
    sums, sum_squares = labels @ values, labels @ values**2
    means = sums / first, (total - sums) / second
    spare = (
        np.maximum(sum_squares - first * means[0] ** 2, 0.0) / (first - 1) / first
        + np.maximum(squares - sum_squares - second * means[1] ** 2, 0.0) / (second - 1) / second
    )
    return means[0] - means[1], np.maximum(np.sqrt(spare), least)


def _labels(first: int, second: int, seed: int) -> Floats:
    """Who is on the first side, one labelling a row; the first row is the real one."""
    n = first + second
    if math.comb(n, first) <= ENUMERATED_LABELS:
        chosen = np.zeros((math.comb(n, first), n))
        for row, members in enumerate(itertools.combinations(range(n), first)):
            chosen[row, list(members)] = 1.0
        return chosen
    random = np.random.Generator(np.random.PCG64([seed, first, second, 4]))
    chosen = np.zeros((LABELLINGS + 1, n))
    chosen[:, :first] = 1.0
    random.permuted(chosen[1:], axis=1, out=chosen[1:])
    return chosen


def session_noise(history: Sequence[tuple[object, Mapping[str, float]]]) -> dict[str, float]:
    """How far a cell of a new session may lie from an old one of the same build, as a share.

    `history` has, oldest first, the build of each session and the log of each cell's median in it.
    Differences of successive sessions of one build estimate the noise of a difference; with k of
    them (at least MIN_PAIRS) a new one lies within t(97.5 %, k) times their root mean square in
    95 % of cases. Cells that have too few are left out: use DEFAULT_NOISE for them.
    """
    last: dict[tuple[object, str], float] = {}
    differences: dict[str, list[float]] = {}
    for build, values in history:
        for cell, value in values.items():
            if (before := last.get((build, cell))) is not None:
                differences.setdefault(cell, []).append(value - before)
            last[build, cell] = value
    return {
        cell: math.expm1(
            t_quantile(0.975, len(found)) * math.sqrt(sum(d * d for d in found) / len(found))
        )
        for cell, found in differences.items()
        if len(found) >= MIN_PAIRS
    }
