"""What can be measured: cells as the core lists them, grouped into cases, and their selection.

The core is asked in a worker (`list_cells`), never in this process, and there is no second list in
Python. Selection works on ids, `suite/case@contender`; see `select` for the rules.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from capybench.errors import SelectionError, UsageError

if TYPE_CHECKING:
    from capybench.plugins import Plugin


@dataclass(frozen=True, slots=True)
class Cell:
    """One contender of one case, as the core describes it.

    `unit` is the unit of the metric ("ns/op", "ops/s", "items/s", "bytes/s") and `direction` tells
    which way is better ("lower", "higher"). `thread_mode` is "single" (the process must never have
    made a thread) or "threaded". `step`: op counts come in multiples of it. `cpus`: how many CPUs
    the case is pinned to. `bytes_per_op` is 0 where bytes have no meaning. `python`: measured by
    Python code, the core only names it. `ledger`: expected event counts per op, where known.
    `reason` says why a cell that is not `available` cannot run here.
    """

    id: str
    suite: str
    case: str
    contender: str
    summary: str = ""
    unit: str = "ns/op"
    direction: str = "lower"
    thread_mode: str = "single"
    step: int = 1
    quick: bool = False
    cpus: int = 1
    bytes_per_op: int = 0
    python: bool = False
    latency: bool = False
    ledger: Mapping[str, int] | None = None
    available: bool = True
    reason: str | None = None
    plugin: str | None = None

    @property
    def case_id(self) -> str:
        """The id without its contender: `suite/case`."""
        return f"{self.suite}/{self.case}"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Cell:
        """Make a cell from what the core or a journal says; unknown keys are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in raw.items() if key in known})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `capybench list --format json` prints it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Suite:
    """A family of cases; `baselines` are contender names, best first."""

    name: str
    summary: str = ""
    baselines: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Suite:
        """Make a suite from what the core or a journal says."""
        return cls(raw["name"], raw.get("summary") or "", tuple(raw.get("baselines") or ()))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, "summary": self.summary, "baselines": list(self.baselines)}


