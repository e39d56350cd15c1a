"""Builders of result documents whose numbers are known."""

from __future__ import annotations

from typing import Any

import numpy as np

LEDGER = {
    "heap_allocs": 0,
    "resource_allocs": 2,
    "invoker_frames": 0,
    "indirect_calls": 7,
    "atomic_rmws": 0,
    "seq_cst_stores": 0,
    "ref_changes": 0,
    "mutex_pairs": 0,
    "posts": 0,
    "syscalls": 0,
}


def process(block: int, samples_ns: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "block": block,
        "order": 0,
        "cpu": block % 2,
        "samples_ns": samples_ns,
        "single_before": True,
        "single_after": True,
        **more,
    }


def cell(
    cell_id: str = "coroutine/run_async/depth1@task",
    samples: list[list[Any]] | None = None,
    ops: int | None = 1000,
    **more: Any,
) -> dict[str, Any]:
    """A cell with one process for each list of samples; block numbers count from 0."""
    left, _, contender = cell_id.rpartition("@")
    suite, _, case = left.partition("/")
    samples = [[20_000, 20_100, 19_900]] * 3 if samples is None else samples
    return {
        "id": cell_id,
        "suite": suite,
        "case": case,
        "contender": contender,
        "unit": "ns/op",
        "direction": "lower",
        "thread_mode": "single",
        "bytes_per_op": 0,
        "status": "ok",
        "reason": None,
        "ops": ops,
        "baseline": contender in ("task", "malloc"),
        "processes": [process(block, values) for block, values in enumerate(samples)],
        "counters": {"heap_allocs_per_op": 0, "resource_allocs_per_op": 2, "heap_bytes_per_op": 0},
        "ledger": dict(LEDGER),
        **more,
    }


def absent(
    cell_id: str, status: str = "unavailable", reason: str = "no library", **more: Any
) -> dict[str, Any]:
    """A cell without a number."""
    data = cell(cell_id, samples=[], ops=None, status=status, reason=reason, **more)
    return {**data, "counters": None, "ledger": None}


def document(*cells: dict[str, Any], blocks: int = 3, **run: Any) -> dict[str, Any]:
    return {
        "schema": "capybench/1",
        "run": {
            "id": "20260102T030405.000006Z-7",
            "created_utc": "2026-01-02T03:04:05Z",
            "seed": 7,
            "blocks": blocks,
            "samples": 3,
            "target_ns": 10_000_000,
            "quick": True,
            "patterns": [],
            "baseline": None,
            "complete": True,
            "interrupted": False,
            "blocks_done": blocks,
            "warnings": [],
            **run,
        },
        "machine": {
            "fingerprint": {"cpu": "Test CPU", "kernel": "Linux 6", "libc": "glibc 2.36"},
            "build": {"compiler": "gcc 12", "flags": "-O2", "build_id": "abc"},
            "before": {"load": [0.5]},
            "after": None,
        },
        "cells": list(cells),
    }


def noisy(ns: float, blocks: int, ops: int = 1000, spread: float = 0.01, seed: int = 1) -> Any:
    """Samples of `blocks` processes around `ns` an op."""
    random = np.random.default_rng(seed)
    factors = 1 + spread * random.standard_normal((blocks, 3))
    return [[round(ns * ops * factor) for factor in row] for row in factors]


def suites(blocks: int = 3) -> dict[str, Any]:
    """A run of the two Capy suites with every kind of row."""
    coroutine = {
        "run_async/depth1": 17.1,
        "run_async/depth2": 30.9,
        "run_async/depth3": 41.3,
        "run_async/depth4": 53.7,
        "strand/depth1": 58.9,
        "strand/depth4": 89.4,
        "switch/executor": 75.8,
        "switch/strand": 152.6,
    }
    cells = []
    for seed, (case, ns) in enumerate(coroutine.items()):
        cells.append(cell(f"coroutine/{case}@task", noisy(ns, blocks, seed=seed)))
        if case.startswith("run_async"):
            samples = noisy(ns / 8, blocks, seed=seed + 100)
            cells.append(cell(f"coroutine/{case}@callback", samples))
    frames = {"malloc": 26.6, "recycling": 19.4, "mimalloc": 29.5, "none": 15.0}
    for seed, (contender, ns) in enumerate(frames.items()):
        counts = {
            "heap_allocs_per_op": 66 if contender == "malloc" else 0,
            "resource_allocs_per_op": 0 if contender == "none" else 66,
        }
        samples = noisy(ns * 66, blocks, seed=seed + 200)
        cells.append(cell(f"frame_alloc/chain66@{contender}", samples, counters=counts))
    cells.append(absent("frame_alloc/chain66@jemalloc", reason="libjemalloc.so.2 was not found"))
    return document(*cells, blocks=blocks)


def interleaved(
    costs: dict[str, Any], *, control: bool = False, ops: int = 1000, **run: Any
) -> dict[str, Any]:
    """A run of the builds "base" and "head" side by side. `costs` gives for each cell an array of
    ns an op, blocks x 2 (base, head), or blocks x 3 with the control."""
    cells = []
    names = ["base", "control", "head"] if control else ["base", "head"]
    order = ["base", "head", "control"]
    blocks = 0
    for cell_id, matrix in costs.items():
        data = cell(cell_id, samples=[], ops=ops)
        blocks = max(blocks, len(matrix))
        for block, row in enumerate(matrix):
            for name, ns in zip(order, row, strict=False):
                data["processes"].append(process(block, [round(ns * ops)] * 3, variant=name))
        absent = [name for name in names if name == "control" and len(matrix[0]) < 3]
        data["variants"] = [
            {
                "name": name,
                "absent": name in absent,
                "status": "unavailable" if name in absent else "ok",
                "reason": "not a control cell" if name in absent else None,
                "counters": data["counters"],
                "ledger": data["ledger"],
            }
            for name in names
        ]
        cells.append(data)
    facts = [{"name": name, "build": {"build_id": name}} for name in names]
    return document(*cells, **{"blocks": blocks, "variants": facts, **run})
