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
    with pytest.raises(styles.StyleError, match="unknown style 'x'; known: capy, cobalt"):
        styles.style_tables("x", run)
    with pytest.raises(styles.StyleError, match="none of the selected suites, but coroutine"):
        styles.style_tables("capy", run)


def test_every_style_has_a_title() -> None:
    assert styles.titles().keys() == styles.STYLES.keys()
    assert all(styles.titles().values())


def cobalt_tables(*cells: dict[str, Any]) -> dict[str, Table]:
    made = styles.style_tables("cobalt", RunResult.from_dict(synthetic.document(*cells)))
    return {table.title: table for table in made}


def channel_cell(cell_id: str, ns: float, **more: Any) -> dict[str, Any]:
    return synthetic.cell(cell_id, [[round(ns * 1000)]] * 3, **more)


def test_cobalt_prints_the_published_milliseconds_for_the_published_times() -> None:
    made = cobalt_tables(
        channel_cell("channel/post@task", 2472 / 50),
        channel_cell("channel/post@awaitable", 2432 / 50),
        channel_cell("channel/immediate@task", 181.0),
        channel_cell("channel/pingpong@task", 100.0),
    )
    assert list(made) == [
        "Cobalt channel: post, 50,000,000 times",
        "Cobalt channel: immediate, 10,000,000 times",
    ]
    shown = rows(made["Cobalt channel: post, 50,000,000 times"])
    assert list(shown) == ["cobalt", "awaitable", "stackful"]
    assert shown["cobalt"]["ms"] == shown["cobalt"]["page_gcc_ms"] == "2472"
    assert shown["cobalt"]["page_clang_ms"] == "2098"
    assert shown["awaitable"]["ms"] == "2432"
    assert shown["awaitable"]["to_first"] == shown["awaitable"]["page_gcc_to_first"] == "0.984"
    assert shown["stackful"]["ms"] == tables.MISSING
    assert shown["stackful"]["page_gcc_ms"] == "3655"
    (immediate,) = (table for title, table in made.items() if "immediate" in title)
    assert rows(immediate)["cobalt"]["ms"] == "1810"


def test_cobalt_puts_the_real_library_under_our_model_and_extras_behind_the_page() -> None:
    (table,) = cobalt_tables(
        channel_cell("channel/parallel@task", 300.0),
        channel_cell("channel/parallel@cobalt", 600.0),
        channel_cell("channel/parallel@fiber", 450.0),
        synthetic.absent("channel/parallel@awaitable", reason="no such thing"),
    ).values()
    names = {group.name: [row.label for row in group.rows] for group in table.groups}
    assert names == {"cobalt": ["task", "cobalt"], "awaitable": [""], "fiber": [""]}
    first, real = table.groups[0].rows
    assert first.values[0] == "900"
    assert real.values[0] == "1800"
    assert real.values[3] == "2.000"
    assert table.groups[1].rows[0].note == (
        "unavailable: no such thing (page: 2800 ms gcc, 2805 ms clang)"
    )
    assert table.groups[2].rows[0].values[1:3] == (tables.MISSING, tables.MISSING)


def test_cobalt_shows_upstream_calls_of_op_alloc() -> None:
    ledger = {**synthetic.LEDGER, "upstream_allocs": 2, "heap_allocs": 2}
    (table,) = cobalt_tables(
        channel_cell("op_alloc/composed5@malloc", 568.0),
        channel_cell(
            "op_alloc/composed5@monotonic", 574.5, ledger=ledger, counters={"heap_allocs_per_op": 2}
        ),
    ).values()
    shown = rows(table)
    assert shown["std"]["ms"] == "1136"
    assert shown["monotonic"]["ms"] == "1149"
    assert shown["monotonic"]["upstream"] == "2"
    assert shown["monotonic"]["heap"] == "2"
    assert shown["pmr"]["ms"] == tables.MISSING


@pytest.mark.parametrize("width", [80, 120])
def test_cobalt_fits(width: int) -> None:
    cells = [
        channel_cell(f"channel/{case}@{contender}", 123.4)
        for case in ("post", "parallel", "immediate", "channel")
        for contender in ("task", "awaitable", "asio-awaitable")
    ] + [channel_cell("op_alloc/composed5@pmr_monotonic", 512.0)]
    made = tuple(cobalt_tables(*cells).values())
    console = Console(file=io.StringIO(), width=width, color_system=None)
    tables.draw(made, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(cell_len, text.splitlines())) <= width
    assert "i7-1185G7" in text
