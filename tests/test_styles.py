"""Published forms: the page's units and rules, with its figures beside the measured ones."""

from __future__ import annotations

import io
from typing import Any

import pytest
import synthetic
from rich.cells import cell_len
from rich.console import Console

from capybench import styles, tables
from capybench.results import RunResult
from capybench.styles import capy
from capybench.tables import Table


def capy_tables(*cells: dict[str, Any]) -> tuple[Table, ...]:
    return styles.style_tables("capy", RunResult.from_dict(synthetic.document(*cells)))


def rows(table: Table) -> dict[str, dict[str, str]]:
    keys = [column.key for column in table.columns]
    return {
        group.name: {"note": group.rows[0].note}
        if group.rows[0].note
        else dict(zip(keys, group.rows[0].values, strict=True))
        for group in table.groups
    }


def test_coroutines_in_ns_with_published_figure_and_ratio_beside() -> None:
    (table,) = capy_tables(
        synthetic.cell("coroutine/run_async/depth1@task", [[17_140]] * 3),
        synthetic.cell("coroutine/run_async/depth4@task", [[51_420]] * 3),
        synthetic.cell("coroutine/run_async/depth4@callback", [[1_000]] * 3),
    )
    shown = rows(table)
    assert list(shown)[:4] == [f"run_async/depth{depth}" for depth in (1, 2, 3, 4)]
    assert len(shown) == 8
    assert shown["run_async/depth4"] == {
        "ns": "51.4",
        "page_ns": "49.6",
        "to_depth1": "3.000",
        "to_depth1_interval": "3.000–3.000",
        "page_to_depth1": "2.570",
    }
    assert shown["strand/depth1"]["ns"] == tables.MISSING
    assert shown["strand/depth1"]["page_ns"] == "56.6"


def frames(ns_per_frame: dict[str, float]) -> list[dict[str, Any]]:
    return [
        synthetic.cell(f"frame_alloc/chain66@{name}", [[round(ns * 66 * 1000)]] * 6)
        for name, ns in ns_per_frame.items()
    ]


def test_frame_allocation_of_the_published_times_prints_the_published_page() -> None:
    # Published milliseconds, as ns a frame.
    page = {"recycling": 1650, "mimalloc": 2203, "malloc": 2075}
    (table,) = capy_tables(*frames({name: ms / 132 for name, ms in page.items()}))
    shown = rows(table)
    assert list(shown) == ["recycling", "mimalloc", "std"]
    for row in shown.values():
        assert row["ms"] == row["page_ms"]
        assert row["percent"] == row["page_percent"]
        assert row["frame"] == row["page_frame"]
    assert [row["ms"] for row in shown.values()] == ["1650", "2203", "2075"]
    assert [row["percent"] for row in shown.values()] == ["+25.8 %", "-5.8 %", tables.MISSING]
    assert shown["recycling"]["to_std"] == shown["recycling"]["page_to_std"] == "0.795"
    assert [row["frame"] for row in shown.values()] == ["12.5", "16.7", "15.7"]


def test_allocators_that_the_page_lacks_follow_without_published_figures() -> None:
    (table,) = capy_tables(*frames({"malloc": 20, "none": 10, "jemalloc": 25}))
    shown = rows(table)
    assert list(shown) == ["recycling", "mimalloc", "std", "jemalloc", "none"]
    assert shown["none"]["percent"] == "+100.0 %"
    assert shown["none"]["page_ms"] == tables.MISSING
    assert shown["recycling"]["ms"] == tables.MISSING
    assert shown["recycling"]["page_ms"] == "1650"


def test_cells_without_a_number_keep_their_reason_and_the_page_its_figure() -> None:
    (table,) = capy_tables(
        *frames({"malloc": 20}), synthetic.absent("frame_alloc/chain66@mimalloc", reason="no lib")
    )
    assert rows(table)["mimalloc"] == {"note": "unavailable: no lib (page: 2203 ms)"}


@pytest.mark.parametrize(
    ("ms", "std", "percent"),
    [(1650, 2075, 25.8), (2203, 2075, -5.8), (1000, 1000, 0.0), (0, 1, None), (800, 1000, 25.0)],
)
def test_the_pages_percentage(ms: float, std: float, percent: float | None) -> None:
    assert capy.slowdown_percent(ms, std) == percent


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("blocks", [3, 10])
def test_forms_fit(width: int, blocks: int) -> None:
    made = styles.style_tables("capy", RunResult.from_dict(synthetic.suites(blocks)))
    assert len(made) == 2
    console = Console(file=io.StringIO(), width=width, color_system=None)
    tables.draw(made, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(cell_len, text.splitlines())) <= width
    assert "not shown" not in text
    assert "i9-13900H" in text
    assert "| recycling |" in tables.markdown(made)


def test_unknown_styles_and_runs_without_a_suite_of_the_page() -> None:
    run = RunResult.from_dict(synthetic.document(synthetic.cell("noop/op@core")))
    with pytest.raises(styles.StyleError, match="unknown style 'x'; known: capy"):
        styles.style_tables("x", run)
    with pytest.raises(styles.StyleError, match="none of the selected suites, but coroutine"):
        styles.style_tables("capy", run)


def test_every_style_has_a_title() -> None:
    assert styles.titles().keys() == styles.STYLES.keys()
    assert all(styles.titles().values())
