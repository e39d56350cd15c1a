"""The magic `%capybench` of IPython and Jupyter.

    %load_ext capybench
    result = %capybench run --quick coroutine

`run` answers the result, shows its progress in the cell, and on Interrupt keeps what is finished.
Every other command prints what it prints on a command line.
"""

from __future__ import annotations

import html
import shlex
import sys
import time
from typing import TYPE_CHECKING, Any

from .errors import CapybenchError, SaveError

if TYPE_CHECKING:
    from .plan import Plan, Step
    from .results import RunResult

#: Seconds between two drawings of the progress: a notebook's channel is slow.
_PAUSE = 0.2


def register(ipython: Any) -> None:
    """Add `%capybench` to a running IPython."""
    ipython.register_magic_function(run_line, "line", "capybench")


def run_line(line: str) -> RunResult | None:
    """`%capybench COMMAND …`: the result of `run`, None for every other command.

    Raises IPython's UsageError, which shows as one line, for whatever the command line would end
    with a sentence.
    """
    from IPython.core.error import UsageError

    from . import cli

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"cannot read the line: {error}") from None
    if words[:1] != ["run"] or "--help" in words or "-h" in words:
        code = cli.main(words or ["--help"])
        if code not in (cli.OK, cli.CELL_FAILED):
            raise UsageError(f"capybench ended with exit code {code}")
        return None
    try:
        result = cli.measure(words[1:], CellProgress())
    except SaveError as error:
        from .results import RunResult

        # What was measured is worth more than the file that could not be written.
        print(f"capybench: {error}", file=sys.stderr)
        return RunResult.from_dict(error.document)
    except CapybenchError as error:
        raise UsageError(" ".join(str(error).split("\n"))) from None
    if result is not None:
        kept = "saved" if result.complete else "interrupted; kept what is finished in"
        print(f"{kept} {result.run.get('path')}", file=sys.stderr)
    return result


class CellProgress:
    """A bar in the output of a notebook's cell, drawn between workers only; gone at the end."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = 0.0

    def start(self, plan: Plan, done: int, total: int) -> None:
        """Show the bar before the first worker."""
        from .plan import duration

        left = "" if done else f"about {duration(plan.estimated_s)}"
        self._draw(done, total, "measuring", left)

    def worker_done(
        self, step: Step, status: str, done: int, total: int, remaining_s: float
    ) -> None:
        """Move the bar on after a worker."""
        from .plan import duration

        if done == total or time.monotonic() - self._drawn >= _PAUSE:
            self._draw(done, total, step.cell, f"{duration(remaining_s)} left")

    def end(self, interrupted: bool) -> None:
        """Take the bar away."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def _draw(self, done: int, total: int, name: str, left: str) -> None:
        from IPython import display as module

        # Untyped in some versions of IPython.
        display: Any = module.display
        text = f"{name} {done}/{total} {left}".rstrip()
        shown = {
            "text/plain": text,
            "text/html": f'<progress value="{done}" max="{max(total, 1)}"></progress> '
            f"<code>{html.escape(text)}</code>",
        }
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
        self._drawn = time.monotonic()
