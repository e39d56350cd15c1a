"""Decisions over all cells of a family at once, by sign flips of whole blocks.

Matrices have a row a block and a column a cell and hold paired log-ratios in cost direction; NaN is
a pair that is missing. Papers: Westfall & Young, "Resampling-Based Multiple Testing" (1993), for
the maximum statistic; Schuirmann (1987) for the two one-sided tests; Holm (1979); Benjamini &
Hochberg (1995); Efron & Tibshirani, "An Introduction to the Bootstrap", 12.5, for the studentised
interval of the geometric mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .estimators import (
    CONFIDENCE,
    ENUMERATED_BLOCKS,
    MIN_BLOCKS,
    SAMPLED_FLIPS,
    Floats,
    Interval,
    sign_flip_interval,
)

#: Log-ratios closer than this are equal: far below any clock, far above rounding.
LEAST_ERROR = 1e-9
#: Ties between a statistic and its own copy among the flips are broken alike by this.
TIE = 1e-12
#: Memory of one step: flips times cells.
STEP = 2_000_000
BOOTSTRAPS = 4_999


@dataclass(frozen=True, slots=True)
class Joint:
    """A family tested at once; arrays have one entry a cell, NaN where a cell has too few pairs.

    `mean` is the mean log-ratio, `error` its standard error, `n` the number of pairs, `p` the
    p-value adjusted for the whole family, `low` and `high` the simultaneous interval
    mean ± quantile * error that covers all cells at once with `level`. Without enough blocks
    `quantile` and `level` are None and the intervals NaN.
    """

    mean: Floats
    error: Floats
    n: NDArray[np.int64]
    p: Floats
    low: Floats
    high: Floats
    quantile: float | None
    level: float | None


@lru_cache(maxsize=16)
def _signs(n: int, seed: int) -> Floats:
    """Signs of n blocks, one flip a row; the first row leaves everything as it was.

    A vector of signs and its negative give the same |T|, so one of each pair is enough: all
    2**(n-1) of them for few blocks, else a seeded sample.
    """
    if n <= ENUMERATED_BLOCKS:
        numbers = np.arange(2 ** (n - 1), dtype=np.uint32)
        bits = (numbers[:, None] >> np.arange(n, dtype=np.uint32)) & 1
    else:
        random = np.random.Generator(np.random.PCG64([seed, n, 1]))
        bits = random.integers(0, 2, size=(SAMPLED_FLIPS + 1, n), dtype=np.uint32)
        bits[0] = 0
    signs = 1.0 - 2.0 * bits.astype(np.float64)
    signs.flags.writeable = False
    return signs


def _matrix(values: ArrayLike) -> Floats:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"expected blocks times cells, got an array of shape {matrix.shape}")
    if np.isinf(matrix).any():
        raise ValueError("a log-ratio is infinite")
    return matrix


def max_t(
    logs: ArrayLike,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    resolution: ArrayLike = 0.0,
) -> Joint:
    """Test all cells at once with the maximum studentised statistic over sign flips of blocks.

    Each flip turns whole blocks, so that what cells of a block have in common stays in common.
    Every flip is studentised by itself. A cell is found (its interval on one side of 0) exactly
    where its adjusted p-value is at most 1 - confidence; if no cell has changed, and the pairs are
    symmetric about 0, some cell is found in at most that share of runs, whatever the distribution.

    Args:
        logs: blocks x cells; a cell with fewer than MIN_BLOCKS pairs takes no part.
        resolution: relative clock step of a cell's pairs; no interval is narrower on either side.
    """
    matrix = _matrix(logs)
    blocks, cells = matrix.shape
    present = ~np.isnan(matrix)
    n = present.sum(axis=0).astype(np.int64)
    filled = np.where(present, matrix, 0.0)
    mean = np.where(n > 0, filled.sum(axis=0) / np.maximum(n, 1), np.nan)
    nothing = np.full(cells, np.nan)
    part = np.flatnonzero(n >= MIN_BLOCKS)
    if part.size == 0:
        return Joint(mean, nothing, n, nothing, nothing, nothing, None, None)
    step = np.broadcast_to(np.asarray(resolution, dtype=np.float64), (cells,))
    error, p, greatest = nothing.copy(), nothing.copy(), None
    count = n[part].astype(np.float64)
    # The clock's step adds to the spread of every pair, so that no error is 0.
    least = np.maximum(step[part], LEAST_ERROR) ** 2
    squares = (filled[:, part] ** 2).sum(axis=0) + (count - 1) * least
    variance = np.maximum(squares - count * mean[part] ** 2, least) / (count - 1)
    error[part] = np.sqrt(variance / count)
    t = np.abs(mean[part]) / error[part]
    greatest = _greatest(filled[:, part], squares, count, _signs(blocks, seed))
    # The first flip is the data as they are: the same number to the last bit.
    greatest[0] = t.max()
    ordered = np.sort(greatest)
    allowed = math.floor((1 - confidence) * ordered.size * (1 + TIE))
    reached = ordered.size - np.searchsorted(ordered, t * (1 - TIE), side="left")
    p[part] = reached / ordered.size
    if allowed == 0:
        return Joint(mean, error, n, p, nothing, nothing, None, None)
    quantile = float(ordered[ordered.size - 1 - allowed]) * (1 + TIE)
    # Identical pairs have no spread, but a clock knows no less than its step.
    half = np.maximum(quantile * error, np.where(np.isnan(error), np.nan, step))
    return Joint(
        mean=mean,
        error=error,
        n=n,
        p=p,
        low=mean - half,
        high=mean + half,
        quantile=quantile,
        level=1 - allowed / ordered.size,
    )


def _greatest(filled: Floats, squares: Floats, count: Floats, signs: Floats) -> Floats:
    """The greatest |T| over cells of every flip.

    Flipping leaves the sum of squares S alone, and T² = (n - 1) u / (1 - u) with u = n mean² / S:
    among cells of equal n the greatest u has the greatest T, so that only maxima are studentised.
    """
    greatest = np.zeros(signs.shape[0])
    rows = max(1, STEP // filled.shape[1])
    for n in np.unique(count):
        same = count == n
        scaled = filled[:, same] / np.sqrt(n * squares[same])
        for start in range(0, signs.shape[0], rows):
            part = greatest[start : start + rows]
            sums = signs[start : start + rows] @ scaled
            u = np.minimum(np.abs(sums, out=sums).max(axis=1) ** 2, 1 - 1e-15)
            np.maximum(part, np.sqrt((n - 1) * u / (1 - u)), out=part)
    return greatest


# ---- one cell ------------------------------------------------------------------------------------


def sign_flip_p(values: ArrayLike, seed: int = 0, alternative: str = "two-sided") -> float:
    """p-value of the sign-flip test that the mean of paired differences is 0.

    `alternative` is what the test looks for: "two-sided", "greater" or "less". Two-sided it is
    `max_t` with a family of one; flipping leaves the squares alone, so that mean and studentised
    mean order the flips alike.
    """
    array = np.asarray(values, dtype=np.float64)
    n = array.size
    means = _signs(n, seed) @ array / n
    size = float(np.abs(array).max(initial=0.0)) * TIE
    if alternative == "two-sided":
        return float(np.count_nonzero(np.abs(means) >= abs(means[0]) - size) / means.size)
    if alternative not in ("greater", "less"):
        raise ValueError(f"alternative is two-sided, greater or less, not {alternative!r}")
    # Each row stands for itself and for its negative.
    both = np.concatenate([means, -means]) * (1 if alternative == "greater" else -1)
    return float(np.count_nonzero(both >= both[0] - size) / both.size)


def equivalence_p(values: ArrayLike, margin: float, seed: int = 0) -> float:
    """p-value of two one-sided tests: small where the mean is shown to lie inside ±margin.

    It is at most 5 % where the 90 % interval of the mean lies inside the margin.
    """
    array = np.asarray(values, dtype=np.float64)
    return max(
        sign_flip_p(array - margin, seed, "less"), sign_flip_p(array + margin, seed, "greater")
    )


def smallest_p(blocks: int) -> float:
    """The smallest two-sided p-value that sign flips of so many blocks can give."""
    flips = 2 ** (blocks - 1) if blocks <= ENUMERATED_BLOCKS else SAMPLED_FLIPS + 1
    return 1 / flips


def noise_floor(controls: ArrayLike, seed: int = 0) -> float | None:
    """The smallest margin at which the negative control would be shown to be the same.

    For each control cell that is the far end of its own 90 % interval, taken from 0, so that both
    a spread and a bias of the session count; over several control cells the root mean square.
    Log-ratio; None without a control of at least MIN_BLOCKS pairs.
    """
    matrix = _matrix(controls)
    ends = []
    for column in matrix.T:
        pairs = column[~np.isnan(column)]
        interval = sign_flip_interval(pairs, 0.90, seed) if pairs.size >= MIN_BLOCKS else None
        if interval is not None:
            ends.append(max(abs(interval.low), abs(interval.high)))
    return math.sqrt(sum(end**2 for end in ends) / len(ends)) if ends else None


# ---- corrections of single p-values --------------------------------------------------------------


def correction_reason(blocks: int, cells: int, alpha: float = 1 - CONFIDENCE) -> str | None:
    """Why Holm and Benjamini-Hochberg could find nothing here; None where they can.

    They work on single p-values, which must be able to become small enough:
    cells x smallest possible p < alpha.
    """
    if blocks < MIN_BLOCKS:
        return f"{blocks} of at least {MIN_BLOCKS} blocks"
    least = smallest_p(blocks)
    if cells * least < alpha:
        return None
    return (
        f"{cells} cells times the smallest p-value of {blocks} blocks ({least:.2g}) is not below "
        f"{alpha:.2g}: no cell could ever be found"
    )


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p-values: at most alpha where the family-wise error is at most alpha."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(values.size, 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    result = np.empty_like(values)
    result[order] = adjusted
    return result


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjusted p-values of the false discovery rate."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    factors = values.size / np.arange(values.size, 0, -1)
    adjusted = np.minimum(np.minimum.accumulate(values[order] * factors), 1.0)
    result = np.empty_like(values)
    result[order] = adjusted
    return result


# ---- the whole -----------------------------------------------------------------------------------


def geometric_mean(
    logs: ArrayLike, confidence: float = CONFIDENCE, seed: int = 0
) -> tuple[float, Interval | None]:
    """Mean log-ratio over cells and its interval from resampling whole blocks.

    Each cell weighs alike. A block's score is the mean over its cells of what they lie above their
    own mean; blocks are drawn with replacement and the draws' means studentised (bootstrap t). No
    interval below MIN_BLOCKS blocks.
    """
    matrix = _matrix(logs)
    matrix = matrix[:, ~np.isnan(matrix).all(axis=0)]
    if matrix.size == 0:
        raise ValueError("a geometric mean needs at least one pair")
    means = np.nanmean(matrix, axis=0)
    mean = float(means.mean())
    above = np.where(np.isnan(matrix), 0.0, matrix - means)
    used = ~np.isnan(matrix).all(axis=1)
    scores = above[used].sum(axis=1) / matrix.shape[1] * (used.sum() / _rows(matrix))
    n = scores.size
    if n < MIN_BLOCKS:
        return mean, None
    random = np.random.Generator(np.random.PCG64([seed, n, 2]))
    drawn = scores[random.integers(0, n, size=(BOOTSTRAPS, n))]
    # The spread of a draw is never taken as smaller than a tenth of the real one: a draw that
    # repeats one block says nothing about spread.
    error = max(float(scores.std(ddof=1)) / math.sqrt(n), LEAST_ERROR)
    errors = np.maximum(drawn.std(axis=1, ddof=1) / math.sqrt(n), error / 10)
    t = np.sort(drawn.mean(axis=1) / errors)
    rank = math.floor((1 - confidence) / 2 * (BOOTSTRAPS + 1) * (1 + TIE))
    low, high = float(t[rank - 1]), float(t[BOOTSTRAPS - rank])
    level = 1 - 2 * rank / (BOOTSTRAPS + 1)
    return mean, Interval(mean - high * error, mean - low * error, level)


def _rows(matrix: Floats) -> float:
    """Pairs of an average cell."""
    return float((~np.isnan(matrix)).sum() / matrix.shape[1])
