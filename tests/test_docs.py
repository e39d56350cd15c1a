"""The documentation says what is so: its commands, its list of suites, its words."""

from __future__ import annotations

import re
import subprocess
import sys

from support import ROOT

from capybench import _core

README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    return re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)


def test_two_commands_and_ci_runs_the_second_one() -> None:
    first, second = commands()
    assert first.endswith("capybench run --quick")
    assert "pytest" in second
    assert second in (ROOT / ".ci" / "run").read_text()


def test_every_suite_has_a_page() -> None:
    for suite in _core.suites():
        page = ROOT / "docs" / f"{suite['name']}.md"
        assert page.exists(), page
        text = page.read_text()
        assert f"docs/{page.name}" in README
        for cell in _core.cases():
            if cell["suite"] == suite["name"]:
                assert f"`{cell['contender']}`" in text, cell["id"]


def test_paths_named_in_the_readme_exist() -> None:
    paths = re.findall(r"`((?:csrc|capybench|tests|docs)/[\w./]*\w\.?[ch]?(?:py)?/?)`", README)
    assert len(paths) > 10  # "capybench/1" is the schema, not a path
    for path in set(paths) - {"capybench/1"}:
        assert (ROOT / path).exists(), path


def test_examples_of_the_help_run() -> None:
    for words in (["--help"], ["run", "--help"], ["list", "--help"], ["show", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "capybench", *words], capture_output=True, text=True, check=True
        )
        assert "example" in done.stdout.lower()
