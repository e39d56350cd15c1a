"""Histograms of latencies: sparse, log-linear (HDR-like), mergeable, with exact extremes.

With m = 2**sub_bits, bucket i < m holds the value i alone; any other bucket covers 2**e values from
(m + i % m) * 2**e on, e = i // m - 1: no value is off by more than one part in m.

    histogram = Histogram.of([120, 130, 9000])
    histogram.quantile(0.5)     # None: three observations say nothing about a median
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SUB_BITS = 7
#: A quantile q is shown only with at least this many observations beyond it: n >= 10 / (1 - q).
BEYOND = 10
#: What is asked for where a table or a drawing shows a few quantiles.
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket, indices rising; `least` and `greatest` exact, in ns, None when empty."""

    sub_bits: int
    buckets: tuple[tuple[int, int], ...]
    least: int | None
    greatest: int | None

    @classmethod
    def of(cls, values: Iterable[int], sub_bits: int = SUB_BITS) -> Histogram:
        """Histogram of whole ns."""
        counts: dict[int, int] = {}
        least: int | None = None
        greatest: int | None = None
        for value in values:
            index = _index(value, sub_bits)
            counts[index] = counts.get(index, 0) + 1
            least = value if least is None else min(least, value)
            greatest = value if greatest is None else max(greatest, value)
        return cls(sub_bits, tuple(sorted(counts.items())), least, greatest)

    @classmethod
    def from_dict(cls, raw: object) -> Histogram:
        """The `latency` object of a file; ValueError (a sentence without its subject) if broken."""
        if not isinstance(raw, dict):
            raise ValueError("is not an object")
        bits: Any = raw.get("sub_bits")
        rows: Any = raw.get("buckets")
        if not _whole(bits) or not 1 <= bits <= 16:
            raise ValueError("has no sub_bits from 1 to 16")
        if not isinstance(rows, list):
            raise ValueError("has no list of buckets")
        buckets: list[tuple[int, int]] = []
        for row in rows:
            if not (isinstance(row, list) and len(row) == 2 and all(map(_whole, row))):
                raise ValueError("has a bucket that is not a pair of whole numbers")
            index, count = row
            if index < 0 or count < 1 or (buckets and index <= buckets[-1][0]):
                raise ValueError("has buckets that are negative, empty or out of order")
            buckets.append((index, count))
        ends: tuple[Any, Any] = (raw.get("min_ns"), raw.get("max_ns"))
        if buckets and not all(_whole(end) and end >= 0 for end in ends):
            raise ValueError("has no exact min_ns and max_ns")
        least, greatest = ends if buckets else (None, None)
        return cls(bits, tuple(buckets), least, greatest)

    def to_dict(self) -> dict[str, Any]:
        """The form of the file."""
        return {
            "sub_bits": self.sub_bits,
            "buckets": [list(bucket) for bucket in self.buckets],
            "min_ns": self.least,
            "max_ns": self.greatest,
        }

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(count for _, count in self.buckets)

    def merged(self, other: Histogram) -> Histogram:
        """Both together; ValueError where their buckets differ in width."""
        if self.sub_bits != other.sub_bits:
            raise ValueError(
                f"histograms of {self.sub_bits} and {other.sub_bits} bits cannot be merged"
            )
        counts = dict(self.buckets)
        for index, count in other.buckets:
            counts[index] = counts.get(index, 0) + count
        ends = [e for h in (self, other) for e in (h.least, h.greatest) if e is not None]
        return Histogram(
            self.sub_bits,
            tuple(sorted(counts.items())),
            min(ends, default=None),
            max(ends, default=None),
        )

    def quantile(self, q: float) -> float | None:
        """Latency in ns that a share q of the observations does not exceed; the middle of a bucket.

        None below 10 / (1 - q) observations: so few say nothing about it.
        """
        if not 0 <= q < 1:
            raise ValueError(f"a quantile is from 0 to below 1, not {q}")
        # A little slack: 10 / (1 - 0.999) is a hair above 10,000 in binary.
        if self.count == 0 or self.count * (1 - q) < BEYOND * (1 - 1e-9):
            return None
        wanted, seen = q * self.count, 0
        for index, count in self.buckets:
            seen += count
            if seen >= wanted:
                return self._inside(index)
        return None

    def curve(self) -> Iterator[tuple[float, float]]:
        """(share not above, latency in ns) of each bucket, as far as `quantile` would answer."""
        total, seen = self.count, 0
        for index, count in self.buckets:
            seen += count
            if total - seen < BEYOND:
                return
            yield seen / total, self._inside(index)

    def _inside(self, index: int) -> float:
        """Middle of a bucket, no further than the exact extremes."""
        low, width = _bounds(index, self.sub_bits)
        middle = low + (width - 1) / 2
        if self.least is None or self.greatest is None:
            return middle
        return min(max(middle, float(self.least)), float(self.greatest))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _index(value: int, bits: int) -> int:
    if value < 0:
        raise ValueError(f"a latency cannot be negative: {value} ns")
    shift = max(0, value.bit_length() - 1 - bits)
    return (shift << bits) + (value >> shift)


def _bounds(index: int, bits: int) -> tuple[int, int]:
    """Least value of a bucket, and how many values it covers."""
    size = 1 << bits
    if index < size:
        return index, 1
    shift = index // size - 1
    return (size + index % size) << shift, 1 << shift
