"""Drawings: what they contain, that they are legible by rule, that nothing global is touched."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic

from capybench import cli, cli_plot, plot
from capybench.errors import UsageError
from capybench.latency import Histogram
from capybench.plot import data, ratios, style, svg
from capybench.results import RunResult

matplotlib = pytest.importorskip("matplotlib", reason="the extra capybench[plot] is not installed")

SVG = "{http://www.w3.org/2000/svg}"
CONTENDERS = ("task", "callback", "fiber", "pipeline", "sender_task_affine")


def result(*cells: dict[str, Any], **run: Any) -> RunResult:
    return RunResult.from_dict(synthetic.document(*cells, **run))


def suites(blocks: int = 8) -> RunResult:
    return RunResult.from_dict(synthetic.suites(blocks))


def network(blocks: int = 8) -> RunResult:
    """Throughputs over sizes, and latencies with histograms."""
    cells = []
    random = np.random.default_rng(1)
    for size in (1024, 65536, 1048576, 4096):
        for nth, contender in enumerate(("callback-epoll", "task-epoll")):
            samples = synthetic.noisy(size / 3 + 9000 * (1 + nth / 9), blocks, seed=size + nth)
            cells.append(
                synthetic.cell(
                    f"socket_throughput/oneway/{size}@{contender}",
                    samples,
                    unit="bytes/s",
                    direction="higher",
                    bytes_per_op=size,
                    baseline=nth == 0,
                )
            )
    for nth, contender in enumerate(("callback-epoll", "task-epoll")):
        latencies = (9000 * np.exp(0.2 * random.standard_normal(20_000))).astype(int).tolist()
        cells.append(
            synthetic.cell(
                f"socket_latency/pingpong/1@{contender}",
                synthetic.noisy(9000, blocks, seed=nth),
                baseline=nth == 0,
                latency=Histogram.of(latencies).to_dict(),
            )
        )
    return result(*cells, blocks=blocks)


def many() -> RunResult:
    """A run of 300 cells."""
    cells = [
        synthetic.cell(
            f"suite{case // 30}/family{case % 3}/depth{case}@{contender}",
            synthetic.noisy(20.0 * (1 + nth / 5), 3, seed=5 * case + nth),
        )
        for case in range(60)
        for nth, contender in enumerate(CONTENDERS)
    ]
    return result(*cells)


def texts(figure: Any) -> list[str]:
    """Every text that the figure shows."""
    figure.draw_without_rendering()
    found = figure.findobj(matplotlib.text.Text)
    return [text.get_text() for text in found if text.get_visible() and text.get_text()]


RUNS = {
    "empty": lambda: result(),
    "one": lambda: result(synthetic.cell()),
    "absent": lambda: result(synthetic.absent("coroutine/a@task")),
    "suites": suites,
    "quick": lambda: suites(3),
    "network": network,
}


@pytest.mark.parametrize("kind", plot.KINDS)
@pytest.mark.parametrize("run", RUNS)
def test_every_kind_draws_every_run(kind: str, run: str) -> None:
    figure = plot.draw(kind, RUNS[run](), theme="light")
    shown = texts(figure)
    assert shown
    if run == "empty":
        assert any("no cells" in text for text in shown)
    for axes in figure.axes:
        box = axes.get_position()
        assert box.x0 >= 0 and box.x1 <= 1 and box.y0 >= 0 and box.y1 <= 1


@pytest.mark.parametrize(
    ("kind", "run"),
    [(kind, run) for kind in ("forest", "bars", "heatmap") for run in ("suites", "quick")]
    + [("strip", "quick"), ("ecdf", "quick"), ("throughput", "network"), ("history", "quick")],
)
def test_texts_neither_leave_the_sheet_nor_cover_each_other(kind: str, run: str) -> None:
    figure = plot.draw(kind, RUNS[run]())
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    width, height = figure.get_size_inches() * figure.dpi
    outside = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    boxes = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in figure.findobj(matplotlib.text.Text)
        if text.get_visible() and text.get_text() and text.get_rotation() == 0
        if text not in outside
    ]
    for name, box in boxes:
        assert box.x0 >= -1 and box.x1 <= width + 1, name
        assert box.y0 >= -1 and box.y1 <= height + 1, name
    for nth, (name, box) in enumerate(boxes):
        for other_name, other in boxes[:nth]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            along = min(box.y1, other.y1) - max(box.y0, other.y0)
            # Neighbouring lines may touch by the room of descenders.
            assert across <= 1 or along <= 4, (name, other_name)


def test_300_cells_keep_the_size_of_text_and_rows() -> None:
    few, full = plot.draw("forest", suites(3)), plot.draw("forest", many())
    assert full.get_size_inches()[0] < 12
    assert full.get_size_inches()[1] > few.get_size_inches()[1]
    sizes = {text.get_fontsize() for text in full.findobj(matplotlib.text.Text) if text.get_text()}
    assert min(sizes) >= 8
    rows = sum(text == "fiber" for text in texts(full))
    assert rows == 60


def test_units_stand_on_axes() -> None:
    def labels(figure: Any) -> str:
        return " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)

    run = network()
    assert "ns/op" in labels(plot.draw("bars", suites()))
    assert "(MB/s)" in labels(plot.draw("throughput", run))
    assert "left is faster" in labels(plot.draw("forest", suites()))
    assert "right is faster" in labels(plot.draw("forest", run, only="socket_throughput"))
    assert any("99.9 %" in text for text in texts(plot.draw("percentiles", run)))
    assert any("µs" in text for text in texts(plot.draw("percentiles", run)))


def test_throughput_axes_are_logarithmic_and_in_natural_order() -> None:
    (axes,) = plot.draw("throughput", network()).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    axes.figure.draw_without_rendering()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert [text for text in shown if text] == ["1 KiB", "4 KiB", "64 KiB", "1 MiB"]


def test_cases_come_in_natural_order() -> None:
    names = ["pingpong/64", "pingpong/8", "pingpong/1024"]
    cells = [synthetic.cell(f"x/{name}@{c}") for name in names for c in ("task", "callback")]
    shown = [t for t in texts(plot.draw("heatmap", result(*cells))) if t.startswith("pingpong")]
    assert shown == ["pingpong/8", "pingpong/64", "pingpong/1024"]


def test_bars_begin_at_zero() -> None:
    for axes in plot.draw("bars", suites()).axes:
        assert axes.get_xlim()[0] == 0


def test_below_six_blocks_the_range_is_named_and_no_verdict_marked() -> None:
    run = suites(3)
    assert {r.standing for r in data.ratio_rows(run, run.cells, None, 0.03).values()} == {"range"}
    shown = " ".join(texts(plot.draw("forest", run)))
    assert "the range of 3 blocks" in shown
    assert "no verdict" in shown
    assert "faster" not in shown.replace("left is faster", "")
    theme = style.LIGHT
    forest = plot.draw("forest", run)
    drawn = {line.get_color() for axes in forest.axes for line in axes.get_lines()}
    assert not drawn & {theme.better, theme.worse}
    assert "range of 3 processes" in " ".join(texts(plot.draw("bars", run)))


def test_with_blocks_the_intervals_level_is_named_and_verdicts_are_marked() -> None:
    forest = plot.draw("forest", suites(8))
    shown = " ".join(texts(forest))
    assert "% interval over 8 blocks" in shown
    drawn = {line.get_color() for axes in forest.axes for line in axes.get_lines()}
    assert style.LIGHT.better in drawn  # callback against task
    assert style.LIGHT.worse in drawn  # mimalloc against malloc


def test_standing_is_where_the_interval_lies() -> None:
    from capybench.stats import Ratio

    def ratio(low: float | None, high: float | None) -> Ratio:
        return Ratio(1.0, 1.0, 0.9, 1.1, low, high, 0.95, 8, None)

    assert data.standing(ratio(0.8, 0.9), "lower", 0.03) == "faster"
    assert data.standing(ratio(0.8, 0.9), "higher", 0.03) == "slower"
    assert data.standing(ratio(1.1, 1.2), "lower", 0.03) == "slower"
    assert data.standing(ratio(0.98, 1.02), "lower", 0.03) == "within"
    assert data.standing(ratio(0.9, 1.02), "lower", 0.03) == "unclear"
    assert data.standing(ratio(None, None), "lower", 0.03) == "range"


def test_heat_steps_are_symmetric() -> None:
    middle = style.HEAT_STEPS
    assert ratios.heat_step(1.0, 0.03) == middle
    for value in (1.05, 1.2, 2, 9):
        above, below = ratios.heat_step(value, 0.03), ratios.heat_step(1 / value, 0.03)
        assert above - middle == middle - below > 0
    assert ratios.heat_step(9, 0.03) == len(style.LIGHT.heat) - 1
    assert ratios.heat_step(0.0, 0.03) == 0
    assert data.cost(0.0, "higher") == float("inf")


def test_strip_follows_the_order_of_execution() -> None:
    cells = [synthetic.cell(f"x/a@{name}") for name in ("task", "callback")]
    for place, cell in enumerate(cells):
        for process in cell["processes"]:
            # Places swap in block 1.
            process["order"] = place if process["block"] != 1 else 1 - place
    ran = data.executed(result(*cells).cells)
    names = [(block, cell.contender) for block, cell, _ in ran]
    assert names == [
        (0, "task"),
        (0, "callback"),
        (1, "callback"),
        (1, "task"),
        (2, "task"),
        (2, "callback"),
    ]


def test_history_is_of_one_machine_and_in_order_of_time() -> None:
    def run(day: int, cpu: str = "Test CPU") -> RunResult:
        document = synthetic.document(
            synthetic.cell(samples=[[day * 10_000] * 3] * 3),
            created_utc=f"2026-01-0{day}T00:00:00Z",
        )
        document["machine"]["fingerprint"]["cpu"] = cpu
        return RunResult.from_dict(document)

    figure = plot.draw("history", run(3), run(1), run(2))
    line = max(figure.axes[0].get_lines(), key=lambda line: len(line.get_xdata()))
    assert list(line.get_ydata()) == [10, 20, 30]
    with pytest.raises(UsageError, match=r"one machine.*Other CPU"):
        plot.draw("history", run(1), run(2, "Other CPU"))


def test_hostile_names_are_drawn_as_text() -> None:
    names = ["$\\frac{x}$", "a<b>&amp;", "—" * 90, "日本語", "x\ny", "url(#p0)"]
    cells = [synthetic.cell(f"s/{n}@{c}") for n in names for c in ("task", "$bad$")]
    for kind in ("forest", "bars", "heatmap", "strip"):
        element = svg.inline(plot.draw(kind, result(*cells), theme="auto"), "x", 'a "<label>"')
        ET.fromstring(element)
        assert "$bad$" in element


# ---- themes and files ----------------------------------------------------------------------------


def _luminance(colour: str) -> float:
    from matplotlib.colors import to_rgb

    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], parts))


def contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK], ids=lambda theme: theme.name)
def test_contrasts(theme: style.Theme) -> None:
    assert contrast(theme.ink, theme.paper) >= 7
    assert contrast(theme.quiet, theme.paper) >= 4.5
    for colour in (*theme.series, theme.better, theme.worse, theme.same):
        assert contrast(colour, theme.paper) >= 3, colour
    for fill, ink in zip(theme.heat, theme.heat_ink, strict=True):
        assert contrast(fill, ink) >= 4.5, (fill, ink)
    assert len(theme.heat) == 2 * style.HEAT_STEPS + 1


def _as_seen(colour: str, kind: str) -> Any:
    """Colour as people without red or green receptors see it (Viénot, Brettel, Mollon 1999)."""
    from matplotlib.colors import to_rgb

    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
                       for c in to_rgb(colour)])  # fmt: skip
    matrices = {
        "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
        "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    }
    return np.array(matrices[kind]) @ linear


@pytest.mark.parametrize("kind", ["protan", "deutan"])
@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK], ids=lambda theme: theme.name)
def test_better_and_worse_differ_for_the_colour_blind(theme: style.Theme, kind: str) -> None:
    difference = np.abs(_as_seen(theme.better, kind) - _as_seen(theme.worse, kind))
    assert difference.max() > 0.15
    first, second = (_as_seen(colour, kind) for colour in theme.series[:2])
    assert np.abs(first - second).max() > 0.15


def test_looks_tell_many_contenders_apart() -> None:
    made = style.looks([f"c{n}" for n in range(28)], style.LIGHT)
    assert len({(look.colour, look.marker, str(look.line)) for look in made.values()}) == 28


def test_a_saved_svg_follows_the_reader_and_keeps_text(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    plot.save(plot.draw("forest", suites(), theme="auto"), path, "ratios")
    text = path.read_text()
    root = ET.fromstring(text)
    shown = [element.text for element in root.iter(f"{SVG}text")]
    assert any("chain66" in (line or "") for line in shown)
    assert "prefers-color-scheme: dark" in text
    assert not any(mark in text for mark in style.AUTO.roles().values())
    assert "var(--cb-ink)" in text
    defined = {line.split(":")[0].strip() for line in svg.css().replace("{", ";").split(";")}
    import re

    assert set(re.findall(r"var\((--cb-[\w-]+)\)", text)) <= defined
    assert root.find(f"{SVG}title").text == "ratios"
    again = tmp_path / "y.svg"
    plot.save(plot.draw("forest", suites(), theme="auto"), again, "ratios")
    assert again.read_text() == text


def test_two_inline_drawings_share_no_id() -> None:
    import re

    ids = [
        set(re.findall(r' id="([^"]+)"', svg.inline(plot.draw("ecdf", suites()), name, "x")))
        for name in ("one", "two")
    ]
    assert ids[0] and not ids[0] & ids[1]


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"x.{suffix}"
    plot.save(plot.draw("heatmap", suites(), theme="dark"), path)
    assert path.read_bytes().startswith(magic)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    with pytest.raises(UsageError, match="SVG only"):
        plot.save(plot.draw("heatmap", suites(), theme="auto"), path)
    with pytest.raises(UsageError, match=r"should end in \.svg"):
        plot.save(plot.draw("heatmap", suites()), tmp_path / "x.gif")


def test_settings_of_matplotlib_stay_as_they_are(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    plot.save(plot.draw("forest", suites(), theme="auto"), tmp_path / "x.svg")
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_not_imported(tmp_path: Path) -> None:
    stored = tmp_path / "run.json"
    suites().save(stored)
    code = (
        "import sys\nfrom capybench.cli import main\n"
        f"main(['plot', {str(stored)!r}, '-o', {str(tmp_path / 'x.svg')!r}])\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "x.svg").exists()


def test_method_of_a_result() -> None:
    figure = suites().plot("bars", only="frame_alloc", theme="dark")
    shown = texts(figure)
    assert "recycling" in shown
    assert not any("run_async" in text for text in shown)
    with pytest.raises(UsageError, match="forest"):
        suites().plot("pie")
    with pytest.raises(UsageError, match="matches"):
        suites().plot("bars", only="nothing")
    with pytest.raises(UsageError, match="one run"):
        plot.draw("bars", suites(), suites())
    with pytest.raises(UsageError, match="margin"):
        suites().plot(margin=3)


# ---- the command ---------------------------------------------------------------------------------


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = tmp_path / "run.json"
    suites().save(stored)
    for kind in plot.KINDS:
        target = tmp_path / f"{kind}.svg"
        assert cli.main(["plot", str(stored), "--kind", kind, "-o", str(target)]) == 0
        ET.parse(target)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--kind", "pie", "-o", "x.svg"], "unknown kind of plot 'pie'; known: forest"),
        (["-o", "x.gif"], "should end in"),
        (["-o", "x.svg", "--margin", "x"], "--margin is 'x'"),
        (["-o", "x.png", "--theme", "auto"], "SVG only"),
        (["-o", "x.png", "--theme", "pink"], "unknown theme 'pink'"),
        (["-o", "x.png", "--baseline", "nobody"], "nobody"),
        (["-o", "x.png", "--only", "nothing"], "no cell matches 'nothing'"),
    ],
)
def test_command_refuses(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    suites().save("run.json")
    assert cli.main(["plot", "run.json", *words]) == 2
    assert says in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_help_names_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(kind in shown for kind in plot.KINDS)
    assert cli_plot.share("5%") == 0.05
    assert cli_plot.share("0.04") == 0.04


def test_without_matplotlib_one_sentence(tmp_path: Path) -> None:
    stored = tmp_path / "run.json"
    suites().save(stored)
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "from capybench.cli import main\n"
        f"sys.exit(main(['plot', {str(stored)!r}, '-o', {str(tmp_path / 'x.svg')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"capybench: {style.MISSING}\n"
    assert "capybench[plot]" in style.MISSING
