"""The acceptance test of the suites: event counts equal the specification, section F."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import bare

COUNT_ALL = """
import json
from capybench import _ledger
out = {}
cells = [c for c in _ledger.cases() if c["available"] and not c["python"]]
for mode in ("single", "threaded"):
    for cell in cells:
        if cell["thread_mode"] == mode:
            with _ledger.Run(cell["id"]) as run:
                out[cell["id"]] = [run.ledger(cell["step"] * 4), cell["ledger"]]
                run.verify()
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def counted() -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = json.loads(bare(COUNT_ALL))
    return result


def test_every_promise_of_a_descriptor_is_kept(counted: dict[str, list[Any]]) -> None:
    promised = 0
    for cell, (ledger, expected) in counted.items():
        for key, value in (expected or {}).items():
            promised += 1
            assert ledger[key] == value, f"{cell}: {key}"
    assert promised > 300


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_depth_d_takes_d_plus_1_frames(counted: dict[str, list[Any]], depth: int) -> None:
    ledger = counted[f"coroutine/run_async/depth{depth}@task"][0]
    assert ledger["resource_allocs"] == ledger["resource_frees"] == depth + 1
    assert abs(ledger["indirect_calls"] - (2 * depth + 5)) <= 2
    for key in ("heap_allocs", "atomic_rmws", "ref_changes", "mutex_pairs", "posts"):
        assert ledger[key] == 0, key


@pytest.mark.parametrize("depth", [1, 4])
def test_strand_launch(counted: dict[str, list[Any]], depth: int) -> None:
    ledger = counted[f"coroutine/strand/depth{depth}@task"][0]
    assert ledger["resource_allocs"] == depth + 1
    assert ledger["heap_allocs"] == 0
    assert ledger["invoker_frames"] == 1
    assert ledger["mutex_pairs"] == 3
    assert ledger["seq_cst_stores"] == 2
    assert ledger["atomic_rmws"] == 2  # an exchange and a compare-exchange
    assert ledger["posts"] == 1
    assert ledger["fifo_pushes"] == 1
    assert abs(ledger["indirect_calls"] - (2 * depth + 8)) <= 2


def test_executor_switch(counted: dict[str, list[Any]]) -> None:
    ledger = counted["coroutine/switch/executor@task"][0]
    assert ledger["resource_allocs"] == 6
    assert ledger["posts"] == 2
    assert ledger["mutex_pairs"] == 0
    assert abs(ledger["indirect_calls"] - 18) <= 2


def test_strand_switch(counted: dict[str, list[Any]]) -> None:
    ledger = counted["coroutine/switch/strand@task"][0]
    assert ledger["resource_allocs"] == 6
    assert ledger["invoker_frames"] == 2
    assert ledger["mutex_pairs"] == 9
    assert ledger["seq_cst_stores"] == 5
    assert ledger["atomic_rmws"] == 4
    assert ledger["posts"] == 4
    assert ledger["fifo_pushes"] == 3


@pytest.mark.parametrize(
    ("contender", "resource", "heap", "calls"),
    [
        ("malloc", 66, 66, 264),
        ("recycling", 66, 0, 132),
        ("mimalloc", 66, 0, 264),
        ("jemalloc", 66, 0, 264),
        ("none", 0, 0, 132),
    ],
)
def test_a_pass_takes_66_frames(
    counted: dict[str, list[Any]], contender: str, resource: int, heap: int, calls: int
) -> None:
    cell = f"frame_alloc/chain66@{contender}"
    if cell not in counted and contender in {"mimalloc", "jemalloc"}:
        pytest.skip(f"{contender} is not installed")
    ledger = counted[cell][0]
    assert ledger["resource_allocs"] == resource
    assert ledger["heap_allocs"] == heap
    assert ledger["indirect_calls"] == calls
    assert ledger["atomic_rmws"] == 45  # the leaves' counter
