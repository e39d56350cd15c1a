"""Plans: balance, seeds, budgets, CPUs; all as data, nothing is run."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import groupby, pairwise
from typing import Any

import pytest

from capybench.cases import Cell, Listing, Suite, Variant
from capybench.errors import UsageError
from capybench.plan import (
    Plan,
    Step,
    contender_orders,
    count_ops,
    duration,
    make_plan,
    williams,
    worker_seconds,
)


def listing(shape: dict[str, int], **more: Any) -> Listing:
    cells = tuple(
        Cell(f"s/{case}@c{nth}", "s", case, f"c{nth}", **more)
        for case, count in shape.items()
        for nth in range(count)
    )
    return Listing(cells, (Suite("s", baselines=("c1",)),), {"build_id": "x"}, Variant("py", "/p"))


def planned(shape: dict[str, int], **options: Any) -> Plan:
    made = listing(shape)
    return make_plan(made, made, **{"seed": 1, "allowed_cpus": [0, 1], **options})


def measured(plan: Plan) -> list[Step]:
    return [step for step in plan.steps if step.kind == "measure"]


@pytest.mark.parametrize("count", range(1, 13))
def test_williams_balances_places_and_neighbours(count: int) -> None:
    rows = williams(count)
    assert all(sorted(row) == list(range(count)) for row in rows)
    per_place = len(rows) // count
    for place in range(count):
        assert set(Counter(row[place] for row in rows).values()) == {per_place}
    after = Counter(pair for row in rows for pair in pairwise(row))
    assert len(after) == count * (count - 1), "each follows each other"
    assert len(set(after.values())) <= 1, "equally often"


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_each_round_of_orders_uses_each_place_once(count: int) -> None:
    orders = contender_orders(count, 3 * count, random.Random(3))
    for start in range(0, 3 * count, count):
        for place in range(count):
            assert {order[place] for order in orders[start : start + count]} == set(range(count))


def test_two_contenders_are_ab_ba() -> None:
    orders = contender_orders(2, 10, random.Random(0))
    assert Counter(orders) == {(0, 1): 5, (1, 0): 5}


def test_every_cell_once_a_block_and_contenders_back_to_back() -> None:
    plan = planned({"x": 3, "y": 1, "z": 4}, blocks=7)
    blocks = [list(steps) for _, steps in groupby(measured(plan), lambda step: step.block)]
    assert len(blocks) == 7
    for steps in blocks:
        assert Counter(step.cell for step in steps) == Counter(cell.id for cell in plan.cells)
        cases = [case for case, _ in groupby(steps, lambda step: step.cell.partition("@")[0])]
        assert len(cases) == 3, "no case is interrupted by another"
        for _, row in groupby(steps, lambda step: step.cell.partition("@")[0]):
            same = list(row)
            assert [step.order for step in same] == list(range(len(same)))
            assert len({(step.cpus, step.padding) for step in same}) == 1
    assert len({tuple(step.cell for step in steps) for steps in blocks}) > 1


def test_counting_comes_last_once_a_cell() -> None:
    plan = planned({"x": 3, "y": 1})
    kinds = [kind for kind, _ in groupby(step.kind for step in plan.steps)]
    assert kinds == ["measure", "count"]
    counted = [step.cell for step in plan.steps if step.kind == "count"]
    assert counted == [cell.id for cell in plan.cells]


def test_same_seed_same_plan_other_seed_other_plan() -> None:
    shape = {"x": 3, "y": 2, "z": 2}
    assert planned(shape, seed=9) == planned(shape, seed=9)
    assert planned(shape, seed=9).steps != planned(shape, seed=10).steps
    assert len({planned(shape, seed=None).seed for _ in range(3)}) > 1


def test_a_case_keeps_its_orders_when_the_selection_changes() -> None:
    def orders(plan: Plan) -> list[tuple[object, ...]]:
        steps = [step for step in measured(plan) if step.cell.startswith("s/x@")]
        return [(step.block, step.order, step.cell, step.cpus, step.padding) for step in steps]

    assert orders(planned({"x": 4, "y": 2})) == orders(planned({"x": 4}))


def test_cpus_alternate_from_block_to_block() -> None:
    plan = planned({"x": 1}, blocks=4, allowed_cpus=[3, 5])
    cpus = [step.cpus for step in measured(plan)]
    assert sorted(set(cpus)) == [(3,), (5,)]
    assert all(here != there for here, there in pairwise(cpus))


def test_pin_to_one_cpu_or_none() -> None:
    assert {step.cpus for step in measured(planned({"x": 2}, pin=1))} == {(1,)}
    assert {step.cpus for step in measured(planned({"x": 2}, pin=None))} == {None}
    with pytest.raises(UsageError, match=r"CPU 7 is not in .* mask \(0, 1\)"):
        planned({"x": 1}, pin=7)
    with pytest.raises(UsageError, match="--pin"):
        planned({"x": 1}, pin="first")


def test_a_case_for_two_cpus_gets_two_neighbours() -> None:
    made = listing({"x": 2}, cpus=2)
    wide = make_plan(made, made, seed=1, blocks=3, allowed_cpus=[0, 1, 2])
    assert all(len(set(step.cpus or ())) == 2 for step in measured(wide))
    assert len({step.cpus for step in measured(wide)}) == 3
    narrow = make_plan(made, made, seed=1, allowed_cpus=[4])
    assert {step.cpus for step in measured(narrow)} == {(4,)}
    assert "2 CPUs" in narrow.warnings[0]


def test_defaults_of_quick_and_full() -> None:
    quick, full = planned({"x": 1}, quick=True), planned({"x": 1})
    assert (quick.blocks, quick.samples, quick.target_ns) == (3, 3, 10_000_000)
    assert (full.blocks, full.samples, full.target_ns) == (10, 5, 50_000_000)
    assert planned({"x": 1}, quick=True, blocks=20).blocks == 20


def test_budget_cuts_whole_blocks_and_never_adds() -> None:
    whole = planned({"x": 3}, blocks=10)
    half = planned({"x": 3}, blocks=10, budget_s=whole.estimated_s / 2)
    assert 1 <= half.blocks < 10
    assert half.estimated_s <= whole.estimated_s / 2
    assert half.blocks_asked == 10
    assert "cuts 10 blocks" in half.describe()
    assert planned({"x": 3}, blocks=10, budget_s=10 * whole.estimated_s) == whole
    # The blocks that are left are the first ones of the whole plan.
    assert measured(half) == measured(whole)[: len(measured(half))]


def test_budget_below_one_block_names_the_least() -> None:
    with pytest.raises(UsageError, match=r"below one block of 3 cells; the least is \d+ s"):
        planned({"x": 3}, budget_s=0.1)
    with pytest.raises(UsageError) as caught:
        planned({"x": 3}, budget_s=-1)
    least = int(str(caught.value).split()[-2])
    assert planned({"x": 3}, budget_s=least).blocks >= 1


def test_estimate_grows_with_blocks_and_cells() -> None:
    one = planned({"x": 1}, blocks=1).estimated_s
    assert planned({"x": 1}, blocks=2).estimated_s > one
    assert planned({"x": 2}, blocks=1).estimated_s == pytest.approx(2 * one, abs=1e-3)
    assert worker_seconds(3, 10_000_000) > 0.03


@pytest.mark.parametrize("wrong", [{"blocks": 0}, {"samples": -1}, {"seed": -1}, {"seed": 2**63}])
def test_numbers_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        planned({"x": 1}, **wrong)


def test_unavailable_cells_are_kept_but_not_run() -> None:
    cells = (
        *listing({"x": 2}).cells,
        Cell("s/x@c9", "s", "x", "c9", available=False, reason="no device"),
    )
    base = listing({"x": 1})
    plan = make_plan(base, cells, seed=1, allowed_cpus=[0])
    assert len(plan.cells) == 3
    assert {step.cell for step in plan.steps} == {"s/x@c0", "s/x@c1"}
    assert "s/x@c9: unavailable: no device" in plan.describe()


def test_describe_marks_the_baseline_and_tells_the_size() -> None:
    text = planned({"x": 3}, quick=True, seed=77).describe()
    assert "3 cells in 1 case, 3 blocks, 3 samples of 10 ms, seed 77" in text
    assert "c1*" in text
    assert "12 workers" in text


def test_plan_survives_its_journal() -> None:
    plan = planned({"x": 3, "y": 1}, pin=1, patterns=["s"], command=["run", "s"], baseline="c0")
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_count_ops_are_few_and_a_multiple_of_the_step() -> None:
    for step in (1, 3, 16, 10_000):
        ops = count_ops(Cell("s/x@c", "s", "x", "c", step=step))
        assert ops % step == 0
        assert 16 <= ops < 16 + step


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (8.4, "8 s"),
        (60, "1 min"),
        (150, "2 min 30 s"),
        (3600, "1 h"),
        (3900, "1 h 5 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
