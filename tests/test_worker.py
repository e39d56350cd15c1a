"""The child side: what it imports, how it ends, what it answers."""

from __future__ import annotations

import json
import os
import select as selecting
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGE, Fake, alive, wait_until

from capybench import environment, worker
from capybench.cases import Variant
from capybench.errors import EnvironmentFault
from capybench.runner import Outcome, ask_worker, installed_variant


def ask(
    variant: Variant, op: str, cell: str = "", timeout_s: float = 20.0, **more: object
) -> Outcome:
    request = {
        "op": op,
        "cell": cell,
        "cpus": None,
        "samples": 3,
        "target_ns": 1000,
        "ops": None,
        "python": False,
        **more,
    }
    env = environment.worker_environment(os.environ)
    return ask_worker(request, variant, env, timeout_s=timeout_s)


class Bare:
    """A worker without the runner: the test holds both pipes."""

    def __init__(self, variant: Variant, request: Mapping[str, object]) -> None:
        self.answers, theirs = os.pipe()
        arguments = [variant.python, "-I", "-S", "-c", worker.BOOT, variant.path, str(theirs)]
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, pass_fds=(theirs,), start_new_session=True
        )
        os.close(theirs)
        assert self.process.stdin is not None
        self.stdin = self.process.stdin
        self.stdin.write(json.dumps(request).encode() + b"\n")
        self.stdin.flush()

    def line(self) -> dict[str, Any]:
        data = b""
        while not data.endswith(b"\n"):
            assert selecting.select([self.answers], [], [], 20)[0], "no answer"
            part = os.read(self.answers, 1)
            assert part, "the worker ended"
            data += part
        answer: dict[str, Any] = json.loads(data)
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        os.close(self.answers)


def test_json_without_the_package_agrees_with_it() -> None:
    values: list[object] = [
        None,
        True,
        -1,
        2**64 - 1,
        1.5,
        'é\n"\u2028😀',
        [],
        {},
        {"a": [1, {"b": None}]},
        "x" * 5000,
    ]
    for value in values:
        assert json.loads(worker.dumps(value)) == value
        assert worker.loads(json.dumps(value)) == value
    with pytest.raises(TypeError, match="set cannot be told"):
        worker.dumps({1})


def test_measure_reports_samples_flags_usage_and_facts(fake: Fake) -> None:
    outcome = ask(fake.variant, "measure", "fake/good/1@a")
    result = outcome.result
    assert (outcome.status, outcome.reason) == ("ok", None)
    assert result["ops"] == 10, "calibrated for 1000 ns"
    assert result["samples_ns"] == [1000, 1001, 1002]
    assert result["flags"] == [3, 3, 3]
    assert result["pace_ns"] == [2_000_000] * 4, "one before the first sample, one after each"
    assert result["cpu_busy_ms"] >= 0 and result["cpu_steal_ms"] >= 0
    assert result["single_before"] is True and result["single_after"] is True
    assert result["usage"]["samples"] == 3, "the warm-up's share is taken off"
    assert result["usage"]["thread_cpu_ns"] == 21
    assert result["usage"]["threads"] == 1
    assert result["warmup"] == {"samples_ns": [1000, 1000, 1000], "steady": True}
    assert result["facts"] == {"maker": "tests"}
    assert result["startup_ns"] > 0


def test_given_ops_are_not_calibrated_again(fake: Fake) -> None:
    assert ask(fake.variant, "measure", "fake/good/1@a", ops=7).result["ops"] == 7


def test_warm_up_is_bounded_and_says_that_it_was_never_steady(fake: Fake) -> None:
    warmup = ask(fake.variant, "measure", "fake/drift@a", target_ns=10**9).result["warmup"]
    assert warmup["steady"] is False
    assert len(warmup["samples_ns"]) <= worker.WARMUP_LIMIT
    # One op far longer than a sample: too few samples to tell.
    slow = ask(fake.variant, "measure", "fake/good/1@a", ops=10**6).result["warmup"]
    assert slow == {"samples_ns": [10**8], "steady": None}


