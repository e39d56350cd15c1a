"""What a number of blocks can see: smallest detectable effects, blocks needed, plans.

An effect counts as detectable when the test finds it in POWER of all runs. The statistic of a cell
with a true effect is taken to follow the noncentral t distribution, in the normal approximation of
Abramowitz & Stegun, 26.7.10. These are numbers for planning; no verdict rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from .estimators import CONFIDENCE, MIN_BLOCKS
from .student import t_quantile

POWER = 0.80
#: Beyond this many blocks nobody measures; the answer is then "more than".
MOST_BLOCKS = 5000


def detectable_effect(
    error: float, quantile: float, degrees: int, power: float = POWER, beyond: float = 0.0
) -> float:
    """The log-ratio that is found with probability `power`.

    Args:
        error: standard error of the mean log-ratio.
        quantile: the test finds |mean| > quantile * error.
        degrees: blocks - 1.
        beyond: the near end of the interval must lie beyond this log-ratio.
    """
    if degrees < 1 or error <= 0:
        return beyond
    z = NormalDist().inv_cdf(power)
    bias = 1 - 1 / (4 * degrees)
    return beyond + error * (quantile * bias + z * math.sqrt(1 + quantile**2 / (2 * degrees)))


def family_quantile(blocks: int, cells: int, confidence: float = CONFIDENCE) -> float:
    """About the max-T quantile of `cells` independent cells: Student's t at Šidák's level."""
    tail = -math.expm1(math.log(confidence) / max(cells, 1)) / 2
    return t_quantile(1 - tail, blocks - 1)


def smallest_effect(
    blocks: int, cells: int, spread: float, margin: float = 0.0, power: float = POWER
) -> float | None:
    """The ratio - 1 that a run of so many blocks finds in one of `cells` cells, before it starts.

    `spread` is the standard deviation of one paired log-ratio; with `margin` (a share, as 0.03)
    the whole interval must lie beyond it, as for a gate. None below the number of blocks that can
    decide anything.
    """
    if blocks < MIN_BLOCKS:
        return None
    quantile = family_quantile(blocks, cells)
    error = spread / math.sqrt(blocks)
    beyond = math.log1p(margin)
    return math.expm1(detectable_effect(error, quantile, blocks - 1, power, beyond))


def blocks_needed(
    effect: float, spread: float, cells: int, margin: float, power: float = POWER
) -> int | None:
    """About how many blocks would decide a cell that is undecided now; None: beyond MOST_BLOCKS.

    Decided is what is either found (|effect| detectable in a family of `cells`) or shown to be
    the same (its own 90 % interval inside the margin with probability `power`), whichever takes
    fewer blocks. `effect` (the mean seen so far), `spread` (standard deviation of one pair) and
    `margin` are log-ratios.
    """
    size, z = abs(effect), NormalDist().inv_cdf(power)

    def found(blocks: int) -> bool:
        error = spread / math.sqrt(blocks)
        return detectable_effect(error, family_quantile(blocks, cells), blocks - 1, power) <= size

    def same(blocks: int) -> bool:
        error = spread / math.sqrt(blocks)
        return size + (t_quantile(0.95, blocks - 1) + z) * error <= margin

    answers = [n for decided in (found, same) if (n := _least(decided)) is not None]
    return min(answers, default=None)


def _least(decided: Callable[[int], bool]) -> int | None:
    """The least number of blocks that decides; what decides goes on deciding with more blocks."""
    if not decided(MOST_BLOCKS):
        return None
    low, high = MIN_BLOCKS - 1, MOST_BLOCKS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
