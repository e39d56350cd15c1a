"""The command as its users meet it: exit codes, streams, sentences; it measures a fake core."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import synthetic
from conftest import PACKAGE, Fake, wait_until

from capybench import cases, cli, runner, settings
from capybench.errors import SaveError, UsageError
from capybench.results import RunResult

RUNS = Path(".capybench/runs")
QUICK = ("--blocks", "2", "--samples", "3", "--seed", "5")


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CAPYBENCH_")]:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def core(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The command, talking to the fake core with samples of a few ns."""
    listing = fake.listing()
    monkeypatch.setattr(cases, "list_cells", lambda: listing)
    monkeypatch.setattr("capybench.plan.QUICK_TARGET_NS", 1000)
    monkeypatch.setattr("capybench.plan.TARGET_NS", 1000)
    return fake


Captured = pytest.CaptureFixture[str]


def sentence(capsys: Captured) -> str:
    """The one line on stderr."""
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("capybench: ")
    return line


def store(name: str, document: dict[str, Any]) -> Path:
    path = RUNS / f"{name}.json"
    RunResult.from_dict(document).save(path)
    return path


def labels(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.strip()]


# ---- help, version, usage ------------------------------------------------------------------------


@pytest.mark.parametrize("command", [command.name for command in cli.COMMANDS])
def test_every_command_has_help_with_an_example(command: str, capsys: Captured) -> None:
    assert cli.main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"example:\n  capybench {command}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_examples_of_help_are_commands_that_parse() -> None:
    for command in cli.COMMANDS:
        words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command.example)]
        assert words[0] == "capybench"
        assert cli._parser().parse_args(words[1:]).command == command.name


def test_help_and_version_load_neither_numpy_nor_rich() -> None:
    code = (
        "import sys; from capybench import cli; code = cli.main(sys.argv[1:])\n"
        "assert code == 0, code\n"
        "bad = {'numpy', 'rich', 'json', 'subprocess', 'capybench.results'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    for arguments in (["--help"], ["--version"], ["run", "--help"]):
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        )


