"""Gates: measure two builds, or one against a stored run, judge, confirm what fails.

    gate = variants_gate({"base": "../old/.venv", "head": "installed"}, ["coroutine"], quick=True)
    print(*gate.preview(), sep="\\n")
    comparison = gate.check()
    sys.exit(comparison.exit_code())

A gate decides by the near end of an interval, and only after the flagged cells have been measured
again in fresh blocks and judged on the new data alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from . import cases, judge, runner, sides, stats
from .comparison import Comparison
from .errors import UsageError
from .plan import Plan, duration, make_plan
from .results import RunResult
from .thresholds import TIMES, Threshold

if TYPE_CHECKING:
    from .cases import Case, Cell, Listing
    from .runner import Progress

#: Blocks of `check` and of `compare --variant`.
BLOCKS = 20
#: Cells that are measured against themselves: enough for a noise floor, few in time.
CONTROLS = 4
#: Spread (standard deviation) of one paired log-ratio where no earlier run tells.
ASSUMED_SPREAD = 0.02


class GateError(UsageError):
    """A gate that could not decide anything, found out before it measures."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate that is ready to start; made by `variants_gate` or `stored_gate`.

    `plan` is what it will measure first. `listings` are its builds, base first (one build where
    `stored` is the baseline), `chosen` the cells, `settings` what goes to `make_plan`. `expected`
    are the ids that a stored baseline asks for.
    """

    plan: Plan
    whole: Listing
    listings: Mapping[str, Listing]
    chosen: tuple[Cell, ...]
    settings: Mapping[str, Any]
    thresholds: tuple[Threshold, ...]
    margin: float
    control: bool
    stored: RunResult | None
    expected: frozenset[str]
    history: tuple[RunResult, ...]

    def preview(self) -> tuple[str, ...]:
        """What to say before it starts: cells, blocks, time, and the smallest effect it can see."""
        plan, missing, controls = self.plan, set[str](), 0
        for side in plan.sides:
            if side.name == sides.CONTROL:
                controls = len(plan.cells) - len(side.missing)
            else:
                missing |= side.missing.keys()
        cells = len(plan.cells) - len(missing)
        with_control = f" and {controls} of them against themselves" if controls else ""
        return (
            f"{_many(cells, 'cell')}{with_control}, {_many(plan.blocks, 'block')} of "
            f"{_many(plan.samples, 'sample')} of {plan.target_ns / 1e6:g} ms, "
            f"{_many(plan.workers, 'worker')}, about {duration(plan.estimated_s)}",
            self._visible(max(cells + controls, 1)),
        )

    def _visible(self, family: int) -> str:
        spread, source = expected_spread(self.history)
        margins = [
            threshold.amount
            for threshold in self.thresholds
            if threshold.kind == "change" and threshold.metric in TIMES and threshold.unit == "%"
        ]
        margin = max(margins, default=self.margin)
        blocks = self.plan.blocks
        said = ""
        if self.stored is None:
            seen = stats.smallest_effect(blocks, family, spread)
            said = f"shows changes from {_per_cent(seen)} on, "
            fails = stats.smallest_effect(blocks, family, spread, margin)
        else:
            noise = stats.session_noise([judge.session(run) for run in self.history])
            typical = max(noise.values(), default=stats.DEFAULT_NOISE)
            beyond = (1 + margin) * (1 + typical) - 1
            fails = stats.smallest_effect(blocks, family, spread, beyond)
            said = f"sessions may lie {_per_cent(typical)} apart: "
        return (
            f"{said}fails from {_per_cent(fails)} on (margin {_per_cent(margin)}), in four of five "
            f"runs, if pairs spread {_per_cent(spread)} ({source})"
        )

    def check(
        self,
        *,
        confirm: bool = True,
        progress: Progress | None = None,
        timeout_s: float = runner.TIMEOUT_S,
    ) -> Comparison:
        """Measure, judge, and measure what fails once more.

        Raises:
            GateError: below six blocks.
            KeyboardInterrupt: the user stopped it; the file that its message names can be resumed.
            SaveError, EnvironmentFault: as `run_plan`.
        """
        self.enough_blocks()
        found = self.judge(measure(self.plan, progress=progress, timeout_s=timeout_s))
        ids = flagged(found)
        if not ids or not confirm:
            return found
        again = replace(self, plan=self._planned(ids), expected=self.expected.intersection(ids))
        fresh = measure(again.plan, progress=progress, timeout_s=timeout_s)
        return judge.confirm(found, again.judge(fresh))

    def judge(self, run: RunResult) -> Comparison:
        """The comparison of what was measured."""
        if self.stored is not None:
            return judge.compare_runs(
                self.stored,
                run,
                thresholds=self.thresholds,
                margin=self.margin,
                history=self.history,
                expected=self.expected,
            )
        base, head = self.listings
        return judge.compare_runs(
            run, run, variants=(base, head), thresholds=self.thresholds, margin=self.margin
        )

    def enough_blocks(self) -> None:
        """GateError where the plan has too few blocks for any verdict."""
        plan, least = self.plan, stats.MIN_BLOCKS
        if plan.blocks >= least:
            return
        why = f"{_many(plan.blocks, 'block')} cannot decide anything"
        if plan.blocks < plan.blocks_asked:
            why = f"the budget leaves {plan.blocks} of {plan.blocks_asked} blocks"
        raise GateError(f"{why}: a gate needs at least {least} blocks, {BLOCKS} are usual")

    def _planned(self, ids: Sequence[str]) -> Plan:
        """The same for a few cells only, in new orders."""
        chosen = tuple(cell for cell in self.chosen if cell.id in set(ids))
        settings = {**self.settings, "seed": self.plan.seed + 1}
        return _make(self.whole, self.listings, chosen, settings, self.control)


def _many(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def _per_cent(share: float | None) -> str:
    return "?" if share is None else f"{100 * share:.1f} %"


# ---- making one ----------------------------------------------------------------------------------


def base_and_head(names: Iterable[str]) -> tuple[str, str]:
    """Which of two variant names is the base: the one called so, else the first."""
    found = list(names)
    if len(found) != 2:
        raise UsageError(
            f"two variants are compared, here {'is' if len(found) == 1 else 'are'} {len(found)}: "
            "write --variant base=WHAT --variant head=WHAT"
        )
    if sides.CONTROL in found:
        raise UsageError(f"{sides.CONTROL!r} is the name of the negative control; choose another")
    turned = found[1] == "base" or found[0] == "head"
    return (found[1], found[0]) if turned else (found[0], found[1])


def variants_gate(
    builds: Mapping[str, str | os.PathLike[str]],
    patterns: Sequence[str] = (),
    *,
    keyword: str | None = None,
    quick: bool = False,
    blocks: int = BLOCKS,
    thresholds: Sequence[Threshold] = (),
    margin: float = judge.DEFAULT_MARGIN,
    control: bool = True,
    history: Sequence[RunResult] = (),
    plugins: Iterable[str | os.PathLike[str]] = (),
    use_installed: bool = True,
    **settings: Any,
) -> Gate:
    """A gate of two builds that are measured interleaved in one run.

    Args:
        builds: two names and what they stand for (see `capybench.variants`); the one called
            "base", or the first, is the base.
        patterns, keyword, quick: which cells, and short samples; without a pattern `quick` takes
            the cells marked so.
        blocks: how many; at least 6.
        thresholds, margin: as for `judge.compare_runs`.
        control: measure a few cells of the base against themselves, too.
        history: earlier runs, for the estimate of what it can see.
        plugins, use_installed: as for `variants.list_variants`.
        settings: for `plan.make_plan`: samples, seed, pin, budget_s, keep_env, command ...

    Raises:
        UsageError: not two builds, or a wrong one; a selection that matches nothing.
        EnvironmentFault: a build that cannot be listed or speaks another worker protocol.
    """
    # Imported here: a gate against a stored run does without.
    from . import variants

    base, head = base_and_head(builds)
    listings = variants.list_variants(
        {name: builds[name] for name in (base, head)},
        plugins=plugins,
        use_installed=use_installed,
    )
    whole = variants.union(listings)
    chosen = cases.select(whole, patterns, keyword, quick_only=quick and not patterns)
    every = {**settings, "quick": quick, "blocks": blocks, "patterns": list(patterns)}
    every["keyword"] = keyword
    return Gate(
        plan=_make(whole, listings, chosen, every, control),
        whole=whole,
        listings=listings,
        chosen=chosen,
        settings=every,
        thresholds=tuple(thresholds),
        margin=margin,
        control=control,
        stored=None,
        expected=frozenset(),
        history=tuple(history),
    )


def stored_gate(
    stored: RunResult,
    listing: Listing,
    patterns: Sequence[str] = (),
    *,
    keyword: str | None = None,
    quick: bool = False,
    blocks: int = BLOCKS,
    thresholds: Sequence[Threshold] = (),
    margin: float = judge.DEFAULT_MARGIN,
    history: Sequence[RunResult] = (),
    **settings: Any,
) -> Gate:
    """A gate of one build against a stored run of this machine.

    Without patterns the cells of the stored run are measured; one that this build lacks is gone.
    Arguments and errors as for `variants_gate`; MachinesDifferError where times of the stored run
    are asked for and it is of another machine.
    """
    known = {cell.id: cell for cell in stored.cells if cell.status != "unavailable"}
    if patterns or keyword:
        chosen = cases.select(listing, patterns, keyword)
        wanted = {
            name
            for name in known
            if (not patterns or any(cases.matches(pattern, name) for pattern in patterns))
            and (keyword is None or cases.keyword_matches(keyword, name))
        }
    else:
        chosen = tuple(cell for cell in listing if cell.id in known)
        wanted = set(known)
    if not chosen:
        raise UsageError("this build has none of the cells of the stored run")
    judge.refuse_other_machine(stored, thresholds)
    every = {**settings, "quick": quick, "blocks": blocks, "patterns": list(patterns)}
    every["keyword"] = keyword
    return Gate(
        plan=_make(listing, {}, chosen, every, False),
        whole=listing,
        listings={},
        chosen=chosen,
        settings=every,
        thresholds=tuple(thresholds),
        margin=margin,
        control=False,
        stored=stored,
        expected=frozenset(wanted),
        history=tuple(history),
    )


def _make(
    whole: Listing,
    listings: Mapping[str, Listing],
    chosen: tuple[Cell, ...],
    settings: Mapping[str, Any],
    control: bool,
) -> Plan:
    """The plan: base, then its control on a few cells, then head."""
    if not listings:
        return make_plan(whole, chosen, **settings)
    (base, ours), (head, theirs) = listings.items()
    named = {base: ours}
    if control:
        available = {cell.id for cell in ours if cell.available}
        ready = [cell for cell in chosen if cell.id in available]
        ids = control_cells(cases.group(ready, whole.suites))
        if again := tuple(cell for cell in ours if cell.id in ids):
            named[sides.CONTROL] = replace(ours, cells=again)
    named[head] = theirs
    return make_plan(whole, chosen, variants=named, **settings)


def control_cells(found: Sequence[Case], limit: int = CONTROLS) -> tuple[str, ...]:
    """Ids of the cells to measure against themselves: baselines, spread over the cases."""
    ready = [cell.id for case in found for cell in case.cells if cell.contender == case.baseline]
    if len(ready) <= limit:
        return tuple(ready)
    return tuple(ready[round(at * (len(ready) - 1) / (limit - 1))] for at in range(limit))


# ---- the parts of a check ------------------------------------------------------------------------


def measure(
    plan: Plan,
    *,
    progress: Progress | None = None,
    target: str | os.PathLike[str] | None = None,
    timeout_s: float = runner.TIMEOUT_S,
) -> RunResult:
    """Carry out a plan; sides whose probes disagree are measured again. Errors as `run_plan`.

    Raises KeyboardInterrupt when the user stops it; its message names the file with what is done.
    """
    document = runner.run_plan(
        plan,
        target=target,
        progress=progress,
        timeout_s=timeout_s,
        rule=sides.measure_again if plan.variants else None,
    )
    facts = document["run"]
    if facts["interrupted"]:
        raise KeyboardInterrupt(
            f"{facts['workers_done']} of {facts['workers']} workers had finished; "
            f"they are in {facts['path']}"
        )
    return RunResult.from_dict(document)


def flagged(comparison: Comparison) -> tuple[str, ...]:
    """Ids of the cells by which the gate would fail for their time."""
    ids = {row.id: None for row in comparison.cells if row.fails}
    for check in comparison.checks:
        if check.verdict == "exceeded" and check.timed:
            ids |= dict.fromkeys(check.id.split(" / "))
    return tuple(ids)


def expected_spread(history: Sequence[RunResult] = ()) -> tuple[float, str]:
    """Standard deviation of one paired log-ratio, and where the number is from."""
    for run in reversed(history):
        spread = judge.paired_spread(run)
        if spread is not None:
            return spread, f"as in run {run.run.get('id')}"
    return ASSUMED_SPREAD, "assumed: no earlier run of two variants here"
