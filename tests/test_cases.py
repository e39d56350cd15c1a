"""Selection, natural order, grouping and baselines."""

from __future__ import annotations

import pytest

from capybench.cases import Cell, Suite, group, natural_key, ordered, select
from capybench.errors import SelectionError, UsageError


def cell(cell_id: str, **more: object) -> Cell:
    path, _, contender = cell_id.rpartition("@")
    suite, _, case = path.partition("/")
    return Cell.from_dict(
        {"id": cell_id, "suite": suite, "case": case, "contender": contender, **more}
    )


CELLS = [
    cell("coroutine/run_async/depth1@task", quick=True),
    cell("coroutine/run_async/depth1@callback"),
    cell("coroutine/run_async/depth10@task"),
    cell("coroutine/run_async/depth2@task"),
    cell("coroutine/strand/depth1@task"),
    cell("read_stream/stdexec/erased/sender@task"),
    cell("read_stream/stdexec_like/x@task"),
    cell("frame_alloc/chain66@malloc"),
    cell("frame_alloc/chain66@mimalloc"),
    cell("odd/[1]@x"),
    cell("odd/1@x"),
]


def ids(*patterns: str, **more: object) -> list[str]:
    return [chosen.id for chosen in select(CELLS, patterns, **more)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (
            "coroutine/run_async/depth1",
            {"coroutine/run_async/depth1@task", "coroutine/run_async/depth1@callback"},
        ),
        ("coroutine/run_async/depth1@task", {"coroutine/run_async/depth1@task"}),
        ("coroutine/strand", {"coroutine/strand/depth1@task"}),
        ("coroutine/strand/", {"coroutine/strand/depth1@task"}),
        ("read_stream/stdexec", {"read_stream/stdexec/erased/sender@task"}),
        ("*depth1@task", {"coroutine/run_async/depth1@task", "coroutine/strand/depth1@task"}),
        ("coroutine*callback", {"coroutine/run_async/depth1@callback"}),
        ("frame_alloc/*@m*alloc", {"frame_alloc/chain66@malloc", "frame_alloc/chain66@mimalloc"}),
        ("frame_alloc@malloc", {"frame_alloc/chain66@malloc"}),
        ("*@callback", {"coroutine/run_async/depth1@callback"}),
        ("odd/[1]", {"odd/[1]@x"}),
        (
            "coroutine/*/depth?",
            {
                "coroutine/run_async/depth1@task",
                "coroutine/run_async/depth1@callback",
                "coroutine/run_async/depth2@task",
                "coroutine/strand/depth1@task",
            },
        ),
    ],
)
def test_pattern(pattern: str, expected: set[str]) -> None:
    assert set(ids(pattern)) == expected


def test_no_pattern_means_all_and_star_too() -> None:
    assert len(ids()) == len(CELLS)
    assert set(ids("*")) == {made.id for made in CELLS}


def test_patterns_add_up_and_a_cell_comes_once() -> None:
    assert ids("odd/1", "odd", "frame_alloc@malloc") == [
        "frame_alloc/chain66@malloc",
        "odd/[1]@x",
        "odd/1@x",
    ]


def test_numbers_are_in_natural_order() -> None:
    assert ids("coroutine/run_async@task") == [
        f"coroutine/run_async/depth{depth}@task" for depth in (1, 2, 10)
    ]
    assert sorted(["d10", "d2", "x", "d1"], key=natural_key) == ["d1", "d2", "d10", "x"]


def test_words_keep_the_order_of_registration_and_cases_stay_together() -> None:
    cells = [
        cell("s/native/2@b"),
        cell("s/erased/1@a"),
        cell("t/x@a"),
        cell("s/native/1@b"),
        cell("s/native/2@a"),
    ]
    assert [made.id for made in ordered(cells)] == [
        "s/native/1@b",
        "s/native/2@b",
        "s/native/2@a",
        "s/erased/1@a",
        "t/x@a",
    ]


def test_quick_takes_all_contenders_of_marked_cases() -> None:
    assert ids(quick_only=True) == [
        "coroutine/run_async/depth1@task",
        "coroutine/run_async/depth1@callback",
    ]
    assert ids("odd", quick_only=True) == ["odd/[1]@x", "odd/1@x"]
    with pytest.raises(SelectionError, match="marked quick"):
        select(CELLS[1:], quick_only=True)


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("corutine", "coroutine"),
        ("coroutine/strnd", "coroutine/strand"),
        ("coroutine/*@tsk", "coroutine/*@task"),
        ("chain66", "frame_alloc/chain66"),
        ("mimaloc", "*@mimalloc"),
        ("frame_alloc/chain66@nedmalloc", "frame_alloc/chain66@malloc"),
    ],
)
def test_wrong_pattern_names_the_nearest(pattern: str, nearest: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(CELLS, ["odd", pattern])
    assert caught.value.exit_code == 2
    assert caught.value.pattern == pattern
    assert nearest in caught.value.nearest
    assert nearest in str(caught.value)
    assert set(ids(nearest)), "what is proposed selects something"


def test_wrong_case_is_no_match_and_emoji_is_harmless() -> None:
    for pattern in ("Coroutine", "🐹*", "odd\n*", "(", "odd/1@"):
        with pytest.raises(SelectionError):
            select(CELLS, [pattern])


@pytest.mark.parametrize(
    ("keyword", "expected"),
    [
        ("strand", 1),
        ("STRAND", 1),
        ("depth and not callback", 4),
        ("depth1 and (callback or strand)", 2),
        ("callback or malloc and not mimalloc", 2),
        ("not not strand", 1),
        ("run_async/depth1@", 2),
    ],
)
def test_keyword(keyword: str, expected: int) -> None:
    assert len(ids(keyword=keyword)) == expected


@pytest.mark.parametrize("keyword", ["", "and", "a or", "(a", "a)", "a b", "not", "a and and b"])
def test_keyword_that_cannot_be_read(keyword: str) -> None:
    with pytest.raises(SelectionError, match="cannot read -k"):
        select(CELLS, keyword=keyword)


def test_keyword_that_leaves_nothing() -> None:
    with pytest.raises(SelectionError, match="no selected cell matches -k 'nothing'"):
        select(CELLS, ["odd"], "nothing")


def test_baseline_is_the_first_of_the_list_that_takes_part() -> None:
    suites = [Suite("frame_alloc", baselines=("none", "mimalloc", "malloc"))]
    names = {case.id: case.baseline for case in group(CELLS, suites)}
    assert names["frame_alloc/chain66"] == "mimalloc"
    assert names["coroutine/run_async/depth1"] == "task"


def test_a_baseline_that_cannot_run_gives_way_unless_asked_for() -> None:
    cells = [cell("s/c@x", available=False, reason="no"), cell("s/c@y"), cell("s/d@y")]
    suites = [Suite("s", baselines=("x",))]
    assert [case.baseline for case in group(cells, suites)] == ["y", "y"]
    assert [case.baseline for case in group(cells, suites, "x")] == ["x", "y"]


def test_unknown_baseline_names_those_present() -> None:
    with pytest.raises(UsageError, match=r"no selected case has a contender 'rust'.*malloc"):
        group(CELLS, (), "rust")
