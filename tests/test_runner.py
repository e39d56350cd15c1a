"""Whole runs on the fake core: what is recorded, what survives, what is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGE, Fake, alive, wait_until

from capybench import results, runner
from capybench.errors import (
    EnvironmentFault,
    JournalError,
    SaveError,
    TargetError,
    UsageError,
)
from capybench.plan import Plan, Step


def by_id(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in document["cells"]}


class Watch:
    """A progress object that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def start(self, plan: Plan, done: int, total: int) -> None:
        self.told.append(("start", done, total))

    def worker_done(
        self, step: Step, status: str, done: int, total: int, remaining_s: float
    ) -> None:
        assert remaining_s >= 0
        self.told.append((step.cell, status, done, total))

    def end(self, interrupted: bool) -> None:
        self.told.append(("end", interrupted))


# A program that runs a plan in a process of its own, so that a test can kill or interrupt it.
PROGRAM = """
import json, sys
sys.path.insert(0, {parent!r})
from capybench import cases, plan, runner
variant = cases.Variant(sys.executable, {path!r})
listing = cases.list_cells(variant)
made = plan.make_plan(listing, cases.select(listing, {patterns!r}), blocks=2, samples=3,
                      target_ns=1000, seed={seed})
document = runner.run_plan(made, target={target!r})
print(json.dumps(document["run"]))
"""


def start_run(fake: Fake, target: Path, *patterns: str, seed: int = 5) -> subprocess.Popen[str]:
    program = PROGRAM.format(
        parent=str(PACKAGE.parent),
        path=fake.variant.path,
        patterns=patterns,
        target=str(target),
        seed=seed,
    )
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def hanging(fake: Fake) -> bool:
    return "fake/hang@a" in fake.cells()


# --- a run that goes well -----------------------------------------------------------------------


