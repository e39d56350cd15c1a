"""The counting build of the same sources: exact event counts, never times."""

from os import PathLike
from types import TracebackType
from typing import Any, Final, Self, final

from typing_extensions import Buffer

counting: Final[bool]
abi_version: Final[int]

class CoreError(Exception):
    """A cell could not be set up, run or verified.

    `status` is "failed", "invalid", "unavailable" or the short name of another status of the core.
    """

    status: str

def build() -> dict[str, str]:
    """Facts of this build: compiler, effective flags, build id, libc, architecture, counting."""

def suites() -> list[dict[str, Any]]:
    """The suites in registration order: name, summary, baselines (contenders, best first)."""

def cases() -> list[dict[str, Any]]:
    """One dict a cell, plug-ins' last; `capybench.cases.Cell` explains the keys."""

def load_plugin(path: str | PathLike[str], /) -> dict[str, Any]:
    """Open a plug-in, check it, add its cells: name, version, counting, cells (dicts as `cases`').

    The path must contain a "/". CoreError with the reason; status "abi": built for another version.
    """

def heap_in_use() -> int:
    """Bytes that the C library's allocator has handed out and not got back."""

def pace() -> int:
    """Run the pace probe, a fixed piece of arithmetic, without the GIL; the ns that it took."""

def single_threaded() -> bool:
    """Whether this process has never made a thread, as glibc sees it; once false it stays false."""

@final
class Run:
    """A cell that is set up to be measured in this process; used by one thread at a time.

    LookupError for an unknown id. CoreError with status "unavailable" when the cell cannot run
    here, "invalid" for a single-threaded cell in a process that has ever made a thread.
    """

    def __init__(self, cell_id: str) -> None: ...
    def calibrate(self, target_ns: int, /) -> int:
        """Ops for one sample of about `target_ns` ns: a positive multiple of the cell's step."""

    def measure(self, ops: int, samples: Buffer, flags: Buffer) -> int:
        """Take len(samples) samples of `ops` ops each; returns their number.

        `samples` and `flags` are writable one-dimensional uint64 buffers of one length, such as
        array("Q") or a numpy uint64 array. samples[i] receives whole ns, flags[i] the bits
        1 single-threaded before, 2 after, 4 the clock stepped back, 8 it did not advance. The GIL
        is released a sample at a time; KeyboardInterrupt is raised between samples.
        """

    def verify(self) -> None:
        """Prove that all ops since set-up were done; CoreError "failed" with the reason if not."""

    def counters(self) -> dict[str, int]:
        """Totals since set-up; the measured build holds only what a workload itself counts."""

    def ledger(self, ops: int, /) -> dict[str, int | float]:
        """Events per op, (N(2 ops) - N(ops)) / ops after a warm-up; ints when exact.

        ValueError in the measured build.
        """

    def usage(self) -> dict[str, int]:
        """Sums over all samples: CPU times in ns, context switches, page faults."""

    def facts(self) -> dict[str, str]:
        """What the case recorded about its run, such as an allocator's version."""

    def close(self) -> None:
        """Tear the cell down. May be called again."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool: ...
