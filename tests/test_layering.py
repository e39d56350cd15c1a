"""The rules of the tree: who may include whom, what a module exports, what it keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import ROOT, extension, output_of

CSRC = ROOT / "csrc"
# A file includes its own layer or a lower one.
LAYERS = {
    "base": 0,
    "alloc": 1,
    "rt": 2,
    "stream": 3,
    "net": 3,
    "proc": 3,
    "suites": 4,
    "harness": 5,
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# The thread-locals and counters that the workloads themselves have (style rule 18), and the
# shared pool of the recycling resource.
MUTABLE = {
    "shared": "the recycling resource's shared pool",
    "janitor_key": "its thread-exit hook",
    "janitor_once": "the same",
    "janitor_ready": "the same",
    "cpb_recycling_local": "its pool of the thread",
    "cpb_recycling_singleton": "the resource itself, compared by address",
    "adapter": "the std::allocator adapter, without state",
    "cpb_frame_allocator": "the thread's current frame allocator",
    "cpb_frame_alloc_counter": "the counter that specification B.1 increments",
    "cpb_counting_allocations": "the allocation counter that specification C.1 increments",
    "counting": "the counting resource, without state",
    "cpb_pool_current": "the pool's worker that a thread is",
    "current_trampoline": "the repeat loop's trampoline, thread-local in the original",
    "cpb_thread_top": "the scheduler that a thread runs",
    "cpb_op_alloc_buffer": "the array that specification D.6 puts its resources over",
    "cpb_ledger_totals": "the counters of the counting build",
}
# Python's API takes these as pointers to mutable memory.
PYTHON_TABLES = {"definition", "methods", "slots", "run_methods", "run_slots", "run_spec"}


def layer_of(path: Path) -> str:
    parts = path.relative_to(CSRC / "core").parts
    return parts[0] if len(parts) > 1 else "harness"


def core_files() -> list[Path]:
    return sorted(p for p in (CSRC / "core").rglob("*") if p.suffix in {".c", ".h", ".S"})


def test_a_core_file_includes_its_own_layer_or_a_lower_one() -> None:
    seen = 0
    for path in core_files():
        own = layer_of(path)
        for included in INCLUDE.findall(path.read_text()):
            if included == "capybench.h":
                continue
            target = CSRC / "core" / included
            assert target.exists(), f"{path}: {included} is not a path below csrc/core"
            other = layer_of(target)
            seen += 1
            assert LAYERS[other] <= LAYERS[own], f"{path} ({own}) includes {included} ({other})"
            if other != own and LAYERS[other] == LAYERS[own]:
                pytest.fail(f"{path} ({own}) includes {included} of the neighbour {other}")
    assert seen > 50


def test_only_the_extension_knows_python() -> None:
    for path in CSRC.rglob("*.[ch]"):
        if "ext" not in path.relative_to(CSRC).parts:
            assert "Python.h" not in path.read_text().replace("Python.h;", ""), path


def test_no_c_file_includes_a_c_file() -> None:
    for path in CSRC.rglob("*.[ch]"):
        assert not [name for name in INCLUDE.findall(path.read_text()) if name.endswith(".c")], path


@pytest.mark.parametrize("name", ["_core", "_ledger"])
def test_a_module_exports_its_init_function_only(name: str) -> None:
    lines = output_of("nm", "-D", "--defined-only", str(extension(name))).split("\n")
    symbols = [line.split()[-1] for line in lines if line.strip()]
    assert symbols == [f"PyInit_{name}"]


@pytest.mark.parametrize("name", ["_core", "_ledger"])
def test_thread_locals_fit_the_spare_static_block(name: str) -> None:
    segments = output_of("readelf", "-lW", str(extension(name)))
    sizes = [
        int(line.split()[5], 16) for line in segments.split("\n") if line.strip().startswith("TLS")
    ]
    assert len(sizes) == 1
    assert 0 < sizes[0] < 840


@pytest.mark.parametrize("name", ["_core", "_ledger"])
def test_no_mutable_globals_but_the_workloads_own(name: str) -> None:
    found = set()
    for line in output_of("objdump", "-t", str(extension(name))).split("\n"):
        match = re.search(r"\s\.(data|bss|tbss|tdata)\s+([0-9a-f]+)\s+(\.hidden )?(\S+)$", line)
        if match and int(match[2], 16) > 0:
            found.add(match[4])
    own = {re.sub(r"\.\d+$", "", s) for s in found if not s.startswith(("_", "completed"))}
    names = {s for s in own if s != "names"}  # keyword lists of argument parsing
    assert names - PYTHON_TABLES - set(MUTABLE) == set()
    assert "cpb_recycling_local" in names
