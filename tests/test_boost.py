"""The distribution capybench-boost: what it exports, where its libraries are, what its cells do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, bare, output_of

FOLDER = ROOT / "csrc" / "plugins" / "boost"
needs_plugin = pytest.mark.skipif(
    find_spec("capybench_boost") is None,
    reason="capybench-boost is not installed: pip install ./csrc/plugins/boost",
)
CASES = {
    "channel/post": {"asio-awaitable", "asio-stackful", "cobalt"},
    "channel/parallel": {"asio-awaitable", "cobalt"},
    "channel/immediate": {"asio-awaitable", "asio-stackful", "cobalt"},
    "channel/channel": {"asio-awaitable", "asio-stackful", "cobalt"},
    "op_alloc/composed5": {"asio-std", "cobalt-monotonic", "cobalt-pmr_monotonic", "cobalt-sbo"},
    "coroutine/run_async/depth1": {"asio-awaitable", "asio-callback"},
    "coroutine/run_async/depth2": {"asio-awaitable"},
    "coroutine/run_async/depth3": {"asio-awaitable"},
    "coroutine/run_async/depth4": {"asio-awaitable"},
    "coroutine/strand/depth1": {"asio-awaitable", "asio-callback"},
    "coroutine/strand/depth4": {"asio-awaitable"},
    "coroutine/switch/executor": {"asio-awaitable"},
    "coroutine/switch/strand": {"asio-awaitable"},
}
IDS = sorted(f"{case}@{contender}" for case, all_of in CASES.items() for contender in all_of)

RUN_ALL = """
import json
from array import array
from capybench import _core
told = _core.load_plugin({path!r})
ns, flags = array("Q", [0]), array("Q", [0])
took = {{}}
for cell in told["cells"]:
    with _core.Run(cell["id"]) as run:
        for ops in (1, 2, 1000):
            run.measure(ops, ns, flags)
            run.verify()
        took[cell["id"]] = [ns[0], flags[0]]
print(json.dumps([told["name"], told["version"], told["counting"], told["cells"], took,
                  _core.single_threaded()]))
"""

COUNT_ALL = """
import json
from capybench import _ledger
cells = _ledger.load_plugin({path!r})["cells"]
out = {{}}
for cell in cells:
    with _ledger.Run(cell["id"]) as run:
        out[cell["id"]] = [run.ledger(200), cell["ledger"]]
        run.verify()
print(json.dumps(out))
"""

# The stack of a stackful coroutine is the first thing that does not fit any more.
NO_MEMORY = """
import json, resource
from array import array
from capybench import _core
_core.load_plugin({path!r})
ns, flags = array("Q", [0]), array("Q", [0])
with _core.Run("channel/post@asio-stackful") as run:
    pages = int(open("/proc/self/statm").read().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), limits[1]))
    try:
        run.measure(10, ns, flags)
        answer = "the stack fitted"
    except MemoryError:
        answer = "no memory"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    run.measure(10, ns, flags)
    run.verify()
