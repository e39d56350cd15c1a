"""What the processes of one cell, or of one pair of sides, say: estimates and their intervals.

Every function takes one value a process (the median of that process' samples). Papers: Hartigan,
"Using subsample values as typical values", JASA 64 (1969), for the sign-flip interval; David &
Nagaraja, "Order Statistics", 7.1, for the interval of a median.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
#: The least number of processes for which a 95 % interval of a median, or a two-sided sign-flip
#: test at 5 %, exists: 1 - 2 / 2**6 = 96.9 %, while five processes reach 93.8 % only.
MIN_BLOCKS = 6
#: Makes 1.4826 * MAD estimate the standard deviation of a normal distribution.
MAD_SCALE = 1.4826
#: Up to this many blocks all sign flips are enumerated, beyond it SAMPLED_FLIPS are drawn.
ENUMERATED_BLOCKS = 14
SAMPLED_FLIPS = 9_999
#: Distance of two modes in pooled standard deviations of 20 values or more, and the least number
#: of values: the best cut of one normal cloud of 20 values makes 3.
MODE_DISTANCE, MODE_BLOCKS = 5.5, 10


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval with the coverage that it really has (between 0 and 1)."""

    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio of two sides measured in the same blocks.

    ``value`` is the geometric mean of the paired ratios, ``median`` their median, ``low`` and
    ``high`` their range, ``n`` the number of pairs. Without an interval ``ci_low``, ``ci_high``
    and ``ci_level`` are None; ``reason`` then says why. An undefined ratio has ``value`` None.
    """

    value: float | None
    median: float | None
    low: float | None
    high: float | None
    ci_low: float | None
    ci_high: float | None
    ci_level: float | None
    n: int
    reason: str | None


def _floats(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"expected one value a process, got an array of shape {array.shape}")
    return array


def median(values: ArrayLike) -> float | None:
    """Median, or None for an empty array."""
    array = _floats(values)
    return float(np.median(array)) if array.size else None


def scaled_mad(values: ArrayLike) -> float | None:
    """1.4826 times the median absolute deviation from the median; None below two values."""
    array = _floats(values)
    if array.size < 2:
        return None
    return MAD_SCALE * float(np.median(np.abs(array - np.median(array))))


def median_interval(
    values: ArrayLike, confidence: float = CONFIDENCE, resolution: float = 0.0
) -> Interval | None:
    """Distribution-free interval of the median: two order statistics, with their true coverage.

    The narrowest symmetric pair whose coverage, 1 - 2 P(Binomial(n, 1/2) < k), reaches
    `confidence`; None where no pair does. An interval of identical values would claim more than a
    clock can know, so it is widened to `resolution` (same unit as the values) on each side.
    """
    array = np.sort(_floats(values))
    n = array.size
    rank, level = _median_rank(n, confidence)
    if rank == 0:
        return None
    low, high = float(array[rank - 1]), float(array[n - rank])
    if low == high:
        low, high = low - resolution, high + resolution
    return Interval(low, high, level)


@lru_cache(maxsize=256)
def _median_rank(n: int, confidence: float) -> tuple[int, float]:
    """Rank k (from 1) of the lower order statistic and the coverage of the pair; (0, 0.0): none."""
    rank, level, tail = 0, 0.0, 0
    for k in range(1, n // 2 + 1):
        tail += math.comb(n, k - 1)
        # Exact in integers; the quotient of two big integers is rounded once.
        coverage = (2**n - 2 * tail) / 2**n
        if coverage < confidence:
            break
        rank, level = k, coverage
    return rank, level


def outliers(values: ArrayLike) -> tuple[int, int]:
    """Numbers of mild and of severe outliers by Tukey's fences (1.5 and 3 quartile distances).

    They are counted, never dropped; a severe one is not counted as mild too. Below four values
    quartiles mean nothing and both counts are 0.
    """
    array = _floats(values)
    if array.size < 4:
        return 0, 0
    first, third = np.percentile(array, [25, 75])
    distance = third - first
    beyond = np.maximum(first - array, array - third)
    severe = int(np.count_nonzero(beyond > 3 * distance))
    return int(np.count_nonzero(beyond > 1.5 * distance)) - severe, severe


@lru_cache(maxsize=16)
def _flip_subsets(n: int, seed: int) -> Floats:
    """Non-empty subsets of n blocks, one a row, as weights that sum to 1.

    A vector of signs and its negative say the same about a mean, and one of the two leaves a block
    unflipped: subsets stand for flips one to one. All of them for few blocks, else a seeded sample.
    """
    if n <= ENUMERATED_BLOCKS:
        numbers = np.arange(1, 2**n, dtype=np.uint32)
        chosen = (numbers[:, None] >> np.arange(n, dtype=np.uint32)) & 1
    else:
        random = np.random.Generator(np.random.PCG64([seed, n]))
        chosen = random.integers(0, 2, size=(SAMPLED_FLIPS, n), dtype=np.uint32)
        # An empty subset (chance 2**-n a row) is replaced by the whole: its mean is typical too.
        chosen[~chosen.any(axis=1)] = 1
    weights = chosen.astype(np.float64)
    weights /= weights.sum(axis=1, keepdims=True)
    weights.flags.writeable = False
    return weights


def sign_flip_interval(
    values: ArrayLike, confidence: float = CONFIDENCE, seed: int = 0, resolution: float = 0.0
) -> Interval | None:
    """Interval of the mean of paired differences: all centres that a sign-flip test accepts.

    Flipping signs leaves the sum of squares alone, so the studentised mean and the plain mean order
    the flips alike; inverting that test needs no search: the means of all subsets cut the line into
    pieces that hold the centre of a symmetric distribution with equal chance (Hartigan's typical
    values). The interval therefore covers exactly with the level it states, as far as the
    differences are symmetric, whatever their distribution. None below the number of differences
    for which `confidence` can be reached. Same values and seed, same interval.
    """
    array = _floats(values)
    n = array.size
    if n < 2:
        return None
    means = np.sort(_flip_subsets(n, seed) @ array)
    pieces = means.size + 1
    rank = math.floor((1 - confidence) / 2 * pieces * (1 + 1e-12))
    if rank == 0:
        return None
    low, high = float(means[rank - 1]), float(means[means.size - rank])
    if high - low < 2 * resolution:
        middle = (low + high) / 2
        low, high = middle - resolution, middle + resolution
    return Interval(low, high, 1 - 2 * rank / pieces)


def paired_ratio(
    side: ArrayLike,
    baseline: ArrayLike,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    resolution: float = 0.0,
) -> Ratio:
    """Ratio of `side` to `baseline`, value i of both from the same block.

    The estimate is the mean of the paired log-ratios. `resolution` is the relative clock step of
    both sides together. Zero, negative or missing (NaN) values make the ratio undefined.
    """
    above, below = _floats(side), _floats(baseline)
    if above.size != below.size:
        raise ValueError(f"{above.size} values cannot be paired with {below.size}")
    n = above.size
    if n == 0:
        return _undefined(n, "no block has both sides")
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        return _undefined(n, "a value is missing")
    if (above <= 0).any() or (below <= 0).any():
        return _undefined(n, "a value is below clock resolution")
    logs = np.log(above) - np.log(below)
    interval = None
    if n >= MIN_BLOCKS:
        interval = sign_flip_interval(logs, confidence, seed, resolution)
    reason = None if interval else f"{n} of at least {MIN_BLOCKS} blocks"
    return Ratio(
        value=_exp(float(logs.mean())),
        median=_exp(float(np.median(logs))),
        low=_exp(float(logs.min())),
        high=_exp(float(logs.max())),
        ci_low=_exp(interval.low) if interval else None,
        ci_high=_exp(interval.high) if interval else None,
        ci_level=interval.level if interval else None,
        n=n,
        reason=reason,
    )


def _exp(log_ratio: float) -> float:
    """Ratio of a log-ratio; the largest double where it would overflow (1e300 against 1e-300)."""
    try:
        return math.exp(log_ratio)
    except OverflowError:
        return float(np.finfo(np.float64).max)


def _undefined(n: int, reason: str) -> Ratio:
    return Ratio(None, None, None, None, None, None, None, n, reason)


def two_levels(values: Sequence[float]) -> tuple[float, float] | None:
    """Medians of two speeds that process medians alternate between, or None.

    Two levels are reported where the widest gap leaves at least two of six or more values on each
    side, is wider than either side's whole range, and parts medians by a tenth or more. A plain
    rule on sorted values: it describes, it decides nothing.
    """
    ordered = sorted(values)
    if len(ordered) < MIN_BLOCKS:
        return None
    cut = max(range(1, len(ordered)), key=lambda at: ordered[at] - ordered[at - 1])
    low, high = ordered[:cut], ordered[cut:]
    gap = high[0] - low[-1]
    if min(len(low), len(high)) < 2 or gap <= max(low[-1] - low[0], high[-1] - high[0]):
        return None
    levels = float(np.median(low)), float(np.median(high))
    return levels if levels[1] >= 1.1 * levels[0] else None


def modes(values: ArrayLike, least: float = 0.0) -> tuple[float, ...] | None:
    """Means of two clusters that the values fall into, lower first; None where there is one.

    The values (paired log-ratios) are cut in two where the squared distances within the parts are
    least. Two modes are reported where each part has a fifth of the values and at least three,
    where the parts' means lie at least `least` apart, and MODE_DISTANCE pooled standard deviations
    (Ashman's D), more for fewer than 20 values: one normal cloud reaches that in about one of
    2,000 cases. Below MODE_BLOCKS values no modes are seen.
    """
    ordered = np.sort(_floats(values))
    n = ordered.size
    fewest = max(3, math.ceil(n / 5))
    if n < MODE_BLOCKS:
        return None
    cuts = np.arange(fewest, n - fewest + 1)
    sums = np.concatenate([[0.0], np.cumsum(ordered - ordered.mean())])
    left = sums[cuts] / cuts
    right = -sums[cuts] / (n - cuts)
    # Within the parts the squares are least where those between them are greatest.
    cut = int(cuts[np.argmax(cuts * left**2 + (n - cuts) * right**2)])
    low, high = ordered[:cut], ordered[cut:]
    distance = float(high.mean() - low.mean())
    pooled = math.sqrt((float(low.var()) * cut + float(high.var()) * (n - cut)) / (n - 2))
    needed = MODE_DISTANCE * max(1.0, math.sqrt(20 / n))
    if distance < needed * pooled or distance <= least:
        return None
    return float(low.mean()), float(high.mean())


#: Observations beyond a quantile that make it worth showing.
TAIL_OBSERVATIONS = 10


def quantile_shown(q: float, observations: int) -> bool:
    """Whether a latency quantile may be shown: at least 10 / (1 - q) observations."""
    if not 0 <= q < 1:
        raise ValueError(f"a quantile lies between 0 and 1, not {q}")
    # A relative 1e-9, so that 10 / (1 - 0.99) asks for 1,000 and not for 1,001.
    return observations * (1 - q) >= TAIL_OBSERVATIONS * (1 - 1e-9)
