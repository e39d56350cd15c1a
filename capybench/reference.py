"""Published tables of the four suites, as data: what others measured, where and with what.

Absolute times belong to the machines named in each source; across machines only ratios inside one
table mean something. Every figure names the cells that reproduce it: our model first, then real
libraries where a plug-in provides them.

    for table in tables_of("read_stream"):
        for figure in table.figures:
            print(figure.row, figure.column, figure.value, table.unit, figure.allocs)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Where a table was published and what it was measured on."""

    key: str
    title: str
    machine: str
    compiler: str
    method: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One published number, in the unit of its table.

    `cells` are ids of the cells that reproduce it, `allocs` published allocations per op (None
    where the table has none), `baseline` the row that the page compares it with inside the same
    column (None: it does not), `ops` how many operations a total stands for (None: it is per op).
    """

    row: str
    column: str
    value: float
    cells: tuple[str, ...]
    allocs: int | None = None
    baseline: str | None = None
    ops: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A published table. `figures` go row by row in the order of the page."""

    key: str
    suite: str
    title: str
    unit: str
    source: Source
    figures: tuple[Figure, ...]

    def figure(self, row: str, column: str) -> Figure:
        """The number at that place; LookupError where the table has none."""
        for figure in self.figures:
            if figure.row == row and figure.column == column:
                return figure
        raise LookupError(f"table {self.key} has no row {row!r}, column {column!r}")

    def ratio(self, figure: Figure) -> float | None:
        """Published ratio of a figure to its baseline row; None where the page compares nothing."""
        if figure.baseline is None:
            return None
        return figure.value / self.figure(figure.baseline, figure.column).value


CAPY = Source(
    key="capy",
    title="Capy benchmark page (bench.cpp, allocation.cpp)",
    machine="Intel Core i9-13900H, pinned to one P-core",
    compiler="Clang 23 -O3",
    method="medians of program runs: five for coroutines, three for frame allocation",
)
READ_STREAM = Source(
    key="capy-read-stream",
    title="Capy read-stream suites against stdexec and Beman execution",
    machine=CAPY.machine,
    compiler=CAPY.compiler,
    method="mean of five passes after one that is thrown away, 20,000,000 reads a cell",
)
COBALT = Source(
    key="cobalt",
    title="Boost.Cobalt benchmark page",
    machine="Intel Core i7-1185G7",
    compiler="gcc 12, clang 16",
    method="one run of each program, no warm-up",
)
PROCESSKIT = Source(
    key="processkit",
    title="processkit compare benchmark",
    machine="Intel Core i9-9880H, Windows 10",
    compiler="Rust 1.96",
    method="mean of 20 Criterion samples; Windows figures say nothing about Linux",
)


def _coroutine() -> Table:
    rows = (
        ("run_async/depth1", 19.3),
        ("run_async/depth2", 29.1),
        ("run_async/depth3", 39.7),
        ("run_async/depth4", 49.6),
        ("strand/depth1", 56.6),
        ("strand/depth4", 84.8),
        ("switch/executor", 65.3),
        ("switch/strand", 169.1),
    )
    # The page gives no ratios; its own text compares with the shortest launch.
    return Table(
        key="capy-coroutine",
        suite="coroutine",
        title="launch, chain and switch",
        unit="ns/op",
        source=CAPY,
        figures=tuple(
            Figure(case, "task", ns, (f"coroutine/{case}@task",), baseline="run_async/depth1")
            for case, ns in rows
        ),
    )


#: Passes of the published frame-allocation program, each of 66 frames.
FRAME_ALLOC_PASSES = 2_000_000
FRAMES_PER_PASS = 66


def _frame_alloc() -> Table:
    rows = (
        ("recycling", "recycling", 1650),
        ("mimalloc", "mimalloc", 2203),
        ("std", "malloc", 2075),
    )
    return Table(
        key="capy-frame-alloc",
        suite="frame_alloc",
        title="2,000,000 passes of 66 frames",
        unit="ms",
        source=CAPY,
        figures=tuple(
            Figure(
                row,
                "time",
                ms,
                (f"frame_alloc/chain66@{contender}",),
                baseline="std",
                ops=FRAME_ALLOC_PASSES,
            )
            for row, contender, ms in rows
        ),
    )


