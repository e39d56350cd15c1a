"""The magic in a real IPython: results, progress, interrupts, and sentences for errors."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import synthetic

from capybench import cli, magic
from capybench.results import RunResult

pytest.importorskip("IPython", reason="IPython is not installed")


class Shown:
    """What a cell displayed, by display id, in order."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, Any]] = []
        self.updates: list[dict[str, Any]] = []


@pytest.fixture(scope="module")
def one_shell(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An IPython of these tests; it ends with the process, as IPython wants it."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    settings = Config()
    settings.HistoryManager.enabled = False
    settings.ProfileDir.location = str(tmp_path_factory.mktemp("ipython"))
    made = InteractiveShell.instance(config=settings)
    made.run_line_magic("load_ext", "capybench")
    return made


@pytest.fixture
def shell(one_shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return one_shell


@pytest.fixture
def shown(shell: Any, monkeypatch: pytest.MonkeyPatch) -> Shown:
    record = Shown()

    def publish(data: dict[str, Any], *_args: Any, **how: Any) -> None:
        (record.updates if how.get("update") else record.outputs).append(data)

    monkeypatch.setattr(shell.display_pub, "publish", publish)
    return record


def test_run_answers_the_result_and_shows_progress(shell: Any, shown: Shown) -> None:
    result = shell.run_line_magic(
        "capybench",
        "run --quick --no-plugins --blocks 1 --samples 1 'coroutine/run_async/depth1@*'",
    )
    assert isinstance(result, RunResult)
    assert [cell.status for cell in result.cells] == ["ok", "ok"]
    assert Path(result.run["path"]).is_file()
    (first,) = shown.outputs
    assert '<progress value="0" max="' in first["text/html"]
    # Nothing of the bar stays; the last worker was shown before.
    assert shown.updates[-1] == {"text/plain": "", "text/html": ""}
    assert "coroutine/run_async/depth1@" in shown.updates[-2]["text/plain"]


def test_a_result_shows_itself(shell: Any) -> None:
    result = RunResult.from_dict(synthetic.suites(8))
    data, _ = shell.display_formatter.format(result)
    text = data["text/html"]
    assert "<table>" in text and "chain66" in text and "ratio interval" in text
    html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed")
    html5lib.HTMLParser().parseFragment(text)
    hostile = RunResult.from_dict(synthetic.document(synthetic.cell("<b>/</td>@<i>")))
    shown, _ = shell.display_formatter.format(hostile)
    assert "<b>" not in shown["text/html"] and "&lt;b&gt;" in shown["text/html"]


def test_a_drawing_shows_itself_without_pyplot(shell: Any) -> None:
    pytest.importorskip("matplotlib", reason="the extra capybench[plot] is not installed")
    figure = RunResult.from_dict(synthetic.suites(8)).plot("bars", only="frame_alloc")
    data, _ = shell.display_formatter.format(figure)
    assert data["image/png"].startswith(b"\x89PNG")
    assert len(data["image/png"]) < 40_000


def test_errors_are_one_line(shell: Any, shown: Shown) -> None:
    from IPython.core.error import UsageError

    for line, says in (
        ("run nothing/at/all", "no cell matches 'nothing/at/all'"),
        ("run --blocks many", "--blocks is 'many'"),
        ("run 'unclosed", "cannot read the line"),
        ("run --sort name", "--sort belongs to the command line"),
        ("run --json -", "name a file"),
        ("show never", "exit code 2"),
    ):
        with pytest.raises(UsageError, match=says):
            shell.run_line_magic("capybench", line)
    assert shown.outputs == []


def test_other_commands_print(
    shell: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    RunResult.from_dict(synthetic.suites(8)).save(tmp_path / "run.json")
    assert shell.run_line_magic("capybench", "show run.json") is None
    assert "chain66" in capsys.readouterr().out
    assert shell.run_line_magic("capybench", "run --list coroutine") is None
    assert "coroutine/strand/depth1" in capsys.readouterr().out
    assert shell.run_line_magic("capybench", "") is None
    assert "COMMAND" in capsys.readouterr().out


def test_interrupt_keeps_what_is_finished(tmp_path: Path) -> None:
    # A process of its own: the signal must reach a main thread that runs IPython, as a kernel does.
    program = textwrap.dedent(
        """
        import os, signal, sys
        from IPython.core.interactiveshell import InteractiveShell
        from capybench import magic

        class Interrupting(magic.CellProgress):
            def worker_done(self, step, status, done, total, remaining_s):
                super().worker_done(step, status, done, total, remaining_s)
                if done == 3:
                    os.kill(os.getpid(), signal.SIGINT)

        magic.CellProgress = Interrupting
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "capybench")
        result = shell.run_line_magic(
            "capybench", "run --quick --blocks 2 --samples 1 primitives --json kept.json"
        )
        done = sum(cell.summary.n for cell in result.cells)
        print(result.interrupted, done, "INCOMPLETE" in result._repr_html_())
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(magic.__file__).parents[1]),
             "IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert signal.SIGINT and done.stdout.split("\n")[-2].split() == ["True", "3", "True"], done
    assert "kept what is finished in" in done.stderr
    assert cli.main(["show", str(tmp_path / "kept.json")]) == 0
