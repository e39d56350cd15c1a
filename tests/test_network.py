"""The network suites: exact system calls per op on each reactor, and what must not break them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from support import ROOT, bare

from capybench import _core

COUNT = """
import json
from capybench import _ledger
out = {}
for cell, ops in %r:
    with _ledger.Run(cell) as run:
        out[cell] = run.ledger(ops)
        run.verify()
print(json.dumps(out))
"""

RUNTIMES = ("callback-epoll", "task-epoll", "callback-poll", "callback-uring", "task-uring")
#: One poll after 17 calls: the call that woke the actor and 16 that completed inline.
TURN = 17
URING = {cell["id"] for cell in _core.cases() if not cell["available"]}


def counted(*cells: tuple[str, int]) -> dict[str, dict[str, Any]]:
    ready = [(cell, ops) for cell, ops in cells if cell not in URING]
    result: dict[str, dict[str, Any]] = json.loads(bare(COUNT % (ready,)))
    return result


@pytest.mark.parametrize("suite", ["socket_latency", "local_socket_latency"])
def test_a_round_trip_is_four_calls_and_its_share_of_polls(suite: str) -> None:
    ops = 10 * TURN
    names = (*RUNTIMES, "raw-epoll", "raw-uring")
    one = {name: f"{suite}/pingpong/64@{name}" for name in names}
    many = {name: f"{suite}/concurrent/16@{name}" for name in names}
    ledger = counted(
        *((cell, ops) for cell in one.values()), *((cell, 16 * ops) for cell in many.values())
    )
    for name in names:
        for cell, pairs in ((one[name], 1), (many[name], 16)):
            if cell not in ledger:
                continue
            seen = ledger[cell]
            assert (seen["reads"], seen["writes"]) == (2, 2), cell
            assert seen["heap_allocs"] == seen["resource_allocs"] == 0, cell
            calls = 4 / pairs if "uring" in name else 4 + 4 / TURN / pairs
            assert seen["syscalls"] == pytest.approx(calls, abs=0.02), cell


def test_http_single_connection() -> None:
    ledger = counted(*((f"http_server/single_conn@{name}", 200) for name in RUNTIMES))
    for cell, seen in ledger.items():
        # Trying first: both ends look for bytes that are not there yet.
        wanted = (2, 2, 2, 2) if "uring" in cell else (8, 4, 2, 2)
        assert (seen["syscalls"], seen["reads"], seen["writes"], seen["polls"]) == wanted, cell


def test_churn_and_fan_out_calls_and_frames() -> None:
    cells = [(f"accept_churn/sequential@{name}", 50) for name in RUNTIMES]
    cells += [(f"accept_churn/burst/10@{name}", 20) for name in RUNTIMES]
    cells += [
        (f"fan_out/{case}@{name}", 40) for case in ("fork_join/16", "nested/4") for name in RUNTIMES
    ]
    ledger = counted(*cells, ("accept_churn/sequential@raw-epoll", 50))
    calls = {
        "accept_churn/sequential": {"epoll": 16, "poll": 12, "uring": 9},
        "accept_churn/burst/10": {"epoll": 131, "poll": 91, "uring": 70},
        "fan_out/fork_join/16": {"epoll": 98, "poll": 98, "uring": 2},
        "fan_out/nested/4": {"epoll": 98, "poll": 98, "uring": 2},
    }
    frames = {
        "accept_churn/sequential": 1,
        "accept_churn/burst/10": 10,
        "fan_out/fork_join/16": 16,
        "fan_out/nested/4": 20,
    }
    for cell, seen in ledger.items():
        case, contender = cell.split("@")
        style, reactor = contender.split("-")
        if style == "raw":
            assert seen["syscalls"] == 11
            continue
        assert seen["syscalls"] == pytest.approx(calls[case][reactor], abs=0.2), cell
        assert seen["resource_allocs"] == (frames[case] if style == "task" else 0), cell


def test_all_published_cases_exist() -> None:
    cases: dict[str, set[str]] = {}
    for cell in _core.cases():
        cases.setdefault(cell["suite"], set()).add(cell["case"])
    published = {
        "accept_churn": 9,
        "fan_out": 18,
        "http_server": 11,
        "socket_latency": 12,
        "socket_throughput": 27,
        "local_socket_latency": 12,
        "local_socket_throughput": 24,
    }
    assert {suite: len(cases[suite]) for suite in published} == published
    assert len(cases["io_context"]) == 8
    assert len(cases["timer"]) == 7


def test_a_low_descriptor_limit_is_named() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)); "
        "from capybench import _core; _core.Run('fan_out/fork_join/64@callback-epoll')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode != 0
    assert "needs 132 open files beside" in done.stderr
    assert "the limit is 40; raise it with ulimit -n" in done.stderr


def test_nothing_is_left_after_a_cell() -> None:
    code = """
import os
from array import array
from capybench import _core
def seen():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
before = seen()
suites = "accept_churn fan_out http_server io_context socket_latency timer".split()
cells = [c["id"] for c in _core.cases() if c["available"] and c["suite"] in suites]
for cell in cells[::7]:
    with _core.Run(cell) as run:
        pass
    assert seen() == before, (cell, seen(), before)
"""
    bare(code)