STREAMS = ("native", "abstract", "erased", "sync")
_StreamRow = tuple[str, str, str, str]
_Model = tuple[str, str, str, _StreamRow, _StreamRow]
#: Model of the page, its own kind of stream, contender, then "ns (al/op)" for each stream: own kind
#: first, through the bridge second.
_STDEXEC: tuple[_Model, ...] = (
    (
        "capy::task",
        "awaitable",
        "task",
        ("30.5 (0)", "31.2 (0)", "34.9 (0)", "0.9 (0)"),
        ("34.0 (0)", "88.6 (2)", "88.8 (2)", "18.5 (0)"),
    ),
    (
        "pipeline",
        "sender",
        "pipeline",
        ("27.9 (0)", "76.3 (2)", "76.0 (2)", "9.0 (0)"),
        ("36.9 (1)", "37.9 (1)", "42.4 (1)", "11.7 (0)"),
    ),
    (
        "exec::task",
        "sender",
        "sender_task",
        ("174.5 (1)", "257.1 (3)", "257.5 (3)", "1.8 (0)"),
        ("185.5 (2)", "185.4 (2)", "233.2 (2)", "156.3 (1)"),
    ),
    (
        "exec::task without affinity",
        "sender",
        "sender_task_noaffinity",
        ("24.5 (0)", "81.3 (2)", "83.9 (2)", "2.1 (0)"),
        ("37.5 (1)", "35.5 (1)", "59.3 (1)", "10.8 (0)"),
    ),
)
_BEMAN: tuple[_Model, ...] = (
    (
        "capy::task",
        "awaitable",
        "task",
        ("30.6 (0)", "31.0 (0)", "35.3 (0)", "1.1 (0)"),
        ("47.5 (0)", "71.1 (1)", "71.4 (1)", "18.0 (0)"),
    ),
    (
        "pipeline",
        "sender",
        "pipeline",
        ("34.2 (0)", "45.4 (1)", "56.8 (1)", "2.4 (0)"),
        ("46.0 (1)", "46.0 (1)", "55.5 (1)", "4.5 (0)"),
    ),
    (
        "bex::task",
        "sender",
        "sender_task",
        ("31.7 (0)", "54.6 (1)", "54.6 (1)", "0.8 (0)"),
        ("41.9 (1)", "42.8 (1)", "51.8 (1)", "2.4 (0)"),
    ),
)


def _read_stream(family: str, rows: tuple[_Model, ...]) -> tuple[Table, ...]:
    tables = []
    for model, native_io, contender, native, bridge in rows:
        bridge_io = "sender" if native_io == "awaitable" else "awaitable"
        figures = []
        for stream, own, other in zip(STREAMS, native, bridge, strict=True):
            for column, io, text in (("native", native_io, own), ("bridge", bridge_io, other)):
                value, allocs = text.rstrip(")").split(" (")
                cell = f"read_stream/{family}/{stream}/{io}@{contender}"
                figures.append(Figure(stream, column, float(value), (cell,), allocs=int(allocs)))
        tables.append(
            Table(
                key=f"{family}-{contender}",
                suite="read_stream",
                title=f"{family}: {model}",
                unit="ns/op",
                source=READ_STREAM,
                figures=tuple(figures),
            )
        )
    return tuple(tables)


#: Row name -> the contender that models it, and the real library behind a plug-in.
_CHANNEL_CONTENDERS = {
    "cobalt": ("task", "cobalt"),
    "awaitable": ("awaitable", "asio-awaitable"),
    "stackful": ("fiber", "asio-stackful"),
}
_ALLOCATION_CONTENDERS = {
    "std": ("malloc", "asio-std"),
    "monotonic": ("monotonic", "cobalt-monotonic"),
    "pmr": ("pmr_monotonic", "cobalt-pmr_monotonic"),
    "sbo": ("sbo", "cobalt-sbo"),
}
_Milliseconds = tuple[float, float]