def test_one_late_disturbance_does_not_hold_the_warm_up() -> None:
    class Run:
        def __init__(self, series: list[int]) -> None:
            self.series = iter(series)

        def measure(self, ops: int, samples: Any, flags: Any) -> int:
            samples[0] = next(self.series)
            return 1

    def seen(*series: int) -> tuple[int, object]:
        warmup = worker._warm_up(Run([*series, *[0] * 20]), 1, 10**6)
        assert isinstance(warmup["samples_ns"], list)
        return len(warmup["samples_ns"]), warmup["steady"]

    assert seen(100, 101, 180) == (3, True)
    assert seen(200, 160, 130, 100, 101, 100) == (5, True)
    assert seen(*range(2000, 0, -160)) == (worker.WARMUP_LIMIT, False)


def test_affinity_is_set_before_the_cell(fake: Fake) -> None:
    cpu = max(os.sched_getaffinity(0))
    ask(fake.variant, "measure", "fake/good/1@a", cpus=[cpu])
    assert fake.log()[0]["cpus"] == [cpu]


def test_counts_come_from_the_counting_build(fake: Fake) -> None:
    outcome = ask(fake.variant, "count", "fake/good/1@a", ops=16)
    assert outcome.result["ledger"]["mutex_pairs"] == 3
    assert [line["counting"] for line in fake.log()] == [True]


def test_mixed_up_builds_are_refused(fake: Fake, tmp_path: Path) -> None:
    from conftest import make_fake_package

    mixed = make_fake_package(tmp_path / "mixed")
    core = Path(mixed.path) / "capybench" / "_core.py"
    core.write_text(core.read_text().replace("counting = False", "counting = True", 1))
    outcome = ask(mixed, "measure", "fake/good/1@a")
    assert outcome.status == "failed"
    assert outcome.reason == ("capybench._core says that it counts: the two builds are mixed up")


@pytest.mark.parametrize(
    ("cell", "status", "reason"),
    [
        ("fake/verify@a", "failed", "the sum is 3 instead of 4"),
        ("fake/invalid@a", "invalid", "this process has made a thread"),
        ("fake/raises@a", "failed", "ZeroDivisionError: no good"),
        ("fake/nothing@a", "failed", "LookupError: there is no cell 'fake/nothing@a'"),
        ("fake/segv@a", "crashed", "the worker was ended by SIGSEGV"),
        ("fake/late@a", "crashed", "the worker was ended by SIGABRT"),
        ("fake/exit@a", "crashed", "the worker ended with exit code 3 and no result"),
    ],
)
def test_cells_that_go_wrong(fake: Fake, cell: str, status: str, reason: str) -> None:
    outcome = ask(fake.variant, "measure", cell)
    assert (outcome.status, outcome.reason) == (status, reason)


def test_killed_from_outside_says_so(fake: Fake) -> None:
    outcome = ask(fake.variant, "measure", "fake/killed@a")
    assert outcome.status == "crashed"
    assert "SIGKILL (killed from outside" in (outcome.reason or "")


@pytest.mark.parametrize("cell", ["fake/hang@a", "fake/stuck@a", "fake/orphan@a"])
def test_watchdog_kills_the_whole_group(fake: Fake, cell: str) -> None:
    outcome = ask(fake.variant, "measure", cell, timeout_s=1.0)
    assert outcome.status == "timeout"
    assert "no result after 1 s" in (outcome.reason or "")
    for line in fake.log():
        wait_until(lambda pid=line["pid"]: not alive(pid))  # type: ignore[misc]


def test_python_cells_without_their_code_say_so(fake: Fake) -> None:
    outcome = ask(fake.variant, "measure", "fake/python@a", python=True)
    assert outcome.status == "failed"
    assert "measured by Python code" in (outcome.reason or "")


def test_unknown_request(fake: Fake) -> None:
    outcome = ask(fake.variant, "dance")
    assert outcome.reason == "there is no request 'dance'; there are list, measure, count, verify"


def test_own_group_and_deaf_to_ctrl_c(fake: Fake) -> None:
    ask(fake.variant, "measure", "fake/good/1@a")
    line = fake.log()[0]
    assert line["group"] == line["pid"]
    assert line["sigint_ignored"] is True


