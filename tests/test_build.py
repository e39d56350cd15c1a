"""Every way to install: wheel, sdist, editable; and that a parallel build mixes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from support import ROOT

import capybench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LEFT_OUT = shutil.ignore_patterns(
    ".git", "build", "dist", "*.so", "*.egg-info", ".venv", "__pycache__", ".capybench", ".*_cache"
)


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree") / "capybench"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    return copy


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, so that both are proved."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(out), str(tree))
    assert len(list(out.glob("capybench-*.tar.gz"))) == 1
    return next(out.glob("*.whl"))


def environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


FACTS = """
import json, pathlib, capybench
from capybench import _core, _ledger
print(json.dumps([capybench.get_include(), _core.counting, _ledger.counting, capybench.__version__,
                  (pathlib.Path(capybench.get_include()) / "capybench.h").is_file()]))
"""


def test_wheel(wheel: Path, tmp_path: Path) -> None:
    assert "-cp311-abi3-linux_" in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    for wanted in (
        "include/capybench.h",
        "_core.pyi",
        "_ledger.pyi",
        "py.typed",
        "schema/capybench-1.schema.json",
        "styles/capy.py",
        "_core.abi3.so",
        "_ledger.abi3.so",
    ):
        assert f"capybench/{wanted}" in names
    assert not [name for name in names if name.startswith(("tests/", "csrc/"))]
    python = environment(tmp_path / "env")
    before = sorted(p.name for p in (tmp_path / "env").rglob("site-packages/*"))
    run(str(python), "-m", "pip", "install", "--no-deps", str(wheel))
    include, core_counts, ledger_counts, version, exists = json.loads(
        run(str(python), "-c", FACTS, cwd=tmp_path)
    )
    assert (core_counts, ledger_counts, exists) == (False, True, True)
    assert Path(include).is_relative_to(tmp_path / "env")
    assert version == capybench.__version__
    run(str(python), "-m", "pip", "uninstall", "-y", "capybench")
    assert sorted(p.name for p in (tmp_path / "env").rglob("site-packages/*")) == before


def test_editable(tree: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    run(str(python), "-m", "pip", "install", "--no-deps", "-e", str(tree))
    include, core_counts, ledger_counts, _, exists = json.loads(
        run(str(python), "-c", FACTS, cwd=tmp_path)
    )
    assert (core_counts, ledger_counts, exists) == (False, True, True)
    assert Path(include) == tree / "csrc" / "include"
    run(str(python), "-m", "pip", "uninstall", "-y", "capybench")
    assert not list((tmp_path / "env").rglob("site-packages/*capybench*"))


def test_a_parallel_build_does_not_mix_the_modules(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy, ignore=LEFT_OUT)
    python = environment(tmp_path / "env")
    run(str(python), "-m", "pip", "install", "setuptools>=77", "wheel")
    done = subprocess.run(
        [str(python), "setup.py", "build_ext", "--inplace", "-j4"],
        cwd=copy,
        capture_output=True,
        text=True,
        env={**os.environ, "CAPYBENCH_WERROR": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "warning: " not in done.stderr
    counts = """
import json
from capybench import _core, _ledger
run = _ledger.Run("frame_alloc/chain66@malloc")
print(json.dumps([
    _core.counting, _core.build()["counting"], _ledger.counting, _ledger.build()["counting"],
    run.ledger(2)["heap_allocs"], _core.Run("noop/op@core").counters(),
]))
"""
    assert json.loads(run(str(python), "-c", counts, cwd=copy)) == [
        False,
        "no",
        True,
        "yes",
        66,
        {},
    ]


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ("sys.platform = 'darwin'", "Linux only"),
        ("platform.libc_ver = lambda: ('', '')", "glibc"),
        ("platform.libc_ver = lambda: ('glibc', '2.31')", "2.32 or newer"),
    ],
)
def test_an_unsupported_system_gets_one_sentence(tree: Path, patch: str, sentence: str) -> None:
    code = (
        # setuptools itself must be loaded before the system is made to look like another one.
        "import sys, platform, setuptools.command.build_ext, setuptools.command.build_py; "
        f"{patch}; sys.argv = ['setup.py', '--name']; __file__ = 'setup.py'; "
        "exec(open(__file__).read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.strip().count("\n") == 0
