"""Several builds in one run: interleaved, balanced, recorded apart, resumed, told apart again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, permutations
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGE, Fake, make_fake_package
from support import ROOT, extension

import capybench
from capybench import plugins, results, runner, variants
from capybench.cases import Listing, Variant, list_cells, select
from capybench.errors import EnvironmentFault, JournalError, PluginError, UsageError
from capybench.plan import Plan, Step, make_plan


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_LOADED", [])


def changed_core(folder: Path, *changes: tuple[str, str]) -> Variant:
    """A fake core with some of its text replaced."""
    variant = make_fake_package(folder)
    for name in ("_core.py", "_ledger.py"):
        path = Path(variant.path) / "capybench" / name
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
    return variant


SLOWER = ("samples[nth] = ops * 100 * slower", "samples[nth] = ops * 110 * slower")


@pytest.fixture
def sides(fake: Fake, tmp_path: Path) -> dict[str, Listing]:
    """`base`, and a `head` that is 10 % slower, lacks good/2 and has another ledger."""
    head = changed_core(
        tmp_path / "head",
        SLOWER,
        ('    ("good/2", "a", "good", {}),\n', ""),
        ('"mutex_pairs": 3', '"mutex_pairs": 4'),
    )
    return {"base": fake.listing(), "head": list_cells(head)}


def planned(listings: Mapping[str, Listing], *patterns: str, **options: Any) -> Plan:
    listing = variants.union(listings)
    settings = {"blocks": 4, "samples": 3, "target_ns": 1000, "seed": 5, **options}
    return make_plan(listing, select(listing, patterns), variants=listings, **settings)


def measured(plan: Plan) -> list[Step]:
    return [step for step in plan.steps if step.kind == "measure"]


# --- the plan -----------------------------------------------------------------------------------


def test_variants_of_a_cell_are_adjacent_and_balanced(sides: dict[str, Listing]) -> None:
    plan = planned(sides, "fake/good/1", "fake/good/10", blocks=8)
    assert plan.variants == ("base", "head")
    for block, steps in groupby(measured(plan), lambda step: step.block):
        cells = [(cell, list(pair)) for cell, pair in groupby(steps, lambda step: step.cell)]
        assert Counter(cell for cell, _ in cells) == Counter(cell.id for cell in plan.cells), block
        for _, pair in cells:
            assert {step.variant for step in pair} == {"base", "head"}
            assert len({(step.cpus, step.padding) for step in pair}) == 1
    for cell in plan.cells:
        own = [step for step in measured(plan) if step.cell == cell.id]
        first = [step.variant for step in own[::2]]
        assert Counter(first) == {"base": 4, "head": 4}
        for start in range(0, 8, 2):
            assert set(first[start : start + 2]) == {"base", "head"}, "AB and BA in each two blocks"
    counted = [(step.cell, step.variant) for step in plan.steps if step.kind == "count"]
    assert counted == [(cell.id, name) for cell in plan.cells for name in ("base", "head")]
    for _, steps in groupby(measured(plan), lambda s: (s.block, s.cell.partition("@")[0])):
        orders = [step.order for step in steps]
        assert orders == list(range(len(orders)))


def test_three_variants_share_places_and_neighbours(fake: Fake) -> None:
    listing = fake.listing()
    plan = planned(dict.fromkeys("abc", listing), "fake/good/10", blocks=6)
    orders = [
        tuple(step.variant for step in steps)
        for _, steps in groupby(measured(plan), lambda step: step.block)
    ]
    assert sorted(orders) == sorted(permutations("abc"))


def test_a_plan_of_one_build_is_as_before(fake: Fake) -> None:
    plan = fake.plan("fake/good/1")
    assert (plan.variants, {step.variant for step in plan.steps}) == ((), {""})
    assert plan.variant == fake.variant and plan.build["build_id"] == "one"
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_what_one_side_lacks_is_known_before(sides: dict[str, Listing]) -> None:
    plan = planned(sides, "fake/good", "fake/gone")
    base, head = plan.sides
    assert dict(base.missing).keys() == {"fake/gone@a"}
    assert head.missing["fake/good/2@a"].absent is True
    assert head.missing["fake/gone@a"].reason == "no such device here"
    ran = {(step.cell, step.variant) for step in plan.steps}
    assert ("fake/good/2@a", "base") in ran and ("fake/good/2@a", "head") not in ran
    assert not any(cell == "fake/gone@a" for cell, _ in ran)
    text = plan.describe()
    assert "each cell back to back in 2 variants: base, head" in text
    assert "fake/good/2@a: unavailable in head: this build has no such cell" in text
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_steps_of_both_sides_are_respected(fake: Fake, tmp_path: Path) -> None:
    head = changed_core(tmp_path / "head", ('{"step": 1000}', '{"step": 1500, "unit": "ns/op"}'))
    plan = planned({"base": fake.listing(), "head": list_cells(head)}, "fake/stepped")
    assert plan.cells[0].step == 3000
    document = runner.run_plan(plan, target=tmp_path / "o.json")
    assert document["cells"][0]["ops"] == 3000


def test_a_clash_of_units_is_invalid_on_one_side(fake: Fake, tmp_path: Path) -> None:
    head = changed_core(tmp_path / "head", ('"unit": "ns/op"', '"unit": "ops/s"'))
    plan = planned({"base": fake.listing(), "head": list_cells(head)}, "fake/good/10")
    document = runner.run_plan(plan, target=tmp_path / "o.json")
    (cell,) = document["cells"]
    assert [one["status"] for one in cell["variants"]] == ["invalid", "ok"]
    assert "unit is 'ns/op' in this build and 'ops/s'" in cell["variants"][0]["reason"]


# --- a run --------------------------------------------------------------------------------------


def test_a_run_of_two_builds(sides: dict[str, Listing], tmp_path: Path) -> None:
    target = tmp_path / "o.json"
    document = runner.run_plan(planned(sides, "fake/good", "fake/gone"), target=target)
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((PACKAGE / "schema" / "capybench-1.schema.json").read_text())
    jsonschema.validate(document, schema)
    run = document["run"]
    assert (run["complete"], run["measured_again"]) == (True, 0)
    assert [(one["name"], one["path"]) for one in run["variants"]] == [
        (name, listing.variant.path) for name, listing in sides.items()
    ]
    assert [one["build"]["build_id"] for one in run["variants"]] == ["one", "one"]

    result = results.load(target)
    assert result.to_dict() == document
    assert result.variants == ("base", "head")
    cell = result.cell("fake/good/1@a")
    assert cell.variants == ("base", "head")
    assert (len(cell.processes), len(cell.processes_of("base"))) == (8, 4)
    assert cell.processes_of() == cell.processes_of("head")
    assert cell.summary.n == 4 and cell.summary.median == pytest.approx(110.1)
    assert len({process.order for process in cell.processes_of("base")}) > 1

    base, head = result.variant("base"), result.variant("head")
    assert base.variants == () and base.run["variant"] == "base"
    assert base.cell(cell.id).summary.median == pytest.approx(100.1)
    assert base.cell(cell.id).ledger["mutex_pairs"] == 3  # type: ignore[index]
    assert head.cell(cell.id).ledger["mutex_pairs"] == 4  # type: ignore[index]
    assert head.cell(cell.id).summary == cell.summary
    pairs = base.cell(cell.id).by_block(), head.cell(cell.id).by_block()
    assert list(pairs[0]) == [0, 1, 2, 3] == sorted(pairs[1])
    ratio = head.ratio_of(head.cell(cell.id), base.cell(cell.id))
    assert ratio.value == pytest.approx(1.0999, 1e-3)

    assert "fake/good/2@a" in {cell.id for cell in base.cells}
    assert "fake/good/2@a" not in {cell.id for cell in head.cells}, "gone"
    gone = result.cell("fake/good/2@a")
    assert (gone.status, gone.summary.n) == ("unavailable", 0)
    assert {cell.id for cell in head.cells if cell.status == "unavailable"} == {"fake/gone@a"}
    with pytest.raises(LookupError, match="no variant 'tail'; it has: base, head"):
        result.variant("tail")


def test_variants_share_the_op_count(sides: dict[str, Listing], tmp_path: Path) -> None:
    asked: list[object] = []
    real = runner.ask_worker

    def spy(request: Mapping[str, Any], *rest: Any, **more: Any) -> runner.Outcome:
        if request["op"] == "measure":
            asked.append(request["ops"])
        return real(request, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "ask_worker", spy)
        runner.run_plan(planned(sides, "fake/good/10", blocks=2), target=tmp_path / "o.json")
    assert asked == [None, 10, 10, 10]


def test_a_failure_of_one_side_leaves_the_other(fake: Fake, tmp_path: Path) -> None:
    bad = changed_core(tmp_path / "head", ('("good/10", "a", "good"', '("good/10", "a", "segv"'))
    plan = planned({"base": fake.listing(), "head": list_cells(bad)}, "fake/good/10")
    result = results.RunResult.from_dict(runner.run_plan(plan, target=tmp_path / "o.json"))
    assert result.complete
    assert result.cell("fake/good/10@a").status == "crashed"
    assert result.variant("head").cell("fake/good/10@a").reason == (
        "block 1: the worker was ended by SIGSEGV"
    )
    assert result.variant("base").cell("fake/good/10@a").summary.n == 4


class Stop:
    """Progress that ends the run after so many workers."""

    def __init__(self, after: int) -> None:
        self.after = after

    def start(self, plan: Plan, done: int, total: int) -> None: ...

    def end(self, interrupted: bool) -> None: ...

    def worker_done(self, step: Step, status: str, done: int, *rest: Any) -> None:
        if done == self.after:
            raise RuntimeError("stop here")


def test_resume_knows_the_variants(
    sides: dict[str, Listing], fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "o.json"
    plan = planned(sides, "fake/good/1")
    with pytest.raises(RuntimeError, match="stop here"):
        runner.run_plan(plan, target=target, progress=Stop(7))
    part = runner.recover(target)
    assert (part["run"]["complete"], part["run"]["workers_done"]) == (False, 7)
    before = len(fake.log())
    with monkeypatch.context() as patch:
        patch.setenv("FAKE_BUILD", "two")
        with pytest.raises(JournalError, match="the core of the variant base has changed"):
            runner.resume(target)
    document = runner.resume(target)
    assert len(fake.log()) - before == len(plan.steps) - 7
    for cell in document["cells"]:
        seen = [(process["block"], process["variant"]) for process in cell["processes"]]
        assert sorted(seen) == [(b, v) for b in range(4) for v in ("base", "head")]
        wanted = [step.variant for step in measured(plan) if step.cell == cell["id"]]
        assert [variant for _, variant in seen] == wanted


# --- measured again -----------------------------------------------------------------------------


def test_a_rule_has_pairs_measured_again_at_once(sides: dict[str, Listing], tmp_path: Path) -> None:
    told: list[tuple[int, list[str], list[int]]] = []

    def rule(records: Sequence[Mapping[str, Any]]) -> bool:
        names = [record["variant"] for record in records]
        told.append((records[0]["block"], names, [r.get("repeat", 0) for r in records]))
        return records[0]["block"] == 1

    plan = planned(sides, "fake/good/10", blocks=4)
    document = runner.run_plan(plan, target=tmp_path / "o.json", rule=rule)
    (cell,) = document["cells"]
    seen = [(p["block"], p.get("repeat", 0), p["variant"]) for p in cell["processes"]]
    order = [step.variant for step in measured(plan)]
    assert seen == [
        *((0, 0, name) for name in order[0:2]),
        *((1, again, name) for again in (0, 1, 2) for name in order[2:4]),
        *((2, 0, name) for name in order[4:6]),
        *((3, 0, name) for name in order[6:8]),
    ], "at most blocks/2 times"
    assert [block for block, *_ in told] == [0, 1, 1]
    assert document["run"]["measured_again"] == 2
    assert document["run"]["complete"] is True
    result = results.RunResult.from_dict(document)
    assert len(result.cell("fake/good/10@a").by_block()) == 4
    assert [p.repeat for p in result.cells[0].processes_of("base")] == [0, 0, 1, 2, 0, 0]


def test_contenders_are_measured_again_together(fake: Fake, tmp_path: Path) -> None:
    plan = fake.plan("fake/good/1", blocks=2)

    def rule(records: Sequence[Mapping[str, Any]]) -> bool:
        assert len(records) == 3
        return records[0]["block"] == 0 and "repeat" not in records[0]

    target = tmp_path / "o.json"
    with pytest.raises(RuntimeError, match="stop here"):
        runner.run_plan(plan, target=target, rule=rule, progress=Stop(4))
    document = runner.resume(target, rule=rule)
    assert document["run"]["measured_again"] == 3
    for cell in document["cells"]:
        seen = [(process["block"], process.get("repeat", 0)) for process in cell["processes"]]
        assert seen == [(0, 0), (0, 1), (1, 0)]


# --- what a variant can be ----------------------------------------------------------------------


def test_folders_pythons_and_nonsense(tmp_path: Path, fake: Fake) -> None:
    assert variants.resolve("installed").variant == runner.installed_variant()
    checkout = variants.resolve(fake.variant.path).variant
    assert checkout == Variant(sys.executable, fake.variant.path)
    ours = tmp_path / "ours" / "bin" / "python"
    ours.parent.mkdir(parents=True)
    ours.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={PACKAGE.parent} exec {sys.executable} "$@"\n')
    ours.chmod(0o755)
    for name in (ours, ours.parent.parent):
        assert variants.resolve(name).variant == Variant(str(ours), str(PACKAGE.parent))
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.so").write_text("hello")
    (tmp_path / "plain.txt").write_text("hello")
    python = tmp_path / "broken" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho no such thing >&2\nexit 1\n")
    python.chmod(0o755)
    for name, says in (
        ("empty", "neither bin/python nor a package capybench"),
        ("nothing", "does not exist"),
        ("text.so", "neither a core file"),
        ("plain.txt", "neither a python nor a shared object"),
        ("broken", "has no capybench to measure: no such thing"),
    ):
        with pytest.raises(UsageError, match=says):
            variants.resolve(tmp_path / name)
    for name in ("", "a b", "x:y", "y" * 41):
        with pytest.raises(UsageError, match="cannot be named"):
            variants.list_variants({name: "installed"})


def test_a_base_that_speaks_another_protocol_says_which_versions_meet(
    fake: Fake, tmp_path: Path
) -> None:
    old = make_fake_package(tmp_path / "old")
    source = Path(old.path) / "capybench" / "worker.py"
    source.write_text(source.read_text().replace("PROTOCOL = 2", "PROTOCOL = 1", 1))
    (Path(old.path) / "capybench" / "_version.py").write_text('__version__ = "0.0.1"\n')
    with pytest.raises(EnvironmentFault, match=r"capybench 0\.0\.1\) speaks worker protocol 1"):
        variants.list_variants({"base": old.path, "head": fake.variant.path})


def test_core_files_are_measured_and_counted(tmp_path: Path) -> None:
    """The file that is named is loaded, not the package's own."""
    for name in ("_core", "_ledger"):
        shutil.copy(extension(name), tmp_path)
    core = next(tmp_path.glob("_core*.so"))
    result = capybench.run(
        "noop/op",
        quick=True,
        blocks=2,
        samples=1,
        variants={"base": core, "head": "installed"},
        use_installed=False,
        target=tmp_path / "o.json",
    )
    assert result.variants == ("base", "head")
    assert result.run["variants"][0]["core"] == str(core)
    for name in result.variants:
        (cell,) = result.variant(name).cells
        assert (cell.status, cell.summary.n) == ("ok", 2), cell.reason
        assert cell.ledger is not None and cell.ledger["posts"] == 0
    (tmp_path / core.name.replace("_core", "_ledger")).unlink()
    variant = variants.resolve(core).variant
    assert (variant.ledger, variant.counts) == (None, False)
    core.write_bytes(b"no ELF file, but with PyInit__core in it")
    with pytest.raises(EnvironmentFault, match="the core cannot be listed: ImportError"):
        variants.list_variants({"base": core}, use_installed=False)


