"""Notebooks: small and clean as they are stored; copies run from top to bottom. Outputs are never
compared: they are of the machine that made them."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import PACKAGE, ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NAMES = (
    "01_first_run",
    "02_compare_contenders",
    "03_network_latency",
    "04_noise_and_intervals",
    "05_regression_thresholds",
    "06_published_tables",
)

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def load(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def code(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]


def test_it_is_stored_run_small_and_clean(path: Path) -> None:
    assert path.stem in NAMES
    assert path.stat().st_size < 200_000
    cells = code(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert outputs
    assert not any(output["output_type"] == "error" for output in outputs)
    # Texts of outputs name no folder of whoever ran it.
    texts = json.dumps([o.get("text", o.get("data", {}).get("text/html")) for o in outputs])
    assert not re.search(r"/(home|root|tmp|work|Users)/", texts)
    assert load(path)["metadata"]["kernelspec"]["name"] == "python3"


def test_its_code_can_be_read(path: Path) -> None:
    for cell in code(path):
        source = "".join(cell["source"])
        # Magics are no Python.
        plain = re.sub(r"^(\w+ = )?%.*$", "pass", source, flags=re.MULTILINE)
        ast.parse(plain)
        assert max(map(len, source.splitlines())) <= 100


@pytest.mark.slow
def test_a_copy_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="the extra capybench[notebook] is not installed")
    pytest.importorskip("matplotlib", reason="the extra capybench[plot] is not installed")
    # A process of its own: a kernel's client brings warnings and threads along.
    program = (
        "import sys, nbformat\n"
        "from nbclient import NotebookClient\n"
        "notebook = nbformat.read(sys.argv[1], 4)\n"
        "where = {'metadata': {'path': sys.argv[2]}}\n"
        "NotebookClient(notebook, timeout=100, resources=where).execute()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        env={
            **os.environ,
            "CAPYBENCH_NOTEBOOK": "quick",
            "PYTHONPATH": str(PACKAGE.parent),
            "IPYTHONDIR": str(tmp_path / "ipython"),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