@dataclass(frozen=True, slots=True)
class Case:
    """One workload with the cells (contenders) that take part, and the baseline's name."""

    suite: str
    name: str
    cells: tuple[Cell, ...]
    baseline: str

    @property
    def id(self) -> str:
        """`suite/case`."""
        return f"{self.suite}/{self.name}"

    @property
    def cpus(self) -> int:
        """CPUs the case is pinned to: the same for all contenders, the most that one asks for."""
        return max(cell.cpus for cell in self.cells)

    @property
    def contenders(self) -> tuple[str, ...]:
        """Names of the contenders, in the core's order."""
        return tuple(cell.contender for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Variant:
    """The build that is measured: an interpreter and the folder that holds its `capybench`.

    `core` and `ledger` are files of the extensions that measure and count, in place of the
    package's own. A core file without a ledger file has no counts.
    """

    python: str
    path: str
    core: str | None = None
    ledger: str | None = None

    @property
    def counts(self) -> bool:
        """Whether there is a counting build that belongs to the measured one."""
        return self.core is None or self.ledger is not None


@dataclass(frozen=True, slots=True)
class Listing:
    """All that one core and its plug-ins can measure. Iterating gives the cells, in listing order.

    `warnings` tell which installed plug-ins were left out, and why.
    """

    cells: tuple[Cell, ...]
    suites: tuple[Suite, ...]
    build: Mapping[str, str]
    variant: Variant
    plugins: tuple[Plugin, ...] = ()
    warnings: tuple[str, ...] = ()

    def plugin(self, name: str | None) -> Plugin | None:
        """The plug-in of that name, None for the core's own cells."""
        return next((plugin for plugin in self.plugins if plugin.name == name), None)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


def list_cells(
    variant: Variant | None = None,
    *,
    plugins: Iterable[str | os.PathLike[str]] = (),
    use_installed: bool | None = None,
    timeout_s: float = 30.0,
) -> Listing:
    """Ask the core, in a worker, which suites and cells it and its plug-ins have.

    Args:
        variant: the build to ask; the installed one when None.
        plugins: plug-in files to open, besides those that `load_plugin` was given.
        use_installed: also the plug-ins of installed distributions; None means where no variant
            is named.
        timeout_s: seconds after which a worker that does not answer is killed.

    Raises:
        EnvironmentFault: the extension is missing or its worker fails.
        PluginError: a file of `plugins` is missing or was refused.
    """
    # Imported here: the runner needs this module's classes.
    from capybench import plugins as plugin_files
    from capybench import runner

    if use_installed is None:
        use_installed = variant is None
    if variant is not None and not use_installed and not plugins:
        return runner.list_in_worker(variant, timeout_s=timeout_s)
    files, warnings = plugin_files.wanted(plugins, use_installed=use_installed)
    return runner.list_in_worker(variant, plugins=files, warnings=warnings, timeout_s=timeout_s)


# --- order ------------------------------------------------------------------------------------

_DIGITS = re.compile(r"(\d+)")


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key by which "depth2" comes before "depth10"; words compare as text."""
    return tuple(
        (0, int(part), part) if part.isdecimal() else (1, 0, part)
        for part in _DIGITS.split(text)
        if part
    )


def ordered(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Bring the cells of a case together and cases that differ only in numbers into their order.

    Everything else keeps the order in which the core registers it, which follows the published
    tables; contenders keep theirs inside a case.
    """
    suites: dict[str, int] = {}
    shapes: dict[tuple[str, str], int] = {}
    keyed = []
    for place, cell in enumerate(cells):
        shape = (cell.suite, _DIGITS.sub("0", cell.case))
        keyed.append(
            (
                suites.setdefault(cell.suite, place),
                shapes.setdefault(shape, place),
                natural_key(cell.case),
                place,
                cell,
            )
        )
    return tuple(row[-1] for row in sorted(keyed, key=lambda row: row[:-1]))


# --- selection --------------------------------------------------------------------------------


def _glob(pattern: str) -> str:
    """Regular expression of a glob: `*` is anything (also `/` and `@`), `?` one character."""
    return "".join(
        ".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern
    )


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> re.Pattern[str]:
    left, at, right = pattern.rpartition("@")
    if at:
        below = f"{_glob(left.rstrip('/'))}(?:/[^@]*)?@{_glob(right)}"
    else:
        below = f"{_glob(pattern.rstrip('/'))}(?:/[^@]*)?@[^@]*"
    return re.compile(f"(?:{below})|(?:{_glob(pattern)})", re.DOTALL)


def matches(pattern: str, cell_id: str) -> bool:
    """Whether a pattern (see `select`) names the cell of that id."""
    return _matcher(pattern).fullmatch(cell_id) is not None


def keyword_matches(expression: str, cell_id: str) -> bool:
    """Whether a `-k` expression holds for the cell of that id; SelectionError: not readable."""
    return _Keyword(expression)(cell_id)


def _nearest(pattern: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Names that look like `pattern`: of suites, prefixes, cases or, behind an @, contenders."""
    bare = pattern.replace("*", "").replace("?", "")
    names: dict[str, None] = {}
    for cell in cells:
        parts = cell.case_id.split("/")
        for end in range(1, len(parts) + 1):
            names["/".join(parts[:end])] = None
    left, at, right = bare.rpartition("@")
    if not at:
        found = difflib.get_close_matches(bare.rstrip("/"), names, n=3, cutoff=0.5)
        # A name that contains what was typed, or a contender typed without its @, is near, too.
        found += [name for name in names if bare.strip("/") and bare.strip("/") in name]
        contenders = dict.fromkeys(cell.contender for cell in cells)
        found += [f"*@{name}" for name in difflib.get_close_matches(bare, contenders, n=1)]
        return tuple(dict.fromkeys(found))[:3]
    where = _matcher(pattern.rpartition("@")[0] or "*")
    there = [cell for cell in cells if where.fullmatch(cell.id)]
    if there:
        contenders = dict.fromkeys(cell.contender for cell in there)
        close = difflib.get_close_matches(right, contenders, n=3, cutoff=0.4) or list(contenders)
        stem = pattern.rpartition("@")[0]
        return tuple(f"{stem}@{name}" for name in close[:3])
    return tuple(difflib.get_close_matches(left, names, n=3, cutoff=0.5))


def select(
    cells: Iterable[Cell],
    patterns: Sequence[str] = (),
    keyword: str | None = None,
    *,
    quick_only: bool = False,
) -> tuple[Cell, ...]:
    """Choose cells, in listing order; a cell that several patterns name comes once.

    Args:
        cells: what there is, for instance a `Listing`.
        patterns: globs on ids. `*` crosses `/` and `@`, `?` is one character, `[` is literal. A
            pattern without `@` means every contender; a bare prefix (`coroutine`,
            `read_stream/stdexec`, `coroutine@task`) all below it. None means all cells.
        keyword: expression like pytest's `-k`: substrings of the id, `and`, `or`, `not`, `()`.
        quick_only: without patterns, only the cases marked quick, with all their contenders.

    Raises:
        SelectionError: a pattern matches nothing (with the nearest names), or the keyword
            expression cannot be read or leaves nothing.
    """
    everything = tuple(cells)
    if not everything:
        raise SelectionError("there are no cells to select from", " ".join(patterns))
    chosen: list[Cell]
    if patterns:
        hit: set[str] = set()
        for pattern in patterns:
            match = _matcher(pattern).fullmatch
            found = {cell.id for cell in everything if match(cell.id)}
            if not found:
                nearest = _nearest(pattern, everything)
                hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
                raise SelectionError(
                    f"no cell matches {pattern!r}{hint} (capybench list shows all)",
                    pattern,
                    nearest,
                )
            hit |= found
        chosen = [cell for cell in everything if cell.id in hit]
    elif quick_only:
        marked = {cell.case_id for cell in everything if cell.quick}
        chosen = [cell for cell in everything if cell.case_id in marked]
        if not chosen:
            raise SelectionError(
                "no case is marked quick; name cells, for instance --quick coroutine", ""
            )
    else:
        chosen = list(everything)
    if keyword is not None:
        keep = _Keyword(keyword)
        chosen = [cell for cell in chosen if keep(cell.id)]
        if not chosen:
            raise SelectionError(f"no selected cell matches -k {keyword!r}", keyword)
    return ordered(chosen)


class _Keyword:
    """A `-k` expression: or < and < not, words are substrings, case is ignored."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = re.findall(r"\(|\)|[^\s()]+", text)
        self._place = 0
        self._tree = self._or()
        if self._place != len(self._tokens):
            raise self._error(f"{self._tokens[self._place]!r} is not expected there")

    def __call__(self, name: str) -> bool:
        return self._holds(self._tree, name.lower())

    def _error(self, what: str) -> SelectionError:
        return SelectionError(
            f"cannot read -k {self._text!r}: {what}; "
            "write for instance 'strand and not (depth2 or callback)'",
            self._text,
        )

    def _next(self, *words: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place].lower() in words:
            self._place += 1
            return True
        return False

    def _or(self) -> tuple[Any, ...]:
        tree = self._and()
        while self._next("or"):
            tree = ("or", tree, self._and())
        return tree

    def _and(self) -> tuple[Any, ...]:
        tree = self._not()
        while self._next("and"):
            tree = ("and", tree, self._not())
        return tree

    def _not(self) -> tuple[Any, ...]:
        if self._next("not"):
            return ("not", self._not())
        if self._next("("):
            tree = self._or()
            if not self._next(")"):
                raise self._error("a ')' is missing")
            return tree
        if self._place == len(self._tokens):
            raise self._error("a word is missing at the end")
        word = self._tokens[self._place]
        if word.lower() in ("and", "or", ")"):
            raise self._error(f"a word is missing before {word!r}")
        self._place += 1
        return ("word", word.lower())

    def _holds(self, tree: tuple[Any, ...], name: str) -> bool:
        kind = tree[0]
        if kind == "word":
            return tree[1] in name
        if kind == "not":
            return not self._holds(tree[1], name)
        left = self._holds(tree[1], name)
        if kind == "and":
            return left and self._holds(tree[2], name)
        return left or self._holds(tree[2], name)


# --- cases and baselines ----------------------------------------------------------------------


def group(
    cells: Iterable[Cell], suites: Iterable[Suite] = (), baseline: str | None = None
) -> tuple[Case, ...]:
    """Group cells into cases, in order, and choose each case's baseline.

    The baseline is `baseline` where the case has that contender; otherwise the first of the
    suite's list that takes part and is available, then the first available cell.

    Raises:
        UsageError: no selected case has the contender `baseline`.
    """
    preferred = {suite.name: suite.baselines for suite in suites}
    by_case: dict[str, list[Cell]] = {}
    for cell in cells:
        by_case.setdefault(cell.case_id, []).append(cell)
    if baseline is not None:
        names = dict.fromkeys(cell.contender for row in by_case.values() for cell in row)
        if baseline not in names:
            raise UsageError(
                f"no selected case has a contender {baseline!r} to be the baseline; "
                f"there are: {', '.join(names)}"
            )
    made = []
    for row in by_case.values():
        ready = [cell.contender for cell in row if cell.available] or [row[0].contender]
        wish = (*((baseline,) if baseline else ()), *preferred.get(row[0].suite, ()))
        # An explicit choice holds also when that cell cannot run: the table then says so.
        explicit = baseline in [cell.contender for cell in row]
        name = (
            baseline
            if baseline is not None and explicit
            else next((wanted for wanted in wish if wanted in ready), ready[0])
        )
        made.append(Case(row[0].suite, row[0].case, tuple(row), name))
    return tuple(made)