def _cobalt(
    key: str,
    suite: str,
    case: str,
    ops: int,
    contenders: dict[str, tuple[str, str]],
    rows: dict[str, _Milliseconds],
) -> Table:
    figures = []
    baseline = next(iter(rows))
    for row, pair in rows.items():
        cells = tuple(f"{suite}/{case}@{contender}" for contender in contenders[row])
        for column, ms in zip(("gcc", "clang"), pair, strict=True):
            figures.append(Figure(row, column, ms, cells, baseline=baseline, ops=ops))
    return Table(
        key=f"cobalt-{key}",
        suite=suite,
        title=f"{key}, {ops:,} times",
        unit="ms",
        source=COBALT,
        figures=tuple(figures),
    )


def _cobalt_tables() -> tuple[Table, ...]:
    channel: dict[str, tuple[int, dict[str, _Milliseconds]]] = {
        "post": (
            50_000_000,
            {"cobalt": (2472, 2098), "awaitable": (2432, 2253), "stackful": (3655, 3725)},
        ),
        "parallel": (3_000_000, {"cobalt": (1563, 1468), "awaitable": (2800, 2805)}),
        "immediate": (
            10_000_000,
            {"cobalt": (1810, 1864), "awaitable": (3109, 4110), "stackful": (3922, 4705)},
        ),
        "channel": (
            3_000_000,
            {"cobalt": (500, 350), "awaitable": (790, 770), "stackful": (867, 907)},
        ),
    }
    allocations: dict[str, _Milliseconds] = {
        "std": (1136, 1139),
        "monotonic": (1149, 1270),
        "pmr": (1164, 1173),
        "sbo": (1021, 1060),
    }
    return (
        *(
            _cobalt(case, "channel", case, ops, _CHANNEL_CONTENDERS, rows)
            for case, (ops, rows) in channel.items()
        ),
        _cobalt(
            "allocations", "op_alloc", "composed5", 2_000_000, _ALLOCATION_CONTENDERS, allocations
        ),
    )


_CONTAINED = ("contained_pgid", "contained_cgroup", "contained_clone3")


def _processkit() -> Table:
    def cells(case: str, *contenders: str) -> tuple[str, ...]:
        return tuple(f"process/{case}@{contender}" for contender in contenders)

    small, stream, fan_out = "spawn_capture_small", "stream_large_stdout", "concurrent_fan_out"
    rows = (
        (small, "processkit", 45.0, cells("capture_small", *_CONTAINED)),
        (small, "processkit_discard_stdout", 53.9, cells("discard_small", *_CONTAINED)),
        (small, "tokio", 21.8, cells("capture_small", "async")),
        (small, "std", 22.3, cells("capture_small", "plain")),
        (stream, "processkit", 56.4, cells("stream_lines", *_CONTAINED)),
        (stream, "tokio", 27.2, cells("stream_lines", "async")),
        (stream, "std", 25.0, cells("stream_lines", "plain")),
        (fan_out, "processkit", 711, cells("fan_out/16", *_CONTAINED)),
        (fan_out, "tokio", 84, cells("fan_out/16", "async")),
        (fan_out, "std", 89, cells("fan_out/16", "plain")),
    )
    return Table(
        key="processkit",
        suite="process",
        title="child processes",
        unit="ms",
        source=PROCESSKIT,
        # Rows are contenders, columns the page's groups: each group is compared with its std row.
        figures=tuple(
            Figure(contender, group, ms, ids, baseline="std") for group, contender, ms, ids in rows
        ),
    )


TABLES: tuple[Table, ...] = (
    _coroutine(),
    _frame_alloc(),
    *_read_stream("stdexec", _STDEXEC),
    *_read_stream("beman", _BEMAN),
    *_cobalt_tables(),
    _processkit(),
)


def tables_of(suite: str) -> tuple[Table, ...]:
    """Published tables that a suite re-measures, in the order of their pages."""
    return tuple(table for table in TABLES if table.suite == suite)


def table(key: str) -> Table:
    """A table by its key; LookupError naming the known ones."""
    for candidate in TABLES:
        if candidate.key == key:
            return candidate
    raise LookupError(f"no published table {key!r}; known: {', '.join(t.key for t in TABLES)}")


def published(cell_id: str) -> tuple[tuple[Table, Figure], ...]:
    """All published figures that a cell reproduces."""
    return tuple(
        (candidate, figure)
        for candidate in TABLES
        for figure in candidate.figures
        if cell_id in figure.cells
    )
