"""Histograms of latencies."""

from __future__ import annotations

import numpy as np
import pytest
import synthetic

from capybench.latency import Histogram
from capybench.results import ResultError, RunResult


def values(n: int = 20_000) -> list[int]:
    random = np.random.default_rng(3)
    return [int(v) for v in np.exp(9 + random.standard_normal(n))]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 255, 256, 257, 511, 512, 10**6, 2**40 + 12345])
def test_a_value_lies_in_its_bucket(value: int) -> None:
    histogram = Histogram.of([value] * 20)
    ((_, count),) = histogram.buckets
    assert count == 20
    # Exact extremes keep even a wide bucket from inventing a value.
    assert histogram.quantile(0.5) == value


def test_buckets_do_not_overlap_and_leave_no_gap() -> None:
    rising = [Histogram.of([v]).buckets[0][0] for v in range(5000)]
    assert rising == sorted(rising)
    assert set(rising) == set(range(rising[-1] + 1))


def test_quantiles_are_within_a_bucket_of_the_sorted_values() -> None:
    data = values()
    histogram = Histogram.of(data)
    assert histogram.count == len(data)
    assert (histogram.least, histogram.greatest) == (min(data), max(data))
    for q in (0.5, 0.9, 0.99, 0.999):
        exact = np.quantile(data, q, method="inverted_cdf")
        assert histogram.quantile(q) == pytest.approx(exact, rel=1 / 128)


def test_a_quantile_needs_ten_observations_beyond_it() -> None:
    assert Histogram.of(values(9999)).quantile(0.999) is None
    assert Histogram.of(values(10_000)).quantile(0.999) is not None
    assert Histogram.of([]).quantile(0.5) is None
    with pytest.raises(ValueError, match="below 1"):
        Histogram.of([1]).quantile(1.0)
    shares = [share for share, _ in Histogram.of(values(1000)).curve()]
    assert shares[-1] <= 0.99
    assert shares == sorted(shares)


def test_merging_is_counting_both() -> None:
    data = values(3000)
    merged = Histogram.of(data[:1000]).merged(Histogram.of(data[1000:]))
    assert merged == Histogram.of(data)
    assert merged.merged(Histogram.of([])) == merged
    with pytest.raises(ValueError, match="7 and 5 bits"):
        merged.merged(Histogram.of([1], sub_bits=5))


def test_the_form_of_the_file_comes_back() -> None:
    histogram = Histogram.of(values(100))
    cell = synthetic.cell(latency=histogram.to_dict())
    result = RunResult.from_dict(synthetic.document(cell))
    assert result.cells[0].latency == histogram
    assert result.to_dict()["cells"][0]["latency"] == histogram.to_dict()
    assert RunResult.from_dict(synthetic.document(synthetic.cell())).cells[0].latency is None


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ([], "not an object"),
        ({"sub_bits": 0, "buckets": []}, "sub_bits"),
        ({"sub_bits": 7, "buckets": {}}, "list of buckets"),
        ({"sub_bits": 7, "buckets": [[1]]}, "pair"),
        ({"sub_bits": 7, "buckets": [[2, 1], [1, 1]]}, "out of order"),
        ({"sub_bits": 7, "buckets": [[2, 0]]}, "empty"),
        ({"sub_bits": 7, "buckets": [[2, 1]]}, "min_ns"),
    ],
)
def test_a_broken_histogram_is_told(broken: object, says: str) -> None:
    result = RunResult.from_dict(synthetic.document(synthetic.cell(latency=broken)))
    with pytest.raises(ResultError, match=says):
        _ = result.cells[0].latency
