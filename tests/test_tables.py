"""Tables as readers see them: what stands in which row, how wide, how ordered, what is escaped."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
import synthetic
from rich.cells import cell_len
from rich.console import Console

from capybench import tables
from capybench.results import RunResult, UnknownContenderError
from capybench.tables import Table, TableError, View, summary_tables


def result(*cells: dict[str, Any], **run: Any) -> RunResult:
    return RunResult.from_dict(synthetic.document(*cells, **run))


def drawn(made: tuple[Table, ...], width: int = 80, **options: Any) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, **options)
    tables.draw(made, console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def texts(table: Table, key: str) -> dict[str, str]:
    """Texts of one column by `case@contender`; the note where a row has no numbers."""
    place = [column.key for column in table.columns].index(key)
    return {
        f"{group.name}@{row.label}": row.note or row.values[place]
        for group in table.groups
        for row in group.rows
    }


def titles(table: Table) -> list[str]:
    return [column.title for column in table.columns]


@pytest.mark.parametrize("blocks", [1, 3, 5, 6, 10, 20])
@pytest.mark.parametrize("width", [80, 120])
def test_a_table_fits_with_all_its_columns(blocks: int, width: int) -> None:
    made = summary_tables(RunResult.from_dict(synthetic.suites(blocks)))
    lines = drawn(made, width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert "not shown" not in text
    assert "…" not in text
    for table in made:
        for group in table.groups:
            for row in group.rows:
                assert row.note or all(any(value in line for line in lines) for value in row.values)


@pytest.mark.parametrize("width", [20, 33, 50, 60])
def test_a_narrow_terminal_loses_columns_and_says_so(width: int) -> None:
    lines = drawn(summary_tables(RunResult.from_dict(synthetic.suites(10))), width)
    assert any(line.startswith("not shown") for line in lines)
    if width >= 50:
        assert max(map(cell_len, lines)) <= width


def test_rows_of_a_case_and_their_numbers() -> None:
    fast = [[10_000]] * 3
    (table,) = summary_tables(
        result(
            synthetic.cell("s/c@callback", fast),
            synthetic.cell("s/c@task", [[20_000], [21_000], [20_000]]),
            synthetic.cell("s/alone@task"),
        )
    )
    assert table.title == "s: ns/op, lower is better"
    assert titles(table) == [
        "median", "spread", "range of 3", "allocs", "ratio", "range of 3",
    ]  # fmt: skip
    assert texts(table, "median") == {
        "c@task": "20.00",
        "c@callback": "10.00",
        "alone@task": "20.00",
    }
    assert texts(table, "interval")["c@task"] == "20.00–21.00"
    assert texts(table, "spread")["c@task"] == "0.0 %"
    assert texts(table, "allocs")["c@task"] == "0/2"
    ratio = texts(table, "ratio")
    assert ratio["c@task"] == "baseline"
    assert ratio["c@callback"] == f"{(0.5 * 0.5 * 10 / 21) ** (1 / 3):.3f}"
    assert ratio["alone@task"] == ""
    assert texts(table, "ratio_interval")["c@callback"] == "0.476–0.500"


def test_from_six_blocks_on_headings_name_intervals_with_their_coverage() -> None:
    table = summary_tables(RunResult.from_dict(synthetic.suites(10)))[0]
    assert titles(table)[2] == "97.9 % interval"
    assert titles(table)[-1] == "ratio interval"


def test_rows_with_unequal_n_state_it() -> None:
    (table,) = summary_tables(
        result(synthetic.cell(), synthetic.cell("coroutine/x@task", [[1000], [1100]]))
    )
    assert "interval" in titles(table)
    assert texts(table, "interval")["x@task"].endswith("(of 2)")


def test_one_process_has_neither_spread_nor_range() -> None:
    cells = [synthetic.cell(f"s/c@{name}", [[1000, 2000]]) for name in ("task", "b")]
    (table,) = summary_tables(result(*cells))
    shown = table.groups[0].rows[1].values
    assert shown == ("1.500", "n/a", tables.MISSING, "0/2", "1.000", tables.MISSING)


def test_cases_with_one_contender_show_no_ratio_column() -> None:
    (table,) = summary_tables(result(synthetic.cell("p/a@core"), synthetic.cell("p/b@core")))
    assert "ratio" not in titles(table)


def test_frame_allocation_adds_ns_per_frame() -> None:
    samples = [[66 * 25_000]] * 3
    (table,) = summary_tables(result(synthetic.cell("frame_alloc/chain66@malloc", samples)))
    assert texts(table, "frame") == {"chain66@malloc": "25.00"}


@pytest.mark.parametrize("status", ["unavailable", "failed", "timeout", "crashed", "invalid"])
def test_cells_without_a_number_are_shown_with_the_reason(status: str) -> None:
    reason = "a rather long reason that has to be folded at the edge of a narrow terminal"
    made = summary_tables(
        result(synthetic.cell("s/c@task"), synthetic.absent("s/c@other", status, reason))
    )
    assert texts(made[0], "median")["c@other"] == f"{status}: {reason}"
    lines = drawn(made)
    assert max(map(cell_len, lines)) <= 80
    joined = re.sub(r"\s+", " ", " ".join(lines))
    assert f"{status}: {reason}" in joined


def test_a_baseline_without_a_number_leaves_ratios_open_and_says_why() -> None:
    (table,) = summary_tables(
        result(
            synthetic.absent("s/c@task", "failed", "broken", baseline=True), synthetic.cell("s/c@b")
        )
    )
    assert texts(table, "ratio")["c@b"] == tables.MISSING
    assert table.notes == ("no ratios in c: its baseline task has no number",)


def test_another_baseline_may_be_chosen_by_the_reader_or_stored_with_the_run() -> None:
    cells = [synthetic.cell(f"s/c@{name}") for name in ("task", "fiber")]
    cells.append(synthetic.cell("s/d@task"))
    chosen = summary_tables(result(*cells), View(baseline="fiber"))[0]
    stored = summary_tables(result(*cells, baseline="fiber"))[0]
    for table in (chosen, stored):
        assert texts(table, "ratio") == {"c@fiber": "baseline", "c@task": "1.000", "d@task": ""}
    assert chosen.notes == ("no 'fiber' to compare with in: d",)
    with pytest.raises(UnknownContenderError, match="'no'; present: fiber, task"):
        summary_tables(result(*cells), View(baseline="no"))


def order(made: tuple[Table, ...]) -> list[str]:
    return [f"{g.name}@{r.label}" for table in made for g in table.groups for r in g.rows]


def test_numbers_are_in_natural_order_and_the_rest_as_listed() -> None:
    names = ["s/z/1024@b", "s/z/16384@b", "s/z/256@b", "s/a@b", "s/a@task"]
    made = summary_tables(result(*(synthetic.cell(name) for name in names)))
    assert order(made) == ["z/256@b", "z/1024@b", "z/16384@b", "a@task", "a@b"]
    by_name = summary_tables(result(*map(synthetic.cell, names)), View(sort="name"))
    assert order(by_name) == ["a@b", "a@task", "z/256@b", "z/1024@b", "z/16384@b"]


def test_rows_may_be_ordered_by_number_within_a_case_or_alone() -> None:
    speeds = {"task": 30_000, "x": 10_000, "y": 20_000}
    cells = [synthetic.cell(f"s/c@{name}", [[ns]] * 3) for name, ns in speeds.items()]
    cells.append(synthetic.absent("s/c@none"))
    by_median = summary_tables(result(*cells), View(sort="median"))
    assert order(by_median) == ["c@x", "c@y", "c@task", "c@none"]
    by_ratio = summary_tables(result(*cells), View(sort="ratio"))
    assert order(by_ratio) == ["c@x", "c@y", "c@task", "c@none"]
    alone = [synthetic.cell(f"p/{name}@core", [[ns]] * 3) for name, ns in speeds.items()]
    assert order(summary_tables(result(*alone), View(sort="median"))) == [
        "x@core", "y@core", "task@core",
    ]  # fmt: skip


def test_suites_and_units_have_tables_of_their_own() -> None:
    made = summary_tables(
        result(
            synthetic.cell("a/x@t"),
            synthetic.cell("a/y@t", unit="ops/s", direction="higher"),
            synthetic.cell("b/x@t"),
        )
    )
    assert [table.title for table in made] == [
        "a: ns/op, lower is better",
        "a: Mops/s, higher is better",
        "b: ns/op, lower is better",
    ]


@pytest.mark.parametrize(
    ("ns", "unit", "title", "text"),
    [
        (9_000.0, None, "ns/op", "9,000"),
        (12_345.0, None, "µs/op", "12.35"),
        (12_345.0, "ns", "ns/op", "12,345"),
        (12_345.0, "ms", "ms/op", "0.012"),
        (25e6, None, "ms/op", "25.00"),
        (0.3, None, "ns/op", "0.300"),
        (0.0003, None, "ns/op", "3.000e-04"),
    ],
)
def test_display_units(ns: float, unit: str | None, title: str, text: str) -> None:
    cell = synthetic.cell("s/c@t", [[round(ns * 1_000_000)]] * 3, ops=1_000_000)
    (table,) = summary_tables(result(cell), View(unit=unit))
    assert table.title.startswith(f"s: {title},")
    assert texts(table, "median") == {"c@t": text}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("us", ("ns/op", "µs/op", 1e3)),
        ("µs/op", ("ns/op", "µs/op", 1e3)),
        ("s", ("ns/op", "s/op", 1e9)),
        ("MiB/s", ("bytes/s", "MiB/s", 2.0**20)),
        ("kops/s", ("ops/s", "kops/s", 1e3)),
    ],
)
def test_units_by_name(name: str, found: tuple[str, str, float]) -> None:
    assert tables.find_unit(name) == found


def test_units_across_dimensions_are_refused() -> None:
    with pytest.raises(TableError, match=r"'MB/s' does not fit: the cells are in ns/op"):
        summary_tables(result(synthetic.cell()), View(unit="MB/s"))
    with pytest.raises(TableError, match=r"unknown unit 'parsec'; known: ns/op"):
        summary_tables(result(synthetic.cell()), View(unit="parsec"))


def test_columns_may_be_chosen_among_all_and_the_ledger() -> None:
    view = View(columns=("n", "median", "indirect_calls", "fifo_pushes", "low", "high", "ops"))
    ledger = {**synthetic.LEDGER, "fifo_pushes": 0.5}
    (table,) = summary_tables(result(synthetic.cell("s/c@t", ledger=ledger)), view)
    assert table.groups[0].rows[0].values == ("3", "20.00", "7", "0.5", "20.00", "20.00", "1000")
    with pytest.raises(TableError, match=r"unknown column 'x'; known: median, .*, posts, syscalls"):
        summary_tables(result(synthetic.cell()), View(columns=("x",)))
    with pytest.raises(TableError, match="unknown order 'x'; known: listed, name"):
        summary_tables(result(synthetic.cell()), View(sort="x"))


def test_what_a_reader_must_know_stands_below() -> None:
    samples = [[1000]] * 7 + [[9000]]
    (table,) = summary_tables(
        result(synthetic.cell("s/c@t", samples), synthetic.cell("s/z@t", [[0]] * 3))
    )
    assert table.notes == (
        "s/c@t: 1 of 8 processes far off the others",
        "s/z@t: below clock resolution",
    )


ODD = [
    "x" * 300,
    "a | b\\c [d] _e_ `f` *g*",
    "rocket 🚀🚀",
    "\x1b[31mred\nline",
    "\ud800",
    "日本" * 30,
]


def test_odd_names_are_shown_whole_and_cannot_break_a_terminal() -> None:
    made = summary_tables(result(*(synthetic.cell(f"s/{name}@t") for name in ODD)))
    lines = drawn(made)
    assert max(map(cell_len, lines)) <= 80
    text = "".join(line.strip() for line in lines)
    assert "x" * 300 in text.replace("─", "")
    assert "\x1b" not in text
    assert r"\x1b[31mred\nline" in text
    assert "🚀🚀" in text
    text.encode()


def test_odd_names_cannot_break_markdown() -> None:
    made = summary_tables(result(*(synthetic.cell(f"s/{name}@t") for name in ODD)))
    lines = [line for line in tables.markdown(made).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(ODD)
    assert {len(re.split(r"(?<!\\)\|", line)) for line in lines} == {len(lines[0].split("|"))}


def test_markdown_has_case_and_contender_in_every_row() -> None:
    made = summary_tables(RunResult.from_dict(synthetic.suites()))
    text = tables.markdown(made, ["run x"], tables.legend_lines(made))
    assert "| case | contender | median | spread | range of 3 | allocs | ratio |" in text
    assert re.search(r"^\| run_async/depth2 \| callback \| 3\.\d+ \|", text, re.M)
    assert "| chain66 | jemalloc | unavailable: libjemalloc.so.2 was not found |" in text
    assert text.startswith("> run x")


def test_names_are_coloured_only_where_asked() -> None:
    made = summary_tables(RunResult.from_dict(synthetic.suites()))
    plain = Console(file=io.StringIO(), width=80, color_system=None)
    colour = Console(file=io.StringIO(), width=80, color_system="standard", force_terminal=True)
    tables.draw(made, plain)
    tables.draw(made, colour)
    outputs = [c.file.getvalue() for c in (plain, colour)]  # type: ignore[attr-defined]
    assert "\x1b" not in outputs[0]
    assert re.sub(r"\x1b\[[0-9;]*m", "", outputs[1]) == outputs[0]
    assert "\x1b[" in outputs[1]


def test_json_has_summaries_and_ratios() -> None:
    data = json.loads(tables.json_text(RunResult.from_dict(synthetic.suites(6))))
    cells = {cell["id"]: cell for cell in data["cells"]}
    callback = cells["coroutine/run_async/depth1@callback"]
    assert callback["summary"]["ci_level"] == 1 - 2 / 64
    assert callback["ratio"]["to"] == "coroutine/run_async/depth1@task"
    assert callback["ratio"]["ci_low"] < callback["ratio"]["ratio"] < callback["ratio"]["ci_high"]
    assert cells["coroutine/run_async/depth1@task"]["ratio"] is None
    # What was printed can be loaded again; the ratio is computed anew.
    assert "ratio" not in RunResult.from_dict(data).to_dict()["cells"][0]


def test_csv_has_a_line_a_cell_in_full_precision() -> None:
    run = RunResult.from_dict(synthetic.suites(6))
    rows = list(csv.DictReader(io.StringIO(tables.csv_text(run))))
    assert [row["id"] for row in rows] == [cell.id for cell in run.cells]
    first, last = rows[0], rows[-1]
    assert float(first["median"]) == run.cells[0].summary.median
    assert (first["n"], first["resource_allocs"], first["ratio"]) == ("6", "2", "")
    assert float(rows[1]["ratio"]) == pytest.approx(1 / 8, rel=0.02)
    assert (last["status"], last["median"]) == ("unavailable", "")


def test_headings_say_what_run_it_is_and_when_it_is_incomplete() -> None:
    whole = tables.heading_lines(result(synthetic.cell()))
    assert whole[0] == "run 20260102T030405.000006Z-7 · 3 blocks × 3 samples of 10 ms"
    assert whole[1] == "Test CPU · Linux 6 · gcc 12"
    part = tables.heading_lines(
        result(synthetic.cell(), complete=False, interrupted=True, blocks_done=1)
    )
    assert part[-1].startswith("interrupted, INCOMPLETE: 1 of 3 blocks are whole")


def test_an_empty_run_draws_nothing_and_does_not_fail() -> None:
    assert summary_tables(result()) == ()
    assert drawn(()) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.0, "0.000"), (1.0, "1.000"), (17.123, "17.12"), (152.64, "152.6"),
        (1281.4, "1,281"), (1e300, "1.000e+300"), (2.0**63, "9.223e+18"), (-17.1, "-17.10"),
    ],
)  # fmt: skip
def test_numbers(value: float | None, text: str) -> None:
    assert tables.number(value) == text
