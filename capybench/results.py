"""Results of a run: frozen records, the `capybench/1` file, and summaries computed from samples.

A run is a JSON document (capybench/schema/capybench-1.schema.json). Integers are in base units
(ns, bytes, counts), what is missing is null with a reason, unknown fields survive a round trip.
Whatever a file says about summaries or ratios is ignored: both are computed from `samples_ns`.

    result = load("run.json")
    for cell in result.cells:
        print(cell.id, cell.summary.median, cell.unit)
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import stats
from .errors import UsageError
from .latency import Histogram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .explain import Difference, Explanation

SCHEMA = "capybench/1"
STATUSES = ("ok", "failed", "invalid", "unavailable", "timeout", "crashed")
UNITS = ("ns/op", "ops/s", "items/s", "bytes/s")
DIRECTIONS = ("lower", "higher")
#: Samples travel in unsigned 64-bit buffers; what a file states beyond that is cut off and flagged.
SAMPLE_MAX_NS = 2**64 - 1

BELOW_RESOLUTION = "below clock resolution"
SATURATED = "a sample beyond 2^64-1 ns was cut off there"

#: Documents of earlier schemas to the next one, by the name of the schema they read.
MIGRATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}

_CELL_KEYS = (
    "id",
    "suite",
    "case",
    "contender",
    "unit",
    "direction",
    "thread_mode",
    "bytes_per_op",
    "status",
    "reason",
    "ops",
    "baseline",
    "processes",
    "counters",
    "ledger",
)
_PROCESS_KEYS = ("block", "order", "cpu", "samples_ns", "single_before", "single_after")
#: Fields that are computed here and therefore never read.
_DERIVED_KEYS = ("summary", "ratio")


class ResultError(UsageError):
    """A document that is not a result of this tool; the message names the place in it."""


class UnknownContenderError(UsageError):
    """A baseline was asked for that no case of the run has; the message names those present."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What the samples of a cell say, in the cell's unit; null where they say nothing.

    `median` is over processes of median(samples)/ops, `mad` is 1.4826 times the median absolute
    deviation, `ci_low`..`ci_high` an interval of the median with coverage `ci_level`, `low` and
    `high` the range of the processes, `n` their number, `outliers` those beyond Tukey's fences
    (mild, severe), `reason` why something is null, `notes` what a reader must know.
    """

    median: float | None = None
    mad: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    outliers: tuple[int, int] = (0, 0)
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The `summary` object of a cell in the file."""
        return {
            "median": self.median,
            "mad": self.mad,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "ci_level": self.ci_level,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "outliers_mild": self.outliers[0],
            "outliers_severe": self.outliers[1],
            "reason": self.reason,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """One worker: the samples of one cell in one block.

    `samples_ns` are whole samples of the cell's `ops` operations; None marks a sample that is not a
    number. `order` is its place in the case, `cpu` the CPU (or list of CPUs) it was pinned to,
    `single_before` and `single_after` say whether the process was single-threaded then. `extra`
    keeps every other field (usage, warm-up, facts, flags).
    """

    block: int
    order: int | None
    cpu: Any
    samples_ns: tuple[int | None, ...]
    single_before: bool | None
    single_after: bool | None
    extra: Mapping[str, Any]

    @property
    def variant(self) -> str | None:
        """Name of the variant that it measured; None in a run of one build."""
        name = self.extra.get("variant")
        return name if isinstance(name, str) else None

    @property
    def repeat(self) -> int:
        """How often its pair had been measured in this block before."""
        count = _whole(self.extra.get("repeat"))
        return count if isinstance(count, int) else 0

    @classmethod
    def from_dict(cls, raw: object, where: str) -> ProcessResult:
        """Check and read one element of `processes`; `where` names it in errors."""
        data = _object(raw, where)
        _optional(data, "variant", where, str)
        _optional(data, "repeat", where, int)
        return cls(
            block=_integer(data, "block", where, least=0),
            order=_optional(data, "order", where, int),
            cpu=data.get("cpu"),
            samples_ns=_samples(data, where),
            single_before=_optional(data, "single_before", where, bool),
            single_after=_optional(data, "single_after", where, bool),
            extra=_rest(data, _PROCESS_KEYS),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document's form."""
        return {
            "block": self.block,
            "order": self.order,
            "cpu": self.cpu,
            "samples_ns": list(self.samples_ns),
            "single_before": self.single_before,
            "single_after": self.single_after,
            **self.extra,
        }

    def median_ns(self) -> float | None:
        """Median of the samples in ns (for `ops` operations), None without a usable sample."""
        usable = [_saturated(sample) for sample in self.samples_ns if sample is not None]
        # Integers beyond 2^53 are rounded to a double here: one part in 10^16.
        return stats.median(np.array(usable, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell of a run. `status` is what the samples allow, also where the file claimed more."""

    id: str
    suite: str
    case: str
    contender: str
    unit: str
    direction: str
    thread_mode: str | None
    bytes_per_op: int
    status: str
    reason: str | None
    ops: int | None
    baseline: bool
    processes: tuple[ProcessResult, ...]
    counters: Mapping[str, Any] | None
    ledger: Mapping[str, Any] | None
    summary: Summary
    extra: Mapping[str, Any]

    @classmethod
    def from_dict(cls, raw: object, where: str) -> CellResult:
        """Check and read one element of `cells`, and summarise its samples."""
        data = _object(raw, where)
        processes = tuple(
            ProcessResult.from_dict(item, f"{where}.processes[{index}]")
            for index, item in enumerate(_list(data, "processes", where))
        )
        # A cell of several variants says what the last one did, the one under test.
        names = _variant_names(data, where)
        own = [process for process in processes if not names or process.variant == names[-1]]
        ops = _optional(data, "ops", where, int)
        unit = _choice(data, "unit", where, UNITS)
        bytes_per_op = _optional(data, "bytes_per_op", where, int) or 0
        status = _choice(data, "status", where, STATUSES)
        reason = _optional(data, "reason", where, str)
        if status == "ok" and (fault := _fault(own, ops, unit, bytes_per_op)):
            status, reason = "invalid", fault
        summary = (
            _summarise(own, ops, unit, bytes_per_op)
            if status == "ok"
            else Summary(n=0, reason=reason or status)
        )
        return cls(
            id=_string(data, "id", where),
            suite=_string(data, "suite", where),
            case=_string(data, "case", where),
            contender=_string(data, "contender", where),
            unit=unit,
            direction=_choice(data, "direction", where, DIRECTIONS),
            thread_mode=_optional(data, "thread_mode", where, str),
            bytes_per_op=bytes_per_op,
            status=status,
            reason=reason,
            ops=ops,
            baseline=bool(_optional(data, "baseline", where, bool)),
            processes=processes,
            counters=_optional(data, "counters", where, dict),
            ledger=_optional(data, "ledger", where, dict),
            summary=summary,
            extra=_rest(data, (*_CELL_KEYS, *_DERIVED_KEYS)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document's form, with the computed summary."""
        return {
            **{key: getattr(self, key) for key in _CELL_KEYS if key not in _NESTED_KEYS},
            **self.extra,
            "summary": self.summary.to_dict(),
            "counters": _plain(self.counters),
            "ledger": _plain(self.ledger),
            "processes": [process.to_dict() for process in self.processes],
        }

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants that were measured, the last one under test; none in a run of one
        build."""
        return _variant_names({"variants": self.extra.get("variants")}, self.id)

    def processes_of(self, variant: str | None = None) -> tuple[ProcessResult, ...]:
        """The processes of a variant, in the order they ran; None means the one under test."""
        name = variant if variant is not None or not self.variants else self.variants[-1]
        return tuple(process for process in self.processes if process.variant == name)

    def of_variant(self, name: str) -> CellResult | None:
        """The cell as if only that variant had been measured; None where that build lacks it.

        LookupError where the cell has no such variant.
        """
        told = {one["name"]: one for one in self.extra.get("variants") or ()}
        if name not in told:
            raise LookupError(f"{self.id} has no variant {name!r}; it has: {', '.join(told)}")
        if told[name].get("absent"):
            return None
        keys = ("status", "reason", "counters", "ledger", "ledger_reason")
        data = {**self.to_dict(), **{key: told[name].get(key) for key in keys}, "variants": None}
        data["processes"] = [process.to_dict() for process in self.processes_of(name)]
        return CellResult.from_dict(data, self.id)

    def by_block(self) -> dict[int, float]:
        """Median of each process in the cell's unit, by block; empty unless the cell is ok.

        Of several processes in one block the last one counts: it is the repeat.
        """
        if self.status != "ok" or not self.ops:
            return {}
        own = self.processes_of() if self.variants else self.processes
        medians = ((process.block, process.median_ns()) for process in own)
        return {
            block: _metric(ns, self.ops, self.unit, self.bytes_per_op)
            for block, ns in medians
            if ns is not None
        }

    @property
    def case_id(self) -> str:
        """`suite/case`."""
        return f"{self.suite}/{self.case}"

    @property
    def latency(self) -> Histogram | None:
        """Latencies of single ops over all processes, None where the cell has none.

        Raises ResultError where the file's histogram cannot be read.
        """
        raw = self.extra.get("latency")
        if raw is None:
            return None
        try:
            return Histogram.from_dict(raw)
        except ValueError as error:
            raise ResultError(f"{self.id}: its latency histogram {error}") from None

    def per_op(self, name: str) -> float | None:
        """An event count per op, from `counters` (`<name>_per_op`) or the ledger; None: unknown."""
        for source, key in ((self.counters, f"{name}_per_op"), (self.ledger, name)):
            value = source.get(key) if source else None
            if isinstance(value, int | float) and math.isfinite(value):
                return value
        return None


_NESTED_KEYS = ("processes", "counters", "ledger")


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole run: settings, machine facts and cells, in the order of the file."""

    run: Mapping[str, Any]
    machine: Mapping[str, Any]
    cells: tuple[CellResult, ...]
    extra: Mapping[str, Any]

    @classmethod
    def from_dict(cls, raw: object) -> RunResult:
        """Check a `capybench/1` document (older ones are migrated) and summarise its samples.

        Raises ResultError naming the first field that is wrong.
        """
        data = _migrated(_object(raw, "the document"))
        cells = tuple(
            CellResult.from_dict(item, f"cells[{index}]")
            for index, item in enumerate(_list(data, "cells", "the document"))
        )
        seen: set[str] = set()
        for cell in cells:
            if cell.id in seen:
                raise ResultError(f"the cell {cell.id!r} stands in it twice")
            seen.add(cell.id)
        return cls(
            run=_object(data.get("run"), "run"),
            machine=_object(data.get("machine"), "machine"),
            cells=cells,
            extra=_rest(data, ("schema", "run", "machine", "cells")),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document, with computed summaries; NaN and infinities become null."""
        document: dict[str, Any] = _without_nan(
            {
                "schema": SCHEMA,
                **self.extra,
                "run": dict(self.run),
                "machine": dict(self.machine),
                "cells": [cell.to_dict() for cell in self.cells],
            }
        )
        return document

    def to_json(self) -> str:
        """The text of the file: one line a cell, so that files can be read and compared by line."""
        return document_text(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file whole or not at all. OSError leaves an existing file untouched."""
        write_atomic(path, self.to_json())

    def cell(self, cell_id: str) -> CellResult:
        """The cell of that id; LookupError where there is none."""
        for cell in self.cells:
            if cell.id == cell_id:
                return cell
        raise LookupError(f"no cell {cell_id!r} in this run")

    @property
    def seed(self) -> int:
        """Seed of the run, 0 where the file has none."""
        seed = self.run.get("seed")
        return seed if isinstance(seed, int) and seed >= 0 else 0

    @property
    def complete(self) -> bool:
        """Whether every planned worker has finished."""
        return self.run.get("complete") is not False

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped by its user."""
        return self.run.get("interrupted") is True

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants of the run, the last one under test; none in a run of one build."""
        return _variant_names(self.run, "run")

    def variant(self, name: str) -> RunResult:
        """The run as if only that variant had been measured; cells that it lacks are left out.

        LookupError where the run has no such variant.
        """
        told = {one["name"]: one for one in self.run.get("variants") or ()}
        if name not in told:
            raise LookupError(f"the run has no variant {name!r}; it has: {', '.join(told)}")
        cells = (cell.of_variant(name) for cell in self.cells)
        return RunResult(
            run={**self.run, "variants": None, "variant": name},
            machine={**self.machine, "build": told[name].get("build")},
            cells=tuple(cell for cell in cells if cell is not None),
            extra=self.extra,
        )

    def _repr_html_(self) -> str:
        from . import htmltable, tables

        made = tables.summary_tables(self)
        legend = tables.legend_lines(made)
        return htmltable.block(made, tables.heading_lines(self), legend)

    def plot(self, kind: str = "forest", **options: Any) -> Figure:
        """A drawing of this run: one of `capybench.plot.KINDS`, as a matplotlib Figure.

        `options` are those of `capybench.plot.draw`: `only`, `baseline`, `margin`, `theme`. Needs
        the extra `capybench[plot]`; UsageError without it.
        """
        from . import plot

        return plot.draw(kind, self, **options)

    def explain(self, cell_id: str, against: str | None = None) -> Explanation | Difference:
        """Where the nanoseconds of a cell go, or which events make it differ from another.

        The run must hold `primitives` and `noop/op`; errors as of `capybench.explain.explain`.
        """
        from . import explain

        if against is None:
            return explain.explain(self, cell_id)
        return explain.difference(self, against, cell_id)

    def ratio_of(self, cell: CellResult, baseline: CellResult) -> stats.Ratio:
        """Ratio of two cells of this run over the blocks that both have, in the cells' unit."""
        if cell.unit != baseline.unit:
            raise ValueError(f"{cell.id} is in {cell.unit}, {baseline.id} in {baseline.unit}")
        above, below = cell.by_block(), baseline.by_block()
        blocks = sorted(above.keys() & below.keys())
        return stats.paired_ratio(
            [above[block] for block in blocks],
            [below[block] for block in blocks],
            seed=self.seed,
            resolution=_clock_step(cell) + _clock_step(baseline),
        )

    def baselines(self, contender: str | None = None) -> dict[tuple[str, str], CellResult]:
        """The cell that the others of its case are compared with, by (suite, case).

        `contender` asks for one instead of each case's own; a case without it is then left out, and
        UnknownContenderError is raised where no case has it.
        """
        chosen: dict[tuple[str, str], CellResult] = {}
        for cell in self.cells:
            if cell.baseline if contender is None else cell.contender == contender:
                chosen.setdefault((cell.suite, cell.case), cell)
        if contender is not None and not chosen:
            present = ", ".join(sorted({cell.contender for cell in self.cells})) or "none"
            raise UnknownContenderError(
                f"no cell of this run has the contender {contender!r}; present: {present}"
            )
        return chosen


def load(path: str | os.PathLike[str]) -> RunResult:
    """Read a result file.

    Raises ResultError (its message begins with the file's name, and gives the byte offset of broken
    JSON) or OSError.
    """
    try:
        return RunResult.from_dict(parse(Path(path).read_bytes()))
    except ResultError as error:
        raise ResultError(f"{os.fspath(path)}: {error}") from None


def parse(data: bytes) -> object:
    """JSON value of a file's bytes; ResultError with the byte offset where it is broken."""
    try:
        text = data.decode("utf-8")
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise ResultError(
            f"not UTF-8 at byte {error.start} of {len(data)}: not a result file"
        ) from None
    except json.JSONDecodeError as error:
        raise ResultError(_broken_json(error, len(data))) from None
    except RecursionError:
        raise ResultError("nested too deeply for a result file") from None
    except ValueError:
        # The only other ValueError of the parser: an integer of more than 4,300 digits.
        raise ResultError("a number in it has too many digits") from None


def _broken_json(error: json.JSONDecodeError, size: int) -> str:
    offset = len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))
    ends = not error.doc[error.pos :].strip() or error.msg.startswith("Unterminated string")
    if ends:
        return f"truncated: the JSON breaks off at byte {offset} of {size} ({error.msg})"
    return f"not valid JSON at byte {offset} of {size} ({error.msg})"


def write_atomic(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to a temporary file beside `path`, sync it, rename it; all or nothing."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:80]}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a result is as readable as any file of its user.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink()
        raise


def _umask() -> int:
    """The process' umask, read without changing it where the kernel tells."""
    try:
        match = re.search(r"^Umask:\s*([0-7]+)", Path("/proc/self/status").read_text(), re.M)
    except OSError:
        match = None
    return int(match[1], 8) if match else 0o077


def document_text(document: Mapping[str, Any]) -> str:
    """JSON text of a document, one line a top-level field and a line a cell."""
    fields = []
    for key, value in document.items():
        if key == "cells" and value:
            lines = ",\n  ".join(_compact(cell) for cell in value)
            fields.append(f'"cells": [\n  {lines}\n ]')
        else:
            fields.append(f"{json.dumps(key)}: {_compact(value)}")
    return "{" + ",\n ".join(fields) + "}\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return value


# ---- summaries -----------------------------------------------------------------------------------


def _metric(ns: float, ops: int, unit: str, bytes_per_op: int) -> float:
    """A sample of `ns` for `ops` operations in `unit`; NaN: a rate without time to divide by."""
    if unit == "ns/op":
        return ns / ops
    if ns == 0:
        return math.nan
    amount = float(ops) * (bytes_per_op if unit == "bytes/s" else 1)
    return amount * 1e9 / ns


def _saturated(sample: int) -> int:
    return min(sample, SAMPLE_MAX_NS)


def _clock_step(cell: CellResult) -> float:
    """One nanosecond relative to the cell's shortest process median: a clock sees no less."""
    own = cell.processes_of() if cell.variants else cell.processes
    medians = [ns for process in own if (ns := process.median_ns())]
    return 1 / min(medians) if medians else 0.0


def _fault(
    processes: Sequence[ProcessResult], ops: int | None, unit: str, bytes_per_op: int
) -> str | None:
    """Why samples that claim to be ok give no number; None when they do."""
    if not any(process.samples_ns for process in processes):
        return "no samples"
    if ops is None or ops < 1:
        return "the number of ops of a sample is missing"
    if ops > 2**63:
        return "the number of ops of a sample is beyond 2^63"
    if unit == "bytes/s" and not 1 <= bytes_per_op <= 2**63:
        return "the number of bytes of an op is missing"
    for process in processes:
        for index, sample in enumerate(process.samples_ns):
            if sample is None or sample < 0:
                fault = "is not a number" if sample is None else "is negative"
                return f"sample {index + 1} of block {process.block} {fault}"
    return None


def _summarise(
    processes: Iterable[ProcessResult], ops: int | None, unit: str, bytes_per_op: int
) -> Summary:
    if ops is None:
        raise ValueError("a cell without ops has no summary")
    filled = [process for process in processes if process.samples_ns]
    medians = np.array([process.median_ns() for process in filled], dtype=np.float64)
    values = np.array([_metric(float(ns), ops, unit, bytes_per_op) for ns in medians])
    notes = []
    if any(sample == 0 for process in filled for sample in process.samples_ns):
        notes.append(BELOW_RESOLUTION)
    if any((sample or 0) > SAMPLE_MAX_NS for process in filled for sample in process.samples_ns):
        notes.append(SATURATED)
    if not np.isfinite(values).all():
        return Summary(n=len(filled), reason=BELOW_RESOLUTION, notes=tuple(notes))
    middle = float(np.median(values))
    step = abs(middle) / float(np.median(medians)) if np.median(medians) else 1 / ops
    interval = stats.median_interval(values, resolution=step)
    least = stats.MIN_BLOCKS
    reason = None if interval else f"an interval needs {least} processes, there are {len(filled)}"
    return Summary(
        median=middle,
        mad=stats.scaled_mad(values),
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
        ci_level=interval.level if interval else None,
        low=float(values.min()),
        high=float(values.max()),
        n=len(filled),
        outliers=stats.outliers(values),
        reason=reason,
        notes=tuple(notes),
    )


# ---- reading a document --------------------------------------------------------------------------


def _migrated(data: dict[str, Any]) -> dict[str, Any]:
    schema = data.get("schema")
    while isinstance(schema, str) and schema in MIGRATIONS:
        data = MIGRATIONS[schema](data)
        schema = data.get("schema")
    if schema != SCHEMA:
        raise ResultError(f"its schema is {schema!r}, this version reads {SCHEMA!r}")
    return data


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ResultError(f"{where} is {_kind(value)}, not an object")
    return value


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value"}
    return "missing" if value is None else names.get(type(value), "a number")


def _plain(mapping: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if mapping is None else dict(mapping)


def _rest(data: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in known}


def _list(data: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        raise ResultError(f"{where}: {key!r} is {_kind(value)}, not a list")
    return value


def _variant_names(data: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Names in the field `variants`, which is null or missing in a run of one build."""
    if data.get("variants") is None:
        return ()
    where = f"{where}.variants"
    told = [_object(one, where) for one in _list(data, "variants", where)]
    names = [_string(one, "name", where) for one in told]
    if not names or len(set(names)) != len(names):
        raise ResultError(f"{where} must have different names, at least one")
    return tuple(names)


def _string(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise ResultError(f"{where}: {key!r} is {_kind(value)}, not a string")
    return value


def _choice(data: Mapping[str, Any], key: str, where: str, choices: Sequence[str]) -> str:
    value = _string(data, key, where)
    if value not in choices:
        raise ResultError(f"{where}: {key!r} is {value!r}, not one of {', '.join(choices)}")
    return value


def _whole(value: object) -> object:
    """JSON writes 1.0 and 1e9 for integers too; anything else is passed through."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _integer(data: Mapping[str, Any], key: str, where: str, least: int) -> int:
    value = _whole(data.get(key))
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ResultError(f"{where}: {key!r} must be an integer of at least {least}")
    return value


def _optional(data: Mapping[str, Any], key: str, where: str, kind: type[Any]) -> Any:
    value = data.get(key)
    if kind is int:
        value = _whole(value)
    wrong_truth = kind is int and isinstance(value, bool)
    if value is not None and (wrong_truth or not isinstance(value, kind)):
        names = {int: "an integer", bool: "a truth value", str: "a string", dict: "an object"}
        raise ResultError(f"{where}: {key!r} is {_kind(value)}, not {names[kind]} or null")
    return value


def _samples(data: Mapping[str, Any], where: str) -> tuple[int | None, ...]:
    """Samples as integers; null, NaN and infinities become None, which makes the cell invalid."""
    samples: list[int | None] = []
    for index, raw in enumerate(_list(data, "samples_ns", where)):
        value = None if isinstance(raw, float) and not math.isfinite(raw) else _whole(raw)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ResultError(f"{where}: samples_ns[{index}] is {raw!r}, not a whole number of ns")
        samples.append(value)
    return tuple(samples)
