"""Fixtures shared by the tests. The fake core stands in for the extension where a test needs a cell
that hangs, crashes or cheats; no test depends on how long anything takes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import capybench
from capybench import runner
from capybench.cases import Listing, Variant, list_cells, select
from capybench.plan import Plan, make_plan

HERE = Path(__file__).parent
PACKAGE = Path(capybench.__file__).parent
_LISTINGS: dict[str, Listing] = {}


def pytest_report_header() -> str:
    cpus = sorted(os.sched_getaffinity(0))
    return f"capybench {capybench.__version__} in {PACKAGE}, CPUs {cpus}"


def make_fake_package(folder: Path) -> Variant:
    """A package `capybench` with this package's worker and the fake core as both extensions."""
    package = folder / "capybench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name in ("_version.py", "worker.py"):
        shutil.copy(PACKAGE / name, package / name)
    source = (HERE / "fake_core" / "_core.py").read_text()
    (package / "_core.py").write_text(source)
    (package / "_ledger.py").write_text(source.replace("counting = False", "counting = True", 1))
    return Variant(sys.executable, str(folder))


class Fake:
    """The fake core, what its workers logged, and short plans for it."""

    def __init__(self, variant: Variant, log: Path) -> None:
        self.variant = variant
        self.log_path = log

    def log(self) -> list[dict[str, Any]]:
        if not self.log_path.exists():
            return []
        # A line without its end is still being written.
        return [json.loads(line) for line in self.log_path.read_text().split("\n")[:-1]]

    def cells(self, *, counting: bool = False) -> list[str]:
        """Cells of the workers that were started, in order."""
        return [line["cell"] for line in self.log() if line.get("counting") is counting]

    def listing(self) -> Listing:
        """Asked for once in a session: it does not change."""
        if self.variant.path not in _LISTINGS:
            _LISTINGS[self.variant.path] = list_cells(self.variant)
        return _LISTINGS[self.variant.path]

    def plan(self, *patterns: str, **options: Any) -> Plan:
        listing = self.listing()
        settings: dict[str, Any] = {"blocks": 2, "samples": 3, "target_ns": 1000, "seed": 5}
        return make_plan(
            listing, select(listing, patterns), patterns=patterns, **{**settings, **options}
        )

    def run(self, *patterns: str, target: Path, **options: Any) -> dict[str, Any]:
        timeout_s = options.pop("timeout_s", 20.0)
        plan = self.plan(*patterns, **options)
        return runner.run_plan(plan, target=target, timeout_s=timeout_s)


@pytest.fixture(scope="session")
def fake_variant(tmp_path_factory: pytest.TempPathFactory) -> Variant:
    return make_fake_package(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def fake(fake_variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    log = tmp_path / "log.jsonl"
    monkeypatch.setenv("FAKE_LOG", str(log))
    monkeypatch.setenv("FAKE_BUILD", "one")
    monkeypatch.delenv("FAKE_WELL", raising=False)
    yield Fake(fake_variant, log)
    # Nothing outlives a test: a worker whose parent was killed ends by itself, at once.
    wait_until(lambda: not any(alive(line["pid"]) for line in Fake(fake_variant, log).log()))


def alive(pid: int) -> bool:
    """Whether the process runs: a zombie that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def wait_until(done: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something that must happen; fails the test when it does not."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            pytest.fail(f"did not happen within {seconds:g} s")
        time.sleep(0.01)
