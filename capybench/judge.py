"""Comparing runs: pairing, verdicts, and what a gate makes of them.

    comparison = compare_runs(load("base.json"), load("head.json"))       # two sessions
    comparison = compare_runs(run, run, variants=("base", "head"))        # interleaved in one run
    for row in comparison.rows:
        print(row.id, row.verdict, row.ratio, row.ci_low, row.ci_high)

Everything is computed from samples. Costs are compared: time an operation (or a byte), so that a
ratio above 1 is worse whatever the unit. docs/judgement.md says what the verdicts mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import environment, stats
from .checks import count_checks, limit_checks
from .comparison import (
    FAIL_ON,
    FASTER,
    INCONCLUSIVE,
    KINDS,
    SAME,
    SLOWER,
    SUSPECT,
    UNSTABLE,
    VERDICTS,
    CellVerdict,
    Check,
    Comparison,
    SuiteVerdict,
)
from .errors import UsageError
from .results import RunResult
from .sides import (
    MachinesDifferError,
    Pair,
    control_of,
    different_machine,
    few,
    main_variant,
    make_pairs,
    read_side,
    variant_facts,
    variants_of,
)
from .stats import Floats
from .thresholds import Threshold, change_of

__all__ = [
    "FAIL_ON",
    "KINDS",
    "VERDICTS",
    "CellVerdict",
    "Check",
    "Comparison",
    "MachinesDifferError",
    "SuiteVerdict",
    "compare_runs",
    "confirm",
    "different_machine",
    "limit_checks",
    "paired_spread",
    "refuse_other_machine",
    "session",
    "variants_of",
]

DEFAULT_MARGIN = 0.03
CORRECTIONS = ("max-t", "holm", "bh")

Runs = RunResult | Sequence[RunResult]


# ---- the comparison ------------------------------------------------------------------------------


def compare_runs(
    base: Runs,
    head: Runs,
    *,
    variants: tuple[str, str] | None = None,
    thresholds: Sequence[Threshold] = (),
    margin: float = DEFAULT_MARGIN,
    history: Sequence[RunResult] = (),
    seed: int | None = None,
    correction: str = "max-t",
    names: tuple[str, str] | None = None,
    rule: stats.PaceRule | None = None,
    expected: Collection[str] | None = None,
) -> Comparison:
    """Judge `head` against `base`.

    Args:
        base, head: two runs (two sessions), or at least four runs each (sessions whose labels are
            permuted); the same run twice with `variants` (measured interleaved: paired by block).
        variants: names of the two builds in that run; by default its first and its second.
        thresholds: margins of cells (`median:5%`), and checks of counts, limits and ratios.
        margin: share that a cost may differ by where no threshold says otherwise; the noise floor
            of the negative control raises it.
        history: earlier runs of this machine, oldest first: how far its sessions lie apart.
        seed: for all resampling; by default that of `head`.
        correction: how the family of cells is corrected: "max-t" (sign flips, joint), or for
            paired sides "holm" or "bh" (false discovery rate) on single p-values.
        names: what the sides are called.
        rule: which probe values tell speed states apart.
        expected: ids that `head` was asked to measure, where its file does not tell: those of
            them that it lacks are gone, others are not judged.

    Raises:
        MachinesDifferError: the runs are of different machines.
        UsageError: an unknown variant or correction, too few sessions.
    """
    if not 0 < margin < 10:
        raise UsageError(f"a margin is a share such as 0.03, not {margin}")
    if correction not in CORRECTIONS:
        raise UsageError(f"unknown correction {correction!r}; known: {', '.join(CORRECTIONS)}")
    bases, heads = _as_runs(base), _as_runs(head)
    for run in (*bases, *heads):
        if different := different_machine(bases[0], run):
            if not _portable(thresholds) or len(bases) + len(heads) > 2:
                raise _other_machine(different)
            seed = heads[0].seed if seed is None else seed
            return _Portable(
                bases[0], heads[0], names, thresholds, margin, seed, expected
            ).comparison()
    seed = heads[-1].seed if seed is None else seed
    if len(bases) > 1 or len(heads) > 1:
        judged: _Judge = _Sessions(bases, heads, names, thresholds, margin, seed)
    elif variants is not None or (bases[0] is heads[0] and variants_of(bases[0])):
        chosen = _chosen_variants(heads[0], variants)
        judged = _Interleaved(heads[0], chosen, names, thresholds, margin, seed, correction, rule)
    elif bases[0] is heads[0]:
        raise UsageError("this run has one build only: compare it with another run")
    else:
        judged = _Stored(bases[0], heads[0], names, thresholds, margin, seed, history, expected)
    if correction != "max-t" and judged.kind != "variants":
        raise UsageError(f"{correction} needs paired sides; these were measured in sessions apart")
    return judged.comparison()


def _portable(thresholds: Sequence[Threshold]) -> bool:
    """Whether there is something to judge, and nothing that means this machine only."""
    return bool(thresholds) and all(threshold.portable for threshold in thresholds)


def _other_machine(difference: str) -> MachinesDifferError:
    return MachinesDifferError(
        f"times of different machines cannot be compared ({difference}); ratios inside one run and "
        "counts can: thresholds such as ratio(A, B)<1.3 and allocs:0"
    )


def refuse_other_machine(stored: RunResult, thresholds: Sequence[Threshold] = ()) -> None:
    """MachinesDifferError where times of a stored run are wanted and it is not of this machine."""
    here = RunResult({}, {"fingerprint": environment.fingerprint()}, (), {})
    difference = different_machine(stored, here)
    if difference is not None and not _portable(thresholds):
        raise _other_machine(difference)


def paired_spread(run: RunResult) -> float | None:
    """Standard deviation of one paired log-ratio, the median over the cells of a run of two
    builds; None for a run of one, or of too few blocks."""
    known = variants_of(run)
    if len(known) < 2:
        return None
    found = []
    for pair in make_pairs(run, run, (known[0], known[1]))[0]:
        if pair.verdict is None and pair.base is not None and pair.head is not None:
            base, head = pair.base.costs, pair.head.costs
            logs = [head[block] - base[block] for block in base.keys() & head.keys()]
            if len(logs) >= stats.MIN_BLOCKS:
                found.append(float(np.std(logs, ddof=1)))
    return float(np.median(found)) if found else None


def _as_runs(side: Runs) -> list[RunResult]:
    runs = [side] if isinstance(side, RunResult) else list(side)
    if not runs:
        raise UsageError("there is no run to compare")
    return runs


def _chosen_variants(run: RunResult, asked: tuple[str, str] | None) -> tuple[str, str]:
    known = variants_of(run)
    if asked is None:
        if len(known) < 2:
            raise UsageError(f"the run has no two variants to compare, only {', '.join(known)}")
        return known[0], known[1]
    for name in asked:
        if name not in known:
            listed = ", ".join(known) or "none: it measured one build"
            raise UsageError(f"the run has no variant {name!r}; it has {listed}")
    return asked


def _name(run: RunResult) -> str:
    return str(run.run.get("name") or run.run.get("id") or "a run without a name")


class _Judge:
    """What all three kinds of comparison share: margins, verdicts, rows, checks."""

    kind = ""

    def __init__(
        self,
        names: tuple[str, str],
        thresholds: Sequence[Threshold],
        margin: float,
        seed: int,
    ) -> None:
        self.names = names
        self.thresholds = thresholds
        self.asked_margin = margin
        self.seed = seed
        self.floor: float | None = None
        self.quantile: float | None = None
        self.level: float | None = None
        self.correction = "max-t"
        self.notes: list[str] = []
        self.pairs: list[Pair] = []

    # --- margins

    def margin(self, pair: Pair) -> float:
        """The margin of a pair as a log-ratio."""
        base_ns = None
        if pair.base is not None and pair.base.costs:
            base_ns = math.exp(float(np.median(list(pair.base.costs.values()))))
        rate = pair.cell.unit != "ns/op"
        found = change_of(self.thresholds, pair.id, rate, base_ns)
        asked = math.log1p(self.asked_margin) if found is None else found[0]
        return max(asked, self.floor or 0.0)

    # --- rows

    def row(self, pair: Pair, **numbers: Any) -> CellVerdict:
        """A row with what is known of every pair."""
        return CellVerdict(
            id=pair.id,
            verdict=numbers.pop("verdict", None) or pair.verdict or INCONCLUSIVE,
            unit=pair.cell.unit,
            direction=pair.cell.direction,
            base=pair.base.median if pair.base else None,
            head=pair.head.median if pair.head else None,
            control=pair.control,
            marked=pair.marked,
            gated=pair.gated,
            reason=numbers.pop("reason", None) or pair.reason,
            **numbers,
        )

    def rows(self) -> list[CellVerdict]:
        """All rows; by the kinds of comparison."""
        raise NotImplementedError

    def suites(self) -> tuple[SuiteVerdict, ...]:
        """Geometric means; by the kinds of comparison."""
        raise NotImplementedError

    def now(self) -> tuple[RunResult, str | None]:
        """The run, and its variant, that must hold limits and ratios."""
        raise NotImplementedError

    def comparison(self) -> Comparison:
        """Everything together."""
        rows = self.rows()
        head, variant = self.now()
        checks = (
            *count_checks(self.pairs, self.thresholds),
            *limit_checks(head, self.thresholds, variant=variant, seed=self.seed),
        )
        return Comparison(
            kind=self.kind,
            base=self.names[0],
            head=self.names[1],
            rows=tuple(rows),
            margin=max(self.asked_margin, math.expm1(self.floor or 0.0)),
            noise_floor=None if self.floor is None else math.expm1(self.floor),
            family=self.family(),
            level=self.level,
            correction=self.correction,
            seed=self.seed,
            suites=self.suites(),
            checks=checks,
            notes=tuple(self.notes),
        )

    def family(self) -> int:
        """How many cells are judged jointly."""
        return sum(pair.verdict is None for pair in self.pairs)

    def grouped(
        self, mean: Callable[[list[int]], tuple[float, stats.Interval | None]], valid: Sequence[int]
    ) -> tuple[SuiteVerdict, ...]:
        """Geometric means of suites of two or more of the `valid` pairs, and of all."""
        suites: dict[str, list[int]] = {}
        for at in valid:
            if not self.pairs[at].control:
                suites.setdefault(self.pairs[at].cell.suite, []).append(at)
        groups = {name: found for name, found in suites.items() if len(found) > 1}
        if len(suites) > 1:
            groups[""] = [at for found in suites.values() for at in found]
        made = []
        for name, found in groups.items():
            value, interval = mean(found)
            made.append(
                SuiteVerdict(
                    name,
                    len(found),
                    _ratio(value),
                    _ratio(interval.low) if interval else None,
                    _ratio(interval.high) if interval else None,
                )
            )
        return tuple(made)


def _ratio(log_ratio: float) -> float:
    """Ratio of a log-ratio; the largest double where it would overflow."""
    return math.exp(min(log_ratio, 709.0))


def _share(log_ratio: float) -> float:
    return math.expm1(min(log_ratio, 709.0))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# ---- interleaved in one run ----------------------------------------------------------------------


class _Interleaved(_Judge):
    kind = "variants"

    def __init__(
        self,
        run: RunResult,
        variants: tuple[str, str],
        names: tuple[str, str] | None,
        thresholds: Sequence[Threshold],
        margin: float,
        seed: int,
        correction: str,
        rule: stats.PaceRule | None,
    ) -> None:
        super().__init__(names or variants, thresholds, margin, seed)
        self.run, self.variants, self.rule = run, variants, rule
        self.correction = correction
        self.pairs, unjudged = make_pairs(run, run, variants)
        if unjudged:
            self.notes.append(f"not judged, for want of both sides: {unjudged} of the cells")
        control = control_of(run, variants[0])
        if control is not None:
            for pair in make_pairs(run, run, (variants[0], control))[0]:
                if pair.verdict is None:
                    pair.control = True
                    self.pairs.append(pair)
        self.logs = self._logs()
        controls = self.logs[:, [at for at, pair in enumerate(self.pairs) if pair.control]]
        self.floor = stats.noise_floor(controls, seed) if controls.size else None
        if self.floor is not None and math.expm1(self.floor) > margin:
            self.notes.append(
                f"a noisy session: the base against itself needs a margin of "
                f"{100 * math.expm1(self.floor):.1f} %, so that smaller changes do not fail"
            )
        if not run.complete:
            self.notes.append("the run is incomplete; each row states its pairs")

    def now(self) -> tuple[RunResult, str | None]:
        return self.run, self.variants[1]

    def _logs(self) -> Floats:
        """Paired log-ratios, blocks x pairs, NaN where a pair is missing or marked."""
        found = [self._paired(pair) if pair.verdict is None else {} for pair in self.pairs]
        blocks = sorted({block for logs in found for block in logs})
        matrix = np.full((len(blocks), len(found)), np.nan)
        place = {block: row for row, block in enumerate(blocks)}
        for column, logs in enumerate(found):
            for block, value in logs.items():
                matrix[place[block], column] = value
        return matrix

    def _paired(self, pair: Pair) -> dict[int, float]:
        if pair.base is None or pair.head is None:
            return {}
        base, head = pair.base.costs, pair.head.costs
        logs = {block: head[block] - base[block] for block in sorted(base.keys() & head.keys())}
        marked = stats.classify_pairs(pair.base.paces, pair.head.paces, self.rule)
        clean = {block: value for block, value in logs.items() if block not in marked}
        pair.marked = len(logs) - len(clean)
        if len(clean) >= stats.MIN_BLOCKS:
            pair.gated = pair.marked
            return clean
        return logs

    def rows(self) -> list[CellVerdict]:
        joint = stats.max_t(
            self.logs, seed=self.seed, resolution=[pair.step for pair in self.pairs]
        )
        self.quantile, self.level = joint.quantile, joint.level
        p = self._corrected(joint)
        return [
            self._row(pair, at, joint, None if p is None else p[at])
            if pair.verdict is None
            else self.row(pair)
            for at, pair in enumerate(self.pairs)
        ]

    def _corrected(self, joint: stats.Joint) -> Floats | None:
        """p-values corrected otherwise than by max-T, or None."""
        if self.correction == "max-t":
            return None
        part = np.flatnonzero(~np.isnan(joint.p))
        blocks = int(joint.n[part].min()) if part.size else 0
        if reason := stats.correction_reason(blocks, int(part.size)):
            self.notes.append(f"{self.correction} was not used: {reason}; max-t was")
            self.correction = "max-t"
            return None
        single = [
            stats.sign_flip_p(column[~np.isnan(column)], self.seed)
            for column in self.logs[:, part].T
        ]
        correct = stats.holm if self.correction == "holm" else stats.benjamini_hochberg
        p = np.full(len(self.pairs), np.nan)
        p[part] = correct(single)
        return p

    def _row(self, pair: Pair, at: int, joint: stats.Joint, corrected: float | None) -> CellVerdict:
        logs = self.logs[:, at]
        logs = logs[~np.isnan(logs)]
        margin = self.margin(pair)
        if logs.size == 0:
            return self.row(pair, margin=_share(margin), reason="no block has both sides")
        known: dict[str, Any] = {
            "ratio": _ratio(float(logs.mean())),
            "ratio_median": _ratio(float(np.median(logs))),
            "margin": _share(margin),
            "blocks": int(logs.size),
        }
        if logs.size < stats.MIN_BLOCKS or joint.quantile is None:
            return self.row(pair, reason=few(logs.size), **known)
        mean, error = float(joint.mean[at]), float(joint.error[at])
        low, high = float(joint.low[at]), float(joint.high[at])
        own = stats.sign_flip_interval(logs, 0.90, self.seed, pair.step)
        p = float(joint.p[at]) if corrected is None else corrected
        known |= {
            "ci_low": _ratio(low),
            "ci_high": _ratio(high),
            "ci_level": joint.level,
            "own_low": _ratio(own.low) if own else None,
            "own_high": _ratio(own.high) if own else None,
            "p": p,
            "detectable": _share(stats.detectable_effect(error, joint.quantile, logs.size - 1)),
        }
        found = (low > 0 or high < 0) if corrected is None else p <= 1 - stats.CONFIDENCE
        levels = stats.modes(logs, margin)
        # Two speeds that are both beyond the margin on one side leave nothing open.
        if levels is not None and not (found and (levels[0] > margin or levels[1] < -margin)):
            texts = " and ".join(f"×{_ratio(level):.3f}" for level in levels)
            return self.row(
                pair, verdict=UNSTABLE, reason=f"the pairs fall into two modes, {texts}", **known
            )
        if found:
            slower = mean > 0
            return self.row(
                pair,
                verdict=SLOWER if slower else FASTER,
                fails=slower and low > margin and not pair.control,
                **known,
            )
        if own is not None and -margin < own.low and own.high < margin:
            return self.row(pair, verdict=SAME, **known)
        spread = error * math.sqrt(logs.size)
        needed = stats.blocks_needed(mean, spread, self.family(), margin)
        return self.row(pair, verdict=INCONCLUSIVE, blocks_needed=needed, **known)

    def suites(self) -> tuple[SuiteVerdict, ...]:
        valid = [at for at in range(len(self.pairs)) if not np.isnan(self.logs[:, at]).all()]
        return self.grouped(
            lambda found: stats.geometric_mean(self.logs[:, found], seed=self.seed), valid
        )


# ---- two sessions --------------------------------------------------------------------------------


class _Stored(_Judge):
    kind = "stored"

    def __init__(
        self,
        base: RunResult,
        head: RunResult,
        names: tuple[str, str] | None,
        thresholds: Sequence[Threshold],
        margin: float,
        seed: int,
        history: Sequence[RunResult],
        expected: Collection[str] | None,
    ) -> None:
        super().__init__(names or (_name(base), _name(head)), thresholds, margin, seed)
        self.base, self.head = base, head
        self.variants = main_variant(base), main_variant(head)
        self.pairs, unjudged = make_pairs(base, head, self.variants, expected)
        if unjudged:
            self.notes.append(f"not judged, for want of one side or both: {unjudged} of the cells")
        for name, run in zip(("base", "head"), (base, head), strict=True):
            if not run.complete:
                self.notes.append(f"{name} is incomplete; each row states its processes")
            if not run.machine.get("fingerprint"):
                self.notes.append(f"{name} does not say which machine it is of")
        same = [run for run in history if different_machine(run, head) is None]
        self.noise = stats.session_noise([session(run) for run in same])
        self.above = _side_matrix(self.pairs, "head")
        self.below = _side_matrix(self.pairs, "base")

    def now(self) -> tuple[RunResult, str | None]:
        return self.head, self.variants[1]

    def rows(self) -> list[CellVerdict]:
        found = stats.stored_ratios(
            self.above,
            self.below,
            seed=self.seed,
            resolution=[pair.step for pair in self.pairs],
        )
        self.quantile, self.level = found.quantile, found.level
        judged = [pair for pair in self.pairs if pair.verdict is None]
        guessed = sum(pair.id not in self.noise for pair in judged)
        if guessed:
            self.notes.append(
                f"no history of this machine for {guessed} of {len(judged)} cells: their sessions "
                f"are taken to lie up to {100 * stats.DEFAULT_NOISE:.0f} % apart"
            )
        return [
            self._row(pair, at, found) if pair.verdict is None else self.row(pair)
            for at, pair in enumerate(self.pairs)
        ]

    def _row(self, pair: Pair, at: int, found: stats.StoredRatios) -> CellVerdict:
        margin, noise = self.margin(pair), self.noise.get(pair.id, stats.DEFAULT_NOISE)
        n = min(len(side.costs) if side else 0 for side in (pair.base, pair.head))
        value = float(found.value[at])
        known: dict[str, Any] = {
            "ratio": _ratio(value),
            "margin": _share(margin),
            "noise": noise,
            "blocks": n,
        }
        low, high, error = float(found.low[at]), float(found.high[at]), float(found.error[at])
        if math.isnan(low) or found.quantile is None:
            return self.row(pair, reason=few(n), **known)
        far = margin + math.log1p(noise)
        own = float(found.own_low[at]), float(found.own_high[at])
        known |= {
            "ci_low": _ratio(low),
            "ci_high": _ratio(high),
            "ci_level": found.level,
            "own_low": _ratio(own[0]),
            "own_high": _ratio(own[1]),
            "detectable": _share(
                stats.detectable_effect(error, found.quantile, max(n - 1, 1), beyond=far)
            ),
        }
        if low > far:
            return self.row(pair, verdict=SLOWER, fails=True, **known)
        if high < -far:
            return self.row(pair, verdict=FASTER, **known)
        if low > margin or high < -margin:
            reason = "beyond the margin, but sessions of one build may lie as far apart"
            return self.row(pair, verdict=SUSPECT, reason=reason, **known)
        if -margin < own[0] and own[1] < margin:
            return self.row(pair, verdict=SAME, **known)
        needed = stats.blocks_needed(value, error * math.sqrt(n), self.family(), margin)
        return self.row(pair, verdict=INCONCLUSIVE, blocks_needed=needed, **known)

    def suites(self) -> tuple[SuiteVerdict, ...]:
        missing = np.isnan(self.above).all(axis=0) | np.isnan(self.below).all(axis=0)
        return self.grouped(
            lambda found: stats.stored_geometric_mean(
                self.above[:, found], self.below[:, found], seed=self.seed
            ),
            [int(at) for at in np.flatnonzero(~missing)],
        )


def session(run: RunResult) -> tuple[str, dict[str, float]]:
    """The build of a run and the log median of each of its cells."""
    build = run.machine.get("build") or {}
    variant = main_variant(run)
    if variant is not None:
        build = variant_facts(run)[variant].get("build") or build
    values = {}
    for cell in run.cells:
        side = read_side(cell, variant)
        if side.status == "ok" and side.costs:
            values[cell.id] = float(np.median(list(side.costs.values())))
    return str(build.get("build_id")), values


def _side_matrix(pairs: Sequence[Pair], which: str) -> Floats:
    """Log costs of one session: processes x pairs, in block order, NaN where there is none."""
    sides = [getattr(pair, which) if pair.verdict is None else None for pair in pairs]
    blocks = sorted({block for side in sides if side is not None for block in side.costs})
    matrix = np.full((len(blocks), len(pairs)), np.nan)
    place = {block: row for row, block in enumerate(blocks)}
    for column, side in enumerate(sides):
        for block, value in side.costs.items() if side is not None else ():
            matrix[place[block], column] = value
    return matrix


class _Portable(_Judge):
    """Runs of different machines: no row has a time, counts and ratios are checked."""

    kind = "portable"

    def __init__(
        self,
        base: RunResult,
        head: RunResult,
        names: tuple[str, str] | None,
        thresholds: Sequence[Threshold],
        margin: float,
        seed: int,
        expected: Collection[str] | None,
    ) -> None:
        super().__init__(names or (_name(base), _name(head)), thresholds, margin, seed)
        self.head = head
        self.variants = main_variant(base), main_variant(head)
        self.pairs, _ = make_pairs(base, head, self.variants, expected)
        self.notes.append(f"the machines differ: {different_machine(base, head)}")

    def now(self) -> tuple[RunResult, str | None]:
        return self.head, self.variants[1]

    def rows(self) -> list[CellVerdict]:
        return [self.row(pair) for pair in self.pairs if pair.verdict is not None]

    def suites(self) -> tuple[SuiteVerdict, ...]:
        return ()

    def family(self) -> int:
        return 0


# ---- many sessions -------------------------------------------------------------------------------


class _Sessions(_Judge):
    kind = "sessions"

    def __init__(
        self,
        bases: Sequence[RunResult],
        heads: Sequence[RunResult],
        names: tuple[str, str] | None,
        thresholds: Sequence[Threshold],
        margin: float,
        seed: int,
    ) -> None:
        least = stats.MIN_SESSIONS
        if min(len(bases), len(heads)) < least:
            raise UsageError(
                f"sessions are compared with at least {least} runs on each side, here are "
                f"{len(bases)} and {len(heads)}; two single runs can be compared, too"
            )
        default = f"{len(bases)} sessions", f"{len(heads)} sessions"
        super().__init__(names or default, thresholds, margin, seed)
        self.bases, self.heads = bases, heads
        self.pairs, unjudged = make_pairs(
            bases[-1], heads[-1], (main_variant(bases[-1]), main_variant(heads[-1]))
        )
        if unjudged:
            self.notes.append(f"not judged, for want of one side or both: {unjudged} of the cells")
        self.above, self.below = (
            self._matrix([session(run) for run in runs]) for runs in (heads, bases)
        )
        for name, runs in (("base", bases), ("head", heads)):
            if len({session(run)[0] for run in runs}) > 1:
                self.notes.append(f"the sessions of {name} are of several builds")

    def _matrix(self, sessions: Sequence[tuple[str, Mapping[str, float]]]) -> Floats:
        return np.array(
            [[values.get(pair.id, math.nan) for pair in self.pairs] for _, values in sessions]
        ).reshape(len(sessions), len(self.pairs))

    def now(self) -> tuple[RunResult, str | None]:
        return self.heads[-1], main_variant(self.heads[-1])

    def rows(self) -> list[CellVerdict]:
        found = stats.permuted_sessions(
            self.above, self.below, seed=self.seed, resolution=[pair.step for pair in self.pairs]
        )
        self.quantile, self.level = found.quantile, found.level
        return [
            self._row(pair, at, found) if pair.verdict is None else self.row(pair)
            for at, pair in enumerate(self.pairs)
        ]

    def _row(self, pair: Pair, at: int, found: stats.StoredRatios) -> CellVerdict:
        margin = self.margin(pair)
        n = min(len(self.bases), len(self.heads))
        known: dict[str, Any] = {"margin": _share(margin), "blocks": n}
        value, low, high = (float(part[at]) for part in (found.value, found.low, found.high))
        if math.isnan(value):
            return self.row(pair, reason="not every session has it", **known)
        known["ratio"] = _ratio(value)
        if math.isnan(low) or found.quantile is None:
            return self.row(pair, reason=f"{n} sessions a side are too few", **known)
        error, own = float(found.error[at]), (float(found.own_low[at]), float(found.own_high[at]))
        degrees = len(self.bases) + len(self.heads) - 2
        known |= {
            "ci_low": _ratio(low),
            "ci_high": _ratio(high),
            "ci_level": found.level,
            "own_low": _ratio(own[0]),
            "own_high": _ratio(own[1]),
            "p": float(found.p[at]),
            "detectable": _share(stats.detectable_effect(error, found.quantile, degrees)),
        }
        if low > 0:
            return self.row(pair, verdict=SLOWER, fails=low > margin, **known)
        if high < 0:
            return self.row(pair, verdict=FASTER, **known)
        if -margin < own[0] and own[1] < margin:
            return self.row(pair, verdict=SAME, **known)
        return self.row(pair, verdict=INCONCLUSIVE, **known)

    def suites(self) -> tuple[SuiteVerdict, ...]:
        missing = np.isnan(self.above).any(axis=0) | np.isnan(self.below).any(axis=0)

        def mean(found: list[int]) -> tuple[float, stats.Interval | None]:
            sides = self.above[:, found].mean(axis=1), self.below[:, found].mean(axis=1)
            joint = stats.permuted_sessions(sides[0][:, None], sides[1][:, None], seed=self.seed)
            interval = None
            if joint.level is not None:
                interval = stats.Interval(float(joint.low[0]), float(joint.high[0]), joint.level)
            return float(joint.value[0]), interval

        return self.grouped(mean, [int(at) for at in np.flatnonzero(~missing)])


# ---- confirmation --------------------------------------------------------------------------------


def confirm(first: Comparison, again: Comparison) -> Comparison:
    """What holds after the flagged cells were measured again in fresh blocks.

    Rows and checks that fail in `first` and stand in `again` are judged by the new data alone;
    everything else stays as it was.
    """
    fresh = {row.id: row for row in again.cells}
    rows: dict[str, CellVerdict] = {}
    for row in first.cells:
        if not row.fails or row.id not in fresh:
            continue
        new = fresh[row.id]
        seen = f"first seen as ×{row.ratio:.3f}" if row.ratio is not None else "flagged at first"
        said = "confirmed in fresh blocks" if new.fails else "not confirmed in fresh blocks"
        reason = f"{seen}, {said}"
        rows[row.id] = replace(new, reason=f"{reason}; {new.reason}" if new.reason else reason)
    timed = {(check.threshold, check.id): check for check in again.checks if check.timed}
    checks = {
        (check.threshold, check.id): timed[check.threshold, check.id]
        for check in first.checks
        if check.timed and check.fails and (check.threshold, check.id) in timed
    }
    flagged, held = len(rows) + len(checks), 0
    held += sum(row.fails for row in rows.values()) + sum(c.fails for c in checks.values())
    note = f"{flagged} flagged and measured again in fresh blocks, {held} confirmed"
    return first.with_rows(rows, checks, (note,))
