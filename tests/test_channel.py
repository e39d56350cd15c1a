"""Suite channel: its cells, their events against specification F, and mended or broken runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import bare

from capybench import _core
from capybench.reference import tables_of

COUNT = """
import json
from capybench import _ledger
out = {}
for cell in _ledger.cases():
    if cell["suite"] == "channel" and cell["available"]:
        with _ledger.Run(cell["id"]) as run:
            out[cell["id"]] = run.ledger(100)
            run.verify()
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = json.loads(bare(COUNT))
    return result


def test_every_published_case_has_its_cell() -> None:
    ids = {cell["id"] for cell in _core.cases()}
    for table in tables_of("channel"):
        for figure in table.figures:
            assert figure.row == "stackful" or figure.cells[0] in ids
    for contender in ("task", "awaitable"):
        assert f"channel/pingpong@{contender}" in ids


def test_all_are_single_threaded_and_compared_with_task() -> None:
    (suite,) = (suite for suite in _core.suites() if suite["name"] == "channel")
    assert suite["baselines"][0] == "task"
    cells = [cell for cell in _core.cases() if cell["suite"] == "channel"]
    assert {cell["thread_mode"] for cell in cells} == {"single"}
    assert {cell["unit"] for cell in cells} == {"ns/op"}


@pytest.mark.parametrize(
    ("cell", "expected", "calls"),
    [
        # Specification F; indirect calls within 2 of its reading.
        ("post@task", {"heap_allocs": 0, "resource_allocs": 1, "mutex_pairs": 1, "posts": 1}, 5),
        ("channel@task", {"heap_allocs": 0, "resource_allocs": 2, "mutex_pairs": 1, "posts": 1}, 8),
    ],
)
def test_events_of_specification_f(
    counted: dict[str, dict[str, Any]], cell: str, expected: dict[str, int], calls: int
) -> None:
    ledger = counted[f"channel/{cell}"]
    assert {key: ledger[key] for key in expected} == expected
    assert abs(ledger["indirect_calls"] - calls) <= 2
    assert ledger["atomic_rmws"] == 2  # outstanding work, counted by the post and given back
    assert ledger["seq_cst_stores"] == 0


def test_work_counts_are_two_a_post_and_two_an_operation(
    counted: dict[str, dict[str, Any]],
) -> None:
    def extra(cell: str) -> int:
        ledger = counted[f"channel/{cell}"]
        return int(ledger["atomic_rmws"]) - 2 * int(ledger["posts"])

    assert extra("immediate@task") == 2 * 2
    assert extra("immediate@awaitable") == 2 * 2
    assert extra("parallel@task") == 2 * 2
    assert extra("channel@awaitable") == 2 * 2 + 4  # and the group's counters
    assert extra("parallel@awaitable") == 2 * 2 + 4 + 2 * 2 * 2  # and two guards an entry
    assert extra("pingpong@task") == 0  # no operation objects
    assert extra("pingpong@awaitable") == 4 * 2


def test_immediate_posts_only_where_no_executor_is_associated(
    counted: dict[str, dict[str, Any]],
) -> None:
    assert counted["channel/immediate@task"]["posts"] == 0
    assert counted["channel/immediate@task"]["mutex_pairs"] == 0
    assert counted["channel/immediate@awaitable"]["posts"] == 2


def test_buffers_in_the_frame_never_overflow(counted: dict[str, dict[str, Any]]) -> None:
    for cell, ledger in counted.items():
        assert ledger["upstream_allocs"] == 0, cell
        assert ledger["resource_frees"] <= ledger["resource_allocs"], cell