def test_document_of_a_run(fake: Fake, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    watch = Watch()
    plan = fake.plan("fake/good/1", "fake/stepped")
    document = runner.run_plan(plan, target=target, progress=watch)
    assert json.loads(target.read_text()) == document
    assert not runner.journal_path(target).exists()

    run = document["run"]
    assert (run["complete"], run["interrupted"], run["blocks_done"]) == (True, False, 2)
    assert run["workers"] == run["workers_done"] == 4 * 2 + 4
    assert run["path"] == str(target)
    assert run["clock"] == {"samples": 24, "stepped_back": 0, "stood_still": 0}
    cells = by_id(document)
    assert list(cells) == ["fake/good/1@a", "fake/good/1@b", "fake/good/1@c", "fake/stepped@a"]
    assert [cell["baseline"] for cell in cells.values()] == [False, True, False, True]
    cell = cells["fake/good/1@a"]
    assert (cell["status"], cell["reason"], cell["ops"]) == ("ok", None, 10)
    assert [process["block"] for process in cell["processes"]] == [0, 1]
    for process in cell["processes"]:
        assert process["samples_ns"] == [1000, 1001, 1002]
        assert process["single_before"] is process["single_after"] is True
        assert process["cpu"] in os.sched_getaffinity(0)
    assert cell["summary"]["median"] == 100.1
    assert document["machine"]["build"]["build_id"] == "one"
    assert document["machine"]["before"]["affinity"] == sorted(os.sched_getaffinity(0))
    assert document["machine"]["after"] is not None

    assert watch.told[0] == ("start", 0, 12)
    assert watch.told[-1] == ("end", False)
    assert [told[2] for told in watch.told[1:-1]] == list(range(1, 13))


def test_counts_have_exactly_the_ledgers_keys(fake: Fake, tmp_path: Path) -> None:
    document = fake.run("fake/good/1@a", "fake/stepped", target=tmp_path / "o.json")
    cells = by_id(document)
    ledger, counters = cells["fake/good/1@a"]["ledger"], cells["fake/good/1@a"]["counters"]
    assert tuple(ledger) == runner.LEDGER
    assert (ledger["mutex_pairs"], ledger["seq_cst_stores"]) == (3, 5)
    assert list(counters)[:3] == [
        "heap_allocs_per_op",
        "resource_allocs_per_op",
        "heap_bytes_per_op",
    ]
    assert counters["heap_bytes_per_op"] == 96
    assert counters["fifo_pushes_per_op"] == 0.5
    assert counters["ops_asked_per_op"] == 16
    assert cells["fake/stepped@a"]["counters"]["ops_asked_per_op"] == 1000


def test_document_fits_its_schema(fake: Fake, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((PACKAGE / "schema" / "capybench-1.schema.json").read_text())
    document = fake.run(
        "fake/good",
        "fake/two",
        "fake/gone",
        "fake/segv",
        "fake/miscounts",
        target=tmp_path / "o.json",
    )
    jsonschema.validate(document, schema)
    assert results.load(tmp_path / "o.json").to_dict() == document


def test_one_worker_a_cell_and_block_on_the_planned_cpus(fake: Fake, tmp_path: Path) -> None:
    plan = fake.plan("fake/good/1", blocks=4)
    runner.run_plan(plan, target=tmp_path / "o.json")
    timed = [line for line in fake.log() if not line["counting"]]
    assert [line["cell"] for line in timed] == [
        step.cell for step in plan.steps if step.kind == "measure"
    ]
    assert [tuple(line["cpus"]) for line in timed] == [
        step.cpus for step in plan.steps if step.kind == "measure"
    ]
    assert len({line["pid"] for line in fake.log()}) == len(plan.steps)
    assert fake.cells(counting=True) == [f"fake/good/1@{name}" for name in "abc"]
    sizes = [len(line["env"]["CAPYBENCH_PADDING"]) for line in timed]
    assert sizes[0] == sizes[1] == sizes[2], "contenders of a block share it"
    assert len(set(sizes)) > 1, "blocks differ"


def test_calibrated_once_then_fixed(fake: Fake, tmp_path: Path, monkeypatch: Any) -> None:
    asked: list[object] = []
    real = runner.ask_worker

    def spy(request: Mapping[str, Any], *rest: Any, **more: Any) -> runner.Outcome:
        if request["op"] == "measure":
            asked.append(request["ops"])
        return real(request, *rest, **more)

    monkeypatch.setattr(runner, "ask_worker", spy)
    fake.run("fake/good/10", blocks=3, target=tmp_path / "o.json")
    assert asked == [None, 10, 10]


def test_jemallocs_case_gets_room_for_all_its_contenders(fake: Fake, tmp_path: Path) -> None:
    fake.run("fake/good/2", "fake/good/10", target=tmp_path / "o.json")
    for line in fake.log():
        tunables = line["env"].get("GLIBC_TUNABLES", "")
        assert ("optional_static_tls" in tunables) is line["cell"].startswith("fake/good/2@")


def test_two_cpus_are_recorded_as_a_list(fake: Fake, tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    cell = by_id(fake.run("fake/two", target=tmp_path / "o.json"))["fake/two@a"]
    assert all(len(process["cpu"]) == 2 for process in cell["processes"])


def test_not_pinned_is_null(fake: Fake, tmp_path: Path) -> None:
    cell = by_id(fake.run("fake/two", target=tmp_path / "o.json", pin=None))["fake/two@a"]
    assert [process["cpu"] for process in cell["processes"]] == [None, None]


def test_environment_is_dropped_stored_and_warned_about(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    run = fake.run("fake/good/10", target=tmp_path / "o.json")["run"]
    assert run["dropped_env"] == {"MALLOC_ARENA_MAX": "1"}
    assert run["kept_env"] == {}
    assert "MALLOC_ARENA_MAX did not reach the workers" in run["warnings"][0]
    assert all("MALLOC_ARENA_MAX" not in line["env"] for line in fake.log())
    run = fake.run("fake/good/10", target=tmp_path / "p.json", keep_env=True)["run"]
    assert run["kept_env"] == {"MALLOC_ARENA_MAX": "1"}
    assert "reached the workers" in run["warnings"][0]
    assert fake.log()[-1]["env"]["MALLOC_ARENA_MAX"] == "1"


def test_never_steady_is_told(fake: Fake, tmp_path: Path) -> None:
    run = fake.run("fake/drift", target=tmp_path / "o.json", target_ns=10**9)["run"]
    assert run["warnings"] == ["fake/drift@a: never steady in warm-up (block 1, 2)"]


# --- cells that go wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "status", "reason"),
    [
        ("segv", "crashed", "block 1: the worker was ended by SIGSEGV"),
        ("verify", "failed", "block 1: the sum is 3 instead of 4"),
        ("invalid", "invalid", "block 1: this process has made a thread"),
        ("threads", "invalid", "block 1: the process was not single-threaded after a sample"),
        ("clock_back", "invalid", "the clock stepped back in 6 of 6 samples"),
        ("clock_still", "invalid", "the clock did not advance in any sample"),
        ("gone", "unavailable", "no such device here"),
    ],
)
def test_one_bad_cell_is_reported_and_the_rest_goes_on(
    fake: Fake, tmp_path: Path, case: str, status: str, reason: str
) -> None:
    document = fake.run(f"fake/{case}@a", "fake/good/1", target=tmp_path / "o.json")
    cells = by_id(document)
    bad = cells.pop(f"fake/{case}@a")
    assert (bad["status"], bad["reason"]) == (status, reason)
    assert {cell["status"] for cell in cells.values()} == {"ok"}
    assert all(len(cell["processes"]) == 2 for cell in cells.values())
    assert document["run"]["complete"] is True


def test_a_failed_cell_is_neither_retried_nor_run_again(fake: Fake, tmp_path: Path) -> None:
    fake.run("fake/segv", "fake/good/10", blocks=5, target=tmp_path / "o.json")
    assert fake.cells().count("fake/segv@a") == 1
    assert fake.cells().count("fake/good/10@a") == 5
    assert "fake/segv@a" not in fake.cells(counting=True)


def test_a_hanging_cell_is_timed_out_and_the_run_goes_on(fake: Fake, tmp_path: Path) -> None:
    watch = Watch()
    plan = fake.plan("fake/hang")
    document = runner.run_plan(plan, target=tmp_path / "o.json", progress=watch, timeout_s=2.0)
    cells = by_id(document)
    assert cells["fake/hang@a"]["status"] == "timeout"
    assert "no result after 2 s" in cells["fake/hang@a"]["reason"]
    assert cells["fake/hang@b"]["status"] == "ok"
    assert ("fake/hang@a", "timeout") in [told[:2] for told in watch.told]


def test_threads_are_allowed_where_the_cell_says_so(fake: Fake, tmp_path: Path) -> None:
    cell = by_id(fake.run("fake/threaded", target=tmp_path / "o.json"))["fake/threaded@a"]
    assert cell["status"] == "ok"
    assert cell["processes"][0]["single_after"] is False


def test_a_rare_step_of_the_clock_is_counted_only() -> None:
    from capybench.cases import Cell

    for steps, status in ((1, "ok"), (2, "invalid")):
        state = runner._State(Cell("a/b@c", "a", "b", "c"), samples=1000, clock_back=steps)
        runner._judge_clock(state)
        assert state.status == status


def test_failed_counts_leave_the_time_and_say_why(fake: Fake, tmp_path: Path) -> None:
    document = fake.run("fake/miscounts", target=tmp_path / "o.json")
    cell = document["cells"][0]
    assert (cell["status"], cell["ledger"], cell["counters"]) == ("ok", None, None)
    assert cell["ledger_reason"] == "the counts are not the same twice"
    assert "no counts" in document["run"]["warnings"][0]


def test_a_worker_killed_from_outside(fake: Fake, tmp_path: Path) -> None:
    def kill_the_hanging_one() -> None:
        wait_until(lambda: hanging(fake))
        (pid,) = (line["pid"] for line in fake.log() if line["cell"] == "fake/hang@a")
        os.kill(pid, signal.SIGKILL)

    helper = threading.Thread(target=kill_the_hanging_one)
    helper.start()
    document = fake.run("fake/hang", "fake/good/1", target=tmp_path / "o.json")
    helper.join()
    cells = by_id(document)
    assert cells["fake/hang@a"]["status"] == "crashed"
    assert "SIGKILL" in cells["fake/hang@a"]["reason"]
    assert {cell["status"] for name, cell in cells.items() if name != "fake/hang@a"} == {"ok"}


# --- targets ------------------------------------------------------------------------------------


def test_unwritable_target_is_found_out_before_measuring(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "folder"
    folder.mkdir()
    missing = tmp_path / "missing" / "out.json"
    for target in (
        tmp_path / "file" / "out.json",
        folder,
        missing,
        tmp_path / ("x" * 300),
        "/proc/o.json",
    ):
        with pytest.raises(TargetError, match="cannot write") as caught:
            fake.run("fake/good/10", target=Path(target))
        assert caught.value.exit_code == 3
        assert "\n" not in str(caught.value)
    assert fake.log() == []


def test_disk_full_on_save_carries_the_results(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "o.json"
    target.write_text("old")

    def full(path: object, text: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(results, "write_atomic", full)
        with pytest.raises(SaveError, match=r"cannot save .*No space left") as caught:
            fake.run("fake/good/10", target=target)
    assert caught.value.exit_code == 3
    assert caught.value.document["cells"][0]["summary"]["n"] == 2
    assert target.read_text() == "old"
    workers = len(fake.log())
    # Nothing is lost: with room on the disk, the journal gives the same document.
    assert runner.resume(target)["cells"] == caught.value.document["cells"]
    assert len(fake.log()) == workers


def test_disk_full_in_the_journal_carries_what_there_is(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runner._Journal.add
    added: list[object] = []

    def add(self: runner._Journal, line: Mapping[str, Any]) -> None:
        added.append(line)
        if len(added) == 4:
            raise OSError(28, "No space left on device")
        real(self, line)

    monkeypatch.setattr(runner._Journal, "add", add)
    with pytest.raises(SaveError, match="the run was stopped") as caught:
        fake.run("fake/good/1", target=tmp_path / "o.json")
    counted = [len(cell["processes"]) for cell in caught.value.document["cells"]]
    assert sum(counted) == 2


def test_default_target_has_time_and_seed(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert runner.newest_run() is None
    documents = [runner.run_plan(fake.plan("fake/good/10", blocks=1)) for _ in range(3)]
    paths = [Path(document["run"]["path"]) for document in documents]
    assert len(set(paths)) == 3, "also within one second"
    for path in paths:
        assert path.parent == Path(".capybench/runs")
        assert path.stem.split("-")[1] == "5"
        assert path.exists()
    assert runner.newest_run() in paths


def test_two_runs_at_once_do_not_share_a_file(fake: Fake, tmp_path: Path) -> None:
    target = tmp_path / "o.json"
    with start_run(fake, target, "fake/hang") as running:
        wait_until(lambda: hanging(fake))
        with pytest.raises(TargetError, match=r"another run is writing .*o\.json"):
            fake.run("fake/good/10", target=target)
        with pytest.raises(TargetError, match="another run is writing"):
            runner.resume(target)
        running.kill()


def test_an_empty_plan_is_refused(fake: Fake, tmp_path: Path) -> None:
    from dataclasses import replace

    plan = replace(fake.plan("fake/good/10"), cases=(), steps=())
    with pytest.raises(UsageError, match="no cells"):
        runner.run_plan(plan, target=tmp_path / "o.json")


# --- interrupted and killed ---------------------------------------------------------------------


def test_ctrl_c_keeps_finished_workers_and_kills_the_running_one(
    fake: Fake, tmp_path: Path
) -> None:
    target = tmp_path / "o.json"
    running = start_run(fake, target, "fake/good/1", "fake/hang")
    wait_until(lambda: hanging(fake))
    finished = len(fake.log()) - 1
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=20)
    assert running.returncode == 0
    assert not any(alive(line["pid"]) for line in fake.log())
    run = json.loads(said)
    assert (run["interrupted"], run["complete"], run["workers_done"]) == (True, False, finished)
    document = json.loads(target.read_text())
    assert document["run"] == run
    assert sum(len(cell["processes"]) for cell in document["cells"]) == finished
    assert all(cell["processes"] for cell in document["cells"]), "only cells with something to say"
    assert results.load(target).interrupted
    assert runner.journal_path(target).exists()


def test_a_killed_parent_takes_its_worker_along_and_can_be_resumed(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "o.json"
    running = start_run(fake, target, "fake/good/1", "fake/hang")
    wait_until(lambda: hanging(fake))
    before = fake.cells()
    running.kill()
    running.communicate()
    wait_until(lambda: not any(alive(line["pid"]) for line in fake.log()))
    assert not target.exists()

    part = runner.recover(target)
    assert part["run"]["complete"] is False
    assert part["run"]["workers_done"] == len(before) - 1
    assert runner.recover(runner.journal_path(target)) == part

    monkeypatch.setenv("FAKE_WELL", "fake/hang@a")
    watch = Watch()
    document = runner.resume(target, progress=watch)
    assert watch.told[0] == ("start", len(before) - 1, 15)
    assert document["run"]["complete"] is True
    assert document["run"]["id"] == part["run"]["id"]
    assert all(len(cell["processes"]) == 2 for cell in document["cells"])
    whole = fake.plan("fake/good/1", "fake/hang")
    wanted = [step.cell for step in whole.steps if step.kind == "measure"]
    # All in the planned order, and only the worker that was lost a second time.
    assert fake.cells() == before + wanted[len(before) - 1 :]
    assert not runner.journal_path(target).exists()


def cut_short(fake: Fake, tmp_path: Path, workers: int) -> Path:
    """A run's journal as a kill leaves it after so many workers."""
    target = tmp_path / "cut.json"
    plan = fake.plan("fake/good/1")

    class Stop(Watch):
        def worker_done(self, step: Step, status: str, done: int, *rest: Any) -> None:
            if done == workers:
                raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        runner.run_plan(plan, target=target, progress=Stop())
    return target


def test_a_line_cut_short_costs_one_worker(fake: Fake, tmp_path: Path) -> None:
    target = cut_short(fake, tmp_path, 3)
    journal = runner.journal_path(target)
    journal.write_bytes(journal.read_bytes()[:-10])
    assert runner.recover(target)["run"]["workers_done"] == 2
    document = runner.resume(journal)
    assert document["run"]["workers_done"] == 9
    assert len(fake.log()) == 9 + 1


def test_failures_are_not_tried_again_on_resume(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "o.json"
    # A seed by which the crash comes before the cell that hangs.
    seed = next(
        seed
        for seed in range(100)
        if fake.plan("fake/segv", "fake/hang", seed=seed).steps[0].cell == "fake/segv@a"
    )
    with start_run(fake, target, "fake/segv", "fake/hang", seed=seed) as running:
        wait_until(lambda: hanging(fake))
        running.kill()
    monkeypatch.setenv("FAKE_WELL", "fake/hang@a")
    document = runner.resume(target)
    assert by_id(document)["fake/segv@a"]["status"] == "crashed"
    assert fake.cells().count("fake/segv@a") == 1


def test_resume_refuses_what_it_cannot_go_on_with(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JournalError, match="does not exist and there is no journal"):
        runner.resume(tmp_path / "nothing.json")
    fake.run("fake/good/10", target=tmp_path / "done.json")
    with pytest.raises(JournalError, match="is complete"):
        runner.resume(tmp_path / "done.json")
    with pytest.raises(JournalError, match="cannot read"):
        runner.recover(tmp_path / "done.json")

    target = cut_short(fake, tmp_path, 2)
    journal = runner.journal_path(target)
    good = journal.read_bytes()
    with monkeypatch.context() as patch:
        patch.setenv("FAKE_BUILD", "two")
        with pytest.raises(JournalError, match="build_id was 'one', is 'two'"):
            runner.resume(target)
    head, *rest = good.split(b"\n")
    for damaged, message in (
        (b"\n".join([head, b"{broken", *rest]), "line 2 is damaged"),
        (b"{}\n", "not a journal of this version"),
        (b"", "not a journal of this version"),
        (b"\n".join([head, b'{"step": "measure:0:0::other"}', *rest]), "not planned"),
    ):
        journal.write_bytes(damaged)
        with pytest.raises(JournalError, match=message):
            runner.resume(target)
    wrong = json.loads(head)
    wrong["fingerprint"]["cpu"] = "another"
    journal.write_bytes(json.dumps(wrong).encode() + b"\n")
    with pytest.raises(JournalError, match="began on another machine"):
        runner.resume(target)
    journal.write_bytes(good)
    assert runner.resume(target)["run"]["complete"] is True


def test_an_unfinished_journal_is_replaced_with_a_warning(fake: Fake, tmp_path: Path) -> None:
    target = cut_short(fake, tmp_path, 1)
    run = fake.run("fake/good/10", target=target)["run"]
    assert "cut.json.journal of an unfinished run was replaced" in run["warnings"][0]


# --- listing ------------------------------------------------------------------------------------


def test_listing_without_an_extension_says_how_to_get_one(fake: Fake, tmp_path: Path) -> None:
    from conftest import make_fake_package

    from capybench.cases import list_cells

    bare = make_fake_package(tmp_path / "bare")
    (Path(bare.path) / "capybench" / "_core.py").unlink()
    with pytest.raises(EnvironmentFault, match=r"capybench\._core is not built in .*bare"):
        list_cells(bare)


def test_listing_knows_suites_build_and_variant(fake: Fake) -> None:
    listing = fake.listing()
    assert listing.variant == fake.variant
    assert listing.build["build_id"] == "one"
    assert [suite.name for suite in listing.suites] == ["fake"]
    cases = [cell.case for cell in listing if cell.case.startswith("good/")]
    assert cases == ["good/1"] * 3 + ["good/2"] * 2 + ["good/10"]


# --- the real core ------------------------------------------------------------------------------


def test_run_and_load_from_python(tmp_path: Path) -> None:
    import capybench

    target = tmp_path / "o.json"
    result = capybench.run(
        ["noop/op", "coroutine/run_async/depth1"],
        use_installed=False,
        quick=True,
        blocks=2,
        samples=2,
        seed=3,
        target=target,
    )
    assert [cell.id for cell in result.cells] == [
        "coroutine/run_async/depth1@task",
        "coroutine/run_async/depth1@callback",
        "noop/op@core",
    ]
    for cell in result.cells:
        assert (cell.status, cell.summary.n) == ("ok", 2), cell.reason
        assert all(process.single_after for process in cell.processes)
        assert cell.ledger is not None and tuple(cell.ledger) == runner.LEDGER
    assert capybench.load(target).to_dict() == result.to_dict()


def test_an_interrupted_run_from_python_names_its_file(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import capybench

    def interrupt(*_: Any, **__: Any) -> runner.Outcome:
        raise KeyboardInterrupt

    real = runner.ask_worker

    def ask(request: Mapping[str, Any], *rest: Any, **more: Any) -> runner.Outcome:
        return (real if request["op"] == "list" else interrupt)(request, *rest, **more)

    monkeypatch.setattr(runner, "ask_worker", ask)
    monkeypatch.setattr(runner, "installed_variant", lambda: fake.variant)
    with pytest.raises(KeyboardInterrupt, match=r"0 of 4 workers had finished.*o\.json"):
        capybench.run("fake/good/10", blocks=3, target=tmp_path / "o.json")
