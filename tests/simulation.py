"""Simulated machines for the tests of the method: drift, spikes, speed states, probes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from capybench import stats

#: Factors of the speed states of a shared virtual CPU, and how long one lasts, in seconds.
STATES, STATE_S = np.array([1.0, 1.05, 1.33]), 30.0
WORKER_S, SAMPLE_S = 0.4, 0.05


@dataclass(frozen=True)
class World:
    """A run of pairs: every cell's two sides adjacent, in balanced order, block by block.

    Process levels follow AR(1) with `phi` and the stationary `spread`; samples scatter by `noise`
    around them, one in twenty is a spike. With `states` the machine changes its speed.
    """

    cells: int = 77
    blocks: int = 20
    samples: int = 5
    phi: float = 0.6
    spread: float = 0.02
    noise: float = 0.01
    spikes: float = 0.05
    states: bool = False

    def logs(self, seed: int, effect: float = 0.0, remeasure: bool = False) -> np.ndarray:
        """Paired log-ratios, blocks x cells; the first cell of head is `effect` slower."""
        random = np.random.default_rng([seed, 77])
        shape = (self.blocks, self.cells, 2)
        count = int(np.prod(shape))
        level = self._levels(random, count).reshape(shape)
        times = (np.arange(count) * WORKER_S).reshape(shape)
        clock = _Clock(random, 3 * count * WORKER_S) if self.states else None
        medians, marked = self._measure(random, level, times, clock)
        if remeasure:
            now = count * WORKER_S
            # At most blocks / 2 times a cell, whole pairs, later in the run.
            for _ in range(2):
                where = np.argwhere(marked)
                left: dict[int, int] = {}
                for block, cell in where:
                    left[cell] = left.get(cell, 0) + 1
                    if left[cell] > self.blocks // 4:
                        continue
                    pair = self._levels(random, 2).reshape(1, 1, 2)
                    again = (now + WORKER_S * np.arange(2)).reshape(1, 1, 2)
                    now += 2 * WORKER_S
                    fresh, bad = self._measure(random, pair, again, clock)
                    medians[block, cell], marked[block, cell] = fresh[0, 0], bad[0, 0]
        # Balanced AB/BA: which side came first is a draw, the same number of times each.
        first = random.permuted(
            np.tile(np.arange(self.blocks) % 2, (self.cells, 1)), axis=1
        ).T.astype(bool)
        logs = medians[..., 1] - medians[..., 0]
        logs = np.where(first, logs, -logs)
        logs[:, 0] += np.log1p(effect)
        if remeasure:
            logs[marked] = np.nan
        return logs

    def _levels(self, random: np.random.Generator, count: int) -> np.ndarray:
        steps = random.normal(size=count) * self.spread * np.sqrt(1 - self.phi**2)
        steps[0] = random.normal() * self.spread
        return lfilter([1.0], [1.0, -self.phi], steps)

    def _measure(
        self,
        random: np.random.Generator,
        level: np.ndarray,
        times: np.ndarray,
        clock: _Clock | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log medians of the processes, and which pairs the probes mark."""
        shape = (*level.shape, self.samples)
        samples = level[..., None] + random.normal(size=shape) * self.noise
        hit = random.random(shape) < self.spikes
        samples = samples + hit * random.exponential(0.3, size=shape)
        marked = np.zeros(level.shape[:2], dtype=bool)
        if clock is not None:
            at = times[..., None] + SAMPLE_S * np.arange(self.samples)
            samples = samples + np.log(clock.factor(at + SAMPLE_S / 2))
            before = clock.factor(at) * (1 + 0.004 * random.normal(size=shape))
            after = clock.factor(at + SAMPLE_S) * (1 + 0.004 * random.normal(size=shape))
            # The rule is slow in Python; only pairs near a change of state can be marked.
            near = (before.max(axis=(2, 3)) / before.min(axis=(2, 3)) > 1.015) | (
                after.max(axis=(2, 3)) / before.min(axis=(2, 3)) > 1.015
            )
            for block, cell in np.argwhere(near):
                sides = [
                    stats.pace_of(before[block, cell, side], after[block, cell, side])
                    for side in range(2)
                ]
                marked[block, cell] = stats.classify_pair(sides) is not None
        return np.median(samples, axis=-1), marked


class _Clock:
    """The speed of one CPU over time: a state at random for an exponential time."""

    def __init__(self, random: np.random.Generator, seconds: float) -> None:
        count = int(3 * seconds / STATE_S) + 10
        self._ends = np.cumsum(random.exponential(STATE_S, size=count))
        self._states = random.integers(0, STATES.size, size=count + 1)

    def factor(self, times: np.ndarray) -> np.ndarray:
        return STATES[self._states[np.searchsorted(self._ends, times)]]
