"""Explanations: sums that can be checked by hand, and what is said where there is no sum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import synthetic

from capybench import cli, explain
from capybench.errors import UsageError
from capybench.results import RunResult

#: ns of each primitive with its loop of 1 ns, chosen so that sums are whole.
PRICES = {
    "noop/op": 1,
    "primitives/call_direct": 2,
    "primitives/call_indirect": 3,
    "primitives/frame_recycling": 11,
    "primitives/malloc_64": 21,
    "primitives/malloc_128": 31,
    "primitives/malloc_256": 41,
    "primitives/mutex_single": 6,
    "primitives/mutex_threaded": 16,
    "primitives/exchange": 5,
    "primitives/store_seq_cst": 8,
    "primitives/syscall": 201,
}


def constant(cell_id: str, ns: float, blocks: int = 3, **more: Any) -> dict[str, Any]:
    return synthetic.cell(cell_id, [[round(ns * 1000)] * 3] * blocks, **more)


def ledger(**counts: float) -> dict[str, Any]:
    return {"ledger": {**dict.fromkeys(synthetic.LEDGER, 0), **counts}, "counters": None}


def result(*cells: dict[str, Any], blocks: int = 3, without: str = "") -> RunResult:
    prices = [
        constant(f"{name}@core", ns, blocks) for name, ns in PRICES.items() if name != without
    ]
    return RunResult.from_dict(synthetic.document(*prices, *cells, blocks=blocks))


def items(explanation: explain.Explanation) -> dict[str, float | None]:
    return {item.event: item.ns for item in explanation.items}


CELL = "coroutine/run_async/depth2@task"


def test_the_sum_is_the_ledger_times_net_prices() -> None:
    cell = constant(CELL, 50, **ledger(indirect_calls=4, seq_cst_stores=2, mutex_pairs=1))
    made = explain.explain(result(cell), CELL)
    assert items(made) == {
        "loop": 1,
        "indirect_calls": 8,
        "seq_cst_stores": 14,
        "mutex_pairs": 5,
    }
    assert made.predicted is not None and made.rest is not None
    assert (made.predicted.value, made.measured.value, made.rest.value) == (28, 50, 22)


def test_a_frame_is_paid_without_its_two_direct_calls() -> None:
    # 11 - 1 for the loop, less two calls of 2 - 1: 8 ns a frame. Its calls through the table are
    # in the ledger: 2 of 2 ns each.
    cell = constant(CELL, 50, **ledger(resource_allocs=1, indirect_calls=2))
    made = explain.explain(result(cell), CELL)
    assert items(made) == {"loop": 1, "resource_allocs": 8, "indirect_calls": 4}
    assert any("two direct calls" in item.how for item in made.items)


def test_a_resource_over_the_heap_is_paid_once() -> None:
    both = constant(CELL, 50, **ledger(resource_allocs=3, heap_allocs=3))
    made = explain.explain(result(both), CELL)
    assert items(made) == {"loop": 1, "heap_allocs": 90, "resource_allocs": None}
    mixed = constant(CELL, 50, **ledger(resource_allocs=3, heap_allocs=1))
    made = explain.explain(result(mixed), CELL)
    assert items(made) == {
        "loop": 1,
        "heap_allocs": 30,
        "resource_allocs": 16,
        "resource_allocs from the heap": None,
    }


@pytest.mark.parametrize(("size", "ns"), [(32, 20), (90, 20), (100, 30), (4000, 40)])
def test_the_heap_price_is_that_of_the_nearest_size(size: int, ns: int) -> None:
    counts = {"heap_allocs_per_op": 2, "heap_bytes_per_op": 2 * size}
    cell = constant(CELL, 50, **{**ledger(heap_allocs=2), "counters": counts})
    assert items(explain.explain(result(cell), CELL))["heap_allocs"] == 2 * ns


def test_threads_change_the_price_of_locks_and_references() -> None:
    counts = ledger(mutex_pairs=1, ref_changes=2)
    single = explain.explain(result(constant(CELL, 50, **counts)), CELL)
    assert items(single) == {"loop": 1, "mutex_pairs": 5, "ref_changes": None}
    cell = constant(CELL, 50, thread_mode="threaded", **counts)
    threaded = explain.explain(result(cell), CELL)
    assert items(threaded) == {"loop": 1, "mutex_pairs": 15, "ref_changes": 8}
    assert any("several threads" in remark for remark in threaded.remarks)


def test_posts_and_invokers_are_their_parts() -> None:
    cell = constant(CELL, 50, **ledger(posts=2, invoker_frames=1))
    made = explain.explain(result(cell), CELL)
    assert items(made) == {"loop": 1, "posts": None, "invoker_frames": None}
    assert made.predicted is not None and made.predicted.value == 1


def test_rates_are_explained_as_times() -> None:
    cell = constant(CELL, 50, unit="bytes/s", direction="higher", bytes_per_op=64,
                    **ledger(syscalls=1))  # fmt: skip
    made = explain.explain(result(cell), CELL)
    assert made.measured.value == 50
    assert items(made)["syscalls"] == 200


def test_blocks_are_paired_and_intervals_come_with_six() -> None:
    few = explain.explain(result(constant(CELL, 50, **ledger(posts=1))), CELL)
    assert few.measured.level is None
    assert "range of 3" in str(few.tables())
    many = explain.explain(result(constant(CELL, 50, 6, **ledger(posts=1)), blocks=6), CELL)
    assert many.measured.level == pytest.approx(0.96875)
    # A drift that slows cell and primitives alike leaves the share of the rest alone.
    samples = [[round(1000 * ns)] * 3 for ns in (50, 60, 70)]
    prices = [
        synthetic.cell(f"{name}@core", [[round(1000 * ns * f)] * 3 for f in (1, 1.2, 1.4)])
        for name, ns in PRICES.items()
    ]
    drifted = RunResult.from_dict(
        synthetic.document(*prices, synthetic.cell(CELL, samples, **ledger(indirect_calls=10)))
    )
    made = explain.explain(drifted, CELL)
    assert made.rest is not None
    assert (made.rest.low, made.rest.high) == pytest.approx((29, 40.6))


def test_a_pair_tells_which_events_differ() -> None:
    other = "coroutine/strand/depth2@task"
    run = result(
        constant(CELL, 50, **ledger(indirect_calls=4, posts=1)),
        constant(other, 90, **ledger(indirect_calls=6, mutex_pairs=3, posts=2)),
    )
    made = explain.difference(run, CELL, other)
    assert [(item.event, item.times, item.ns) for item in made.items] == [
        ("mutex_pairs", 3, 15),
        ("indirect_calls", 2, 4),
        ("posts", 1, None),
    ]
    assert made.predicted is not None and made.rest is not None
    assert (made.measured.value, made.predicted.value, made.rest.value) == (40, 19, 21)
    back = explain.difference(run, other, CELL)
    assert back.measured.value == -40
    assert [item.ns for item in back.items] == [-15, -4, None]
    assert run.explain(other, against=CELL) == made


def test_the_same_event_of_another_price_differs() -> None:
    other = "coroutine/b@task"
    run = result(
        constant(CELL, 50, **ledger(mutex_pairs=1)),
        constant(other, 90, thread_mode="threaded", **ledger(mutex_pairs=1)),
    )
    (item,) = explain.difference(run, CELL, other).items
    assert (item.event, item.times, item.ns) == ("mutex_pairs", 0, 10)


def test_equal_ledgers_say_so() -> None:
    other = "coroutine/b@task"
    run = result(*(constant(c, ns, **ledger(posts=1)) for c, ns in ((CELL, 50), (other, 60))))
    made = explain.difference(run, CELL, other)
    assert made.items == ()
    assert "No event differs" in str(made.tables()[-1].notes)


def test_without_a_ledger_it_says_so() -> None:
    bare = constant(CELL, 50, ledger=None, counters=None, ledger_reason="counts vary by pass")
    run = result(bare, constant("coroutine/b@task", 60, **ledger(posts=1)))
    made = explain.explain(run, CELL)
    assert (made.items, made.predicted, made.rest) == ((), None, None)
    assert made.reason is not None and "no ledger: counts vary by pass" in made.reason
    assert made.measured.value == 50
    pair = explain.difference(run, CELL, "coroutine/b@task")
    assert (pair.measured.value, pair.predicted) == (10, None)
    assert "Without both ledgers" in str(pair.tables()[-1].notes)


def test_what_cannot_be_explained_is_an_error() -> None:
    cell = constant(CELL, 50, **ledger(mutex_pairs=1))
    with pytest.raises(UsageError, match="no number for primitives/mutex_single@core"):
        explain.explain(result(cell, without="primitives/mutex_single"), CELL)
    with pytest.raises(UsageError, match="no number for noop/op@core"):
        explain.explain(result(cell, without="noop/op"), CELL)
    with pytest.raises(UsageError, match=f"nearest: {CELL}"):
        explain.explain(result(cell), CELL[:-1])
    with pytest.raises(explain.NothingMeasuredError, match="no library"):
        explain.explain(result(synthetic.absent(CELL)), CELL)
    apart = constant(CELL, 50, **ledger(mutex_pairs=1))
    for process in apart["processes"]:
        process["block"] += 100
    with pytest.raises(UsageError, match="no block"):
        explain.explain(result(apart), CELL)


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path: Path) -> str:
    path = tmp_path / "run.json"
    result(
        constant(CELL, 50, **ledger(indirect_calls=4)),
        constant("coroutine/strand/depth2@task", 90, **ledger(indirect_calls=6, mutex_pairs=3)),
    ).save(path)
    return str(path)


def test_command_in_four_formats(stored: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", CELL, "--from", stored, "--against", "coroutine/strand/depth2@task"]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "where the nanoseconds go" in shown
    assert "unexplained" in shown
    assert f"from coroutine/strand/depth2@task to {CELL}" in shown
    assert cli.main([*words, "--format", "markdown"]) == 0
    assert "| events | loop | 1 |" in capsys.readouterr().out
    assert cli.main([*words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"]["ns"] == -40
    assert cli.main([*words, "--format", "html"]) == 0
    html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed")
    html5lib.HTMLParser(strict=True).parse(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["coroutine/*"], "is not one cell"),
        (["coroutine/none@task"], "no cell 'coroutine/none@task'"),
        ([CELL, "--blocks", "3"], "--from measures nothing"),
        ([CELL, "--format", "pdf"], "--format is 'pdf'"),
    ],
)
def test_command_refuses(
    words: list[str], says: str, stored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", *words, "--from", stored]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_command_measures_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explain", CELL, "--blocks", "1", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["cell"] == CELL
    events = {item["event"]: item["times"] for item in data["items"]}
    assert events["resource_allocs"] == 3
    assert data["predicted"]["ns"] > 0
    assert cli.main(["show"]) == 0  # stored like any run