@pytest.mark.parametrize("cell", ["fake/hang@a", "fake/stuck@a"])
def test_ends_when_its_pipe_closes_in_the_middle_of_a_cell(fake: Fake, cell: str) -> None:
    request = {
        "protocol": worker.PROTOCOL,
        "op": "measure",
        "cell": cell,
        "samples": 1,
        "target_ns": 1000,
        "ops": 1,
        "cpus": None,
        "limit_s": 60,
    }
    bare = Bare(fake.variant, request)
    try:
        assert bare.line()["event"] == "hello"
        wait_until(lambda: bool(fake.log()))
        assert bare.process.poll() is None
        bare.stdin.close()
        assert bare.process.wait(20) == -signal.SIGIO
    finally:
        bare.end()


def test_ends_when_the_parent_is_gone_before_the_request(fake: Fake) -> None:
    answers, theirs = os.pipe()
    arguments = [fake.variant.python, "-I", "-S", "-c", worker.BOOT, fake.variant.path, str(theirs)]
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, pass_fds=(theirs,), timeout=20)
    os.close(theirs)
    os.close(answers)
    assert done.returncode == 0
    assert fake.log() == []


def test_its_own_alarm_ends_it_when_no_watchdog_does(fake: Fake) -> None:
    # limit_s + 5 seconds is the alarm; a negative limit makes it short.
    request = {
        "protocol": worker.PROTOCOL,
        "op": "measure",
        "cell": "fake/stuck@a",
        "samples": 1,
        "target_ns": 1000,
        "ops": 1,
        "cpus": None,
        "limit_s": -4,
    }
    bare = Bare(fake.variant, request)
    try:
        assert bare.process.wait(20) == -signal.SIGALRM
    finally:
        bare.end()


def test_other_protocol_is_refused_in_one_sentence_on_both_sides(
    fake: Fake, tmp_path: Path
) -> None:
    bare = Bare(fake.variant, {"protocol": 99, "op": "list"})
    try:
        assert bare.line()["protocol"] == worker.PROTOCOL
        refusal = bare.line()
        assert refusal["event"] == "refused"
        assert "speaks worker protocol 2, the calling one protocol 99" in refusal["reason"]
    finally:
        bare.end()

    from conftest import make_fake_package

    other = make_fake_package(tmp_path / "other")
    source = Path(other.path) / "capybench" / "worker.py"
    source.write_text(source.read_text().replace("PROTOCOL = 2", "PROTOCOL = 3", 1))
    with pytest.raises(EnvironmentFault, match=r"protocol 3, this capybench .* protocol 2"):
        ask(other, "list")


def test_missing_interpreter_is_one_sentence(fake: Fake) -> None:
    with pytest.raises(EnvironmentFault, match="cannot start a worker with /no/python"):
        ask(Variant("/no/python", fake.variant.path), "list")


def test_a_worker_of_the_real_core_is_bare_and_single_threaded() -> None:
    variant = installed_variant()
    outcome = ask(variant, "measure", "noop/op@core", samples=2, target_ns=100_000, inspect=True)
    assert outcome.status == "ok", outcome.reason
    result = outcome.result
    assert result["threads"] == result["usage"]["threads"] == 1
    assert result["single_before"] is result["single_after"] is True
    modules = set(result["modules"])
    assert {"capybench._core", "capybench.worker"} <= modules
    assert not modules & {
        "capybench._ledger",
        "capybench.runner",
        "dataclasses",
        "json",
        "numpy",
        "rich",
        "site",
        "subprocess",
        "threading",
        "typing",
    }


def test_a_counting_worker_never_loads_the_measured_build() -> None:
    outcome = ask(installed_variant(), "count", "noop/op@core", ops=16, inspect=True)
    assert outcome.status == "ok", outcome.reason
    assert "capybench._ledger" in outcome.result["modules"]
    assert "capybench._core" not in outcome.result["modules"]


def test_importing_the_package_loads_neither_numpy_nor_rich() -> None:
    code = (
        "import sys; before = set(sys.modules); sys.path.append(sys.argv[1]); import capybench; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(PACKAGE.parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == {"capybench", "capybench._version"}


def test_the_header_is_in_a_real_folder() -> None:
    import capybench

    assert (Path(capybench.get_include()) / "capybench.h").is_file()


def test_public_names_are_there_and_others_are_not() -> None:
    import capybench

    for name in capybench.__all__:
        assert getattr(capybench, name) is not None
        assert name in dir(capybench)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        capybench.nothing  # noqa: B018
