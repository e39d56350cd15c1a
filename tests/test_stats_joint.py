"""Joint decisions against scipy and against brute force."""

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


def studentised(values: np.ndarray) -> float:
    return abs(values.mean()) / (values.std(ddof=1) / math.sqrt(values.size))


# ---- Student's t ---------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [1, 2, 5, 9, 19, 49, 4999])
def test_t_distribution_agrees_with_scipy(degrees: int) -> None:
    for t in (-3.0, -0.1, 0.0, 0.7, 2.0, 4.06, 12.0):
        assert stats.t_tail(t, degrees) == pytest.approx(oracle.t.sf(t, degrees), rel=1e-9)
    for p in (0.001, 0.3, 0.5, 0.8, 0.975, 1 - 0.05 / 154):
        expected = oracle.t.ppf(p, degrees)
        assert stats.t_quantile(p, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_t_quantile_wants_a_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        stats.t_quantile(1.0, 5)


# ---- max-T ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 9, 12])
def test_one_cell_agrees_with_scipys_permutation_test(n: int) -> None:
    values = random(n).normal(0.4, 1, size=n)
    expected = oracle.permutation_test(
        (values,), studentised, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    # scipy sums both tails of a statistic that has one; ours has no sign.
    greater = oracle.permutation_test(
        (values,),
        studentised,
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="greater",
    ).pvalue
    joint = stats.max_t(values[:, None])
    assert joint.p[0] == pytest.approx(greater, abs=1e-9)
    assert joint.p[0] <= expected + 1e-9
    assert stats.sign_flip_p(values) == pytest.approx(greater, abs=1e-9)


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_p_agrees_with_scipy(alternative: str) -> None:
    values = random(4).normal(0.3, 1, size=10)
    expected = oracle.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative
    ).pvalue
    assert stats.sign_flip_p(values, alternative=alternative) == pytest.approx(expected, abs=1e-9)


def test_unknown_alternative_is_refused() -> None:
    with pytest.raises(ValueError, match="alternative"):
        stats.sign_flip_p([1.0] * 8, alternative="bigger")


def test_family_agrees_with_brute_force() -> None:
    logs = random(3).normal(0.2, 1, size=(8, 3))
    logs[2, 1] = np.nan
    greatest = []
    for signs in itertools.product((1, -1), repeat=8):
        flipped = logs * np.array(signs)[:, None]
        greatest.append(max(studentised(col[~np.isnan(col)]) for col in flipped.T))
    joint = stats.max_t(logs)
    for cell in range(3):
        observed = studentised(logs[~np.isnan(logs[:, cell]), cell])
        expected = np.mean(np.array(greatest) >= observed - 1e-9)
        assert joint.p[cell] == pytest.approx(expected, abs=1e-9)
    assert joint.n.tolist() == [8, 7, 8]
    expected_q = np.sort(greatest)[::-1][int(0.05 * 256)]
    assert joint.quantile == pytest.approx(expected_q, rel=1e-9)


def test_errors_are_those_of_a_mean() -> None:
    logs = random(5).normal(size=(12, 4))
    joint = stats.max_t(logs)
    assert joint.mean == pytest.approx(logs.mean(axis=0))
    assert joint.error == pytest.approx(oracle.sem(logs, axis=0), rel=1e-9)
    assert joint.low == pytest.approx(joint.mean - joint.quantile * joint.error)


def test_interval_excludes_zero_exactly_where_p_says_so() -> None:
    for seed in range(30):
        logs = random(seed).normal(0.3, 1, size=(10, 5))
        joint = stats.max_t(logs)
        outside = (joint.low > 0) | (joint.high < 0)
        assert (outside == (joint.p <= 0.05)).all()


def test_a_larger_family_never_finds_more() -> None:
    logs = random(8).normal(0.01, 0.01, size=(20, 50))
    alone, family = stats.max_t(logs[:, :1]), stats.max_t(logs)
    assert alone.quantile < family.quantile
    assert alone.p[0] <= family.p[0]


def test_below_six_blocks_there_are_means_and_no_intervals() -> None:
    joint = stats.max_t(random().normal(size=(5, 3)))
    assert joint.quantile is None and joint.level is None
    assert np.isnan(joint.low).all() and np.isnan(joint.p).all()
    assert np.isfinite(joint.mean).all()
    assert stats.max_t(np.zeros((0, 0))).quantile is None


def test_cells_with_few_pairs_take_no_part() -> None:
    logs = random(2).normal(size=(20, 3))
    logs[4:, 1] = np.nan
    joint = stats.max_t(logs)
    assert np.isnan(joint.low[1]) and np.isfinite(joint.low[[0, 2]]).all()
    assert joint.quantile == stats.max_t(logs[:, [0, 2]]).quantile


def test_identical_pairs_have_an_interval_of_the_clock_step() -> None:
    joint = stats.max_t(np.zeros((8, 2)), resolution=[1e-3, 1e-6])
    assert joint.p.tolist() == [1.0, 1.0]
    assert joint.high.tolist() == [1e-3, 1e-6]
    assert joint.low.tolist() == [-1e-3, -1e-6]


def test_equal_changes_in_every_block_are_found() -> None:
    joint = stats.max_t(np.full((8, 1), 0.05))
    assert joint.low[0] > 0.0499


def test_infinite_log_ratios_and_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="infinite"):
        stats.max_t([[math.inf]] * 8)
    with pytest.raises(ValueError, match="blocks times cells"):
        stats.max_t([1.0] * 8)


