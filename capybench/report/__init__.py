"""The report: one HTML file that needs nothing else, for one run or for several machines.

    capybench.report.write([capybench.load("run.json")], "report.html")

Drawings are inline SVG with text as text, in colours that follow the reader's light or dark
setting; nothing in it is a script. Runs of several machines stand side by side as ratios, each
inside its own run, never as times against each other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..errors import UsageError
from ..results import RunResult, write_atomic

__all__ = ["page", "write"]

MARGIN = 0.03


def page(
    results: Sequence[RunResult],
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    title: str = "capybench report",
) -> str:
    """The whole page as text.

    Raises UsageError without a run, without matplotlib (the extra `capybench[plot]`), or for a
    baseline that no case has.
    """
    from ..plot import style
    from . import single, together

    if not results:
        raise UsageError("a report needs at least one run")
    style.require()
    if len(results) == 1:
        return single.page(results[0], baseline, margin, title)
    return together.page(results, baseline, margin, title)


def write(
    results: Sequence[RunResult],
    path: str | os.PathLike[str],
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    title: str = "capybench report",
) -> None:
    """`page`, written whole or not at all. OSError where the file cannot be written."""
    write_atomic(path, page(results, baseline=baseline, margin=margin, title=title))
