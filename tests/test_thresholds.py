"""The grammar of thresholds, and sentences for what it does not know."""

from __future__ import annotations

import math

import pytest

from capybench import thresholds
from capybench.thresholds import Threshold, ThresholdError, change_of, parse


@pytest.mark.parametrize(
    ("text", "kind", "metric", "amount", "unit"),
    [
        ("median:5%", "change", "median", 0.05, "%"),
        (" median : 0.5 % ", "change", "median", 0.005, "%"),
        ("median:200us", "change", "median", 200_000, "ns"),
        ("median:1.5ms", "change", "median", 1_500_000, "ns"),
        ("p99:200us", "change", "p99", 200_000, "ns"),
        ("p99.9:10%", "change", "p99.9", 0.10, "%"),
        ("throughput:-3%", "change", "throughput", 0.03, "%"),
        ("throughput:0%", "change", "throughput", 0, "%"),
        ("allocs:0", "change", "allocs", 0, ""),
        ("syscalls:.5", "change", "syscalls", 0.5, ""),
        ("instructions:0.5%", "change", "instructions", 0.005, "%"),
        ("allocs<=2", "limit", "allocs", 2, ""),
        ("median<20µs", "limit", "median", 20_000, "ns"),
    ],
)
def test_forms(text: str, kind: str, metric: str, amount: float, unit: str) -> None:
    (found,) = parse(text)
    assert (found.kind, found.metric, found.unit) == (kind, metric, unit)
    assert found.amount == pytest.approx(amount)
    assert found.scope is None and found.text == text.strip()
    assert Threshold.from_dict(found.to_dict()) == found


def test_ratio_of_two_cells() -> None:
    text = (
        "ratio(read_stream/stdexec/erased/awaitable@task, "
        "read_stream/stdexec/native/awaitable@task)<1.3"
    )
    (found,) = parse(text)
    assert found.kind == "ratio" and found.portable and not found.needs_baseline
    assert found.ids == (
        "read_stream/stdexec/erased/awaitable@task",
        "read_stream/stdexec/native/awaitable@task",
    )
    assert found.amount == 1.3
    assert found.allows(1.29) and not found.allows(1.3)
    assert Threshold.from_dict(found.to_dict()) == found
    (quoted,) = parse('ratio("a/b(1, 2)@x", a/c@y) <= 2')
    assert quoted.ids == ("a/b(1, 2)@x", "a/c@y") and quoted.allows(2.0)


def test_scopes_are_patterns_of_the_command_line() -> None:
    (found,) = parse("socket_latency/*: p99:10%")
    assert found.scope == "socket_latency/*" and found.metric == "p99"
    assert found.covers("socket_latency/pingpong/64@task-epoll")
    assert not found.covers("timer/x@task")
    (odd,) = parse("a:b[1]/*@x: median:5%")
    assert odd.scope == "a:b[1]/*@x" and odd.covers("a:b[1]/c@x")
    (limit,) = parse("timer: syscalls<=1")
    assert (limit.scope, limit.metric, limit.amount) == ("timer", "syscalls", 1)


def test_several_thresholds_in_one_text() -> None:
    found = parse(["median:5%, allocs:0; ratio(a/b@c, a/b@d)<1.3\nthroughput:-3%", "posts:0"])
    assert [t.metric for t in found] == ["median", "allocs", "ratio", "throughput", "posts"]
    assert parse("") == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("median", "cannot read the threshold 'median'"),
        ("median:", "cannot read '' in the threshold"),
        ("median:5", "median needs a unit"),
        ("median:-5%", "write median:5%"),
        ("median:5 parsecs", "unknown unit 'parsecs'"),
        ("median:nan%", "cannot read 'nan%'"),
        ("median:1e999%", "too large"),
        ("throughput:3%", "write throughput:-3%"),
        ("throughput:-100%", "less than 100 %"),
        ("throughput:-5us", "throughput takes a per cent"),
        ("mean:5%", "unknown metric 'mean'; known: median"),
        ("p42:5%", "unknown metric 'p42'"),
        ("allocs:5ms", "allocs is a count"),
        ("allocs<5%", "per cent of what?"),
        ("allocs<-1", "negative limit"),
        ("ratio(a/b@c, a/b)<1.3", "'a/b' is none"),
        ("ratio(a/b@c, a/b@d)<5%", "plain number"),
        ("ratio(a/b@c, a/b@d)<0", "above 0"),
        ('"a: median:5%', 'lacks a closing "'),
    ],
)
def test_what_cannot_be_read_is_told(text: str, says: str) -> None:
    with pytest.raises(ThresholdError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_last_threshold_that_matches_holds() -> None:
    found = parse("median:5%, coroutine/*: median:1%, throughput:-10%")
    margin = change_of(found, "coroutine/x@task", rate=False)
    assert margin is not None and margin[0] == pytest.approx(math.log1p(0.01))
    margin = change_of(found, "timer/x@task", rate=False)
    assert margin is not None and margin[0] == pytest.approx(math.log1p(0.05))
    margin = change_of(found, "timer/x@task", rate=True)
    assert margin is not None and margin[0] == pytest.approx(-math.log(0.9))
    assert change_of(parse("allocs:0"), "timer/x@task", rate=True) is None


def test_absolute_changes_depend_on_the_baseline() -> None:
    found = parse("median:2us")
    margin = change_of(found, "a/b@c", rate=False, base_ns=20_000)
    assert margin is not None and margin[0] == pytest.approx(math.log(1.1))
    assert change_of(found, "a/b@c", rate=False) is None


def test_portable_thresholds_mean_the_same_everywhere() -> None:
    portable = {t.text for t in parse("median:5%, allocs:0, instructions:1%, p99:1%") if t.portable}
    assert portable == {"allocs:0", "instructions:1%"}


def test_documented_metrics_are_known() -> None:
    for metric in thresholds.COUNTS:
        assert parse(f"{metric}:0")[0].metric == metric
