"""Suite op_alloc: overflow, fragmentation and upstream calls as counts; the published form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import bare

from capybench import _core
from capybench.reference import tables_of

COUNT = """
import json
from capybench import _ledger
out = {}
for cell in _ledger.cases():
    if cell["suite"] == "op_alloc" and cell["available"]:
        with _ledger.Run(cell["id"]) as run:
            out[cell["contender"]] = run.ledger(100)
            run.verify()
print(json.dumps(out))
"""
CONTENDERS = ("malloc", "monotonic", "pmr_monotonic", "sbo", "recycling", "mimalloc")


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = json.loads(bare(COUNT))
    return result


def test_contenders_in_the_order_of_the_page() -> None:
    cells = [cell for cell in _core.cases() if cell["suite"] == "op_alloc"]
    assert tuple(cell["contender"] for cell in cells) == CONTENDERS
    ids = {cell["id"] for cell in cells}
    for table in tables_of("op_alloc"):
        assert {figure.cells[0] for figure in table.figures} <= ids


def test_a_missing_mimalloc_says_what_to_install() -> None:
    cell = next(c for c in _core.cases() if c["id"] == "op_alloc/composed5@mimalloc")
    if not cell["available"]:
        assert "install" in cell["reason"]


def test_five_posts_for_everybody(counted: dict[str, dict[str, Any]]) -> None:
    assert set(CONTENDERS) - set(counted) <= {"mimalloc"}
    for contender, ledger in counted.items():
        assert ledger["posts"] == 5, contender
        assert ledger["mutex_pairs"] == 5, contender
        assert ledger["atomic_rmws"] == 10, contender


@pytest.mark.parametrize("contender", ["monotonic", "pmr_monotonic"])
def test_monotonic_rows_overflow_on_every_operation(
    counted: dict[str, dict[str, Any]], contender: str
) -> None:
    ledger = counted[contender]
    assert ledger["upstream_allocs"] >= 1  # an exact integer per op: no operation goes without
    assert isinstance(ledger["upstream_allocs"], int)
    assert ledger["heap_allocs"] == ledger["upstream_allocs"]
    assert ledger["resource_allocs"] == 10


def test_growth_rules_differ(counted: dict[str, dict[str, Any]]) -> None:
    # Chunks of 1024 and a header of 40 against one of 1024 * 1.5 and a header of 32.
    assert counted["monotonic"]["heap_bytes"] == 2 * (1024 + 40)
    assert counted["pmr_monotonic"]["heap_bytes"] == 1536 + 32


def test_the_small_buffer_fragments_once_an_operation_and_recovers(
    counted: dict[str, dict[str, Any]],
) -> None:
    ledger = counted["sbo"]
    assert ledger["fragmentations"] == 1
    assert ledger["upstream_allocs"] == 0
    assert ledger["heap_allocs"] == 0
    assert ledger["resource_allocs"] == ledger["resource_frees"] == 10
    for contender in set(counted) - {"sbo"}:
        assert counted[contender]["fragmentations"] == 0


def test_malloc_takes_the_arrays_alone_from_the_heap(counted: dict[str, dict[str, Any]]) -> None:
    assert counted["malloc"]["heap_allocs"] == 5
    assert counted["malloc"]["heap_bytes"] == 512 + 4 * 256 + 5 * 32
    assert counted["recycling"]["heap_allocs"] == 0
