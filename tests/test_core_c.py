"""The C tests, which need no Python, under each sanitizer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support import ROOT


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("variant", ["", "LEDGER=1", "SAN=address,undefined", "SAN=thread"])
def test_c_tests(variant: str, tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "-C", str(ROOT / "csrc"), "-j2", "check", "WERROR=1", f"BUILD={tmp_path}"]
    done = subprocess.run([*command, *filter(None, [variant])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_cpbrun(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    subprocess.run(["make", "-C", str(ROOT / "csrc"), "-j2", f"BUILD={tmp_path}"], check=True)

    def cpbrun(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([tmp_path / "cpbrun", *words], capture_output=True, text=True)

    assert "coroutine/run_async/depth1@task" in cpbrun("list").stdout
    good = cpbrun("run", "noop/op@core", "--ops", "1000", "--samples", "2")
    assert good.returncode == 0
    assert good.stdout.count("ops 1000") == 2
    assert good.stdout.endswith("verified\n")
    for words in (
        ("run", "noop/op@nobody"),
        ("run", "noop/op@core", "--ops", "x"),
        (),
        ("list", "x"),
    ):
        assert cpbrun(*words).returncode == 2
        assert cpbrun(*words).stderr
