"""Plug-ins, built by the plain compiler against the public header: found, checked, run, refused,
blamed. Every one is opened by a worker, none by this process."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, bare

import capybench
from capybench import cli, plugins, runner, verification
from capybench.cases import list_cells, select
from capybench.errors import JournalError, PluginError
from capybench.plan import make_plan

SOURCE = ROOT / "csrc" / "test" / "plugin_variants.c"
Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a variant, once, into a folder of its own: build("good", counting=True)."""
    made: dict[tuple[object, ...], Path] = {}

    def make(variant: str, *flags: str, counting: bool = False, file: str = "runtime.so") -> Path:
        key = (variant, flags, counting, file)
        if key not in made:
            folder = tmp_path_factory.mktemp(variant)
            for nth in range(1 + counting):
                name = file.replace(".", "_counting.", 1) if nth else file
                compile_c(
                    SOURCE, folder / name, f"-DVARIANT_{variant}", f"-DCOUNTING={nth}", *flags
                )
            made[key] = folder / file
        return made[key]

    return make


def compile_c(source: Path, out: Path, *flags: str, compiler: str = "cc") -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    command = [compiler, "-O2", "-fPIC", "-shared", "-pthread", f"-I{capybench.get_include()}"]
    done = subprocess.run(
        [*command, *flags, str(source), "-o", str(out)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is gone after it, and what is installed here plays no part."""
    monkeypatch.setattr(plugins, "_LOADED", [])
    monkeypatch.setenv("CAPYBENCH_NO_PLUGINS", "1")
    yield


def command(*words: str) -> int:
    return cli.main([str(word) for word in words])


# --- good ones ----------------------------------------------------------------------------------


def test_its_cells_join_cases_and_make_suites(build: Build) -> None:
    path = build("good", counting=True)
    listing = list_cells(plugins=[path], use_installed=False)
    (plugin,) = listing.plugins
    assert (plugin.name, plugin.version, plugin.path) == ("good", "1.2", str(path))
    assert plugin.counting == str(path.with_name("runtime_counting.so"))
    cells = {cell.id: cell for cell in listing}
    assert [cell.id for cell in listing if cell.plugin == "good"] == [
        "noop/op@malloc",
        "extra/malloc@libc",
    ]
    assert cells["noop/op@malloc"].ledger is not None
    assert cells["noop/op@core"].plugin is None
    contenders = [cell.contender for cell in listing if cell.case_id == "noop/op"]
    assert contenders == ["core", "malloc"], "built-in ones first"
    suites = {suite.name: suite for suite in listing.suites}
    assert suites["extra"].summary == "from the plug-in good"
    plan = make_plan(listing, select(listing, ["noop/op", "extra"]), quick=True)
    assert [case.baseline for case in plan.cases] == ["core", "libc"]
    assert plan.plugins == (plugin,)
    assert make_plan(listing, select(listing, ["noop/op@core"]), quick=True).plugins == ()


def test_a_run_measures_counts_and_records_it(build: Build, tmp_path: Path) -> None:
    path = build("good", counting=True)
    result = capybench.run(
        ["noop/op", "extra"],
        quick=True,
        blocks=1,
        samples=2,
        plugins=[path],
        use_installed=False,
        target=tmp_path / "o.json",
    )
    cells = {cell.id: cell for cell in result.cells}
    assert list(cells) == ["noop/op@core", "noop/op@malloc", "extra/malloc@libc"]
    for cell in cells.values():
        assert (cell.status, cell.summary.n) == ("ok", 1), cell.reason
    assert cells["extra/malloc@libc"].ledger is not None
    assert cells["extra/malloc@libc"].ledger["heap_allocs"] == 1
    (told,) = result.machine["build"]["plugins"]
    assert (told["name"], told["version"], told["path"]) == ("good", "1.2", str(path))
    assert len(told["digest"]) == len(told["counting_digest"]) == 64
    assert not [line for line in result.run["warnings"] if "no counts" in line]


def test_without_a_counting_build_the_ledger_is_null_with_a_reason(
    build: Build, tmp_path: Path
) -> None:
    result = capybench.run(
        "extra",
        quick=True,
        blocks=1,
        plugins=[build("good")],
        use_installed=False,
        target=tmp_path / "o.json",
    )
    (cell,) = result.cells
    assert (cell.status, cell.ledger) == ("ok", None)
    assert cell.extra["ledger_reason"] == "the plug-in good has no counting build"
    assert result.complete
    assert not [line for line in result.run["warnings"] if "no counts" in line], "it need not"


def test_a_worker_opens_only_the_plugin_of_its_cell(build: Build, tmp_path: Path) -> None:
    asked: list[Any] = []
    real = runner.ask_worker

    def spy(request: Any, *rest: Any, **more: Any) -> runner.Outcome:
        if request["op"] != "list":
            asked.append((request["op"], request["cell"], request.get("plugins", [])))
        return real(request, *rest, **more)

    path = build("good", counting=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "ask_worker", spy)
        capybench.run(
            "noop/op",
            quick=True,
            blocks=1,
            plugins=[path],
            use_installed=False,
            target=tmp_path / "o.json",
        )
    opened = {(op, cell): [one["path"] for one in given] for op, cell, given in asked}
    assert opened == {
        ("measure", "noop/op@core"): [],
        ("count", "noop/op@core"): [],
        ("measure", "noop/op@malloc"): [str(path)],
        ("count", "noop/op@malloc"): [str(path.with_name("runtime_counting.so"))],
    }


def test_load_plugin_stays_for_the_session(build: Build) -> None:
    path = build("good")
    plugin = capybench.load_plugin(path)
    assert plugin.name == "good"
    assert plugin == capybench.load_plugin(path), "again is no error"
    assert "extra/malloc@libc" in {cell.id for cell in capybench.list_cells(use_installed=False)}
    with pytest.raises(PluginError, match=r"registered already, by .*runtime\.so"):
        capybench.load_plugin(build("rival", '-DNAME="rival"'))
    with pytest.raises(PluginError, match=r"no plug-in file .*nowhere\.so"):
        capybench.load_plugin("nowhere.so")
    assert [loaded.name for loaded in plugins._LOADED] == ["good"]


def test_the_parent_never_opens_one(build: Build) -> None:
    code = (
        "import capybench, sys; capybench.load_plugin(sys.argv[1]); "
        "capybench.list_cells(use_installed=False); print(open('/proc/self/maps').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(build("good"))],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert "runtime.so" not in done.stdout


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "says"),
    [
        ("wrong_abi", "built for plug-in ABI 99, this core speaks ABI 1"),
        ("wrong_size", "its table has 24 bytes, this core's has 48"),
        ("wrong_case_size", r"its descriptors have 8 bytes, this core's have \d+"),
        ("no_entry", "exports no function capybench_plugin_v1"),
        ("null_table", "answers no table"),
        ("null_run", "x/y@z: it has no run function"),
        ("odd_name", "the name of descriptor 0 may have"),
        ("odd_unit", "its unit is not one of"),
        ("duplicate", r"noop/op@core is registered already, by .*_core.*\.so"),
        ("twice", r"x/y@z is registered already, by .*runtime\.so"),
        ("other_unit", r"measures in ops/s, but the case is in ns/op \(.*_core.*\.so\)"),
        ("crash_entry", "crashed: the worker was ended by SIGSEGV"),
    ],
)
def test_a_broken_plugin_is_an_error_that_names_it(
    build: Build, variant: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(variant)
    with pytest.raises(PluginError, match=rf"{path} \(--plugin\): .*{says}") as caught:
        list_cells(plugins=[path], use_installed=False)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert command("list", "--plugin", str(path)) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"capybench: the plug-in {path}") and said.out == ""


def test_two_plugins_with_one_cell_name_both_files(build: Build) -> None:
    one, other = build("good"), build("rival", '-DNAME="rival"')
    with pytest.raises(PluginError) as caught:
        list_cells(plugins=[one, other], use_installed=False)
    assert str(one) in str(caught.value) and str(other) in str(caught.value)
    assert "extra/malloc@libc is registered already" in str(caught.value)


def test_a_file_that_is_no_shared_object(tmp_path: Path, build: Build) -> None:
    (tmp_path / "text.so").write_text("hello")
    with pytest.raises(PluginError, match=r"cannot be opened: .*text\.so"):
        list_cells(plugins=[tmp_path / "text.so"], use_installed=False)
    counting = build("good", counting=True).with_name("runtime_counting.so")
    with pytest.raises(PluginError, match="a counting build, which is never measured"):
        list_cells(plugins=[counting], use_installed=False)


def test_the_counting_build_must_belong_to_the_measured_one(build: Build, tmp_path: Path) -> None:
    for given, says in (
        (build("good"), "it is not a counting build"),
        (
            build("good", '-DNAME="else"', counting=True).with_name("runtime_counting.so"),
            "has name 'else', not 'good'",
        ),
    ):
        plugin = capybench.load_plugin(build("good"), counting=given)
        result = capybench.run(
            "extra", quick=True, blocks=1, use_installed=False, target=tmp_path / "o.json"
        )
        assert plugin.counting == str(given)
        (cell,) = result.cells
        assert (cell.status, cell.ledger) == ("ok", None)
        assert says in cell.extra["ledger_reason"]
        assert any(says in line for line in result.run["warnings"])


def test_odd_texts_of_a_plugin_do_not_hide_its_failure(build: Build) -> None:
    code = f"""
from capybench import _core
plugin = _core.load_plugin({str(build("bad", '-DNAME="bad"'))!r})
assert [cell["plugin"] for cell in _core.cases()][-1] == "bad"
try:
    _core.Run("bad/odd_text@it")
except _core.CoreError as error:
    print(error.status, ascii(str(error)), plugin["counting"])
"""
    assert bare(code).strip() == r"failed 'no \ufffd\ufffd text' False"


# --- crashes ------------------------------------------------------------------------------------


def test_a_crash_in_a_plugin_is_blamed_on_it_and_the_rest_goes_on(
    build: Build, tmp_path: Path
) -> None:
    path = build("bad", '-DNAME="bad"')
    result = capybench.run(
        ["bad/crash_setup", "bad/crash_run", "bad/good", "bad/nowhere", "noop/op@core"],
        quick=True,
        blocks=2,
        plugins=[path],
        use_installed=False,
        target=tmp_path / "o.json",
    )
    cells = {cell.id: cell for cell in result.cells}
    for name in ("crash_setup", "crash_run"):
        cell = cells[f"bad/{name}@it"]
        assert cell.status == "crashed"
        assert cell.reason == (
            f"block 1: the worker was ended by SIGSEGV (in the plug-in bad, {path})"
        )
    assert cells["bad/nowhere@it"].reason == "there is no such thing anywhere"
    for name in ("bad/good@it", "noop/op@core"):
        assert (cells[name].status, cells[name].summary.n) == ("ok", 2)
    assert result.complete


# --- installed ones -----------------------------------------------------------------------------


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Makes a distribution with an entry point and a module: install("name", body)."""
    monkeypatch.delenv("CAPYBENCH_NO_PLUGINS")
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def make(name: str, body: str, value: str = "") -> None:
        (site / f"{name}_module.py").write_text(body)
        folder = site / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        target = value or f"{name}_module:where"
        (folder / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n{name} = {target}\n")

    return make


def of_tests(found: tuple[Any, ...]) -> list[Any]:
    """Without what is installed here in truth."""
    return [one for one in found if getattr(one, "source", "").startswith("entry point t_")]


def test_entry_points_name_functions_or_modules(build: Build, install: Callable[..., None]) -> None:
    good = build("good", counting=True)
    bad = build("bad", '-DNAME="bad"')
    install("t_good", f"def where():\n    return {str(good)!r}\n")
    told = {"measured": str(bad), "counting": str(good)}
    install("t_module", f"def capybench_plugins():\n    return [{told!r}]\n", "t_module_module")
    files, _ = plugins.installed()
    assert [(file.source, file.path, file.counting) for file in of_tests(files)] == [
        ("entry point t_good", str(good), str(good.with_name("runtime_counting.so"))),
        ("entry point t_module", str(bad), str(good)),
    ]
    names = [plugin.name for plugin in capybench.list_cells().plugins]
    assert {"good", "bad"} <= set(names)
    assert "good" not in {p.name for p in capybench.list_cells(use_installed=False).plugins}


def test_broken_entry_points_are_warnings(
    build: Build, install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("t_good", f"def where():\n    return {str(build('good'))!r}\n")
    install("t_raises", "def where():\n    raise OSError('no\\nluck')\n")
    install("t_number", "def where():\n    return 7\n")
    install("t_absent", "def where():\n    return '/nowhere/x.so'\n")
    install("t_nothing", "pass\n")
    install("t_abi", f"def where():\n    return {str(build('wrong_abi'))!r}\n")
    install("t_crash", f"def where():\n    return {str(build('crash_entry'))!r}\n")
    listing = capybench.list_cells()
    assert "extra/malloc@libc" in {cell.id for cell in listing}
    said = "\n".join(listing.warnings)
    for source, reason in (
        ("t_raises", "OSError: no luck"),
        ("t_number", "TypeError: it names a int"),
        ("t_absent", "there is no plug-in file /nowhere/x.so"),
        ("t_nothing", "AttributeError"),
        ("t_abi", "built for plug-in ABI 99, this core speaks ABI 1"),
        ("t_crash", "crashed: the worker was ended by SIGSEGV"),
    ):
        (line,) = [line for line in said.split("\n") if f"entry point {source}" in line]
        assert "is left out: " in line and reason in line
    assert command("list", "extra") == 0
    out, err = capsys.readouterr()
    assert err.count("capybench: warning: the plug-in") >= 6
    assert "plug-in good 1.2: 2 cells, with" in " ".join(out.split())
    assert command("list", "--no-plugins", "noop") == 0
    assert capsys.readouterr().err == ""


# --- the command line ---------------------------------------------------------------------------


def test_list_and_run_take_plugins(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(build("good", counting=True))
    assert command("list", "extra", "--plugin", path) == 0
    out = capsys.readouterr().out
    assert "extra: from the plug-in good" in out
    assert "a malloc and a free (plug-in good)" in " ".join(out.split())
    assert "plug-in good 1.2: 2 cells, with counts" in " ".join(out.split())
    assert command("list", "extra", "--plugin", path, "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [cell["plugin"] for cell in told["cells"]] == ["good"]
    assert [plugin["name"] for plugin in told["plugins"]] == ["good"]
    target = tmp_path / "o.json"
    words = ("run", "--quick", "--blocks", "1", "extra", "--plugin", path, "--json", str(target))
    assert command(*words) == 0
    assert "malloc" in capsys.readouterr().out
    assert capybench.load(target).machine["build"]["plugins"][0]["version"] == "1.2"


def test_plugins_from_the_project_and_the_environment(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("CAPYBENCH_PLUGIN", str(build("good")))
    assert command("list", "extra") == 0
    assert "extra/malloc@libc" in capsys.readouterr().out


def test_hints_name_the_companion_that_is_missing() -> None:
    from capybench.cases import Cell

    assert any("capybench-boost" in line for line in cli.hints([]))
    brought = [Cell("a/b@c", "a", "b", "c", plugin="boost")]
    assert not any("capybench-boost" in line for line in cli.hints(brought))


def test_resume_refuses_a_plugin_that_has_changed(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "mine.so"
    shutil.copy(build("good"), path)
    listing = list_cells(plugins=[path], use_installed=False)
    plan = make_plan(listing, select(listing, ["extra"]), blocks=2, samples=1, target_ns=1000)

    class Stop:
        def start(self, *_: Any) -> None: ...
        def end(self, *_: Any) -> None: ...
        def worker_done(self, *_: Any) -> None:
            raise RuntimeError("stop here")

    target = tmp_path / "o.json"
    with pytest.raises(RuntimeError, match="stop here"):
        runner.run_plan(plan, target=target, progress=Stop())
    kept = path.read_bytes()
    with open(path, "ab") as file:
        file.write(b"x")
    with pytest.raises(JournalError, match=rf"the plug-in good \({path}\) has changed"):
        runner.resume(target)
    path.unlink()
    with pytest.raises(JournalError, match="cannot be opened"):
        runner.resume(target)
    path.write_bytes(kept)
    document = runner.resume(target)
    assert document["run"]["complete"] is True
    assert document["cells"][0]["status"] == "ok"


# --- verification -------------------------------------------------------------------------------


def test_verify_finds_what_each_bad_cell_does(build: Build) -> None:
    path = build("bad", '-DNAME="bad"', counting=True)
    listing = list_cells(plugins=[path], use_installed=False)
    cells = select(listing, ["bad"])
    found = {one.id: one for one in verification.verify_cells(listing, cells)}
    expected = {
        "good": (),
        "joined_thread": (),
        "crash_setup": ("work: the worker was ended by SIGSEGV (in the plug-in bad",),
        "crash_run": ("work: the worker was ended by SIGSEGV (in the plug-in bad",),
        "half": ("work: set-up 1: 0 of 1 ops were done",),
        "one": ("work: set-up 2: 2 of 3 ops were done",),
        "setup_once": ("work: set-up 2: set up before",),
        "leak_heap": ("leaks: NNN heap bytes more after each set-up and tear-down",),
        "leak_descriptor": ("leaks: 1 descriptors more after each set-up",),
        "leak_thread": ("leaks: 5 threads are left after 5 set-ups",),
        "leak_child": ("work: set-up 1: leaks: a child process is left",),
        "hidden_thread": ("work: set-up 2: this case needs a process that has never created",),
        "odd_text": ("work: set-up 1: no \ufffd\ufffd text",),
        "wrong_ledger": ("counts: 1 heap_allocs an op, the descriptor promises 2",),
    }
    for name, starts in expected.items():
        one = found.pop(f"bad/{name}@it")
        assert one.status == ("failed" if starts else "ok"), one
        for start in starts:
            wanted = re.escape(start).replace("NNN", r"\d+")
            assert any(re.match(wanted, problem) for problem in one.problems), one
    assert {one.id: one.status for one in found.values()} == {"bad/nowhere@it": "unavailable"}


def test_verify_command(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = str(build("good", counting=True)), str(build("bad", '-DNAME="bad"'))
    assert command("verify", good) == 0
    said = capsys.readouterr()
    assert said.out.split("\n")[:2] == ["ok      noop/op@malloc", "ok      extra/malloc@libc"]
    assert "2 ok, 0 failed, 0 unavailable" in said.err
    assert command("verify", "--plugin", bad, "bad/half", "noop/op") == 1
    assert "failed  bad/half@it\n        work: set-up 1: 0 of 1" in capsys.readouterr().out
    assert command("verify", "--plugin", bad, "bad/nowhere") == 5
    capsys.readouterr()
    assert command("verify", "--plugin", bad, "bad/good", "--format", "json") == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["notes"] == ["counts: the plug-in bad has no counting build"]
    assert command("verify", "--plugin", good, "good", "noop/sample") == 0
    ids = [line.split()[1] for line in capsys.readouterr().out.split("\n") if line[:3] == "ok "]
    assert ids == ["noop/op@malloc", "noop/sample@core", "extra/malloc@libc"]
    assert command("verify", str(Path(good).parent / "none.so")) == 2


@pytest.mark.slow
def test_every_cell_of_the_core_is_verified() -> None:
    listing = list_cells(use_installed=False)
    found = verification.verify_cells(listing, listing)
    assert {one.id: one.problems for one in found if one.status == "failed"} == {}
    assert sum(one.status == "ok" for one in found) > 100


# --- the documentation --------------------------------------------------------------------------


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "plugins.md").read_text()
    return [part.partition("\n```")[0] + "\n" for part in text.split(f"```{language}\n")[1:]]


def test_names_of_the_core_follow_the_rule_for_plugins() -> None:
    for cell in list_cells(use_installed=False):
        for name in (cell.suite, *cell.case.split("/"), cell.contender):
            assert name and set(name) <= set(
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+"
            ), cell.id


@pytest.mark.parametrize("which", ["template", "c", "cpp"])
def test_documented_plugins_build_and_are_verified(
    which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strict = ["-Wall", "-Wextra", "-Werror"]
    if which == "template":
        source = ROOT / "docs" / "examples" / "template.c"
    else:
        (text,) = blocks(which)
        source = tmp_path / f"example.{which}"
        source.write_text(text)
    compiler = "g++" if which == "cpp" else "cc"
    flags = ["-std=c++20"] if which == "cpp" else ["-std=c11"]
    for counting, name in ((0, "mine.so"), (1, "mine_counting.so")):
        compile_c(
            source,
            tmp_path / name,
            *flags,
            *strict,
            "-fvisibility=hidden",
            f"-DCOUNTING={counting}",
            compiler=compiler,
        )
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(tmp_path / "mine.so")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "capybench_plugin_v1" in symbols
    assert command("verify", str(tmp_path / "mine.so")) == 0
    out = capsys.readouterr().out
    assert "promises none" not in out and "no counting build" not in out
    assert command("list", "--plugin", str(tmp_path / "mine.so")) == 0
