"""Verdicts: every one of them, on runs whose truth is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from synthetic import absent, cell, document, interleaved, noisy

import capybench
from capybench import judge
from capybench.comparison import CellVerdict, Comparison
from capybench.errors import UsageError
from capybench.results import RunResult
from capybench.thresholds import parse

A = "coroutine/run_async/depth1@task"
B = "coroutine/run_async/depth2@task"


def run_of(data: dict[str, Any]) -> RunResult:
    return RunResult.from_dict(data)


def sides(
    factor: float = 1.0, blocks: int = 20, spread: float = 0.01, seed: int = 1, count: int = 2
) -> np.ndarray:
    """ns an op, blocks x sides: the second side costs `factor`."""
    made = 200 * np.exp(spread * np.random.default_rng(seed).normal(size=(blocks, count)))
    made[:, 1] *= factor
    return made


def judged(costs: dict[str, np.ndarray], **more: Any) -> Comparison:
    control = any(matrix.shape[1] > 2 for matrix in costs.values())
    run = run_of(interleaved(costs, control=control))
    return judge.compare_runs(run, run, **more)


def others(count: int = 5) -> dict[str, np.ndarray]:
    return {f"timer/case{i}@task": sides(seed=50 + i) for i in range(count)}


# ---- interleaved ---------------------------------------------------------------------------------


def test_a_slower_cell_fails_and_the_others_are_the_same() -> None:
    found = judged({A: sides(1.10), **others()})
    row = found.row(A)
    assert (row.verdict, row.fails) == ("slower", True)
    assert row.ratio == pytest.approx(1.10, abs=0.01)
    assert row.ci_low is not None and row.ci_high is not None
    assert 1.03 < row.ci_low < row.ratio < row.ci_high
    assert row.change == pytest.approx(row.ratio - 1)
    assert row.margin == pytest.approx(0.03)
    assert row.detectable is not None and 0.005 < row.detectable < 0.03
    assert row.blocks == 20 and row.ci_level is not None and row.ci_level >= 0.95
    assert {r.verdict for r in found.rows if r.id != A} == {"within noise"}
    assert found.failures() == (row,) and found.exit_code() == 1
    assert found.family == 6 and found.kind == "variants"
    assert (found.base, found.head) == ("base", "head")


def test_a_slower_cell_inside_the_margin_does_not_fail() -> None:
    found = judged({A: sides(1.02, spread=0.003), **others()})
    row = found.row(A)
    assert (row.verdict, row.fails) == ("slower", False)
    assert found.exit_code() == 0


def test_only_the_near_end_of_the_interval_fails() -> None:
    found = judged({A: sides(1.05, spread=0.02, seed=3), **others()})
    row = found.row(A)
    assert row.verdict == "slower" and row.ratio is not None and row.ratio > 1.03
    assert row.ci_low is not None and row.ci_low < 1.03
    assert not row.fails


def test_faster_is_faster() -> None:
    row = judged({A: sides(0.9), **others()}).row(A)
    assert (row.verdict, row.fails) == ("faster", False)


def test_rates_are_judged_by_cost() -> None:
    data = interleaved({A: sides(1.10)})
    data["cells"][0] |= {"unit": "ops/s", "direction": "higher"}
    run = run_of(data)
    row = judge.compare_runs(run, run).row(A)
    assert row.verdict == "slower" and row.ratio == pytest.approx(1.10, abs=0.01)
    assert row.base is not None and row.head is not None and row.base > row.head
    assert row.base == pytest.approx(1e9 / 200, rel=0.01)


def test_inconclusive_says_how_many_blocks_would_decide() -> None:
    row = judged({A: sides(1.02, spread=0.05, seed=4), **others()}).row(A)
    assert row.verdict == "inconclusive"
    assert row.blocks_needed is not None and row.blocks_needed > 20


def test_below_six_blocks_there_is_no_verdict() -> None:
    found = judged({A: sides(1.5, blocks=5)})
    row = found.row(A)
    assert (row.verdict, row.reason) == ("inconclusive", "5 of at least 6 blocks")
    assert row.ratio == pytest.approx(1.5, abs=0.05) and row.ci_low is None
    assert found.exit_code() == 0 and found.exit_code(strict=True) == 4


def test_two_modes_are_unstable_unless_both_are_beyond_the_margin() -> None:
    two = sides(spread=0.002)
    two[::2, 1] *= 1.3
    found = judged({A: two, **others()})
    row = found.row(A)
    assert row.verdict == "unstable" and row.reason is not None and "two modes" in row.reason
    assert found.exit_code() == 0 and found.exit_code(strict=True) == 4
    worse = two.copy()
    worse[:, 1] *= 1.2
    row = judged({A: worse, **others()}).row(A)
    assert (row.verdict, row.fails) == ("slower", True)


def test_the_negative_control_is_in_the_family_and_makes_the_floor() -> None:
    costs = {A: sides(count=3, spread=0.1, seed=5), B: sides(1.08, spread=0.003)}
    found = judged(costs)
    controls = [row for row in found.rows if row.control]
    assert [row.id for row in controls] == [A]
    assert found.family == 3
    assert found.noise_floor is not None
    assert found.margin == max(0.03, found.noise_floor)
    assert found.noise_floor > 0.03
    assert any("noisy session" in note for note in found.notes)
    for row in found.rows:
        assert row.margin == pytest.approx(found.margin)
    assert found.cells == tuple(row for row in found.rows if not row.control)


def test_a_control_that_differs_raises_the_margin_and_fails_nothing() -> None:
    biased = sides(count=3, spread=0.002)
    biased[:, 2] *= 1.2
    found = judged({A: biased, B: sides(1.08, spread=0.002)})
    assert found.noise_floor is not None and found.noise_floor > 0.19
    control = next(row for row in found.rows if row.control)
    assert control.verdict == "slower" and not control.fails
    assert found.row(B).verdict == "slower" and found.failures() == ()


def with_probes(run: dict[str, Any], block: int, variant: str, pace: list[int]) -> None:
    for process in run["cells"][0]["processes"]:
        if process["block"] == block and process["variant"] == variant:
            process["pace_ns"] = pace


def test_pairs_in_different_speed_states_are_left_out() -> None:
    costs = sides(spread=0.002)
    costs[:4, 1] *= 1.33
    data = interleaved({A: costs})
    for block in range(20):
        with_probes(data, block, "base", [600] * 4)
        with_probes(data, block, "head", [800 if block < 4 else 600] * 4)
    run = run_of(data)
    row = judge.compare_runs(run, run).row(A)
    assert (row.verdict, row.blocks, row.gated) == ("within noise", 16, 4)
    # The last process of a block is its repeat.
    for block in range(4):
        for variant in ("base", "head"):
            data["cells"][0]["processes"].append(
                synthetic.process(block, [200_000] * 3, variant=variant)
            )
    row = judge.compare_runs(*[run_of(data)] * 2).row(A)
    assert (row.blocks, row.gated) == (20, 0)


def test_where_too_few_pairs_are_clean_all_are_used_and_told() -> None:
    data = interleaved({A: sides(blocks=8)})
    for block in range(8):
        with_probes(data, block, "base", [600] * 4)
        with_probes(data, block, "head", [800 if block < 4 else 600] * 4)
    run = run_of(data)
    row = judge.compare_runs(run, run).row(A)
    assert (row.blocks, row.gated) == (8, 0)
    assert row.marked == 4
    assert "too few were clean: all are used (1 row)" in " ".join(
        judge.compare_runs(run, run).to_text().split()
    )


def test_broken_cells_are_invalid_new_or_gone() -> None:
    data = interleaved({f"timer/c{i}@task": sides(seed=i) for i in range(6)})
    names = ["failed", "gone", "new", "nowhere", "both", "fine"]
    for item, name in zip(data["cells"], names, strict=True):
        item["case"], item["id"] = name, f"timer/{name}@task"
    states = {
        "failed": {"head": {"status": "crashed", "reason": "SIGSEGV"}},
        "gone": {"head": {"status": "unavailable", "reason": "no io_uring"}},
        "new": {"base": {"status": "unavailable", "reason": "older"}},
        "nowhere": {
            "base": {"status": "unavailable", "reason": "no"},
            "head": {"status": "unavailable", "reason": "no"},
        },
        "both": {
            "base": {"status": "failed", "reason": "a"},
            "head": {"status": "failed", "reason": "b"},
        },
    }
    for item in data["cells"]:
        for side in item["variants"]:
            side |= states.get(item["case"], {}).get(side["name"], {})
    run = run_of(data)
    found = judge.compare_runs(run, run)
    verdicts = {row.id.split("/")[1].split("@")[0]: row.verdict for row in found.rows}
    assert verdicts == {
        "failed": "invalid",
        "gone": "gone",
        "new": "new",
        "both": "invalid",
        "fine": "within noise",
    }
    assert found.row("timer/failed@task").reason == "head: crashed: SIGSEGV"
    assert [row.verdict for row in found.failures()] == ["invalid", "gone", "invalid"]
    assert [row.verdict for row in found.failures(("new",), allow_gone=True)] == [
        "invalid",
        "new",
        "invalid",
    ]
    assert any("1 of the cells" in note for note in found.notes)


def test_samples_without_time_and_threads_where_none_may_be_are_invalid() -> None:
    data = interleaved({A: sides(), B: sides()})
    data["cells"][0]["processes"][3]["samples_ns"] = [0, 0, 0]
    data["cells"][1]["processes"][4]["single_before"] = False
    run = run_of(data)
    found = judge.compare_runs(run, run)
    assert [row.verdict for row in found.rows] == ["invalid", "invalid"]
    assert "below clock resolution" in str(found.rows[0].reason)
    assert "single-threaded" in str(found.rows[1].reason)
    assert found.exit_code() == 1


def test_variants_that_are_not_there_are_named() -> None:
    run = run_of(interleaved({A: sides()}))
    with pytest.raises(UsageError, match="no variant 'old'; it has base, head"):
        judge.compare_runs(run, run, variants=("old", "head"))
    plain = run_of(document(cell()))
    with pytest.raises(UsageError, match="one build only"):
        judge.compare_runs(plain, plain)
    with pytest.raises(UsageError, match="it measured one build"):
        judge.compare_runs(plain, plain, variants=("base", "head"))
    with pytest.raises(UsageError, match="no variant 'control'"):
        judge.compare_runs(run, run, variants=("control", "head"))
    back = judge.compare_runs(run, run, variants=("head", "base"))
    assert back.row(A).ratio == pytest.approx(1 / judge.compare_runs(run, run).row(A).ratio)


def test_corrections_of_single_p_values() -> None:
    costs = {A: sides(1.05), **others(3)}
    for name in ("holm", "bh"):
        found = judged(costs, correction=name)
        assert found.correction == name
        assert found.row(A).verdict == "slower" and found.row(A).fails
        assert [row.verdict for row in found.rows[1:]] == ["within noise"] * 3
    few = judged({f"timer/c{i}@task": sides(blocks=8, seed=i) for i in range(20)}, correction="bh")
    assert few.correction == "max-t"
    assert any("no cell could ever be found" in note for note in few.notes)
    with pytest.raises(UsageError, match="unknown correction"):
        judged(costs, correction="bonferroni")


# ---- stored against stored -----------------------------------------------------------------------


def stored(factor: float = 1.0, blocks: int = 20, seed: int = 1, **run: Any) -> RunResult:
    cells = [
        cell(A, noisy(200 * factor, blocks, seed=seed)),
        cell(B, noisy(300, blocks, seed=seed + 100)),
    ]
    return run_of(document(*cells, blocks=blocks, **run))


def test_two_sessions_that_differ_little_are_within_noise() -> None:
    found = judge.compare_runs(stored(seed=1), stored(seed=2))
    assert found.kind == "stored"
    assert [row.verdict for row in found.rows] == ["within noise"] * 2
    assert found.rows[0].noise == 0.25
    assert any("25 % apart" in note for note in found.notes)
    assert found.exit_code() == 0


def test_against_a_stored_baseline_a_change_below_the_noise_is_suspect() -> None:
    found = judge.compare_runs(stored(seed=1), stored(1.15, seed=2))
    row = found.row(A)
    assert (row.verdict, row.fails) == ("suspect", False)
    assert found.exit_code() == 0
    assert found.failures(("suspect",)) == (row,)
    # An improvement is no reason to fail.
    better = judge.compare_runs(stored(seed=1), stored(0.87, seed=2))
    assert better.row(A).verdict == "suspect"
    assert better.exit_code(("suspect",)) == 0


def test_against_a_stored_baseline_a_change_beyond_the_noise_fails() -> None:
    found = judge.compare_runs(stored(seed=1), stored(1.40, seed=2))
    assert (found.row(A).verdict, found.row(A).fails) == ("slower", True)
    assert judge.compare_runs(stored(seed=1), stored(0.6, seed=2)).row(A).verdict == "faster"


def test_history_of_the_machine_replaces_the_guess() -> None:
    history = [stored(1 + 0.01 * (seed % 2), seed=seed) for seed in range(6)]
    found = judge.compare_runs(stored(seed=11), stored(1.15, seed=12), history=history)
    row = found.row(A)
    assert row.noise is not None and 0.01 < row.noise < 0.06
    assert (row.verdict, row.fails) == ("slower", True)
    elsewhere = [stored(seed=seed).to_dict() for seed in range(6)]
    for data in elsewhere:
        data["machine"]["fingerprint"]["cpu"] = "Other CPU"
    other = judge.compare_runs(
        stored(seed=11), stored(1.15, seed=12), history=[run_of(data) for data in elsewhere]
    )
    assert other.row(A).noise == 0.25


def test_machines_that_differ_are_refused_with_the_reason() -> None:
    data = stored().to_dict()
    data["machine"]["fingerprint"]["kernel"] = "Linux 7"
    with pytest.raises(judge.MachinesDifferError) as caught:
        judge.compare_runs(stored(), run_of(data))
    assert "kernel 'Linux 6' and 'Linux 7'" in str(caught.value)
    assert "ratio(A, B)<1.3" in str(caught.value)
    assert caught.value.exit_code == 2


def test_builds_may_differ_and_unknown_machines_are_told() -> None:
    data = stored(seed=2).to_dict()
    data["machine"] = {"build": {"build_id": "other"}}
    found = judge.compare_runs(stored(), run_of(data))
    assert found.rows[0].verdict == "within noise"
    assert any("does not say which machine" in note for note in found.notes)


def test_units_that_clash_are_invalid() -> None:
    data = stored().to_dict()
    data["cells"][0]["unit"] = "ops/s"
    row = judge.compare_runs(stored(), run_of(data)).row(A)
    assert row.verdict == "invalid" and row.reason == "base is in ns/op, head in ops/s"


def test_ops_and_blocks_may_differ_between_sessions() -> None:
    more = run_of(
        document(cell(A, noisy(200, 12, ops=5000, seed=3), ops=5000), blocks=12, patterns=[A])
    )
    found = judge.compare_runs(stored(), more)
    assert [row.id for row in found.rows] == [A]
    assert found.rows[0].verdict == "within noise" and found.rows[0].blocks == 12


def test_a_cell_that_was_not_asked_for_is_not_gone() -> None:
    only_a = document(cell(A, noisy(200, 20)), blocks=20)
    selected = run_of({**only_a, "run": {**only_a["run"], "quick": False, "patterns": [A]}})
    assert [row.id for row in judge.compare_runs(stored(), selected).rows] == [A]
    everything = run_of({**only_a, "run": {**only_a["run"], "quick": False, "patterns": []}})
    found = judge.compare_runs(stored(), everything)
    assert found.row(B).verdict == "gone" and found.exit_code() == 1
    assert found.exit_code(allow_gone=True) == 0
    back = judge.compare_runs(everything, stored(quick=False))
    assert back.row(B).verdict == "new" and back.exit_code() == 0
    keyword = {**only_a["run"], "quick": False, "keyword": "depth1"}
    assert len(judge.compare_runs(stored(), run_of({**only_a, "run": keyword})).rows) == 1


def test_failed_in_one_session_is_invalid_and_unavailable_in_both_is_not_judged() -> None:
    base = run_of(document(absent(A), cell(B, noisy(200, 20))))
    head = run_of(document(absent(A), absent(B, "timeout", "no result after 60 s")))
    found = judge.compare_runs(base, head)
    assert [(row.id, row.verdict) for row in found.rows] == [(B, "invalid")]


# ---- many sessions -------------------------------------------------------------------------------


def test_four_sessions_a_side_are_judged_by_their_labels() -> None:
    bases = [stored(1 + 0.004 * seed, seed=seed) for seed in range(4)]
    heads = [stored(1.1 + 0.004 * seed, seed=seed + 50) for seed in range(4)]
    found = judge.compare_runs(bases, heads)
    assert found.kind == "sessions"
    row = found.row(A)
    assert (row.verdict, row.fails) == ("slower", True)
    assert row.p == pytest.approx(2 / 70)
    assert found.row(B).verdict in ("within noise", "inconclusive")
    with pytest.raises(UsageError, match="at least 4 runs on each side"):
        judge.compare_runs(bases[:3], heads)


# ---- thresholds ----------------------------------------------------------------------------------


def test_thresholds_set_margins_by_cell() -> None:
    found = judged({A: sides(1.10), B: sides(1.10)}, thresholds=parse("*depth2*: median:20%"))
    assert found.row(A).fails and not found.row(B).fails
    assert found.row(B).verdict == "slower" and found.row(B).margin == pytest.approx(0.2)


def test_counts_are_compared_exactly() -> None:
    data = interleaved({A: sides(), B: sides()})
    data["cells"][0]["variants"][1]["ledger"] = {**synthetic.LEDGER, "resource_allocs": 3}
    run = run_of(data)
    found = judge.compare_runs(run, run, thresholds=parse("allocs:0, posts:0"))
    bad = [check for check in found.checks if check.fails]
    assert [(c.id, c.base, c.now, c.limit) for c in bad] == [(A, 2, 3, 2)]
    assert found.exit_code() == 1
    allowed = judge.compare_runs(run, run, thresholds=parse("allocs:50%"))
    assert not any(check.fails for check in allowed.checks)
    limits = judge.compare_runs(run, run, thresholds=parse("allocs<=2, median<1us"))
    assert [c.verdict for c in limits.checks] == ["exceeded", "ok", "ok", "ok"]


def test_a_count_or_quantile_that_is_missing_is_invalid() -> None:
    data = interleaved({A: sides()})
    for side in data["cells"][0]["variants"]:
        side |= {"ledger": None, "counters": None}
    run = run_of(data)
    for text in ("allocs:0", "allocs<=2", "p99:10%"):
        (check,) = judge.compare_runs(run, run, thresholds=parse(text)).checks
        assert check.verdict == "invalid" and check.reason and check.fails


def ratio_checks(factor: float, limit: float, blocks: int = 20, spread: float = 0.01) -> Any:
    rng = np.random.default_rng(3)
    one = 200 * np.exp(spread * rng.normal(size=(blocks, 1))) * factor
    two = 200 * np.exp(spread * rng.normal(size=(blocks, 1)))
    cells = [
        cell(name, [[round(ns * 1000)] * 3 for ns in row[:, 0]])
        for name, row in ((A, one), (B, two))
    ]
    (check,) = judge.limit_checks(
        run_of(document(*cells, blocks=blocks)), parse(f"ratio({A}, {B})<{limit}")
    )
    return check


def test_ratios_inside_one_run_are_tested_with_the_near_end() -> None:
    assert ratio_checks(1.2, 1.3).verdict == "ok"
    assert ratio_checks(1.2, 1.1).verdict == "exceeded"
    undecided = ratio_checks(1.2, 1.2, spread=0.05)
    assert undecided.verdict == "inconclusive" and not undecided.fails
    few = ratio_checks(2.0, 1.1, blocks=4)
    assert (few.verdict, few.reason) == ("inconclusive", "4 of at least 6 blocks")
    assert few.now == pytest.approx(2.0, rel=0.02)


def test_a_ratio_of_cells_that_are_not_there_is_invalid() -> None:
    run = run_of(document(cell(A, noisy(200, 8))))
    (check,) = judge.limit_checks(run, parse(f"ratio({A}, {B})<2"))
    assert check.verdict == "invalid" and check.reason == f"{B}: not in this run"


def test_a_median_limit_needs_its_whole_interval() -> None:
    run = run_of(document(cell(A, noisy(200, 12, spread=0.05))))
    verdicts = {
        text: judge.limit_checks(run, parse(f"median<{text}"))[0].verdict
        for text in ("100ns", "200ns", "400ns")
    }
    assert verdicts == {"100ns": "exceeded", "200ns": "inconclusive", "400ns": "ok"}
    few = run_of(document(cell(A, noisy(200, 3))))
    assert judge.limit_checks(few, parse("median<1ns"))[0].verdict == "inconclusive"


# ---- confirmation --------------------------------------------------------------------------------


def test_confirmation_judges_by_the_new_data_alone() -> None:
    first = judged({A: sides(1.10), B: sides(1.10, seed=2), **others()})
    again = judged({A: sides(1.10, seed=8), B: sides(1.0, seed=9)})
    found = judge.confirm(first, again)
    assert [row.id for row in found.failures()] == [A]
    assert found.row(A).ratio == again.row(A).ratio
    assert "confirmed in fresh blocks" in str(found.row(A).reason)
    assert found.row(B).verdict == "within noise"
    assert "not confirmed in fresh blocks" in str(found.row(B).reason)
    assert found.notes[-1] == "2 flagged and measured again in fresh blocks, 1 confirmed"
    assert found.rows[2:] == first.rows[2:]


# ---- documents and tables ------------------------------------------------------------------------


def example() -> Comparison:
    costs = {A: sides(1.10, count=3), B: sides(1.02, spread=0.05, seed=4), **others(2)}
    return judged(costs, thresholds=parse("allocs:0"))


def test_documents_round_trip_and_are_byte_identical() -> None:
    found = example()
    text = found.to_json()
    assert "NaN" not in text
    assert Comparison.from_dict(json.loads(text)) == found
    assert example().to_json() == text
    row = json.loads(text)["rows"][0]
    assert {"id", "verdict", "ratio", "ci_low", "ci_high", "margin", "detectable"} <= row.keys()
    with pytest.raises(UsageError, match="schema"):
        Comparison.from_dict({"schema": "capybench/1"})
    with pytest.raises(UsageError, match="not a comparison"):
        Comparison.from_dict({"schema": "capybench-comparison/1"})


def test_another_seed_moves_intervals_a_little() -> None:
    run = run_of(interleaved({A: sides(1.1), **others()}))
    one, two = (judge.compare_runs(run, run, seed=seed) for seed in (1, 2))
    assert one.row(A).ci_low != two.row(A).ci_low
    assert one.row(A).ci_low == pytest.approx(two.row(A).ci_low, rel=0.01)


def test_tables_show_every_row_with_what_it_could_see() -> None:
    text = example().to_text(140)
    assert "head against base, interleaved in one run" in text
    assert "slower!" in text and "task (control)" in text and "visible" in text
    assert "geometric mean" in text and "allocs:0" in text
    assert "slower beyond the margin" in text
    narrow = example().to_text(60)
    assert max(map(len, narrow.splitlines())) <= 60
    markdown = example().to_markdown()
    assert markdown.count("| run\\_async/depth1 |") == 2 or "run_async/depth1" in markdown
    page = example()._repr_html_()
    assert page.count("<tr>") == page.count("</tr>") and "slower!" in page


def test_names_cannot_become_markup() -> None:
    found = Comparison(
        "variants", "<b>", "head", (CellVerdict("s/<i>x</i>@t", "new", "ns/op", "lower"),), 0.03
    )
    assert "<i>" not in found._repr_html_() and "<b>" not in found._repr_html_()
    assert "s" in str(found)


def test_sentences_of_rows_and_checks() -> None:
    found = example()
    sentence = found.row(A).sentence()
    assert sentence.startswith(f"{A}: slower, ×1.09")
    for word in ("interval", "margin 3.0 %", "detectable"):
        assert word in sentence
    assert found.checks[0].sentence() == f"{A}: allocs:0 ok, was 2.000, now 2.000"


def test_nothing_to_judge() -> None:
    run = run_of(document(absent(A)))
    found = judge.compare_runs(run, run_of(document(absent(A))))
    assert found.rows == () and found.exit_code() == 5
    assert "nothing to judge" in found.to_text()


def test_huge_ratios_saturate() -> None:
    costs = np.full((8, 2), 1.0)
    costs[:, 1] = 1e12
    row = judged({A: costs}).row(A)
    assert row.ratio == pytest.approx(1e12) and math.isfinite(row.ci_high or math.inf)


def test_compare_of_the_package_loads_files_and_reads_thresholds(tmp_path: Path) -> None:
    stored(seed=1).save(tmp_path / "base.json")
    stored(1.4, seed=2).save(tmp_path / "head.json")
    found = capybench.compare(tmp_path / "base.json", str(tmp_path / "head.json"))
    assert isinstance(found, capybench.Comparison) and found.exit_code() == 1
    mild = capybench.compare(
        tmp_path / "base.json", tmp_path / "head.json", thresholds="median:60%, allocs:0"
    )
    assert mild.exit_code() == 0 and len(mild.checks) == 2
