"""The extension's own contract: buffers, errors, thread modes, nothing kept."""

from __future__ import annotations

import json
import subprocess
import sys
from array import array

import numpy as np
import pytest
from support import PACKAGE, bare

from capybench import _core

THREADED = "primitives/mutex_threaded@core"


def test_both_buffers_are_filled() -> None:
    with _core.Run(THREADED) as run:
        ops = run.calibrate(100_000)
        for make in (lambda n: array("Q", [0] * n), lambda n: np.zeros(n, "uint64")):
            samples, flags = make(4), make(4)
            assert run.measure(ops, samples, flags) == 4
            assert all(samples)
            assert not any(flags)  # this process has threads, and the clock is sound
        run.verify()
        assert run.usage()["samples"] >= 8
        assert run.counters() == {}


@pytest.mark.parametrize(
    ("samples", "error"),
    [
        (np.zeros(4), TypeError),
        (np.zeros(4, "uint32"), TypeError),
        (np.zeros((2, 2), "uint64"), TypeError),
        (bytearray(32), TypeError),
        (b"12345678", BufferError),
        (np.zeros(8, "uint64")[::2], (BufferError, ValueError)),
        ([0, 0, 0, 0], TypeError),
        (np.zeros(3, "uint64"), ValueError),
    ],
)
def test_wrong_buffers_are_refused(samples: object, error: type[Exception]) -> None:
    with _core.Run(THREADED) as run, pytest.raises(error):
        run.measure(1, samples, np.zeros(4, "uint64"))  # type: ignore[arg-type]


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(LookupError, match="there is no cell 'noop/op@nobody'"):
        _core.Run("noop/op@nobody")
    with _core.Run(THREADED) as run:
        with pytest.raises(ValueError, match="positive multiple"):
            run.measure(0, array("Q", [0]), array("Q", [0]))
        with pytest.raises(ValueError, match="does not count"):
            run.ledger(1)
        run.close()
        with pytest.raises(ValueError, match="closed"):
            run.verify()


def test_a_single_threaded_cell_needs_a_process_without_threads() -> None:
    code = """
import threading
from capybench import _core
assert _core.single_threaded()
_core.Run("noop/op@core").close()
thread = threading.Thread(target=lambda: None)
thread.start()
thread.join()
assert not _core.single_threaded()
try:
    _core.Run("noop/op@core")
except _core.CoreError as error:
    print(error.status, error)
"""
    assert bare(code).startswith(
        "invalid this case needs a process that has never created a thread"
    )


def test_an_interrupt_comes_between_samples() -> None:
    code = """
import signal
from array import array
from capybench import _core
run = _core.Run("noop/op@core")
ops = 5_000_000  # a millisecond or more, however busy the machine: 4000 of them outlast the timer
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
samples = array("Q", bytes(8 * 4000))
try:
    run.measure(ops, samples, array("Q", bytes(8 * 4000)))
except KeyboardInterrupt:
    print(sum(1 for ns in samples if ns))
"""
    assert 0 < int(bare(code)) < 4000


def test_nothing_is_kept() -> None:
    code = """
from array import array
import json, os
from capybench import _core
def once():
    _core.cases(); _core.suites(); _core.build()
    for cell in (
        "coroutine/switch/strand@task", "frame_alloc/chain66@malloc", "primitives/pipe_byte@core"
    ):
        with _core.Run(cell) as run:
            run.measure(20, array("Q", [0] * 3), array("Q", [0] * 3))
            run.verify(); run.facts(); run.usage()
    try:
        _core.Run("no such cell")
    except LookupError:
        pass
def pages():
    return int(open("/proc/self/statm").read().split()[1])
for _ in range(1500): once()  # until the allocators have what they will ever need
before, files = pages(), len(os.listdir("/proc/self/fd"))
for _ in range(600): once()
print(json.dumps([pages() - before, len(os.listdir("/proc/self/fd")) - files]))
"""
    grown, files = json.loads(bare(code))
    assert files == 0
    # One leaked dict of a cell in 600 rounds would be 100 pages and more.
    assert grown < 64


def test_descriptors_are_complete() -> None:
    baselines = {suite["name"]: suite["baselines"] for suite in _core.suites()}
    for cell in _core.cases():
        assert cell["id"] == f"{cell['suite']}/{cell['case']}@{cell['contender']}"
        assert cell["unit"] in {"ns/op", "ops/s", "items/s", "bytes/s"}
        assert cell["summary"]
        assert cell["available"] == (cell["reason"] is None)
        assert cell["suite"] in baselines


@pytest.mark.parametrize("module", ["cases", "plan", "results", "runner", "tables", "worker"])
def test_a_module_can_be_imported_alone(module: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import capybench.{module}"
    subprocess.run([sys.executable, "-I", "-W", "error", "-c", code], check=True)


def test_the_package_loads_neither_numpy_nor_rich() -> None:
    code = "import capybench, sys; print([m for m in ('numpy', 'rich') if m in sys.modules])"
    assert bare(code).strip() == "[]"
