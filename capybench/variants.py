"""Variants: builds that are measured side by side in one run, for instance `base` and `head`.

A variant is written as one of

    ENV        a virtual environment with capybench in it, its plug-ins included
    PYTHON     an interpreter, for the capybench that it imports
    FOLDER     a folder that holds a built package `capybench`, such as a checkout
    CORE.so    a file of the extension `_core`, in place of the installed one; `_ledger` beside it
               (the same name but for that word) counts
    PLUGIN.so  a plug-in file, with the installed core
    installed  the capybench that runs this

    listings = list_variants({"base": "../old/.venv", "head": "installed"})
    listing = union(listings)
    plan = make_plan(listing, cases.select(listing, patterns), variants=listings)
    document = runner.run_plan(plan)
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capybench import plugins as plugin_files
from capybench import runner
from capybench.cases import Cell, Listing, Suite, Variant, ordered
from capybench.errors import PluginError, UsageError
from capybench.plugins import PluginFile

INSTALLED = "installed"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}")
#: Symbols that tell an extension file from a plug-in; both are read, never loaded.
_CORE_SYMBOL, _PLUGIN_SYMBOL = b"PyInit__core", b"capybench_plugin_v1"

#: Asked of another environment's interpreter: where its package is, and its plug-ins. A version
#: that knows none has none.
_PROBE = """
import json, os, sys
import capybench
files, warnings = (), ()
try:
    from capybench import plugins
except ImportError:
    pass
else:
    files, warnings = plugins.installed()
print(json.dumps({
    "path": os.path.dirname(os.path.dirname(os.path.abspath(capybench.__file__))),
    "plugins": [[file.path, file.counting, file.source] for file in files],
    "warnings": list(warnings),
}))
"""
_PROBE_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a variant's text stands for: the build, plug-in files of its own, and warnings."""

    variant: Variant
    plugins: tuple[PluginFile, ...] = ()
    warnings: tuple[str, ...] = ()


def _holds(path: Path, symbol: bytes) -> bool:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(symbol) >= 0


def _probe(python: Path, text: str) -> Resolved:
    """The capybench that an interpreter imports, without the user's folders."""
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"the variant {text} cannot be asked: {error}") from None
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise UsageError(f"the variant {text} has no capybench to measure: {last}")
    told: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    files = tuple(
        PluginFile(path, counting, f"{source} of {text}", required=False)
        for path, counting, source in told["plugins"]
    )
    warnings = tuple(f"{text}: {warning}" for warning in told["warnings"])
    return Resolved(Variant(str(python), told["path"]), files, warnings)


def _shared_object(path: Path, text: str) -> Resolved:
    """A core file or a plug-in file, told apart by the function that it exports."""
    own = runner.installed_variant()
    if _holds(path, _CORE_SYMBOL):
        beside = path.with_name(path.name.replace("_core", "_ledger", 1))
        ledger = str(beside) if beside != path and beside.is_file() else None
        return Resolved(Variant(own.python, own.path, str(path), ledger))
    if _holds(path, _PLUGIN_SYMBOL):
        return Resolved(own, (plugin_files.named(path, f"variant {text}"),))
    raise UsageError(
        f"the variant {text} is neither a core file (it has no {_CORE_SYMBOL.decode()}) nor a "
        f"plug-in (it has no {_PLUGIN_SYMBOL.decode()})"
    )


def resolve(text: str | os.PathLike[str]) -> Resolved:
    """What a variant stands for; see the module's text.

    Raises:
        UsageError: there is no such thing, or nothing to measure in it.
    """
    shown = os.fspath(text)
    if shown == INSTALLED:
        return Resolved(runner.installed_variant())
    path = Path(shown).absolute()
    if (path / "bin" / "python").exists():
        return _probe(path / "bin" / "python", shown)
    if (path / "capybench" / "__init__.py").is_file():
        return Resolved(Variant(sys.executable, str(path)))
    if path.is_dir():
        raise UsageError(
            f"the variant {shown} is a folder with neither bin/python nor a package capybench"
        )
    if not path.is_file():
        raise UsageError(
            f"the variant {shown} does not exist; write an environment, a python, a core file, "
            f"a plug-in file, or {INSTALLED!r}"
        )
    if ".so" in path.suffixes:
        return _shared_object(path, shown)
    if os.access(path, os.X_OK):
        return _probe(path, shown)
    raise UsageError(f"the variant {shown} is neither a python nor a shared object")


def check_names(names: Iterable[str]) -> None:
    """UsageError unless these can name variants."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"a variant cannot be named {name!r}: letters, digits and _.+- are allowed, "
                "at most 40"
            )


def list_variants(
    variants: Mapping[str, str | os.PathLike[str]],
    *,
    plugins: Iterable[str | os.PathLike[str]] = (),
    use_installed: bool = True,
) -> dict[str, Listing]:
    """List every variant, in the order given; the last one is the one under test.

    Args:
        variants: names and what they stand for.
        plugins: plug-in files that belong to every variant.
        use_installed: also installed plug-ins: those of this environment for variants that run in
            it, its own for another environment.

    Raises:
        UsageError: a name or a variant is wrong.
        EnvironmentFault: a build cannot be listed, or it speaks another worker protocol; the
            message names both versions.
    """
    check_names(variants)
    found = {}
    for name, text in variants.items():
        one = resolve(text)
        here = one.variant.python == runner.installed_variant().python
        files, warnings = plugin_files.wanted(plugins, use_installed=use_installed and here)
        # A variant's own file comes first: an installed one with the same cells gives way.
        own = one.plugins if use_installed or here else ()
        listing = runner.list_in_worker(
            one.variant, plugins=(*own, *files), warnings=(*one.warnings, *warnings)
        )
        if here and (lost := [p.path for p in own if p.path not in _paths(listing)]):
            raise PluginError(f"the variant {name} lacks its plug-in {lost[0]}")
        found[name] = listing
    return found


def _paths(listing: Listing) -> set[str]:
    return {plugin.path for plugin in listing.plugins}


def union(listings: Mapping[str, Listing]) -> Listing:
    """One listing of all that the variants have, to select from.

    A cell is described as in the last variant that has it and is available where it is in any; its
    step fits all of them. Build, variant and plug-ins are those of the last.
    """
    last = list(listings.values())[-1]
    cells: dict[str, Cell] = {cell.id: cell for cell in last}
    suites: dict[str, Suite] = {suite.name: suite for suite in last.suites}
    for listing in reversed(list(listings.values())[:-1]):
        for suite in listing.suites:
            suites.setdefault(suite.name, suite)
        for cell in listing:
            known = cells.setdefault(cell.id, cell)
            cells[cell.id] = replace(
                known,
                step=math.lcm(known.step, cell.step),
                cpus=max(known.cpus, cell.cpus),
                available=known.available or cell.available,
                reason=None if cell.available else known.reason,
            )
    warnings = dict.fromkeys(line for listing in listings.values() for line in listing.warnings)
    return replace(
        last,
        cells=ordered(cells.values()),
        suites=tuple(suites.values()),
        warnings=tuple(warnings),
    )
