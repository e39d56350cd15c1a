"""What a run will do, as plain data, before it does anything.

A plan is a list of steps, one fresh worker each. Blocks hold every case once in seeded order;
inside a case the contenders run back to back on the same CPU, in orders that are balanced over the
blocks (Williams 1949: each contender comes equally often at each place and after each other one,
over enough blocks). The same arguments and seed give the same plan.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from capybench.cases import Case, Cell, Listing, Suite, Variant, group
from capybench.errors import UsageError
from capybench.plugins import Plugin

QUICK_BLOCKS, BLOCKS = 3, 10
QUICK_SAMPLES, SAMPLES = 3, 5
QUICK_TARGET_NS, TARGET_NS = 10_000_000, 50_000_000

#: Seconds a worker costs beside its samples: interpreter, set-up, journal. An estimate.
START_S = 0.06
#: Length of warm-up and calibration, in samples. An estimate; the warm-up's bound is higher.
WARMUP_SAMPLES = 6
#: A counting worker runs this many ops or one step, whichever is more; the core runs them 3 times.
COUNT_OPS = 16
#: The environment grows by at most so many bytes: more than a page, so that stacks move.
PADDING = 4096


@dataclass(frozen=True, slots=True)
class Step:
    """One worker: a cell in a block (`kind` "measure") or the untimed counts of a cell ("count").

    `order` is the cell's place among the contenders of its case, `cpus` the CPUs it is pinned to
    (None: not pinned), `padding` the bytes by which its environment is made larger, the same for
    all contenders of a case in a block. `variant` names the side of the plan, `repeat` counts how
    often the pair was measured again in this block.
    """

    kind: str
    block: int
    order: int
    cell: str
    cpus: tuple[int, ...] | None
    padding: int
    variant: str = ""
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a side does not measure a cell: `status` "unavailable" or "invalid", a `reason`, and
    whether that build has no such cell at all (`absent`)."""

    status: str
    reason: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """One build of a run. `name` is "" where there is only one; `plugins` are those that selected
    cells come from, `missing` tells which selected cells this side does not measure."""

    name: str
    variant: Variant
    build: Mapping[str, str]
    plugins: tuple[Plugin, ...]
    missing: Mapping[str, Missing]

    def plugin(self, cell: Cell) -> Plugin | None:
        """The plug-in that the cell comes from here; None for a cell of the core."""
        return next((plugin for plugin in self.plugins if plugin.name == cell.plugin), None)

    def uncounted(self, cell: Cell) -> str | None:
        """Why the cell's events cannot be counted here; None where they can."""
        plugin = self.plugin(cell)
        if plugin is not None and plugin.counting is None:
            return f"the plug-in {plugin.name} has no counting build"
        if not self.variant.counts:
            return f"there is no counting build beside {self.variant.core}"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the journal."""
        return {
            "name": self.name,
            "variant": asdict(self.variant),
            "build": dict(self.build),
            "plugins": [plugin.to_dict() for plugin in self.plugins],
            "missing": {cell: asdict(missing) for cell, missing in self.missing.items()},
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Side:
        """The side that `to_dict` wrote."""
        return cls(
            name=raw["name"],
            variant=Variant(**raw["variant"]),
            build=dict(raw["build"]),
            plugins=tuple(Plugin(**plugin) for plugin in raw["plugins"]),
            missing={cell: Missing(**missing) for cell, missing in raw["missing"].items()},
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run, decided. `cases` hold all selected cells, also those that cannot run here;
    `steps` hold only what will be run, in order. Times are in ns, `estimated_s` in seconds.

    `pin` is "auto", a CPU number or None; `baseline` the contender chosen for the whole run, or
    None. `tunables` are the cases whose workers get room for jemalloc's thread-local storage.
    `blocks_asked` is what was asked for before a budget cut it. `sides` are the builds to measure,
    one or several variants; the last is the one under test, whose build, variant and plug-ins are
    the plan's own.
    """

    seed: int
    blocks: int
    blocks_asked: int
    samples: int
    target_ns: int
    quick: bool
    pin: str | int | None
    keep_env: bool
    patterns: tuple[str, ...]
    keyword: str | None
    command: tuple[str, ...]
    baseline: str | None
    cases: tuple[Case, ...]
    suites: tuple[Suite, ...]
    steps: tuple[Step, ...]
    estimated_s: float
    sides: tuple[Side, ...]
    warnings: tuple[str, ...] = ()

    @property
    def build(self) -> Mapping[str, str]:
        """Facts of the build under test."""
        return self.sides[-1].build

    @property
    def variant(self) -> Variant:
        """The build under test."""
        return self.sides[-1].variant

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Plug-ins of the build under test."""
        return self.sides[-1].plugins

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants; none where there is only one build."""
        return tuple(side.name for side in self.sides if side.name)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All selected cells, in listing order."""
        return tuple(cell for case in self.cases for cell in case.cells)

    @property
    def workers(self) -> int:
        """How many processes the run starts."""
        return len(self.steps)

    def describe(self) -> str:
        """The plan as text, for `--list` and `--dry-run`: settings, then the first block's order
        with what each cell is compared with; cells that cannot run say why."""
        ready = sum(cell.available for cell in self.cells)
        pin = "no pinning" if self.pin is None else f"CPU {self.pin}"
        if self.pin == "auto":
            pin = "CPUs alternate"
        lines = [
            f"{_many(ready, 'cell')} in {_many(len(self.cases), 'case')}, "
            f"{_many(self.blocks, 'block')}, {_many(self.samples, 'sample')} of "
            f"{self.target_ns / 1e6:g} ms, seed {self.seed}, {pin}",
            f"{_many(self.workers, 'worker')}, about {duration(self.estimated_s)}",
        ]
        if self.variants:
            names = ", ".join(self.variants)
            lines.append(f"each cell back to back in {len(self.sides)} variants: {names}")
        if self.blocks < self.blocks_asked:
            lines.append(f"the budget cuts {self.blocks_asked} blocks to {self.blocks}")
        first: dict[str, list[Step]] = {}
        cells = {cell.id: cell for cell in self.cells}
        for step in self.steps:
            if step.kind == "measure" and step.block == 0:
                first.setdefault(cells[step.cell].case_id, []).append(step)
        cases = {case.id: case for case in self.cases}
        for case_id, steps in first.items():
            row = dict.fromkeys(cells[step.cell].contender for step in steps)
            marked = (f"{name}*" if name == cases[case_id].baseline else name for name in row)
            lines.append(f"  {case_id}: {' '.join(marked)}")
        for side in self.sides:
            where = f" in {side.name}" if side.name else ""
            for cell, missing in side.missing.items():
                lines.append(f"  {cell}: {missing.status}{where}: {missing.reason}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the journal's first line."""
        return {
            "seed": self.seed,
            "blocks": self.blocks,
            "blocks_asked": self.blocks_asked,
            "samples": self.samples,
            "target_ns": self.target_ns,
            "quick": self.quick,
            "pin": self.pin,
            "keep_env": self.keep_env,
            "keyword": self.keyword,
            "baseline": self.baseline,
            "estimated_s": self.estimated_s,
            "patterns": list(self.patterns),
            "command": list(self.command),
            "warnings": list(self.warnings),
            "sides": [side.to_dict() for side in self.sides],
            "suites": [suite.to_dict() for suite in self.suites],
            "cases": [
                {"baseline": case.baseline, "cells": [cell.to_dict() for cell in case.cells]}
                for case in self.cases
            ],
            "steps": [asdict(step) for step in self.steps],
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Plan:
        """The plan that `to_dict` wrote. KeyError or TypeError where something is missing."""
        cases = []
        for case in raw["cases"]:
            cells = tuple(Cell.from_dict(cell) for cell in case["cells"])
            cases.append(Case(cells[0].suite, cells[0].case, cells, case["baseline"]))
        steps = tuple(
            Step(**{**step, "cpus": None if step["cpus"] is None else tuple(step["cpus"])})
            for step in raw["steps"]
        )
        nested = {
            "patterns": tuple(raw["patterns"]),
            "command": tuple(raw["command"]),
            "warnings": tuple(raw["warnings"]),
            "sides": tuple(Side.from_dict(side) for side in raw["sides"]),
            "suites": tuple(Suite.from_dict(suite) for suite in raw["suites"]),
            "cases": tuple(cases),
            "steps": steps,
        }
        return cls(**{**raw, **nested})


def _many(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def duration(seconds: float) -> str:
    """Seconds as a reader says them: "8 s", "2 min 30 s", "1 h 5 min"."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def williams(count: int) -> tuple[tuple[int, ...], ...]:
    """Orders of `count` things, balanced for place and for what came before (Williams 1949).

    An even count has `count` rows, an odd one twice as many: the second half is the first
    reversed. Within each half every thing stands once at every place.
    """
    if count == 1:
        return ((0,),)
    zigzag = [0]
    for place in range(1, count):
        zigzag.append((place + 1) // 2 if place % 2 else count - place // 2)
    square = [tuple((item + row) % count for item in zigzag) for row in range(count)]
    if count % 2:
        square += [row[::-1] for row in square]
    return tuple(square)


def contender_orders(count: int, blocks: int, rng: random.Random) -> list[tuple[int, ...]]:
    """An order of `count` contenders for each block: rows of the Williams design, drawn so that
    any `count` blocks in a row (counted from the first) use each place once for each contender."""
    rows = williams(count)
    halves = [list(rows[start : start + count]) for start in range(0, len(rows), count)]
    names = list(range(count))
    rng.shuffle(names)
    orders: list[tuple[int, ...]] = []
    while len(orders) < blocks:
        for half in halves:
            drawn = half[:]
            rng.shuffle(drawn)
            orders += [tuple(names[item] for item in row) for row in drawn]
    return orders[:blocks]


def _cpus_of_cell(
    cell: Cell, block: int, start: int, pin: str | int | None, allowed: Sequence[int]
) -> tuple[int, ...] | None:
    """The CPUs of a cell in a block: neighbours in the mask, moved on by one each block.

    All contenders of a case begin on the same CPU. One whose workload has more workers than one
    gets as many CPUs as workers; the others stay on one, where they cannot bounce.
    """
    if pin is None:
        return None
    count = min(max(cell.cpus, 1), len(allowed))
    first = allowed.index(pin) if isinstance(pin, int) else (start + block) % len(allowed)
    return tuple(sorted(allowed[(first + nth) % len(allowed)] for nth in range(count)))


def worker_seconds(samples: int, target_ns: int) -> float:
    """About how long one measuring worker takes."""
    return START_S + (samples + WARMUP_SAMPLES) * target_ns / 1e9


def make_plan(
    listing: Listing,
    cells: Iterable[Cell],
    *,
    quick: bool = False,
    blocks: int | None = None,
    samples: int | None = None,
    target_ns: int | None = None,
    seed: int | None = None,
    pin: str | int | None = "auto",
    budget_s: float | None = None,
    baseline: str | None = None,
    keep_env: bool = False,
    patterns: Sequence[str] = (),
    keyword: str | None = None,
    command: Sequence[str] = (),
    allowed_cpus: Sequence[int] | None = None,
    variants: Mapping[str, Listing] | None = None,
) -> Plan:
    """Decide a run.

    Args:
        listing: what the measured build has (suites, build facts, variant).
        cells: the selected cells; those that are not available get no step.
        quick: 3 blocks of 3 samples of 10 ms instead of 10 blocks of 5 samples of 50 ms.
        blocks, samples, target_ns: override one of these.
        seed: what all drawing starts from; a fresh one when None.
        pin: "auto" (CPUs of the inherited mask, moved on from block to block), a CPU of the
            mask, or None for no pinning.
        budget_s: seconds; whole blocks are cut so that the estimate fits.
        baseline: contender to compare with, instead of each suite's default.
        keep_env: keep LD_PRELOAD, MALLOC_* and GLIBC_TUNABLES in workers.
        patterns, keyword, command: what the user wrote, stored with the result.
        allowed_cpus: the mask to plan in; this process's when None.
        variants: named builds to measure back to back in every block, in balanced orders; the last
            is the one under test. `listing` is then their `variants.union`. None: the listing's
            own build alone.

    Raises:
        UsageError: a number below 1, a CPU outside the mask, a budget below one block (naming the
            least budget), a baseline that no selected case has.
    """
    chosen = tuple(cells)
    for name, value in (("blocks", blocks), ("samples", samples), ("target_ns", target_ns)):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}")
    if seed is None:
        seed = int.from_bytes(os.urandom(4), "big")
    if not 0 <= seed < 2**63:
        raise UsageError(f"the seed must be between 0 and 2^63 - 1, not {seed}")
    asked = blocks or (QUICK_BLOCKS if quick else BLOCKS)
    samples = samples or (QUICK_SAMPLES if quick else SAMPLES)
    target_ns = target_ns or (QUICK_TARGET_NS if quick else TARGET_NS)
    allowed = sorted(allowed_cpus if allowed_cpus is not None else os.sched_getaffinity(0))
    if isinstance(pin, str) and pin != "auto":
        raise UsageError(f"--pin takes a CPU number, none or auto, not {pin!r}")
    if isinstance(pin, int) and pin not in allowed:
        listed = ", ".join(map(str, allowed))
        raise UsageError(f"CPU {pin} is not in this process's affinity mask ({listed})")

    cases = group(chosen, listing.suites, baseline)
    sides = _sides(listing, chosen, variants)
    ready = {
        case.id: [cell for cell in case.cells if any(cell.id not in side.missing for side in sides)]
        for case in cases
    }
    workers = sum(len(chosen) - len(side.missing) for side in sides)
    per_block = workers * worker_seconds(samples, target_ns)
    counting = workers * START_S
    count = asked
    if budget_s is not None and workers:
        count = min(asked, math.floor((budget_s - counting) / per_block + 1e-9))
        if count < 1:
            least = math.ceil(counting + per_block)
            raise UsageError(
                f"the budget of {budget_s:g} s is below one block of {_many(workers, 'cell')}; "
                f"the least is {least} s"
            )

    warnings = [*listing.warnings]
    for case in cases:
        if ready[case.id] and pin is not None and case.cpus > len(allowed):
            warnings.append(
                f"{case.id} is meant for {case.cpus} CPUs, the affinity mask has {len(allowed)}"
            )
    steps = _steps(cases, ready, sides, count, seed, pin, allowed)
    return Plan(
        seed=seed,
        blocks=count,
        blocks_asked=asked,
        samples=samples,
        target_ns=target_ns,
        quick=quick,
        pin=pin,
        keep_env=keep_env,
        patterns=tuple(patterns),
        keyword=keyword,
        command=tuple(command),
        baseline=baseline,
        cases=cases,
        suites=listing.suites,
        steps=steps,
        estimated_s=round(count * per_block + counting, 3),
        sides=sides,
        warnings=tuple(warnings),
    )


def _sides(
    listing: Listing, chosen: Sequence[Cell], variants: Mapping[str, Listing] | None
) -> tuple[Side, ...]:
    """The builds of a run, each with what it does not measure of the chosen cells."""
    if variants is not None and not variants:
        raise UsageError("no variant was named")
    used = {cell.plugin for cell in chosen}
    sides = []
    for name, own in (variants or {"": listing}).items():
        there = {cell.id: cell for cell in (own if variants else chosen)}
        found = {cell.id: _missing(cell, there.get(cell.id)) for cell in chosen}
        missing = {cell: why for cell, why in found.items() if why is not None}
        plugins = tuple(plugin for plugin in own.plugins if plugin.name in used)
        sides.append(Side(name, own.variant, own.build, plugins, missing))
    return tuple(sides)


def _missing(cell: Cell, there: Cell | None) -> Missing | None:
    """Why a side that has `there` does not measure `cell`; None when it does."""
    if there is None:
        return Missing("unavailable", "this build has no such cell", absent=True)
    if not there.available:
        return Missing("unavailable", there.reason or "no reason given")
    for name in ("unit", "direction", "thread_mode", "bytes_per_op"):
        own, asked = getattr(there, name), getattr(cell, name)
        if own != asked:
            return Missing(
                "invalid", f"its {name} is {own!r} in this build and {asked!r} in another"
            )
    return None


def _steps(
    cases: Sequence[Case],
    ready: Mapping[str, Sequence[Cell]],
    sides: Sequence[Side],
    blocks: int,
    seed: int,
    pin: str | int | None,
    allowed: Sequence[int],
) -> tuple[Step, ...]:
    # One generator for each purpose and case: what one case draws does not move another's, so a
    # case keeps its orders when the selection around it changes.
    orders: dict[str, list[tuple[int, ...]]] = {}
    starts: dict[str, int] = {}
    turns: dict[str, list[tuple[int, ...]]] = {}
    for case in cases:
        if ready[case.id]:
            rng = random.Random(f"capybench contenders {seed} {case.id}")
            orders[case.id] = contender_orders(len(ready[case.id]), blocks, rng)
            starts[case.id] = rng.randrange(len(allowed))
        for cell in ready[case.id]:
            # Balanced for each cell by itself: its variants are compared with one another.
            rng = random.Random(f"capybench variants {seed} {cell.id}")
            turns[cell.id] = contender_orders(len(sides), blocks, rng)
    steps = []
    runnable = [case for case in cases if ready[case.id]]
    for block in range(blocks):
        turn = runnable[:]
        random.Random(f"capybench cases {seed} {block}").shuffle(turn)
        for case in turn:
            rng = random.Random(f"capybench padding {seed} {block} {case.id}")
            padding = rng.randrange(PADDING)
            order = 0
            for which in orders[case.id][block]:
                cell = ready[case.id][which]
                cpus = _cpus_of_cell(cell, block, starts[case.id], pin, allowed)
                for side in (sides[turn] for turn in turns[cell.id][block]):
                    if cell.id not in side.missing:
                        step = Step("measure", block, order, cell.id, cpus, padding, side.name)
                        steps.append(step)
                        order += 1
    # Counts do not depend on time, so they come last: an interrupted run has spent its time on
    # samples.
    for case in runnable:
        for order, cell in enumerate(ready[case.id]):
            for side in sides:
                if cell.id not in side.missing and side.uncounted(cell) is None:
                    steps.append(Step("count", 0, order, cell.id, None, 0, side.name))
    return tuple(steps)


def count_ops(cell: Cell) -> int:
    """Ops that a counting worker runs: few, and a multiple of the cell's step."""
    return cell.step * math.ceil(COUNT_OPS / cell.step)
