"""`capybench verify`: do cells do their work, count what they promise, and give everything back?

Nothing is timed. A worker sets a cell up again and again and runs several op counts; then it looks
for what grows: descriptors, threads, children, heap, mappings. Another worker counts events and
compares them with the ledger that the cell's descriptor promises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from capybench import environment
from capybench.cases import Cell, Listing
from capybench.plan import count_ops
from capybench.runner import TIMEOUT_S, Outcome, ask_worker, blame, library_folders_of


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found about one cell. `status` is "ok", "failed" or "unavailable"; `problems` are
    sentences that begin with work:, counts: or leaks:, `notes` say what could not be looked at."""

    id: str
    status: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `capybench verify --format json` prints it."""
        return {
            "id": self.id,
            "status": self.status,
            "problems": list(self.problems),
            "notes": list(self.notes),
        }

    def describe(self) -> str:
        """One line, and one more for each problem and note."""
        rest = [f"\n        {text}" for text in (*self.problems, *self.notes)]
        return f"{self.status:<7} {self.id}" + "".join(rest)


def verify_cells(
    listing: Listing,
    cells: Iterable[Cell],
    *,
    timeout_s: float = TIMEOUT_S,
    done: Callable[[Verification], None] | None = None,
) -> tuple[Verification, ...]:
    """Verify cells of a listing, each in fresh workers; `done` is told after each one."""
    found = []
    for cell in cells:
        one = _verify(listing, cell, timeout_s)
        found.append(one)
        if done is not None:
            done(one)
    return tuple(found)


def _verify(listing: Listing, cell: Cell, timeout_s: float) -> Verification:
    if not cell.available:
        return Verification(cell.id, "unavailable", notes=(cell.reason or "no reason given",))
    work = _ask(listing, cell, "verify", cell.step, timeout_s)
    if work.status == "unavailable":
        return Verification(cell.id, "unavailable", notes=(work.reason or "no reason given",))
    problems, notes = [], []
    if work.status != "ok":
        problems.append(f"work: {blame(cell, listing.plugins, work).reason}")
    else:
        problems += [f"leaks: {leak}" for leak in work.result["leaks"]]
    more_problems, more_notes = _counts(listing, cell, timeout_s)
    problems += more_problems
    notes += more_notes
    return Verification(cell.id, "failed" if problems else "ok", tuple(problems), tuple(notes))


def _counts(listing: Listing, cell: Cell, timeout_s: float) -> tuple[list[str], list[str]]:
    """Problems and notes about a cell's event counts."""
    if cell.python:
        return [], ["counts: measured by Python code, nothing is counted"]
    plugin = listing.plugin(cell.plugin)
    if plugin is not None and plugin.counting is None:
        return [], [f"counts: the plug-in {plugin.name} has no counting build"]
    outcome = _ask(listing, cell, "count", count_ops(cell), timeout_s)
    if outcome.status != "ok":
        return [f"counts: {blame(cell, listing.plugins, outcome).reason}"], []
    if not cell.ledger:
        return [], ["counts: the descriptor promises none"]
    ledger = outcome.result["ledger"]
    wrong = [
        f"counts: {ledger.get(name)} {name} an op, the descriptor promises {promised}"
        for name, promised in cell.ledger.items()
        if ledger.get(name) != promised
    ]
    return wrong, []


def _ask(listing: Listing, cell: Cell, op: str, ops: int, timeout_s: float) -> Outcome:
    plugin = listing.plugin(cell.plugin)
    request = {
        "op": op,
        "cell": cell.id,
        "python": cell.python,
        "single": cell.thread_mode == "single",
        "cpus": None,
        "ops": ops,
        "plugins": [] if plugin is None else plugin.request(counting=op == "count"),
    }
    env = environment.worker_environment(
        os.environ, static_tls=True, folders=library_folders_of(listing.variant)
    )
    if op == "verify":
        # What malloc caches for the thread looks handed out, and an aligned request leaves ever new
        # remainders there: it grows for a while, and is no leak.
        env["GLIBC_TUNABLES"] += ":glibc.malloc.tcache_count=0"
    return ask_worker(request, listing.variant, env, timeout_s=timeout_s)
