"""What a user may ask of a drawing, and the sentences that several kinds share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .. import stats
from ..results import CellResult
from ..tables import printable
from .style import Theme, Words, theme_of


@dataclass(frozen=True, slots=True)
class Options:
    """As of `capybench.plot.draw`."""

    only: tuple[str, ...]
    baseline: str | None
    margin: float
    theme_name: str
    bare: bool = False

    def words(self, title: str, *under: str) -> Words:
        """The heading of a drawing; none in a page that has its own (`bare`)."""
        return Words("") if self.bare else Words(title, under)

    @property
    def theme(self) -> Theme:
        """The theme itself."""
        return theme_of(self.theme_name)


NO_CELLS = "This run has no cells."
FEW_BLOCKS = (
    f"Below {stats.MIN_BLOCKS} blocks there is no 95 % interval: "
    "what is shown is the range, and no verdict is marked."
)


def few(cells: Iterable[CellResult]) -> bool:
    """Whether a cell has a number but too few processes for an interval."""
    return any(cell.summary.median is not None and cell.summary.ci_low is None for cell in cells)


def absent_words(cells: Iterable[CellResult]) -> tuple[str, ...]:
    """A line that names cells without a number; none where all have one."""
    names = [printable(cell.id) for cell in cells if cell.summary.median is None]
    if not names:
        return ()
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return (f"Without a number: {', '.join(names[:6])}{more}.",)
