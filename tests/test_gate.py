"""`compare` and `check` as their users meet them; the builds are fake cores with fixed times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import synthetic
from conftest import PACKAGE, Fake, make_fake_package
from synthetic import cell, document, interleaved, noisy

from capybench import cases, cli, environment, gate, judge, plan, plugins, sides, stats
from capybench.errors import UsageError
from capybench.results import RunResult
from capybench.thresholds import parse

RUNS = Path(".capybench/runs")
A = "coroutine/run_async/depth1@task"
B = "coroutine/run_async/depth2@task"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(plugins, "_LOADED", [])
    monkeypatch.setattr(plan, "TARGET_NS", 1000)
    monkeypatch.setattr(plan, "QUICK_TARGET_NS", 1000)


def store(name: str, data: dict[str, Any], *, here: bool = False) -> str:
    if here:
        data["machine"]["fingerprint"] = environment.fingerprint()
    RUNS.mkdir(parents=True, exist_ok=True)
    data["run"]["id"] = name
    RunResult.from_dict(data).save(RUNS / f"{name}.json")
    return name


def stored(name: str, factor: float = 1.0, seed: int = 1, here: bool = False) -> str:
    cells = [cell(A, noisy(200 * factor, 20, seed=seed)), cell(B, noisy(300, 20, seed=seed + 9))]
    return store(name, document(*cells, blocks=20, quick=False), here=here)


def build(folder: Path, *changes: tuple[str, str]) -> str:
    """A folder with a package whose fake core has some of its text replaced."""
    make_fake_package(folder)
    for name in ("_core.py", "_ledger.py"):
        path = folder / "capybench" / name
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
    return str(folder)


TIMES = "samples[nth] = ops * 100 * slower"
SLOWER = (
    (TIMES, "samples[nth] = ops * (120 if self.cell == 'fake/good/1@a' else 100) * slower"),
    ("        self._samples = 0\n", "        self._samples = 0\n        self.cell = cell_id\n"),
)
#: Two cells, each the baseline of its case.
CELLS = ("fake/good/1@a", "fake/good/2@a")


@pytest.fixture
def builds(fake: Fake, tmp_path: Path) -> list[str]:
    """--variant twice: a base, and a head whose fake/good/1@a takes 20 % longer."""
    base, head = build(tmp_path / "old"), build(tmp_path / "new", *SLOWER)
    return ["--variant", f"base={base}", "--variant", f"head={head}"]


def errors(capsys: Captured) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line.removeprefix("capybench: ")


# ---- compare, stored -----------------------------------------------------------------------------


def test_compare_two_stored_runs(capsys: Captured) -> None:
    stored("one"), stored("two", 1.4, seed=2)
    assert cli.main(["compare", "one", "two"]) == 1
    captured = capsys.readouterr()
    assert "two against one, two sessions of one machine" in captured.out
    assert "slower!" in captured.out and "within noise" in captured.out
    assert captured.err.startswith(f"capybench: fails: {A}: slower, ×1.4")
    assert cli.main(["compare", "two", "--against", "one", "--format", "markdown"]) == 1
    assert capsys.readouterr().out.count("| slower! |") == 1


def test_compare_prints_its_document(capsys: Captured) -> None:
    stored("one"), stored("two", 1.15, seed=2)
    assert cli.main(["compare", "one", "two", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in data["rows"]] == ["suspect", "within noise"]
    assert {"id", "verdict", "ratio", "ci_low", "ci_high"} <= data["rows"][0].keys()
    assert cli.main(["compare", "one", "two", "--json", "found.json"]) == 0
    assert json.loads(Path("found.json").read_text()) == data
    assert cli.main(["compare", "one", "two", "--json", "-", "--fail-on", "suspect"]) == 1


def test_compare_is_byte_identical(capsys: Captured) -> None:
    stored("one"), stored("two", 1.15, seed=2)
    texts = []
    for _ in range(2):
        cli.main(["compare", "one", "two", "--format", "json", "--seed", "3"])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_compare_one_run_of_two_variants(capsys: Captured) -> None:
    rng = synthetic.np.random.default_rng(1)
    costs = 200 * synthetic.np.exp(0.01 * rng.normal(size=(20, 2)))
    store("both", interleaved({A: costs}))
    assert cli.main(["compare", "both"]) == 0
    assert "head against base, interleaved in one run" in capsys.readouterr().out


def test_compare_many_sessions(capsys: Captured) -> None:
    names = [stored(f"s{at}", 1.0 if at < 4 else 1.2, seed=at) for at in range(8)]
    assert cli.main(["compare", *names, "--sessions", "4"]) == 1
    assert "several sessions of one machine" in capsys.readouterr().out


def test_history_of_stored_runs_tells_the_noise_between_sessions(capsys: Captured) -> None:
    for at in range(6):
        stored(f"a{at}", 1 + 0.01 * (at % 2), seed=at)
    stored("one", seed=20), stored("two", 1.15, seed=21)
    (RUNS / "a9.json").write_text("{broken")
    assert cli.main(["compare", "one", "two"]) == 1
    assert "slower!" in capsys.readouterr().out


def test_thresholds_come_from_flags_and_from_the_project(capsys: Captured) -> None:
    stored("one"), stored("two", 1.4, seed=2)
    assert cli.main(["compare", "one", "two", "--threshold", "median:60%"]) == 0
    Path("pyproject.toml").write_text('[tool.capybench]\nthreshold = ["median:60%", "allocs:0"]\n')
    assert cli.main(["compare", "one", "two"]) == 0
    assert "allocs:0" in capsys.readouterr().out
    Path("pyproject.toml").write_text('[tool.capybench]\nmargin = "50%"\nfail-on = ["suspect"]\n')
    assert cli.main(["compare", "one", "two"]) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["one"], "compare takes two runs, base and head, here is 1"),
        ([], "here are 0"),
        (["one", "one"], "one and the same run"),
        (["one", "two", "--blocks", "3"], "compare measures only with --variant: leave --blocks"),
        (["one", "two", "--threshold", "median"], "cannot read the threshold 'median'"),
        (["one", "two", "--margin", "3"], "--margin is '3', but should be a share"),
        (["one", "two", "--fail-on", "slower"], "--fail-on takes suspect, new"),
        (["one", "two", "--format", "csv"], "printed as table, markdown, json, not csv"),
        (["one", "two", "--json", "-", "--format", "table"], "leave --format out"),
        (["one", "two", "--correction", "x"], "unknown correction"),
        (["one", "two", "--correction", "holm"], "needs paired sides"),
        (["one", "two", "--sessions", "2"], "leaves nothing to compare"),
        (["one", "elsewhere"], "times of different machines cannot be compared (cpu"),
        (["one", "two", "--variant", "base=x", "--against", "y"], "--variant measures both sides"),
        (["--variant", "base"], "--variant takes NAME=WHAT"),
        (["--variant", "base=x"], "two variants are compared, here is 1"),
        (["--variant", "a=x", "--variant", "a=y"], "named twice"),
        (["--variant", "control=x", "--variant", "b=y"], "name of the negative control"),
        (["--variant", "base=nowhere", "--variant", "head=installed"], "does not exist"),
    ],
)
def test_wrong_usage_of_compare(arguments: list[str], says: str, capsys: Captured) -> None:
    stored("one"), stored("two", seed=2)
    other = document(cell(A, noisy(200, 20)))
    other["machine"]["fingerprint"]["cpu"] = "Other CPU"
    store("elsewhere", other)
    assert cli.main(["compare", *arguments]) == 2
    assert says in errors(capsys)


def test_portable_thresholds_hold_between_machines(capsys: Captured) -> None:
    stored("one")
    other = document(cell(A, noisy(900, 20)), cell(B, noisy(900, 20)), blocks=20)
    other["machine"]["fingerprint"]["cpu"] = "Other CPU"
    store("elsewhere", other)
    flags = ["--threshold", "allocs:0", "--threshold", f"ratio({A}, {B})<1.3"]
    assert cli.main(["compare", "one", "elsewhere", *flags]) == 0
    out = capsys.readouterr().out
    assert "counts and ratios only" in out and "the machines differ" in out
    assert cli.main(["compare", "one", "elsewhere", "--threshold", f"ratio({A}, {B})<0.5"]) == 1
    assert cli.main(["compare", "one", "elsewhere", *flags, "--threshold", "median:5%"]) == 2


# ---- check, two builds ---------------------------------------------------------------------------


def test_check_of_a_slower_build_fails_and_is_confirmed(
    builds: list[str], capsys: Captured
) -> None:
    assert cli.main(["check", *builds, *CELLS, "--blocks", "6", "--seed", "4"]) == 1
    captured = capsys.readouterr()
    said = captured.err.splitlines()
    assert said[0].startswith("capybench: 2 cells and 2 of them") and "6 blocks" in said[0]
    assert "about" in said[0]
    assert "shows changes from" in said[1] and "fails from" in said[1]
    assert "confirmed in fresh blocks" in captured.out
    assert "1 flagged and measured again in fresh blocks, 1 confirmed" in captured.out
    assert said[-1].startswith("capybench: fails: fake/good/1@a: slower, ×1.200")
    runs = [RunResult.from_dict(json.loads(path.read_text())) for path in RUNS.glob("*.json")]
    assert sorted(len(run.cells) for run in runs) == [1, 2]
    assert len({run.seed for run in runs}) == 2


def test_check_of_a_build_against_itself_passes(
    fake: Fake, tmp_path: Path, capsys: Captured
) -> None:
    base = build(tmp_path / "old")
    flags = ["--variant", f"base={base}", "--variant", f"head={base}", "--blocks", "6"]
    assert cli.main(["check", *flags, *CELLS, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in data["rows"]} == {"within noise"}
    assert sum(row["control"] for row in data["rows"]) == 2
    assert data["noise_floor"] is not None and data["kind"] == "variants"


def test_check_without_confirmation_or_control(builds: list[str], capsys: Captured) -> None:
    flags = [*CELLS, "--blocks", "6", "--no-confirm", "--no-control"]
    assert cli.main(["check", *builds, *flags, "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["noise_floor"] is None and len(data["rows"]) == 2
    assert len(list(RUNS.glob("*.json"))) == 1


def test_check_with_too_few_blocks_is_refused_before_it_measures(
    builds: list[str], fake: Fake, capsys: Captured
) -> None:
    assert cli.main(["check", *builds, *CELLS, "--blocks", "5"]) == 2
    assert "5 blocks cannot decide anything: a gate needs at least 6 blocks" in errors(capsys)
    assert not RUNS.exists()
    assert cli.main(["check", *builds, *CELLS, "--budget", "2s"]) == 2
    assert "of 20 blocks: a gate needs at least 6" in errors(capsys)


def test_check_says_what_it_would_do(builds: list[str], capsys: Captured) -> None:
    assert cli.main(["check", *builds, *CELLS, "--dry-run", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "20 blocks" in out and "shows changes from" in out and "base, control, head" in out
    assert "in control" not in out
    assert not RUNS.exists()


def test_compare_of_two_builds_measures_them(builds: list[str], capsys: Captured) -> None:
    assert cli.main(["compare", *builds, "fake/good/1@a", "--blocks", "6"]) == 1
    out = capsys.readouterr().out
    assert "interleaved in one run" in out and "again in fresh blocks" not in out


def test_a_cell_that_head_lacks_is_gone(fake: Fake, tmp_path: Path, capsys: Captured) -> None:
    base = build(tmp_path / "old")
    head = build(tmp_path / "new", ('    ("good/2", "a", "good", {}),\n', ""))
    flags = [*CELLS, "--blocks", "6"]
    there = ["--variant", f"base={base}", "--variant", f"head={head}"]
    assert cli.main(["check", *there, *flags]) == 1
    assert "fails: fake/good/2@a: gone, this build has no such cell" in capsys.readouterr().err


def test_a_base_too_old_says_which_versions_meet(
    fake: Fake, tmp_path: Path, capsys: Captured
) -> None:
    base = Path(build(tmp_path / "old"))
    worker = base / "capybench" / "worker.py"
    text = worker.read_text()
    assert "\nPROTOCOL = 2\n" in text
    worker.write_text(text.replace("\nPROTOCOL = 2\n", "\nPROTOCOL = 1\n"))
    flags = ["--variant", f"base={base}", "--variant", "head=installed", *CELLS]
    assert cli.main(["check", *flags]) == 3
    line = errors(capsys)
    assert "protocol 1" in line and "protocol 2" in line


def test_counts_of_two_builds_are_a_gate(fake: Fake, tmp_path: Path, capsys: Captured) -> None:
    base = build(tmp_path / "old")
    head = build(tmp_path / "new", ('"mutex_pairs": 3', '"mutex_pairs": 4'))
    flags = ["--variant", f"base={base}", "--variant", f"head={head}", CELLS[0], "--blocks", "6"]
    assert cli.main(["check", *flags, "--threshold", "mutex_pairs:0"]) == 1
    assert "mutex_pairs:0 exceeded, was 3.000, now 4.000" in capsys.readouterr().err


# ---- check, stored baseline and alone ------------------------------------------------------------


@pytest.fixture
def listing(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Fake:
    found = fake.listing()
    monkeypatch.setattr(cases, "list_cells", lambda **_: found)
    return fake


def fake_run(name: str, ns: int, *cells: str) -> str:
    made = [cell(one, [[ns * 1000 + at] * 3 for at in range(20)]) for one in cells]
    return store(name, document(*made, blocks=20, quick=False), here=True)


def test_check_against_a_stored_run(listing: Fake, capsys: Captured) -> None:
    fake_run("base", 100, "fake/good/1@a", "fake/good/2@a", "fake/good/9@a")
    assert cli.main(["check", "--against", "base", "--blocks", "6", "--format", "json"]) == 1
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    verdicts = {row["id"]: row["verdict"] for row in data["rows"]}
    assert verdicts == {
        "fake/good/1@a": "within noise",
        "fake/good/2@a": "within noise",
        "fake/good/9@a": "gone",
    }
    assert "sessions may lie 25.0 % apart: fails from" in captured.err


def test_check_against_a_stored_run_confirms_or_suspects(listing: Fake, capsys: Captured) -> None:
    fake_run("fast", 50, "fake/good/1@a", "fake/good/2@a")
    assert cli.main(["check", "--against", "fast", "--blocks", "6"]) == 1
    assert "2 flagged and measured again in fresh blocks, 2 confirmed" in capsys.readouterr().out
    fake_run("little", 90, "fake/good/1@a")
    assert cli.main(["check", "--against", "little", "--blocks", "6", "--fail-on", "suspect"]) == 1
    assert "1 suspect" in capsys.readouterr().out


def test_check_against_another_machine_is_refused_before_it_measures(
    listing: Fake, capsys: Captured
) -> None:
    fake_run("base", 100, "fake/good/1@a")
    data = json.loads((RUNS / "base.json").read_text())
    data["machine"]["fingerprint"]["cpu"] = "Other CPU"
    store("elsewhere", data)
    assert cli.main(["check", "--against", "elsewhere", "--blocks", "6"]) == 2
    assert "times of different machines" in errors(capsys)
    flags = ["--against", "elsewhere", "--blocks", "6", "--threshold", "allocs:0"]
    assert cli.main(["check", *flags]) in (0, 1)
    assert "counts and ratios only" in capsys.readouterr().out


def test_check_of_limits_and_ratios_needs_no_baseline(listing: Fake, capsys: Captured) -> None:
    flags = ["--blocks", "6", "--threshold", "ratio(fake/good/1@a, fake/good/2@a)<1.3"]
    flags += ["--threshold", "ratio(fake/good/1@a, fake/good/2@a)<0.9"]
    assert cli.main(["check", *flags]) == 1
    out = capsys.readouterr().out
    assert "1 thresholds ok, 1 thresholds exceeded" in out and "limits and ratios of one run" in out
    assert cli.main(["check", *flags, "--dry-run"]) == 0


def test_check_without_any_baseline_says_how(capsys: Captured) -> None:
    assert cli.main(["check", "good"]) == 2
    assert "there is no baseline: give --variant base=WHAT" in errors(capsys)
    assert cli.main(["check", "--against", "x", "--variant", "a=b"]) == 2
    assert "two baselines" in errors(capsys)


# ---- the parts -----------------------------------------------------------------------------------


def test_which_variant_is_the_base() -> None:
    assert gate.base_and_head(["base", "head"]) == ("base", "head")
    assert gate.base_and_head(["head", "base"]) == ("base", "head")
    assert gate.base_and_head(["head", "other"]) == ("other", "head")
    assert gate.base_and_head(["old", "new"]) == ("old", "new")
    with pytest.raises(UsageError, match="here are 3"):
        gate.base_and_head(["a", "b", "c"])


def test_control_cells_are_baselines_spread_over_the_cases(fake: Fake) -> None:
    found = cases.group(fake.listing().cells)
    ids = gate.control_cells(found, limit=2)
    assert len(ids) == 2 and ids[0].startswith(found[0].id) and ids[1].startswith(found[-1].id)
    assert len(gate.control_cells(found, limit=99)) == len(found)


def test_the_rule_of_a_run_looks_at_probes_alone() -> None:
    steady = {"pace_ns": [600, 600, 601], "samples_ns": [1, 2]}
    assert not sides.measure_again([steady, {**steady, "samples_ns": [1000, 2]}])
    assert sides.measure_again([steady, {"pace_ns": [800, 800, 801], "samples_ns": [1, 2]}])
    assert sides.measure_again([{"pace_ns": [600, 800, 600], "samples_ns": [1, 2]}, steady])
    assert not sides.measure_again([steady, {"pace_ns": None, "samples_ns": [1, 2]}])


def test_expected_spread_is_learned_from_the_last_run_of_two_variants() -> None:
    rng = synthetic.np.random.default_rng(1)
    costs = 200 * synthetic.np.exp(0.05 * rng.normal(size=(40, 2)))
    run = RunResult.from_dict(interleaved({A: costs}))
    spread, source = gate.expected_spread([run, RunResult.from_dict(document(cell()))])
    assert spread == pytest.approx(0.05 * 2**0.5, rel=0.3) and "as in run" in source
    assert gate.expected_spread()[0] == gate.ASSUMED_SPREAD


def test_flagged_are_rows_that_fail_and_both_cells_of_a_ratio() -> None:
    fails = judge.Check("ratio(a/b@c, a/b@d)<1", "a/b@c / a/b@d", "exceeded", timed=True)
    counts = judge.Check("allocs:0", "e/f@g", "exceeded", 0, 1)
    found = judge.Comparison("variants", "b", "h", (), 0.03, checks=(fails, counts))
    assert gate.flagged(found) == ("a/b@c", "a/b@d")


def test_a_ratio_that_fails_is_judged_again_by_the_new_data() -> None:
    def check(verdict: str, timed: bool = True) -> judge.Check:
        return judge.Check("ratio(a/b@c, a/b@d)<1", "a/b@c / a/b@d", verdict, timed=timed)

    first = judge.Comparison("variants", "b", "h", (), 0.03, checks=(check("exceeded"),))
    again = judge.Comparison("variants", "b", "h", (), 0.03, checks=(check("ok"),))
    found = judge.confirm(first, again)
    assert [c.verdict for c in found.checks] == ["ok"] and found.exit_code() == 0
    assert "1 flagged and measured again in fresh blocks, 0 confirmed" in found.notes


def test_examples_of_the_documentation_can_be_read() -> None:
    page = (PACKAGE.parent / "docs" / "judgement.md").read_text()
    specs = [line.split("`")[1] for line in page.splitlines() if line.startswith("- `")]
    assert len(specs) >= 5
    for spec in specs:
        assert parse(spec)
    assert str(stats.MIN_BLOCKS) in page