def test_same_data_and_seed_give_the_same_bytes() -> None:
    logs = random(6).normal(size=(20, 9))
    one, two = stats.max_t(logs, seed=4), stats.max_t(logs.copy(), seed=4)
    for name in ("mean", "error", "p", "low", "high"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert stats.max_t(logs, seed=5).quantile != one.quantile
    assert stats.geometric_mean(logs, seed=3) == stats.geometric_mean(logs, seed=3)


# ---- equivalence, corrections --------------------------------------------------------------------


def test_equivalence_agrees_with_the_90_percent_interval() -> None:
    for seed in range(40):
        values = random(seed).normal(0.004, 0.02, size=12)
        interval = stats.sign_flip_interval(values, 0.90)
        assert interval is not None
        for margin in (0.01, 0.02, 0.03):
            inside = -margin < interval.low and interval.high < margin
            assert inside == (stats.equivalence_p(values, margin) <= 0.05)


def test_equivalence_agrees_with_two_scipy_tests() -> None:
    values = random(9).normal(0.0, 1, size=9)
    sides = [
        oracle.permutation_test(
            (values + shift,),
            np.mean,
            permutation_type="samples",
            n_resamples=np.inf,
            alternative=alternative,
        ).pvalue
        for shift, alternative in ((0.5, "greater"), (-0.5, "less"))
    ]
    assert stats.equivalence_p(values, 0.5) == pytest.approx(max(sides), abs=1e-9)


def test_benjamini_hochberg_agrees_with_scipy() -> None:
    p = random(2).random(33) ** 2
    expected = oracle.false_discovery_control(p, method="bh")
    assert stats.benjamini_hochberg(p) == pytest.approx(expected, rel=1e-12)


def test_holm_steps_down() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    p = random(3).random(20) ** 3
    adjusted = stats.holm(p)
    # Step by step: rejected as long as p(i) <= alpha / (m - i).
    for alpha in (0.01, 0.05, 0.2):
        rejected = set()
        for rank, at in enumerate(np.argsort(p)):
            if p[at] > alpha / (20 - rank):
                break
            rejected.add(int(at))
        assert rejected == set(np.flatnonzero(adjusted <= alpha).tolist())


def test_corrections_are_for_families_that_they_can_find_something_in() -> None:
    assert stats.correction_reason(20, 77) is None
    assert stats.correction_reason(10, 5) is None
    reason = stats.correction_reason(10, 77)
    assert reason is not None and "77 cells" in reason
    assert stats.correction_reason(5, 1) == "5 of at least 6 blocks"
    assert stats.smallest_p(10) == 2 / 2**10


# ---- the whole, the floor ------------------------------------------------------------------------


def test_geometric_mean_of_balanced_cells_is_the_mean() -> None:
    logs = random(4).normal(0.02, 0.05, size=(20, 6))
    mean, interval = stats.geometric_mean(logs)
    assert mean == pytest.approx(logs.mean())
    assert interval is not None and interval.low < mean < interval.high


@pytest.mark.parametrize("n", [10, 20])
def test_geometric_mean_interval_covers(n: int) -> None:
    hits = 0
    for seed in range(300):
        source = random(seed)
        # Blocks shift all cells at once: cells are not independent.
        logs = source.normal(size=(n, 1)) + 0.5 * source.normal(size=(n, 5))
        interval = stats.geometric_mean(logs, seed=seed)[1]
        assert interval is not None
        hits += interval.low <= 0 <= interval.high
    assert abs(hits / 300 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 300)


def test_geometric_mean_without_enough_blocks_or_data() -> None:
    assert stats.geometric_mean([[0.1, 0.3]] * 5) == (pytest.approx(0.2), None)
    with pytest.raises(ValueError, match="at least one pair"):
        stats.geometric_mean([[np.nan]])


def test_noise_floor_is_the_margin_at_which_the_control_is_the_same() -> None:
    control = random(7).normal(0.002, 0.02, size=20)
    floor = stats.noise_floor(control[:, None])
    interval = stats.sign_flip_interval(control, 0.90)
    assert floor is not None and interval is not None
    assert floor == max(abs(interval.low), abs(interval.high))
    # A bias of the session counts like a spread.
    biased = stats.noise_floor((control + 0.05)[:, None])
    assert biased is not None and biased > 0.05
    both = stats.noise_floor(np.column_stack([control, control + 0.05]))
    assert both == pytest.approx(math.sqrt((floor**2 + biased**2) / 2))
    assert stats.noise_floor(control[:4, None]) is None


# ---- power ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [10, 20, 50])
def test_detectable_effect_agrees_with_the_noncentral_t(blocks: int) -> None:
    quantile = stats.family_quantile(blocks, 77)
    assert quantile == pytest.approx(
        oracle.t.ppf(1 - (1 - 0.95 ** (1 / 77)) / 2, blocks - 1), rel=1e-9
    )
    error = 0.02 / math.sqrt(blocks)
    effect = stats.detectable_effect(error, quantile, blocks - 1)
    power = oracle.nct.sf(quantile, blocks - 1, effect / error)
    assert power == pytest.approx(0.80, abs=0.02)


def test_smallest_effect_grows_with_noise_cells_and_margin_and_falls_with_blocks() -> None:
    base = stats.smallest_effect(20, 24, 0.02)
    assert base is not None and 0.015 < base < 0.03
    assert stats.smallest_effect(20, 24, 0.04) > base
    assert stats.smallest_effect(20, 77, 0.02) > base
    assert stats.smallest_effect(20, 24, 0.02, margin=0.03) == pytest.approx(1.03 * (1 + base) - 1)
    assert stats.smallest_effect(50, 24, 0.02) < base
    assert stats.smallest_effect(5, 24, 0.02) is None


def test_blocks_needed_decide() -> None:
    needed = stats.blocks_needed(0.02, 0.04, 24, 0.03)
    assert needed is not None and needed > 6
    error = 0.04 / math.sqrt(needed)
    quantile = stats.family_quantile(needed, 24)
    found = stats.detectable_effect(error, quantile, needed - 1) <= 0.02
    same = 0.02 + (oracle.t.ppf(0.95, needed - 1) + oracle.norm.ppf(0.8)) * error <= 0.03
    assert found or same
    # Nothing seen, little noise: shown to be the same at once. At the margin's edge: never soon.
    assert stats.blocks_needed(0.0, 0.005, 24, 0.03) == 6
    assert stats.blocks_needed(0.0, 5.0, 24, 0.0) is None


# ---- modes, quantiles ----------------------------------------------------------------------------


def test_two_modes_are_seen_and_one_cloud_is_not() -> None:
    source = random(1)
    split = np.concatenate([source.normal(0, 0.004, 10), source.normal(0.25, 0.004, 10)])
    found = stats.modes(split, least=0.03)
    assert found is not None
    assert found == pytest.approx((split[:10].mean(), split[10:].mean()))
    assert stats.modes(split, least=0.5) is None
    assert stats.modes(split[:9]) is None


@pytest.mark.parametrize("kind", ["normal", "t", "laplace"])
@pytest.mark.parametrize("n", [10, 20, 50])
def test_one_cloud_seldom_looks_like_two_modes(kind: str, n: int) -> None:
    source = random(n)
    draw = {
        "normal": lambda: source.normal(size=n),
        "t": lambda: source.standard_t(3, size=n),
        "laplace": lambda: source.laplace(size=n),
    }[kind]
    assert sum(stats.modes(draw()) is not None for _ in range(2000)) <= 6


def test_single_outliers_are_no_mode() -> None:
    values = np.concatenate([random(2).normal(size=18), [40.0, 41.0]])
    assert stats.modes(values) is None


def test_quantiles_need_ten_observations_beyond_them() -> None:
    assert stats.quantile_shown(0.99, 1000)
    assert not stats.quantile_shown(0.99, 999)
    assert stats.quantile_shown(0.5, 20)
    assert not stats.quantile_shown(0.5, 19)
    with pytest.raises(ValueError, match="quantile"):
        stats.quantile_shown(1.0, 5)


# ---- stored sides --------------------------------------------------------------------------------


def test_stored_ratio_is_the_ratio_of_medians() -> None:
    head, base = random(1).normal(0.1, 0.02, (11, 3)), random(2).normal(0, 0.02, (9, 3))
    found = stats.stored_ratios(head, base)
    assert found.value == pytest.approx(np.median(head, axis=0) - np.median(base, axis=0))
    assert (found.low < found.value).all() and (found.value < found.high).all()
    assert (found.low < found.own_low).all() and (found.own_high < found.high).all()
    again = stats.stored_ratios(head, base)
    assert found.low.tobytes() == again.low.tobytes()


def test_stored_error_agrees_with_scipys_bootstrap() -> None:
    head, base = random(3).normal(size=40), random(4).normal(size=30)
    expected = oracle.bootstrap(
        (head, base),
        lambda x, y, axis: np.median(x, axis=axis) - np.median(y, axis=axis),
        n_resamples=4000,
        rng=np.random.default_rng(1),
    ).standard_error
    found = stats.stored_ratios(head[:, None], base[:, None])
    assert found.error[0] == pytest.approx(expected, rel=0.1)


def test_stored_sides_are_joint_and_seldom_alarm() -> None:
    alarms = 0
    for seed in range(40):
        source = random(seed)
        found = stats.stored_ratios(
            source.normal(size=(12, 10)), source.normal(size=(12, 10)), seed=seed
        )
        alarms += bool(((found.low > 0) | (found.high < 0)).any())
    assert alarms <= 7


def test_stored_sides_with_few_values_have_no_interval() -> None:
    head = np.column_stack([np.zeros(8), [0.1] * 5 + [np.nan] * 3])
    found = stats.stored_ratios(head, np.zeros((8, 2)))
    assert np.isfinite(found.low[0]) and np.isnan(found.low[1])
    assert found.value[1] == pytest.approx(0.1)
    none = stats.stored_ratios(head[:3], np.zeros((8, 2)))
    assert none.quantile is None
    with pytest.raises(ValueError, match="cannot be compared"):
        stats.stored_ratios(np.zeros((8, 2)), np.zeros((8, 3)))


def test_stored_geometric_mean() -> None:
    head, base = random(5).normal(0.1, 0.02, (20, 6)), random(6).normal(0, 0.02, (20, 6))
    mean, interval = stats.stored_geometric_mean(head, base)
    assert mean == pytest.approx((np.median(head, axis=0) - np.median(base, axis=0)).mean())
    assert interval is not None and interval.low < 0.1 < interval.high
    assert stats.stored_geometric_mean(head[:4], base)[1] is None
    with pytest.raises(ValueError, match="at least one cell"):
        stats.stored_geometric_mean([[np.nan]], [[1.0]])


def test_permuted_sessions_agree_with_scipy() -> None:
    head, base = random(7).normal(1.0, 1, 5), random(8).normal(0, 1, 4)

    def welch(x: np.ndarray, y: np.ndarray) -> float:
        return abs(x.mean() - y.mean()) / math.sqrt(x.var(ddof=1) / x.size + y.var(ddof=1) / y.size)

    expected = oracle.permutation_test(
        (head, base), welch, n_resamples=np.inf, alternative="greater"
    ).pvalue
    found = stats.permuted_sessions(head[:, None], base[:, None])
    assert found.p[0] == pytest.approx(expected, abs=1e-9)
    assert found.value[0] == pytest.approx(head.mean() - base.mean())


def test_permuted_sessions_are_joint_over_cells() -> None:
    source = random(9)
    base = source.normal(0, 0.01, (4, 20))
    head = source.normal(0, 0.01, (4, 20))
    head[:, 0] += 0.2
    found = stats.permuted_sessions(head, base)
    assert found.p.min() == found.p[0] == pytest.approx(2 / 70)
    assert found.low[0] > 0
    assert not ((found.low[1:] > 0) | (found.high[1:] < 0)).any()


def test_permuted_sessions_need_four_a_side_and_every_cell() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        stats.permuted_sessions(np.zeros((3, 1)), np.zeros((5, 1)))
    values = random(1).normal(size=(4, 2))
    values[0, 1] = np.nan
    found = stats.permuted_sessions(values, random(2).normal(size=(4, 2)))
    assert np.isfinite(found.value[0]) and np.isnan(found.value[1])


def test_many_sessions_draw_labels_from_the_seed() -> None:
    head, base = random(1).normal(size=(12, 2)), random(2).normal(size=(12, 2))
    one = stats.permuted_sessions(head, base, seed=1)
    assert one.p.tobytes() == stats.permuted_sessions(head, base, seed=1).p.tobytes()
    every = np.concatenate([head[:, 0], base[:, 0]])
    source = random(3)
    drawn = np.array([source.permutation(every) for _ in range(4000)])
    reached = np.abs(oracle.ttest_ind(drawn[:, :12], drawn[:, 12:], axis=1, equal_var=False)[0])
    real = abs(oracle.ttest_ind(head[:, 0], base[:, 0], equal_var=False)[0])
    alone = stats.permuted_sessions(head[:, :1], base[:, :1], seed=1)
    assert alone.p[0] == pytest.approx((reached >= real).mean(), abs=0.04)


def test_session_noise_comes_from_sessions_of_one_build() -> None:
    steady = [("a", {"x": 0.0}), ("a", {"x": 0.02}), ("a", {"x": 0.0}), ("a", {"x": -0.02})]
    noise = stats.session_noise(steady)
    expected = math.expm1(oracle.t.ppf(0.975, 3) * 0.02)
    assert noise == {"x": pytest.approx(expected)}
    # A new build is a change, not noise.
    assert stats.session_noise([*steady, ("b", {"x": 1.0})]) == noise
    assert stats.session_noise(steady[:3]) == {}


# ---- pace ----------------------------------------------------------------------------------------


def test_a_steady_process_has_a_pace_and_no_mark() -> None:
    pace = stats.pace_of([600, 601, 599], [600, 602, 600])
    assert pace.value == pytest.approx(600) and pace.reason is None
    assert stats.pace_of(None, None).value is None
    assert stats.pace_of([None, 0], [600, 600]).value is None


def test_a_process_whose_probes_disagree_is_marked() -> None:
    pace = stats.pace_of([600, 600, 600], [600, 800, 800])
    assert pace.reason is not None and "2 of 3" in pace.reason
    # One of three: the median sample ran in one state.
    assert stats.pace_of([600, 600, 600], [600, 600, 800]).reason is None
    # Two states, each steady: half of the samples are off whatever the median.
    assert stats.pace_of([600, 600, 800, 800], [600, 600, 800, 800]).reason is not None


def test_sides_in_different_states_are_marked() -> None:
    slow, fast = stats.Pace(635.0), stats.Pace(600.0)
    reason = stats.classify_pair([slow, fast])
    assert reason is not None and "6 % apart" in reason
    assert stats.classify_pair([slow, stats.Pace(640.0)]) is None
    assert stats.classify_pair([slow, fast], stats.PaceRule(0.1)) is None
    assert stats.classify_pair([slow, stats.Pace(None)]) is None
    assert stats.classify_pair([]) is None
    assert stats.classify_pair([stats.Pace(600.0, "moved"), fast]) == "moved"
    marked = stats.classify_pairs({0: slow, 1: fast, 2: slow}, {0: fast, 1: fast})
    assert list(marked) == [0]


def test_the_pace_rule_wants_a_share() -> None:
    with pytest.raises(ValueError, match="share"):
        stats.PaceRule(25)


def test_the_rule_looks_at_probes_alone_and_is_symmetric() -> None:
    source = random(11)
    values = source.choice([600.0, 635.0, 800.0], size=(50, 2))
    for one, other in values:
        there = stats.classify_pair([stats.Pace(one), stats.Pace(other)])
        back = stats.classify_pair([stats.Pace(other), stats.Pace(one)])
        assert (there is None) == (back is None) == (one == other)


def test_modules_share_their_limits() -> None:
    assert stats.MIN_BLOCKS == estimators.MIN_BLOCKS == 6
