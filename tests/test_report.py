"""The report: valid, self-contained, readable without a script, honest about what it compares."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import synthetic

from capybench import cli, published, report
from capybench.errors import UsageError
from capybench.latency import Histogram
from capybench.plot import style
from capybench.reference import TABLES
from capybench.report import facts, layout
from capybench.results import RunResult

pytest.importorskip("matplotlib", reason="the extra capybench[plot] is not installed")


def load(document: dict[str, Any]) -> RunResult:
    return RunResult.from_dict(document)


def rich(blocks: int = 8) -> RunResult:
    """A run with every kind of section."""
    document = synthetic.suites(blocks)
    cells = document["cells"]
    for cell in cells:
        cell["summary_text"] = f"what {cell['contender']} does & how"
    cells.append(synthetic.cell("noop/op@core", synthetic.noisy(1.0, blocks)))
    for size in (1024, 65536):
        for nth, name in enumerate(("callback", "task")):
            cells.append(
                synthetic.cell(
                    f"socket_throughput/oneway/{size}@{name}",
                    synthetic.noisy(size / 2 + 500 * nth, blocks, seed=size + nth),
                    unit="bytes/s",
                    direction="higher",
                    bytes_per_op=size,
                    latency=Histogram.of([900 + n for n in range(500)]).to_dict(),
                )
            )
    cells.append(synthetic.absent("timer/a@task", "failed", "sum is <wrong>"))
    return load(document)


def other(cpu: str = "Other <CPU>", blocks: int = 3) -> RunResult:
    document = synthetic.suites(blocks)
    document["machine"]["fingerprint"]["cpu"] = cpu
    return load(document)


RUNS: dict[str, list[RunResult]] = {
    "rich": [rich()],
    "quick": [rich(3)],
    "empty": [load(synthetic.document())],
    "one": [load(synthetic.document(synthetic.cell()))],
    "absent": [load(synthetic.document(synthetic.absent("a/b@c")))],
    "hostile": [
        load(
            synthetic.document(
                *(
                    synthetic.cell(f"<s>&\"'/{n}@{c}")
                    for n in ("a b", "</script>", "é日", "$x$")
                    for c in ("task", "<b>")
                )
            )
        )
    ],
    "machines": [rich(), other()],
    "machine without cells": [rich(), load(synthetic.document())],
}
_PAGES: dict[str, str] = {}


def page(run: str) -> str:
    """Each page is made once."""
    if run not in _PAGES:
        _PAGES[run] = report.page(RUNS[run])
    return _PAGES[run]


def visible(text: str) -> str:
    """What a reader sees: texts without tags and style."""
    parts: list[str] = []

    class Texts(HTMLParser):
        skip = 0

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.skip += tag in ("style", "title")

        def handle_endtag(self, tag: str) -> None:
            self.skip -= tag in ("style", "title")

        def handle_data(self, data: str) -> None:
            if not self.skip:
                parts.append(data.strip())

    Texts().feed(text)
    return " ".join(filter(None, parts))


@pytest.mark.parametrize("run", RUNS)
def test_valid_html(run: str) -> None:
    html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed")
    html5lib.HTMLParser(strict=True).parse(page(run))
    ids = re.findall(r'\bid="([^"]*)"', page(run))
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', page(run)):
        assert "".join(target) in ids


@pytest.mark.skipif(shutil.which("tidy") is None, reason="the program tidy is not installed")
@pytest.mark.parametrize("run", RUNS)
def test_tidy_has_nothing_to_say(run: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(run), encoding="utf-8")
    done = subprocess.run(["tidy", "-q", "-e", str(path)], capture_output=True, text=True)
    # Long values of tables wrap in attributes of no element; anything else would be told here.
    assert done.stderr == ""


@pytest.mark.parametrize("run", RUNS)
def test_nothing_is_loaded_and_nothing_is_a_script(run: str) -> None:
    text = page(run)
    lowered = text.lower()
    assert "<script" not in lowered
    assert not re.search(r"<(link|img|iframe|object|embed|video)\b", lowered)
    assert not re.search(r"\bon\w+=", lowered)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in text


def test_text_is_text_and_colours_are_variables() -> None:
    text = page("rich")
    assert re.search(r"<text[^>]*>chain66", text)
    drawn = text[text.index("<main>") :]
    assert not re.search(r"#[0-9a-f]{6}\b", drawn)
    for theme in (style.LIGHT, style.DARK):
        assert theme.ink in text
    assert "prefers-color-scheme: dark" in text
    used = set(re.findall(r"var\((--cb-[\w-]+)\)", text))
    defined = set(re.findall(r"(--cb-[\w-]+):", text))
    assert used <= defined


def test_sections_of_one_run() -> None:
    text = visible(page("rich"))
    for wanted in (
        "Summary",
        "Machine and build",
        "Test CPU",
        "coroutine: ns/op, lower is better",
        "Beside the published figures",
        "ratio there",
        "Throughput over the size of a chunk.",
        "Latency of single operations by percentile.",
        "what recycling does & how",
        "timer/a@task: failed: sum is <wrong>",
        "Method",
        "4 faster",
        "Each interval covers by itself",
    ):
        assert wanted in text, wanted


def test_below_six_blocks_nothing_is_called_faster() -> None:
    text = visible(page("quick"))
    assert "without a verdict" in text
    assert "range of 3" in text
    assert not re.search(r"\b\d+ (faster|slower)\b", text)


def test_machines_stand_side_by_side_as_ratios_alone() -> None:
    text = visible(page("machines"))
    assert "A: Test CPU" in text and "B: Other <CPU>" in text
    assert "ratio to the baseline inside each run" in text
    assert "absolute times of different machines are not compared" in text
    assert "ns/op" not in text
    assert "median" not in text.replace("median of its processes", "").replace(
        "their median is one value", ""
    ).replace("the median of", "")
    # The ratios are those of each run by itself.
    for result in RUNS["machines"]:
        cell = result.cell("frame_alloc/chain66@recycling")
        ratio = result.ratio_of(cell, result.cell("frame_alloc/chain66@malloc"))
        assert ratio.value is not None
        assert f"{ratio.value:.3f}" in text


def test_cautions_follow_from_what_is_stored() -> None:
    document = synthetic.document(
        synthetic.cell(), complete=False, interrupted=True, blocks_done=1, warnings=["w"]
    )
    machine = document["machine"]
    machine["fingerprint"]["cpus"] = 2
    machine["before"] = {
        "load_1_min": 1.5,
        "governors": ["powersave"],
        "cgroup_cpu_max": "50000 100000",
        "clock_source": "tsc",
        "cpu_time_ms": {"user": 0, "steal": 0},
    }
    machine["after"] = {
        "governors": ["powersave"],
        "clock_source": "hpet",
        "pressure_cpu_percent": 30.0,
        "cpu_time_ms": {"user": 90, "steal": 10},
    }
    document["run"]["kept_env"] = {"LD_PRELOAD": "x"}
    result = load(document)
    found = " ".join(facts.cautions(result))
    for wanted in ("interrupted", "1 of 3 blocks", "busy", "10.0 % of CPU time was stolen",
                   "30 %", "powersave", "50000 100000", "clock source changed",
                   "LD_PRELOAD"):  # fmt: skip
        assert wanted in found
    assert facts.warnings(result) == ["w"]
    assert "interrupted" in visible(report.page([result]))
    quiet = load(synthetic.document(synthetic.cell()))
    assert facts.cautions(quiet) == []


def test_bars_share_a_scale() -> None:
    element = layout.bars([("a", {"faster": 4, "slower": 2}), ("b", {"within": 3})])
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', element)]
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.02)  # slower 2, faster 4
    assert widths[2] == pytest.approx(1.5 * widths[0], rel=0.02)
    assert "2 slower, 4 faster" in element


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="at least one run"):
        report.page([])
    stored = tmp_path / "run.json"
    other().save(stored)
    for words, says in (
        (["-o", str(tmp_path / "x.pdf")], "should end in .html"),
        (["-o", str(tmp_path / "x.html"), "--margin", "0"], "--margin"),
        (["-o", str(tmp_path / "x.html"), "--baseline", "nobody"], "nobody"),
    ):
        assert cli.main(["report", str(stored), *words]) == 2
        assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_command_writes_the_same_bytes_again(tmp_path: Path) -> None:
    stored = tmp_path / "run.json"
    other().save(stored)
    pages = []
    for name in ("x.html", "y.html"):
        target = tmp_path / name
        assert cli.main(["report", str(stored), "-o", str(target), "--title", "a <title>"]) == 0
        pages.append(target.read_text())
    assert pages[0] == pages[1]
    assert "<h1>a &lt;title&gt;</h1>" in pages[0]


@pytest.mark.slow
def test_a_run_of_all_suites_stays_small_and_quick() -> None:
    cells = [
        synthetic.cell(
            f"suite{case // 8}/family{case % 3}/depth{case}@{contender}",
            synthetic.noisy(20.0 * (1 + nth / 5), 10, seed=5 * case + nth),
            summary_text="a description of about the usual length of such a thing",
        )
        for case in range(120)
        for nth, contender in enumerate(("task", "callback", "fiber", "pipeline", "none"))
    ]
    begun = time.process_time()
    text = report.page([load(synthetic.document(*cells, blocks=10))])
    # What is asked for is 20 s for a full quick run; this is twelve times as many cells.
    assert time.process_time() - begun < 100
    assert len(text.encode()) < 2_000_000


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="neither chromium nor google-chrome is installed")
@pytest.mark.parametrize("run", ["rich", "machines"])
def test_a_browser_shows_it(run: str, tmp_path: Path) -> None:
    source = tmp_path / "report.html"
    # What a browser made of it: a script of the test tells what overflows and which colours rule.
    probe = (
        "<script>addEventListener('load', () => { const out = document.createElement('pre');"
        "out.id = 'probe'; const wide = [...document.querySelectorAll('figure svg')].filter("
        "e => e.getBoundingClientRect().right > innerWidth + 1).length;"
        "const ink = getComputedStyle(document.body).color;"
        "const texts = document.querySelectorAll('svg text').length;"
        "out.textContent = `wide ${wide} ink ${ink} texts ${texts} "
        "scroll ${document.documentElement.scrollWidth <= innerWidth}`;"
        "document.body.append(out); });</script></body>"
    )
    source.write_text(page(run).replace("</body>", probe), encoding="utf-8")

    def browse(*flags: str) -> str:
        done = subprocess.run(
            [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={tmp_path / 'profile'}", *flags, source.as_uri()],
            capture_output=True, text=True, timeout=100,
            env={**os.environ, "HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    inks = set()
    for preference in (0, 1):  # dark, light
        scheme = f"--blink-settings=preferredColorScheme={preference}"
        shown = browse("--dump-dom", "--window-size=900,700", scheme)
        probed = re.search(r"wide (\d+) ink (.*?) texts (\d+) scroll (\w+)", shown)
        assert probed is not None
        assert (probed[1], probed[4]) == ("0", "true")
        assert int(probed[3]) > 50
        inks.add(probed[2])
    assert len(inks) == 2
    target = tmp_path / "report.pdf"
    browse(f"--print-to-pdf={target}")
    assert target.read_bytes().startswith(b"%PDF")


# ---- published figures ---------------------------------------------------------------------------


def test_published_ratios_stand_beside_those_of_the_run() -> None:
    (table,) = published.tables(rich(), "frame_alloc")
    rows = {row.label: row.values for group in table.groups for row in group.rows}
    assert rows["std"][1:3] == ("baseline", "baseline")
    assert rows["recycling"][1] == "0.795"  # 1650 / 2075
    assert rows["recycling"][2].startswith("0.7")  # 19.4 / 26.6
    assert rows["recycling"][4] == "recycling"
    assert "95.3 % interval" in [column.title for column in table.columns]
    assert "i9-13900H" in table.remarks[0]


def test_published_read_streams_are_compared_with_the_task() -> None:
    for page_of in TABLES:
        if page_of.suite == "read_stream":
            for figure in page_of.figures:
                base = published.base_of(page_of, figure)
                assert base is not None
                assert base[0].key.endswith("-task")
                assert (base[1].row, base[1].column) == (figure.row, figure.column)


def test_a_page_without_a_ratio_here_is_left_out() -> None:
    alone = load(synthetic.document(synthetic.cell("coroutine/run_async/depth1@task")))
    assert published.tables(alone, "coroutine") == ()
    assert published.tables(alone, "noop") == ()
