"""Thresholds of a gate: what may change, and what must hold.

    median:5%                       the cost of no cell may grow by more than 5 %
    socket_latency/*: p99:10%       scoped by a glob on ids, as patterns of a command
    throughput:-3%                  rates may fall by 3 %
    p99:200us                       an absolute change, in a unit of time
    allocs:0                        event counts may not grow
    instructions:0.5%
    allocs<=2                       a limit on the run by itself, without a baseline
    ratio(read_stream/stdexec/erased/awaitable@task,
          read_stream/stdexec/native/awaitable@task)<1.3

`metric:change` compares with the baseline and says how much worse it may be; `metric<limit` looks
at the run alone. A per cent is a margin: it is exceeded when the near end of the interval lies
beyond it, never by a point. Several thresholds stand on lines of their own, or between commas or
semicolons. A name with a comma, a parenthesis or a semicolon is put in double quotes. Of several
thresholds for the same metric the last one that matches a cell holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .cases import matches
from .errors import UsageError

#: Metrics that time gives. `median` is the cost of a cell whatever its unit, `throughput` the same
#: number seen as a rate, for cells that are rates.
TIMES = ("median", "throughput")
#: Event counts per op: exact, the same on every machine. `allocs` is heap plus resource.
COUNTS = (
    "allocs",
    "heap_allocs",
    "resource_allocs",
    "heap_bytes",
    "invoker_frames",
    "indirect_calls",
    "atomic_rmws",
    "seq_cst_stores",
    "ref_changes",
    "mutex_pairs",
    "posts",
    "syscalls",
    "instructions",
)
_QUANTILE = re.compile(r"p(50|90|95|99|99\.9|99\.99)")
_TIME_UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_AMOUNT = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>%|[a-zA-Zµμ]*)")
_CHANGE = re.compile(
    r"(?:(?P<scope>.+?)\s*:\s*)?(?P<metric>[a-z][a-z0-9_.]*)\s*:\s*(?P<amount>[^:]*)", re.DOTALL
)
_LIMIT = re.compile(
    r"(?:(?P<scope>.+?)\s*:\s*)?(?P<metric>[a-z][a-z0-9_.]*)\s*(?P<sign><=?)\s*(?P<amount>[^:<]*)",
    re.DOTALL,
)
_NAME = r'(?:"[^"]+"|[^",()]+)'
_RATIO = re.compile(
    rf"ratio\s*\(\s*(?P<above>{_NAME})\s*,\s*(?P<below>{_NAME})\s*\)"
    rf"\s*(?P<sign><=?)\s*(?P<amount>.*)",
    re.DOTALL,
)


class ThresholdError(UsageError):
    """A threshold that cannot be read; the message says how to write it."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """One threshold.

    `kind` is "change" (worse than the baseline by at most `amount`), "limit" (the run's own value
    below `amount`) or "ratio" (cost of the cell `ids[0]` over that of `ids[1]`, same run).
    `amount` is a share where `unit` is "%", else in base units: ns ("ns"), counts or a ratio ("").
    It is never negative: a fall of 3 % that a rate may take is 0.03. `inclusive`: `<=` rather than
    `<`. `scope` is a glob on ids, None: every cell.
    """

    text: str
    kind: str
    metric: str
    amount: float
    unit: str = ""
    scope: str | None = None
    inclusive: bool = True
    ids: tuple[str, str] | None = None

    def covers(self, cell_id: str) -> bool:
        """Whether it holds for that cell."""
        return self.scope is None or matches(self.scope, cell_id)

    @property
    def portable(self) -> bool:
        """Whether it means the same on every machine: counts, and ratios inside one run."""
        return self.kind == "ratio" or self.metric in COUNTS

    @property
    def needs_baseline(self) -> bool:
        """Whether it speaks of a change."""
        return self.kind == "change"

    def allows(self, value: float) -> bool:
        """Whether a value of the run satisfies a limit or ratio."""
        return value <= self.amount if self.inclusive else value < self.amount

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Threshold:
        """What `to_dict` wrote."""
        ids = raw.get("ids")
        return cls(**{**raw, "ids": None if ids is None else (ids[0], ids[1])})


def parse(text: str | Iterable[str]) -> tuple[Threshold, ...]:
    """All thresholds of a text or of several, in order. Raises ThresholdError."""
    texts = [text] if isinstance(text, str) else list(text)
    return tuple(_threshold(part) for each in texts for part in _split(each))


def _split(text: str) -> Iterator[str]:
    """Parts between commas, semicolons and line ends outside of parentheses and quotes."""
    part, depth, quoted = "", 0, False
    for char in text:
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char == "(") - (char == ")")
            if char in ",;\n" and depth <= 0:
                if part.strip():
                    yield part.strip()
                part = ""
                continue
        part += char
    if quoted:
        raise ThresholdError(f'the threshold {text!r} lacks a closing "')
    if part.strip():
        yield part.strip()


_FORMS = "write for instance median:5%, throughput:-3%, allocs:0, allocs<=2 or ratio(A, B)<1.3"


def _threshold(text: str) -> Threshold:
    if found := _RATIO.fullmatch(text):
        amount, unit = _amount(text, found["amount"])
        if unit:
            raise ThresholdError(f"{text!r}: a ratio is compared with a plain number such as 1.3")
        if amount <= 0:
            raise ThresholdError(f"{text!r}: a ratio is above 0")
        ids = _unquoted(found["above"]), _unquoted(found["below"])
        for name in ids:
            if "@" not in name:
                raise ThresholdError(
                    f"{text!r}: a ratio is of two cells, suite/case@contender; {name!r} is none"
                )
        return Threshold(text, "ratio", "ratio", amount, "", None, found["sign"] == "<=", ids)
    if found := _LIMIT.fullmatch(text):
        metric = _metric(text, found["metric"])
        amount, unit = _amount(text, found["amount"])
        if unit == "%":
            raise ThresholdError(
                f"{text!r}: per cent of what? a limit is a number, a change is {metric}:5%"
            )
        _check_unit(text, metric, unit)
        if amount < 0:
            raise ThresholdError(f"{text!r}: nothing can be below a negative limit")
        return Threshold(
            text, "limit", metric, amount, unit, _scope(found["scope"]), found["sign"] == "<="
        )
    if found := _CHANGE.fullmatch(text):
        metric = _metric(text, found["metric"])
        amount, unit = _amount(text, found["amount"])
        _check_unit(text, metric, unit)
        if metric == "throughput":
            if amount > 0:
                raise ThresholdError(
                    f"{text!r}: a throughput gets worse by falling: write throughput:-3%"
                )
            if amount <= -1:
                raise ThresholdError(f"{text!r}: a throughput can fall by less than 100 %")
            amount = -amount
        elif amount < 0:
            raise ThresholdError(
                f"{text!r}: {metric} gets worse by growing: write {metric}:{found['amount'][1:]}"
            )
        return Threshold(text, "change", metric, amount, unit, _scope(found["scope"]))
    raise ThresholdError(f"cannot read the threshold {text!r}: {_FORMS}")


def _unquoted(name: str) -> str:
    return name.strip().removeprefix('"').removesuffix('"')


def _scope(raw: str | None) -> str | None:
    return None if raw is None else _unquoted(raw)


def _metric(text: str, name: str) -> str:
    if name in TIMES or name in COUNTS or _QUANTILE.fullmatch(name):
        return name
    known = ", ".join((*TIMES, "p50, p90, p99, p99.9", *COUNTS))
    raise ThresholdError(f"{text!r}: unknown metric {name!r}; known: {known}")


def _amount(text: str, raw: str) -> tuple[float, str]:
    """Number in base units and its unit: "%" (a share), "ns" or ""."""
    found = _AMOUNT.fullmatch(raw.strip())
    if found is None:
        raise ThresholdError(f"cannot read {raw.strip()!r} in the threshold {text!r}: {_FORMS}")
    number, unit = float(found["number"]), found["unit"]
    if not math.isfinite(number):
        raise ThresholdError(f"{text!r}: {found['number']} is too large")
    if unit == "%":
        return number / 100, "%"
    if unit in _TIME_UNITS:
        return number * _TIME_UNITS[unit], "ns"
    if unit == "":
        return number, ""
    units = ", ".join(name for name in _TIME_UNITS if name.isascii())
    raise ThresholdError(f"{text!r}: unknown unit {unit!r}; known: %, {units}")


def _check_unit(text: str, metric: str, unit: str) -> None:
    """Times take per cent or a unit of time, throughput per cent, counts per cent or a number."""
    if metric == "throughput" and unit != "%":
        raise ThresholdError(f"{text!r}: throughput takes a per cent: write throughput:-3%")
    if metric in COUNTS and unit == "ns":
        raise ThresholdError(f"{text!r}: {metric} is a count, not a time: write {metric}:0")
    if metric not in COUNTS and unit == "":
        raise ThresholdError(f"{text!r}: {metric} needs a unit: write {metric}:5% or {metric}:20us")


def change_of(
    thresholds: Iterable[Threshold], cell_id: str, rate: bool, base_ns: float | None = None
) -> tuple[float, Threshold] | None:
    """The margin of a cell's cost as a log-ratio, from the last threshold that speaks of it.

    `rate`: the cell's metric is a rate, for which `throughput` holds too. `base_ns` is the
    baseline's cost in ns an op, for absolute changes. None: no threshold speaks of it.
    """
    chosen = None
    for threshold in thresholds:
        if threshold.kind != "change" or not threshold.covers(cell_id):
            continue
        if threshold.metric == "median" and threshold.unit == "ns":
            if base_ns:
                chosen = math.log1p(threshold.amount / base_ns), threshold
        elif threshold.metric == "median":
            chosen = math.log1p(threshold.amount), threshold
        elif threshold.metric == "throughput" and rate:
            chosen = -math.log1p(-threshold.amount), threshold
    return chosen
