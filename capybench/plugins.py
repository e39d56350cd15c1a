"""Plug-ins: shared objects that bring cells of their own; found here, opened in workers only.

A plug-in file is named by `--plugin PATH`, by `capybench.load_plugin(path)` or by an installed
distribution's entry point in the group `capybench.plugins`. An entry point names a function without
arguments, or a module with such a function called `capybench_plugins`; it returns a path, a mapping
`{"measured": path, "counting": path or None}`, or a list of these.

The counting build of a plug-in (for the ledger) is the file beside it whose name has `_counting`
before its first dot, unless the entry point names another one: `runtime.so`, `runtime_counting.so`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from capybench.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "capybench.plugins"
#: The function of a module that an entry point names.
MODULE_FUNCTION = "capybench_plugins"
COUNTING_SUFFIX = "_counting"


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A file that is said to be a plug-in. Paths are absolute; `counting` is None without such a
    build. `source` tells who named it; a broken `required` one is an error, else a warning."""

    path: str
    counting: str | None
    source: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plug-in that a worker has opened and accepted. The digests are SHA-256 of the two files;
    the counting one is None where there is no such build."""

    name: str
    version: str
    path: str
    counting: str | None
    source: str
    digest: str
    counting_digest: str | None

    @property
    def file(self) -> PluginFile:
        """The file, to be listed again."""
        return PluginFile(self.path, self.counting, self.source)

    def request(self, *, counting: bool) -> list[dict[str, str]]:
        """What a worker is asked to load: the measured or the counting build."""
        path = self.counting if counting else self.path
        if path is None:
            raise ValueError(f"the plug-in {self.name} has no counting build")
        return [{"path": path, "name": self.name, "version": self.version}]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it stands in results and journals."""
        return asdict(self)


def counting_beside(path: Path) -> Path | None:
    """The counting build that belongs to a plug-in by its name, where it exists."""
    stem, dot, rest = path.name.partition(".")
    beside = path.with_name(f"{stem}{COUNTING_SUFFIX}{dot}{rest}")
    return beside if beside.is_file() else None


def named(
    path: str | os.PathLike[str],
    source: str,
    *,
    counting: str | os.PathLike[str] | None = None,
    required: bool = True,
) -> PluginFile:
    """A plug-in file by its path; PluginError where there is no such file."""
    files = [Path(part).absolute() for part in (path, counting) if part is not None]
    for file in files:
        if not file.is_file():
            raise PluginError(f"there is no plug-in file {file} ({source})")
    beside = files[1] if len(files) > 1 else counting_beside(files[0])
    return PluginFile(str(files[0]), None if beside is None else str(beside), source, required)


# --- entry points -------------------------------------------------------------------------------


def _told(entry: EntryPoint) -> Iterator[tuple[Any, Any]]:
    """(measured, counting) of each plug-in that an entry point's function names."""
    found = entry.load()
    if isinstance(found, ModuleType):
        found = getattr(found, MODULE_FUNCTION)
    told = found()
    for one in told if isinstance(told, list | tuple) else [told]:
        if isinstance(one, Mapping):
            yield one["measured"], one.get("counting")
        elif isinstance(one, str | os.PathLike):
            yield one, None
        else:
            raise TypeError(f"it names a {type(one).__name__} instead of a path or a mapping")


def installed() -> tuple[tuple[PluginFile, ...], tuple[str, ...]]:
    """The plug-ins of installed distributions, by entry point name, and a warning for each entry
    point that does not work."""
    # Imported here: it costs as much as all the rest of a command's start.
    from importlib.metadata import entry_points

    files: list[PluginFile] = []
    warnings: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        source = f"entry point {entry.name}"
        try:
            for measured, counting in _told(entry):
                files.append(named(measured, source, counting=counting, required=False))
        except Exception as error:
            # Whatever a stranger's code raises must not end a command.
            reason = str(error) if isinstance(error, PluginError) else _oneline(error)
            warnings.append(f"the plug-in of {source} ({entry.value}) is left out: {reason}")
    return tuple(files), tuple(warnings)


def _oneline(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


# --- what a command or a session uses -----------------------------------------------------------

#: Plug-ins that `load_plugin` has accepted in this process, in order.
_LOADED: list[Plugin] = []


def wanted(
    paths: Iterable[str | os.PathLike[str]] = (), *, use_installed: bool = True
) -> tuple[tuple[PluginFile, ...], tuple[str, ...]]:
    """All plug-ins to be listed, each file once, and warnings: those of `paths` first, then what
    `load_plugin` added, then installed ones.

    Raises PluginError for a path that is no file.
    """
    files = [named(path, "--plugin") for path in paths]
    files += [plugin.file for plugin in _LOADED]
    warnings: tuple[str, ...] = ()
    if use_installed:
        found, warnings = installed()
        files += found
    once: dict[str, PluginFile] = {}
    for file in files:
        once.setdefault(os.path.realpath(file.path), file)
    return tuple(once.values()), warnings


def load_plugin(
    path: str | os.PathLike[str], *, counting: str | os.PathLike[str] | None = None
) -> Plugin:
    """Add a plug-in's cells to what this Python session lists and runs; returns what it is.

    A worker opens it, never this process. `counting` names its counting build where that does not
    lie beside it (see the module's text).

    Raises:
        PluginError: there is no such file, or it was refused; the message says why.
    """
    from capybench import runner

    file = named(path, "load_plugin", counting=counting)
    others = [plugin.file for plugin in _LOADED if plugin.path != file.path]
    listing = runner.list_in_worker(plugins=[*others, file])
    plugin = next(plugin for plugin in listing.plugins if plugin.path == file.path)
    _LOADED[:] = [other for other in _LOADED if other.path != plugin.path] + [plugin]
    return plugin


def digest(path: str | None) -> str | None:
    """SHA-256 of a file; None for no file."""
    if path is None:
        return None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def accepted(file: PluginFile, told: Mapping[str, Any]) -> Plugin:
    """A plug-in from its file and what the worker read in it."""
    return Plugin(
        name=told["name"],
        version=told["version"],
        path=file.path,
        counting=file.counting,
        source=file.source,
        digest=digest(file.path) or "",
        counting_digest=digest(file.counting),
    )


def changed(then: Sequence[Plugin], now: Sequence[Plugin]) -> str | None:
    """What differs between the plug-ins of a plan and those found now, as a sentence; or None."""
    found = {plugin.name: plugin for plugin in now}
    for plugin in then:
        other = found.get(plugin.name)
        if other is None:
            return f"the plug-in {plugin.name} ({plugin.path}) is gone"
        same = (other.digest, other.counting_digest) == (plugin.digest, plugin.counting_digest)
        if other.version != plugin.version or not same:
            return f"the plug-in {plugin.name} ({plugin.path}) has changed"
    return None