def test_plugin_files_are_compared(tmp_path: Path) -> None:
    source = ROOT / "csrc" / "test" / "plugin_variants.c"
    for name in ("old", "new"):
        folder = tmp_path / name
        folder.mkdir()
        command = ["cc", "-O2", "-fPIC", "-shared", "-pthread", f"-I{capybench.get_include()}"]
        flags = ["-DVARIANT_good", *(["-O0"] if name == "old" else [])]
        subprocess.run([*command, *flags, source, "-o", folder / "mine.so"], check=True)
    result = capybench.run(
        "extra",
        quick=True,
        blocks=2,
        samples=1,
        variants={"old": tmp_path / "old/mine.so", "new": tmp_path / "new/mine.so"},
        use_installed=False,
        target=tmp_path / "o.json",
    )
    (cell,) = result.cells
    assert [len(cell.processes_of(name)) for name in ("old", "new")] == [2, 2]
    digests = [one["build"]["plugins"][0]["digest"] for one in result.run["variants"]]
    assert len(set(digests)) == 2
    assert result.variant("old").machine["build"]["plugins"][0]["digest"] == digests[0]
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"\x7fELF capybench_plugin_v1")
    with pytest.raises(PluginError, match="cannot be opened"):
        variants.list_variants({"base": broken})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_environment_is_measured_with_its_own_interpreter(tmp_path: Path) -> None:
    import venv

    environment = tmp_path / "env"
    venv.create(environment, with_pip=False)
    site = next(environment.glob("lib/python*/site-packages"))
    shutil.copytree(PACKAGE, site / "capybench", ignore=shutil.ignore_patterns("__pycache__"))
    result = capybench.run(
        "noop/op",
        quick=True,
        blocks=2,
        samples=1,
        variants={"base": environment, "head": "installed"},
        target=tmp_path / "o.json",
    )
    base, _head = result.run["variants"]
    assert base["python"] == str(environment / "bin" / "python")
    assert base["path"] == str(site)
    (cell,) = result.variant("base").cells
    assert (cell.status, cell.summary.n) == ("ok", 2), cell.reason
