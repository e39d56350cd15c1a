"""Suite read_stream against both published tables: allocations per read, exactly; and its table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import bare

import capybench
from capybench import stats
from capybench.matrix import matrix_tables
from capybench.reference import tables_of
from capybench.results import RunResult
from capybench.styles import style_tables
from capybench.styles.capy import mean_and_deviation

COUNT = """
import json
from capybench import _ledger
out = {}
for cell in _ledger.cases():
    if cell["suite"] == "read_stream":
        with _ledger.Run(cell["id"]) as run:
            out[cell["id"]] = run.ledger(cell["step"] * 2)
            run.verify()
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = json.loads(bare(COUNT))
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return capybench.run(
        ["read_stream/stdexec/native", "read_stream/beman/sync"],
        quick=True,
        blocks=2,
        samples=1,
        seed=1,
        target=tmp_path_factory.mktemp("run") / "run.json",
    )


def test_allocations_equal_the_published_tables(counted: dict[str, dict[str, Any]]) -> None:
    compared = 0
    for table in tables_of("read_stream"):
        for figure in table.figures:
            for cell in figure.cells:
                ledger = counted[cell]
                assert ledger["counted_allocs"] == figure.allocs, cell
                assert ledger["heap_allocs"] + ledger["resource_allocs"] == figure.allocs, cell
                compared += 1
    assert compared == 24 + 8 + 24


def test_nothing_is_left_out(counted: dict[str, dict[str, Any]]) -> None:
    def contenders(family: str, io: str) -> set[str]:
        found = [c for c in counted if c.startswith(f"read_stream/{family}/")]
        kinds = {c.split("/")[2] for c in found}
        assert kinds == {"native", "abstract", "erased", "sync"}
        return {c.split("@")[1] for c in found if f"/{io}@" in c}

    for io in ("awaitable", "sender"):
        three = {"task", "pipeline", "sender_task"}
        assert contenders("common", io) == three
        assert contenders("stdexec", io) == three | {"pipeline_1worker", "sender_task_noaffinity"}
        assert contenders("beman", io) == three | {
            "sender_task_connect",
            "sender_task_affine",
            "sender_task_affine_erased",
        }


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("stdexec/native/awaitable@task", {"mutex_pairs": 2, "posts": 1, "indirect_calls": 2}),
        ("stdexec/erased/awaitable@task", {"mutex_pairs": 2, "posts": 1, "indirect_calls": 7}),
        (
            "stdexec/erased/sender@task",
            {"mutex_pairs": 0, "posts": 1, "atomic_rmws": 4, "heap_allocs": 2},
        ),
        (
            "beman/erased/sender@task",
            {"mutex_pairs": 2, "posts": 1, "atomic_rmws": 3, "resource_allocs": 1},
        ),
        (
            "stdexec/native/awaitable@pipeline",
            {"mutex_pairs": 0, "posts": 1, "atomic_rmws": 1, "heap_allocs": 1},
        ),
        (
            "beman/native/awaitable@pipeline",
            {"mutex_pairs": 2, "posts": 1, "atomic_rmws": 1, "heap_allocs": 1},
        ),
        (
            "stdexec/native/sender@sender_task",
            {"mutex_pairs": 0, "posts": 2, "atomic_rmws": 2, "ref_changes": 2, "heap_allocs": 1},
        ),
    ],
)
def test_events_of_specification_f(
    counted: dict[str, dict[str, Any]], cell: str, expected: dict[str, int]
) -> None:
    ledger = counted[f"read_stream/{cell}"]
    assert {key: ledger[key] for key in expected} == expected


def test_two_workers_get_two_cpus_and_one_worker_one(run: RunResult) -> None:
    for cell in run.cells:
        assert cell.status == "ok", cell.reason
        wanted = 2 if cell.contender == "pipeline" and cell.case.startswith("stdexec") else 1
        for process in cell.processes:
            cpus = process.cpu if isinstance(process.cpu, list) else [process.cpu]
            assert len(cpus) == min(wanted, run.machine["fingerprint"]["cpus"])


def test_the_usual_table_has_two_blocks_a_family(run: RunResult) -> None:
    tables = matrix_tables(run, run.cells, "ns/op", 1.0)
    assert [table.title.split(":")[0] for table in tables] == [
        "read_stream, stdexec, native side",
        "read_stream, stdexec, bridge side",
        "read_stream, beman, native side",
        "read_stream, beman, bridge side",
    ]
    native = tables[0]
    assert [column.title for column in native.columns] == [
        "task",
        "pipeline",
        "pipeline 1worker",
        "sender task",
        "sender task noaffinity",
    ]
    lines = {row.label: row.values for row in native.groups[0].rows}
    assert lines["allocs"] == ("0", "0", "0", "1", "0")
    assert lines["to task"][0] == "baseline"
    assert all("–" in text for text in lines["range of 2"])


def test_the_published_form(run: RunResult) -> None:
    tables = style_tables("capy", run)
    assert len(tables) == 7
    first = tables[0].groups[0].rows[0].values
    assert first[0].count("±") == 1
    assert first[1] == "0"
    assert first[2] == "30.5"
    assert "n = 2" in tables[0].remarks[0]


def test_mean_and_population_deviation() -> None:
    assert mean_and_deviation([1.0, 3.0]) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([10, 10.1, 10.2, 15, 15.1, 15.2], (10.1, 15.1)),
        ([10, 15, 10.1, 15.1, 10.2, 15.2, 10.1], (10.1, 15.1)),
        ([10, 10.1, 10.2, 10.3, 10.4, 15], None),  # one outlier is no level
        ([10, 11, 12, 13, 14, 15], None),
        ([10, 10, 10, 10.5, 10.5, 10.5], None),  # less than a tenth apart
        ([10, 10.1, 15, 15.1], None),  # too few to tell
    ],
)
def test_two_speeds_are_reported(values: list[float], levels: tuple[float, float] | None) -> None:
    found = stats.two_levels(values)
    assert found == (None if levels is None else pytest.approx(levels))


def test_two_open_runs_do_not_mix_their_allocations() -> None:
    code = """
from array import array
from capybench import _core
one = _core.Run("read_stream/beman/erased/sender@pipeline")
two = _core.Run("read_stream/beman/native/awaitable@pipeline")
for _ in range(2):
    for run in (one, two):
        run.measure(20000, array("Q", [0]), array("Q", [0]))
one.verify(); two.verify()
print("ok")
"""
    assert bare(code).strip() == "ok"