def test_version(capsys: Captured) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("capybench 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["dance"], "invalid choice: 'dance'"),
        (["run", "--bloks", "3"], "unrecognized arguments: --bloks"),
        (["run", "--blocks"], "expected one argument"),
        (["run", "--blocks", "0"], "--blocks is '0', but should be an integer of at least 1"),
        (["run", "--seed", "-1.5"], "should be an integer of at least 0"),
        (["run", "--pin", "x"], "--pin is 'x', but should be a CPU number, none or auto"),
        (["run", "--budget", "soon"], "should be a time such as 90s, 5m or 1h30m"),
        (["run", "--format", "xml"], "should be one of table, markdown, json, csv"),
        (["run", "--style", "baroque"], "unknown style 'baroque'; known: capy"),
        (["run", "--unit", "parsec"], "unknown unit 'parsec'"),
        (["run", "--sort", "mood"], "unknown order 'mood'; known: listed"),
        (["run", "--columns", ","], "should be names with commas between them"),
        (["run", "--json", "-", "--format", "csv"], "leave --format out"),
        (["run", "--resume", "x.json", "--blocks", "3"], "leave --blocks out"),
        (["run", "--resume", "x.json", "noop"], "leave noop out"),
        (["run", "--resume", "missing.json"], "missing.json does not exist"),
        (["show", "missing"], "no run 'missing'"),
        (["show"], "no run in .capybench/runs yet: measure one with `capybench run`"),
        (["list", "--format", "csv"], "invalid choice"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(
    arguments: list[str], message: str, capsys: Captured
) -> None:
    assert cli.main(arguments) == 2
    assert message in sentence(capsys)


# ---- run -----------------------------------------------------------------------------------------


def test_run_prints_the_table_and_keeps_the_file(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/good", "fake/gone", *QUICK]) == 0
    captured = capsys.readouterr()
    assert labels(captured.out)[-13:-3] == [
        "a", "c", "good/2", "a", "jemalloc", "good/10", "a", "gone", "a", "spread:",
    ]  # fmt: skip
    assert "unavailable: no such device here" in captured.out
    (path,) = RUNS.glob("*.json")
    assert captured.err == f"capybench: saved {path}\n"
    document = json.loads(path.read_text())
    assert document["cells"][0]["summary"]["n"] == 2
    assert document["run"]["command"] == ["capybench", "run", "fake/good", "fake/gone", *QUICK]
    # The stored run shows the same table.
    assert cli.main(["show"]) == 0
    assert capsys.readouterr().out == captured.out


def test_quick_without_a_pattern_runs_the_marked_cases(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "--quick", "--json", "q.json"]) == 0
    document = json.loads(Path("q.json").read_text())
    assert {cell["case"] for cell in document["cells"]} == {"good/1"}
    assert {len(cell["processes"]) for cell in document["cells"]} == {3}
    assert not RUNS.exists()
    assert "range of 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("case", "word"),
    [
        ("raises", "failed"),
        ("verify", "failed"),
        ("segv", "crashed"),
        ("killed", "crashed"),
        ("threads", "invalid"),
    ],
)
def test_a_cell_without_a_number_is_shown_and_ends_with_1(
    case: str, word: str, core: Fake, capsys: Captured
) -> None:
    assert cli.main(["run", f"fake/{case}@a", "fake/good/1@a", *QUICK]) == 1
    out = capsys.readouterr().out
    assert re.search(rf"^ *{case} +{word}: |^ *a +{word}: ", out, re.M)
    (path,) = RUNS.glob("*.json")
    good = RunResult.from_dict(json.loads(path.read_text())).cell("fake/good/1@a")
    assert good.summary.n == 2


def test_a_clock_that_stands_still_is_a_fault_of_the_environment(
    core: Fake, capsys: Captured
) -> None:
    assert cli.main(["run", "fake/clock_still", *QUICK]) == 3
    assert "clock of this machine did not advance" in capsys.readouterr().err


def test_a_glob_that_matches_nothing_names_the_nearest(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/gud/1", *QUICK]) == 2
    line = sentence(capsys)
    assert "'fake/gud/1'" in line
    assert "fake/good/1" in line
    assert not RUNS.exists()


def test_nothing_that_can_run_is_code_5(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/gone"]) == 5
    assert sentence(capsys) == (
        "capybench: nothing selected can run here: fake/gone@a: no such device here"
    )


def test_unknown_baseline_names_those_present(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/good/1", "--baseline", "z", *QUICK]) == 2
    line = sentence(capsys)
    assert "'z'" in line
    assert "a, b, c" in line
    assert core.log() == []


def test_chosen_baseline_is_compared_with(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/good/1", "--baseline", "c", *QUICK]) == 0
    assert re.search(r"^  c .* baseline", capsys.readouterr().out, re.M)


@pytest.mark.parametrize("target", ["/proc/nowhere/x.json", ".", "file/x.json"])
def test_an_unwritable_path_is_found_before_measuring(
    target: str, core: Fake, capsys: Captured
) -> None:
    Path("file").write_text("")
    assert cli.main(["run", "fake/good/1", "--json", target, *QUICK]) == 3
    assert target.partition("/x")[0] in sentence(capsys)
    assert core.log() == []


def test_results_are_printed_even_if_they_cannot_be_saved(
    core: Fake, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(document: dict[str, Any], target: Path) -> None:
        raise SaveError(f"cannot write {target}: No space left on device", document)

    monkeypatch.setattr(runner, "save_document", full)
    Path("r.json").write_text("old")
    assert cli.main(["run", "fake/good/1@a", "--json", "r.json", *QUICK]) == 3
    captured = capsys.readouterr()
    assert "good/1" in captured.out
    assert captured.err == "capybench: cannot write r.json: No space left on device\n"
    assert Path("r.json").read_text() == "old"


@pytest.mark.parametrize("flag", ["--list", "--dry-run"])
def test_the_plan_is_printed_and_nothing_measured(flag: str, core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/good/1", flag, "--blocks", "4"]) == 0
    captured = capsys.readouterr()
    assert "3 cells in 1 case, 4 blocks" in captured.out
    assert "about" in captured.out
    assert captured.err == ""
    assert core.log() == []
    assert not RUNS.exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--style", "capy"], "prints none of the selected suites, but coroutine, frame_alloc"),
        (["--unit", "MB/s"], "the cells are in ns/op"),
        (["--columns", "median,mood"], "unknown column 'mood'; known: median"),
    ],
)
def test_a_view_that_does_not_fit_is_found_before_measuring(
    flags: list[str], message: str, core: Fake, capsys: Captured
) -> None:
    assert cli.main(["run", "fake/good/1", *flags, *QUICK]) == 2
    assert message in sentence(capsys)
    assert core.log() == []


def test_a_budget_below_one_block_names_the_least(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/good", "--budget", "0.01s"]) == 2
    assert re.search(r"the least is \d+ s", sentence(capsys))


def test_json_on_stdout(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/good/1", "--json", "-", *QUICK]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["schema"] == "capybench/1"
    assert [cell["summary"]["n"] for cell in data["cells"]] == [2, 2, 2]
    assert captured.err.startswith("capybench: saved ")


def test_other_formats(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/good/1", "--format", "csv", *QUICK]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["contender"] for row in rows] == ["a", "b", "c"]
    assert cli.main(["show", "--format", "markdown"]) == 0
    assert "| case | contender | median |" in capsys.readouterr().out


def test_warnings_of_the_run_go_to_stderr(core: Fake, capsys: Captured) -> None:
    assert cli.main(["run", "fake/drift", *QUICK]) == 0
    captured = capsys.readouterr()
    assert "capybench: warning: fake/drift@a: never steady" in captured.err
    assert "never steady" not in captured.out


# ---- interrupt and resume ------------------------------------------------------------------------

DRIVER = """
import sys
sys.path.insert(0, {parent!r})
from capybench import cases, cli, plan
plan.TARGET_NS = plan.QUICK_TARGET_NS = 1000
listing = cases.list_cells(cases.Variant(sys.executable, {path!r}))
cases.list_cells = lambda: listing
sys.exit(cli.main(sys.argv[1:]))
"""


def spawn(fake: Fake, arguments: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    code = DRIVER.format(parent=str(PACKAGE.parent), path=fake.variant.path)
    return subprocess.Popen([sys.executable, "-c", code, *arguments], **options)


def test_ctrl_c_keeps_and_shows_what_is_finished_and_resume_finishes(
    fake: Fake, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = ["run", "fake/good/1", "fake/hang@a", "--json", "i.json", *QUICK]
    process = spawn(fake, command, **pipes)
    wait_until(lambda: "fake/hang@a" in fake.cells())
    before = len(fake.cells()) - 1
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "INCOMPLETE" in out.decode()
    assert err.decode() == "capybench: kept what is finished in i.json\n"
    kept = json.loads(Path("i.json").read_text())
    assert sum(len(cell["processes"]) for cell in kept["cells"]) == before

    monkeypatch.setenv("FAKE_WELL", "fake/hang@a")
    assert cli.main(["run", "--resume", "i.json"]) == 0
    assert "INCOMPLETE" not in capsys.readouterr().out
    whole = RunResult.from_dict(json.loads(Path("i.json").read_text()))
    assert whole.complete
    assert {cell.id: cell.summary.n for cell in whole.cells} == {
        "fake/good/1@a": 2, "fake/good/1@b": 2, "fake/good/1@c": 2, "fake/hang@a": 2,
    }  # fmt: skip


def test_a_killed_run_is_shown_from_its_journal(fake: Fake, capsys: Captured) -> None:
    process = spawn(fake, ["run", "fake/good/1", "fake/hang@a", *QUICK])
    wait_until(lambda: "fake/hang@a" in fake.cells())
    process.kill()
    process.wait()
    assert not list(RUNS.glob("*.json"))
    wait_until(lambda: cli.main(["show"]) == 0)
    assert "INCOMPLETE" in capsys.readouterr().out


# ---- show ----------------------------------------------------------------------------------------


def test_show_takes_the_newest_a_name_or_a_file(capsys: Captured) -> None:
    old = store("20260101T000000Z-9", synthetic.document(synthetic.cell("old/c@t")))
    store("20260201T000000Z-1", synthetic.document(synthetic.cell("new/c@t")))
    os.utime(old)
    for arguments, suite in (
        ([], "new"),
        (["20260101T000000Z-9"], "old"),
        (["20260101T000000Z-9.json"], "old"),
        ([str(old)], "old"),
    ):
        assert cli.main(["show", *arguments]) == 0
        assert f"\n{suite}: ns/op" in capsys.readouterr().out
    assert cli.main(["show", "20260101T000000Z-8"]) == 2
    assert "nearest: 20260101T000000Z-9" in sentence(capsys)


def test_a_broken_newest_run_is_told_never_passed_over(capsys: Captured) -> None:
    store("20260101T000000Z-9", synthetic.document(synthetic.cell()))
    newest = store("20260201T000000Z-1", synthetic.document(synthetic.cell()))
    newest.write_bytes(newest.read_bytes()[:300])
    assert cli.main(["show"]) == 2
    line = sentence(capsys)
    assert str(newest) in line
    assert re.search(r"truncated: the JSON breaks off at byte \d+ of 300", line)


def test_show_refuses_what_it_cannot_show(capsys: Captured) -> None:
    path = store("20260101T000000Z-9", synthetic.suites())
    for arguments, message in (
        (["--baseline", "z"], "present: callback, jemalloc"),
        (["--columns", "z"], "unknown column 'z'"),
        (["--unit", "MB/s"], "the cells are in ns/op"),
    ):
        assert cli.main(["show", *arguments]) == 2
        assert message in sentence(capsys)
    path.chmod(0)
    if not os.access(path, os.R_OK):
        assert cli.main(["show"]) == 2
        assert "Permission denied" in sentence(capsys)


def test_show_in_the_published_form(capsys: Captured) -> None:
    store("20260101T000000Z-9", synthetic.suites())
    assert cli.main(["show", "--style", "capy"]) == 0
    out = capsys.readouterr().out
    assert "ms for 2,000,000 passes" in out
    assert "169.1" in out
    assert cli.main(["show", "--style", "capy", "--format", "markdown"]) == 0
    assert "| switch/strand |" in capsys.readouterr().out


# ---- list ----------------------------------------------------------------------------------------


def test_list_as_json(core: Fake, capsys: Captured) -> None:
    assert cli.main(["list", "fake/g*", "--format", "json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["id"] for cell in cells if not cell["available"]] == ["fake/gone@a"]
    keys = "id suite case contender summary unit direction available reason"
    assert all(set(keys.split()) <= cell.keys() for cell in cells)
    assert cells[-1]["reason"] == "no such device here"


def test_list_as_table_with_a_hint_for_each_missing_companion(core: Fake, capsys: Captured) -> None:
    assert cli.main(["list", "fake/good", "fake/gone", "-k", "not jemalloc"]) == 0
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    assert "fake: cells for tests" in text
    assert re.search(r"fake/good/1@a +good \(quick\)", text)
    assert re.search(r"fake/gone@a +unavailable: no such device here", text)
    # jemalloc is there, mimalloc is not; what was selected does not matter.
    end = " ".join(lines[-4:])
    assert "mimalloc is missing: pip install 'capybench[mimalloc]'" in end
    assert "Boost.Cobalt are missing: pip install capybench-boost" in end
    assert "jemalloc is missing" not in text


def test_list_of_nothing(core: Fake, capsys: Captured) -> None:
    assert cli.main(["list", "zzz"]) == 2
    assert "'zzz'" in sentence(capsys)


# ---- settings ------------------------------------------------------------------------------------


def write_project(text: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.capybench]\n{text}\n")


def test_settings_come_from_project_then_environment_then_flags(
    core: Fake, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project('blocks = 4\nformat = "csv"\npin = "none"\nkeep-env = true')
    monkeypatch.setenv("CAPYBENCH_BLOCKS", "3")
    monkeypatch.setenv("CAPYBENCH_FORMAT", "markdown")
    assert cli.main(["run", "fake/good/1@a", "--format", "json", "--samples", "2"]) == 0
    run = json.loads(capsys.readouterr().out)["run"]
    assert (run["blocks"], run["samples"], run["pin"]) == (3, 2, None)
    monkeypatch.delenv("CAPYBENCH_BLOCKS")
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert cli.main(["run", "fake/good/1@a", "--list"]) == 0
    assert "4 blocks" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blocks = 0", "blocks in [tool.capybench] of"),
        ("bloks = 3", "unknown setting 'bloks'"),
        ("blocks = ", "cannot read settings from"),
        ("quick = 'perhaps'", "should be true or false"),
    ],
)
def test_wrong_settings_name_their_place(text: str, message: str, capsys: Captured) -> None:
    write_project(text)
    assert cli.main(["run"]) == 2
    assert message in sentence(capsys)


def test_wrong_variables_name_themselves(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPYBENCH_SEED", "x")
    assert cli.main(["run"]) == 2
    assert "CAPYBENCH_SEED is 'x'" in sentence(capsys)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5m", 300), ("90s", 90), ("90", 90), ("1h30m", 5400), ("2min", 120), ("0.5s", 0.5), (45, 45)],
)
def test_durations(text: object, seconds: float) -> None:
    assert settings.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-5s", "5x", "0s", True, None, 0])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="a time such as"):
        settings.duration(text)


def test_origins_of_settings_are_known(tmp_path: Path) -> None:
    found = settings.resolve({"seed": "3", "quick": None}, {"CAPYBENCH_QUICK": "1"}, tmp_path)
    assert (found.get("seed"), found.get("quick")) == (3, True)
    assert found.origins == {"seed": "--seed", "quick": "CAPYBENCH_QUICK"}
    with pytest.raises(UsageError, match="--columns is"):
        settings.resolve({"columns": " , "}, {}, tmp_path)


# ---- terminals and pipes -------------------------------------------------------------------------


def command(arguments: Sequence[str], **environ: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "TERM")}
    return subprocess.run(
        [sys.executable, "-m", "capybench", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**env, "PYTHONPATH": str(PACKAGE.parent), **environ},
    )


def test_colour_and_width_follow_the_environment() -> None:
    store("20260101T000000Z-9", synthetic.suites())
    plain = command(["show"]).stdout
    assert "\x1b" not in plain
    colour = command(["show"], FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert re.sub(r"\x1b\[[0-9;]*m", "", colour) == plain
    assert "\x1b[" in colour
    # Bold and dim are no colours; what NO_COLOR forbids are colour codes.
    no_colour = command(["show"], FORCE_COLOR="1", NO_COLOR="1", TERM="xterm").stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", no_colour)
    assert "\x1b[" not in command(["show"], TERM="dumb").stdout
    narrow = command(["show"], COLUMNS="60").stdout
    assert max(map(len, narrow.splitlines())) <= 60


def test_a_locale_without_unicode_is_no_error() -> None:
    store("20260101T000000Z-9", synthetic.suites())
    done = command(["show"], PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "-----" in done.stdout
    assert "\\u" not in done.stdout


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_a_reader_that_goes_away_is_no_error(form: str) -> None:
    cells = [synthetic.cell(f"s/case{number}@t") for number in range(1000)]
    store("20260101T000000Z-9", synthetic.document(*cells))
    process = subprocess.Popen(
        [sys.executable, "-m", "capybench", "show", "--format", form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_a_full_or_closed_stdout() -> None:
    store("20260101T000000Z-9", synthetic.suites())
    shell = f"{sys.executable} -m capybench show"
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    for redirection, code, message in (
        (">/dev/full", 3, "capybench: the system refused: No space left on device\n"),
        (">&-", 0, ""),
    ):
        done = subprocess.run(
            ["/bin/sh", "-c", f"{shell} {redirection}"],
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, message)


def test_a_progress_bar_only_on_a_terminal(fake: Fake) -> None:
    command = ["run", "fake/good/1", "--json", "p.json", *QUICK]
    for term, bar in (("xterm", True), ("dumb", False)):
        lead, follow = pty.openpty()
        env = {**os.environ, "TERM": term, "COLUMNS": "100"}
        process = spawn(fake, command, stdout=subprocess.PIPE, stderr=follow, env=env)
        os.close(follow)
        said = b""
        while True:
            try:
                piece = os.read(lead, 65536)
            except OSError:  # Linux: the other end is closed.
                break
            said += piece
        os.close(lead)
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert b"good/1" in out
        assert b"\x1b" not in out
        text = said.decode()
        assert ("left" in text) is bar
        assert ("fake/good/1@" in text) is bar
        assert "capybench: saved p.json" in text