print(json.dumps(answer))
"""


def objects() -> dict[str, Path]:
    import capybench_boost

    return {"measured": capybench_boost.plugin(), "counting": capybench_boost.counting()}


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    code = RUN_ALL.format(path=str(objects()["measured"]))
    keys = ("name", "version", "counting", "cells", "took", "single")
    return dict(zip(keys, json.loads(bare(code)), strict=True))


@pytest.fixture(scope="module")
def counted() -> dict[str, list[dict[str, Any]]]:
    out: dict[str, list[dict[str, Any]]] = json.loads(
        bare(COUNT_ALL.format(path=str(objects()["counting"])))
    )
    return out


@needs_plugin
def test_every_cell_does_its_work(seen: dict[str, Any]) -> None:
    assert (seen["name"], seen["counting"]) == ("boost", False)
    assert sorted(cell["id"] for cell in seen["cells"]) == IDS
    assert sorted(seen["took"]) == IDS
    for cell_id, (ns, flags) in seen["took"].items():
        assert ns > 0, cell_id
        assert flags & 3 == 3, f"{cell_id} was not single-threaded"
    assert seen["single"]


@needs_plugin
def test_a_summary_is_one_line_and_names_the_library(seen: dict[str, Any]) -> None:
    for cell in seen["cells"]:
        assert cell["unit"] == "ns/op"
        assert cell["thread_mode"] == "single"
        assert re.match(r"(Asio|Cobalt|std::pmr)'s ", cell["summary"]), cell["id"]
        assert len(cell["summary"]) <= 100


@needs_plugin
def test_version_says_boost_compiler_and_whose_cobalt(seen: dict[str, Any]) -> None:
    match = re.fullmatch(
        r"(\S+) \(Boost (\d+\.\d+\.\d+), "
        r"(libboost_cobalt|Cobalt's compiled part supplied by the plug-in), g\+\+ (\d\S*)[^)]*\)",
        seen["version"],
    )
    assert match, seen["version"]
    assert match[1] == distribution("capybench-boost").version
    needed = output_of("readelf", "-d", str(objects()["measured"]))
    assert "libboost_cobalt" not in needed  # where it is real, it is the archive
    assert f"libboost_context.so.{match[2]}" in needed
    try:
        package = distribution("cmeel-boost")
    except PackageNotFoundError:
        return
    if any("cmeel-boost" in one for one in distribution("capybench-boost").requires or ()):
        assert package.version.startswith(match[2])


@needs_plugin
@pytest.mark.parametrize("which", ["measured", "counting"])
def test_only_the_entry_is_exported(which: str) -> None:
    lines = output_of("nm", "-D", "--defined-only", str(objects()[which])).splitlines()
    assert [line.split()[-1] for line in lines if line.strip()] == ["capybench_plugin_v1"]


@needs_plugin
@pytest.mark.parametrize("which", ["measured", "counting"])
def test_libboost_context_is_found_relative_to_the_plugin(which: str) -> None:
    path = objects()[which]
    text = output_of("readelf", "-d", str(path))
    found = re.findall(r"\((RPATH|RUNPATH)\).*\[(.*)\]", text)
    if not any("cmeel-boost" in one for one in distribution("capybench-boost").requires or ()):
        pytest.skip("built with another Boost than that of cmeel-boost")
    assert len(found) == 1
    folder = found[0][1]
    assert folder.startswith("$ORIGIN/")
    assert str(path.parent) not in folder
    resolved = Path(folder.replace("$ORIGIN", str(path.parent)))
    assert list(resolved.glob("libboost_context.so.*"))


@needs_plugin
@pytest.mark.parametrize("which", ["measured", "counting"])
def test_thread_locals_are_few(which: str) -> None:
    """They are of the initial-exec model, as in a program, and that block is small."""
    segments = output_of("readelf", "-lW", str(objects()[which])).splitlines()
    sizes = [int(line.split()[5], 16) for line in segments if line.strip().startswith("TLS")]
    assert len(sizes) == 1
    assert 0 < sizes[0] <= 256


@needs_plugin
def test_promised_counts_are_exact(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert sorted(counted) == IDS
    promised = 0
    for cell_id, (ledger, expected) in counted.items():
        assert {"mutex_pairs", "posts"} <= set(expected), cell_id
        for key, value in expected.items():
            promised += 1
            assert ledger[key] == value, f"{cell_id}: {key}"
    assert promised > 60


@needs_plugin
def test_counts_of_the_operations_allocators(counted: dict[str, list[dict[str, Any]]]) -> None:
    ledgers = {key.partition("@")[2]: value[0] for key, value in counted.items() if "op_" in key}
    # Five arrays; the operations themselves come from Asio's cache.
    assert ledgers["asio-std"]["heap_allocs"] == 5
    assert ledgers["asio-std"]["heap_bytes"] > 512 + 4 * 256
    # Both monotonic buffers overflow in every operation, and give all back in the next handler.
    for row in ("cobalt-monotonic", "cobalt-pmr_monotonic"):
        assert ledgers[row]["heap_allocs"] >= 1, row
        assert ledgers[row]["heap_allocs"] == int(ledgers[row]["heap_allocs"]), row
    assert ledgers["cobalt-pmr_monotonic"]["upstream_allocs"] >= 1
    # The small buffer holds one operation; it is fragmented only while nobody asks.
    assert ledgers["cobalt-sbo"]["upstream_allocs"] == 0
    assert ledgers["cobalt-sbo"]["heap_allocs"] == 0


@needs_plugin
def test_counts_of_frames(counted: dict[str, list[dict[str, Any]]]) -> None:
    def heap(case: str) -> Any:
        return counted[f"coroutine/{case}@asio-awaitable"][0]["heap_allocs"]

    # Asio keeps two frames a thread: a chain of one task and its entry point fit.
    assert heap("run_async/depth1") == 0
    depths = [heap(f"run_async/depth{depth}") for depth in (1, 2, 3, 4)]
    assert depths == sorted(depths)
    assert depths[3] > depths[1] > 0
    # Each of Cobalt's two tasks holds a 4096-byte buffer: too large for the pool.
    assert counted["channel/parallel@cobalt"][0]["resource_allocs"] == 2
    assert counted["channel/parallel@cobalt"][0]["upstream_allocs"] == 2
    # These two, and four cancellation handlers that do not fit Asio's cache; no exception is made.
    assert counted["channel/parallel@cobalt"][0]["heap_allocs"] == 6


@needs_plugin
def test_out_of_memory_is_an_error_and_leaves_the_cell_usable() -> None:
    assert json.loads(bare(NO_MEMORY.format(path=str(objects()["measured"])))) == "no memory"


@needs_plugin
def test_it_registers_itself_and_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    command = [sys.executable, "-m", "capybench", "run", "--quick", "channel/post@cobalt"]
    done = subprocess.run(
        [*command, "--json", str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads(file.read_text())["cells"]
    assert (cell["id"], cell["status"]) == ("channel/post@cobalt", "ok")
    assert cell["ledger"]["posts"] == 1


def test_documentation_names_every_contender() -> None:
    page = (ROOT / "docs" / "boost.md").read_text()
    for case, contenders in CASES.items():
        assert case.partition("/")[0] in page
        for contender in contenders:
            assert f"`{contender}`" in page
    assert "docs/boost.md" in (ROOT / "README.md").read_text()
    assert "./csrc/plugins/boost" in (ROOT / ".ci" / "run").read_text()


def test_the_main_distribution_leaves_it_out() -> None:
    assert "prune csrc/plugins" in (ROOT / "MANIFEST.in").read_text().splitlines()


@needs_plugin
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sdist_carries_the_header_and_builds(tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("build", "*.so", "*.egg-info", "__pycache__", "dist")
    shutil.copytree(ROOT / "csrc", tmp_path / "tree" / "csrc", ignore=left_out)
    shutil.copy(ROOT / "LICENSE", tmp_path / "tree")
    source = tmp_path / "tree" / "csrc" / "plugins" / "boost"
    out = tmp_path / "dist"
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(source)],
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    with tarfile.open(archive) as tar:
        files = {Path(*Path(one.name).parts[1:]).as_posix(): one for one in tar if one.isfile()}
        header = tar.extractfile(files["include/capybench.h"])
        assert header is not None
        assert header.read() == (ROOT / "csrc" / "include" / "capybench.h").read_bytes()
    assert {"LICENSE", "cflags", "cflags.x86_64", "src/exports.map", "setup.py"} <= set(files)
    assert wheel.name.startswith("capybench_boost-")
    assert "-py3-none-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as built:
        names = set(built.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        requires = re.findall(r"^Requires-Dist: (.*)$", built.read(metadata).decode(), re.M)
    assert {f"capybench_boost/{n}" for n in ("boost.so", "boost_counting.so", "py.typed")} <= names
    assert not [name for name in names if name.endswith((".cpp", ".hpp", ".h"))]
    assert all(re.fullmatch(r"cmeel-boost==1\.90\.\d+\.\*", one) for one in requires)
