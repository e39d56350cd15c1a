"""Published tables: complete, consistent, and joined to cells by ids that are well-formed."""

from __future__ import annotations

import re

import pytest

from capybench import reference


def test_keys_are_unique_and_every_table_has_its_source() -> None:
    keys = [table.key for table in reference.TABLES]
    assert len(keys) == len(set(keys))
    for table in reference.TABLES:
        assert table.figures
        assert all((table.source.title, table.source.machine, table.source.compiler))


def test_figures_are_positive_unique_and_name_cells_of_their_suite() -> None:
    for table in reference.TABLES:
        places = [(figure.row, figure.column) for figure in table.figures]
        assert len(places) == len(set(places))
        for figure in table.figures:
            assert figure.value > 0
            assert figure.cells
            for cell in figure.cells:
                assert re.fullmatch(rf"{table.suite}/[a-z0-9_/]+@[a-z0-9_-]+", cell)
            if figure.baseline is not None:
                assert table.figure(figure.baseline, figure.column).value > 0


def test_coroutine_table_is_the_published_one() -> None:
    table = reference.table("capy-coroutine")
    assert [figure.value for figure in table.figures] == [
        19.3, 29.1, 39.7, 49.6, 56.6, 84.8, 65.3, 169.1,
    ]  # fmt: skip
    depth4 = table.figure("run_async/depth4", "task")
    assert depth4.cells == ("coroutine/run_async/depth4@task",)
    assert table.ratio(depth4) == pytest.approx(49.6 / 19.3)


def test_frame_allocation_agrees_with_its_published_ns_per_frame() -> None:
    table = reference.table("capy-frame-alloc")
    per_frame = {
        figure.row: round(
            figure.value * 1e6 / reference.FRAME_ALLOC_PASSES / reference.FRAMES_PER_PASS, 1
        )
        for figure in table.figures
    }
    assert per_frame == {"recycling": 12.5, "mimalloc": 16.7, "std": 15.7}


def test_read_stream_tables_hold_all_published_cells() -> None:
    tables = reference.tables_of("read_stream")
    assert len(tables) == 7
    cells = [cell for table in tables for figure in table.figures for cell in figure.cells]
    assert len(cells) == len(set(cells)) == 24 + 8 + 24
    allocs = {
        cell: figure.allocs for table in tables for figure in table.figures for cell in figure.cells
    }
    assert None not in allocs.values()
    assert allocs["read_stream/stdexec/erased/sender@task"] == 2
    assert allocs["read_stream/stdexec/abstract/sender@sender_task"] == 3
    assert allocs["read_stream/stdexec/sync/awaitable@sender_task"] == 1
    assert allocs["read_stream/beman/erased/awaitable@sender_task"] == 1
    assert allocs["read_stream/beman/native/sender@sender_task"] == 0


def test_a_read_stream_figure_stands_in_the_right_place() -> None:
    ((table, figure),) = reference.published("read_stream/stdexec/erased/awaitable@pipeline")
    assert (table.title, figure.row, figure.column) == ("stdexec: pipeline", "erased", "bridge")
    assert (figure.value, figure.allocs) == (42.4, 1)


def test_cobalt_totals_give_the_published_times_per_op() -> None:
    post = reference.table("cobalt-post").figure("stackful", "gcc")
    assert post.ops == 50_000_000
    assert round(post.value * 1e6 / post.ops) == 73
    assert "channel/post@fiber" in post.cells
    channel = reference.table("cobalt-channel").figure("cobalt", "clang")
    assert channel.ops is not None
    assert round(channel.value * 1e6 / channel.ops) == 117


def test_processkit_rows_are_labelled_as_windows() -> None:
    table = reference.table("processkit")
    assert "Windows" in table.source.machine
    fan_out = table.figure("processkit", "concurrent_fan_out")
    assert table.ratio(fan_out) == pytest.approx(711 / 89)


def test_unknown_names_are_told() -> None:
    with pytest.raises(LookupError, match="capy-coroutine"):
        reference.table("nothing")
    with pytest.raises(LookupError, match="no row"):
        reference.table("processkit").figure("nobody", "nothing")
    assert reference.published("noop/op@core") == ()
