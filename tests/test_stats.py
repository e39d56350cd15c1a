"""Estimators against scipy, intervals against their own promise, everything seeded."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats as oracle

from capybench import stats
from capybench.stats import estimators


def random(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_median_and_spread_agree_with_scipy() -> None:
    for n in (2, 3, 10, 77):
        values = random(n).lognormal(size=n)
        expected = oracle.median_abs_deviation(values) * 1.4826
        assert stats.scaled_mad(values) == pytest.approx(expected, rel=1e-12)
        assert stats.median(values) == pytest.approx(np.median(values), rel=1e-15)


def test_no_spread_below_two_values_and_no_median_of_none() -> None:
    assert stats.scaled_mad([4.0]) is None
    assert stats.median([]) is None


@pytest.mark.parametrize("n", range(1, 61))
def test_median_interval_is_the_narrowest_pair_that_covers(n: int) -> None:
    values = np.arange(n, dtype=float)
    interval = stats.median_interval(values)
    covering = [k for k in range(1, n // 2 + 1) if 1 - 2 * oracle.binom.cdf(k - 1, n, 0.5) >= 0.95]
    if not covering:
        assert interval is None
        assert n < stats.MIN_BLOCKS
        return
    k = max(covering)
    assert interval is not None
    assert (interval.low, interval.high) == (k - 1, n - k)
    assert interval.level == pytest.approx(1 - 2 * oracle.binom.cdf(k - 1, n, 0.5), abs=1e-12)
    assert interval.level >= 0.95


def test_median_interval_agrees_with_scipy_quantile_test() -> None:
    values = random().normal(size=25)
    interval = stats.median_interval(values)
    # scipy inverts a one-sided binomial test at each end, with ties broken alike for 25 values.
    expected = oracle.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_identical_values_have_an_interval_of_a_clock_step() -> None:
    interval = stats.median_interval([5.0] * 8, resolution=0.25)
    assert interval is not None
    assert (interval.low, interval.high) == (4.75, 5.25)


def test_outliers_are_counted_by_tukeys_fences() -> None:
    values = [10, 11, 12, 13, 14, 15, 16, 17]
    assert stats.outliers(values) == (0, 0)
    assert stats.outliers([*values, 24]) == (1, 0)
    assert stats.outliers([*values, 90]) == (0, 1)
    assert stats.outliers([1, 1, 1000]) == (0, 0)


def test_two_dimensional_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one value a process"):
        stats.median([[1.0, 2.0]])


def brute_force(values: np.ndarray, centre: float) -> float:
    """Two-sided p-value of the studentised sign-flip test of `centre`."""
    shifted = values - centre

    def studentised(data: np.ndarray) -> float:
        error = data.std(ddof=1) / math.sqrt(data.size)
        return abs(data.mean()) / error if error else math.inf

    observed = studentised(shifted)
    flips = list(itertools.product((1, -1), repeat=values.size))
    reached = sum(studentised(shifted * flip) >= observed - 1e-9 for flip in flips)
    return reached / len(flips)


@pytest.mark.parametrize("n", [6, 7, 8])
def test_sign_flip_interval_inverts_the_studentised_test(n: int) -> None:
    values = random(n).normal(0.02, 0.01, size=n)
    interval = stats.sign_flip_interval(values)
    assert interval is not None
    width = interval.high - interval.low
    for inside in np.linspace(interval.low + 0.01 * width, interval.high - 0.01 * width, 9):
        assert brute_force(values, inside) > 0.05
    for outside in (interval.low - 0.01 * width, interval.high + 0.01 * width):
        assert brute_force(values, outside) <= 0.05
    assert interval.level >= 0.95


def test_sign_flip_test_agrees_with_scipy_permutation_test() -> None:
    values = random(3).normal(0.5, 1.0, size=9)
    result = oracle.permutation_test(
        (values,), lambda x: np.mean(x), permutation_type="samples", n_resamples=np.inf
    )
    assert brute_force(values, 0.0) == pytest.approx(result.pvalue, abs=1e-12)


def test_six_blocks_give_the_range_as_interval() -> None:
    values = random(2).normal(size=6)
    interval = stats.sign_flip_interval(values)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((values.min(), values.max()))
    assert interval.level == 1 - 2 / 64


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_no_interval_where_the_level_cannot_be_reached(n: int) -> None:
    assert stats.sign_flip_interval(np.arange(n)) is None


@pytest.mark.parametrize(("n", "runs"), [(6, 1500), (10, 1500), (20, 400)])
def test_sign_flip_interval_covers_as_it_says(n: int, runs: int) -> None:
    # Heavy tails (t with 3 degrees of freedom): no normality is assumed anywhere.
    source = random(n)
    hits, level = 0, 0.0
    for _ in range(runs):
        interval = stats.sign_flip_interval(source.standard_t(3, size=n))
        assert interval is not None
        hits += interval.low <= 0 <= interval.high
        level = interval.level
    error = math.sqrt(level * (1 - level) / runs)
    assert abs(hits / runs - level) < 4 * error
    assert level >= 0.95


def test_sampled_flips_agree_with_enumerated_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    values = random(5).normal(0.1, 0.02, size=12)
    exact = stats.sign_flip_interval(values)
    monkeypatch.setattr(estimators, "ENUMERATED_BLOCKS", 5)
    estimators._flip_subsets.cache_clear()
    sampled = stats.sign_flip_interval(values)
    estimators._flip_subsets.cache_clear()
    assert exact is not None and sampled is not None
    width = exact.high - exact.low
    assert sampled.low == pytest.approx(exact.low, abs=0.1 * width)
    assert sampled.high == pytest.approx(exact.high, abs=0.1 * width)


def test_same_data_and_seed_give_the_same_interval_another_seed_another() -> None:
    values = random(6).normal(size=30)
    first = stats.sign_flip_interval(values, seed=4)
    estimators._flip_subsets.cache_clear()
    assert stats.sign_flip_interval(values, seed=4) == first
    assert stats.sign_flip_interval(values, seed=5) != first


def test_ratio_is_the_geometric_mean_of_the_pairs() -> None:
    # Speed states of the machine hit both sides alike and cancel.
    states = np.array([1.0, 1.33, 1.05, 1.0, 1.33, 1.0, 1.05, 1.0])
    base = 20.0 * states
    ratio = stats.paired_ratio(base * np.tile([1.2, 1.25], 4), base)
    assert ratio.value == pytest.approx(math.sqrt(1.2 * 1.25))
    assert ratio.n == 8
    assert ratio.reason is None
    assert ratio.ci_low is not None and ratio.ci_high is not None
    assert ratio.ci_low < ratio.value < ratio.ci_high
    assert (ratio.low, ratio.high) == pytest.approx((1.2, 1.25))


def test_ratio_and_its_inverse_mirror_each_other() -> None:
    above, below = random(8).lognormal(size=9), random(9).lognormal(size=9)
    there, back = stats.paired_ratio(above, below), stats.paired_ratio(below, above)
    assert there.value and back.value and there.ci_low and back.ci_high
    assert there.value * back.value == pytest.approx(1)
    assert there.ci_low * back.ci_high == pytest.approx(1)


def test_below_six_blocks_the_ratio_has_its_range_and_no_interval() -> None:
    ratio = stats.paired_ratio([2.0, 2.2, 2.1], [1.0, 1.0, 1.0])
    assert (ratio.ci_low, ratio.ci_high, ratio.ci_level) == (None, None, None)
    assert (ratio.low, ratio.high) == pytest.approx((2.0, 2.2))
    assert ratio.reason == "3 of at least 6 blocks"


def test_identical_sides_have_an_interval_of_the_clock_step() -> None:
    ratio = stats.paired_ratio([10.0] * 8, [10.0] * 8, resolution=1e-3)
    assert ratio.value == 1
    assert (ratio.ci_low, ratio.ci_high) == pytest.approx((math.exp(-1e-3), math.exp(1e-3)))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_ratio_is_undefined_for_times_that_are_none(bad: float) -> None:
    for sides in (([bad, 2.0], [1.0, 1.0]), ([1.0, 1.0], [2.0, bad])):
        ratio = stats.paired_ratio(*sides)
        assert ratio.value is None
        assert ratio.reason


def test_ratio_of_huge_values_saturates() -> None:
    ratio = stats.paired_ratio([1e300] * 6, [1e-300] * 6)
    assert ratio.value == np.finfo(float).max


def test_ratio_of_no_common_block_is_undefined_and_unequal_counts_refused() -> None:
    assert stats.paired_ratio([], []).reason == "no block has both sides"
    with pytest.raises(ValueError, match="cannot be paired"):
        stats.paired_ratio([1.0], [1.0, 2.0])
