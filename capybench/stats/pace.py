"""Speed states of the machine, seen by probes: which pairs must be measured again.

Shared virtual CPUs run in speed states that last seconds to minutes, each CPU by itself. A probe of
fixed work right before and right after each sample tells in which state the sample ran. The rule
looks at probes alone, never at results, so it cannot favour a side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class PaceRule:
    """When two probe values belong to different states: apart by more than `tolerance` (a share).

    The states that were seen lie 5 % apart and more, a probe repeats within 1 %.
    """

    tolerance: float = 0.025

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise ValueError(f"a tolerance is a share between 0 and 1, not {self.tolerance}")

    def differ(self, one: float, other: float) -> bool:
        """Whether two probe values are of different states."""
        return abs(math.log(one / other)) > math.log1p(self.tolerance)


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of one process: `value` is the median of its probes (ns a unit), None: no probes.

    `reason` says why the process is marked by itself, None where it is steady.
    """

    value: float | None
    reason: str | None = None


NO_PACE = Pace(None)


def pace_of(
    before: Sequence[float | None] | None,
    after: Sequence[float | None] | None,
    rule: PaceRule | None = None,
) -> Pace:
    """The pace of a process from the probes beside its samples (one value a sample each).

    A sample is off where its two probes are of different states, or where their mean differs from
    the median of all. A process' number is the median of its samples, so what counts is the
    majority: it is marked when at least half of its samples are off. Samples without a probe
    (None, or not above 0) say nothing.
    """
    rule = rule or PaceRule()
    pairs = [
        (float(first), float(last))
        for first, last in zip(
            () if before is None else before, () if after is None else after, strict=False
        )
        if first is not None and last is not None and first > 0 and last > 0
    ]
    if not pairs:
        return NO_PACE
    middle = float(np.median([value for pair in pairs for value in pair]))
    off = sum(
        rule.differ(first, last) or rule.differ(math.sqrt(first * last), middle)
        for first, last in pairs
    )
    if 2 * off >= len(pairs):
        return Pace(middle, f"the speed of the CPU changed in {off} of {len(pairs)} samples")
    return Pace(middle)


def classify_pair(sides: Sequence[Pace], rule: PaceRule | None = None) -> str | None:
    """Why the sides of a pair (or of more variants) cannot be compared; None where they can.

    Sides without probes are never marked: nothing is known against them.
    """
    rule = rule or PaceRule()
    for side in sides:
        if side.reason is not None:
            return side.reason
    known = [side.value for side in sides if side.value is not None]
    if known and rule.differ(max(known), min(known)):
        share = 100 * (max(known) / min(known) - 1)
        return f"the sides ran in different speed states of the CPU ({share:.0f} % apart)"
    return None


def classify_pairs(
    one: Mapping[int, Pace], other: Mapping[int, Pace], rule: PaceRule | None = None
) -> dict[int, str]:
    """The marked pairs, block -> reason, of the blocks that both sides have."""
    marked = {}
    for block in sorted(one.keys() & other.keys()):
        reason = classify_pair((one[block], other[block]), rule)
        if reason is not None:
            marked[block] = reason
    return marked
