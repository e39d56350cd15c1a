"""Published forms: a run printed like the page that its workloads come from, beside its figures.

A style is a module of this package with a one-line `TITLE`, the names of the `SUITES` that it can
print, and a function `tables(result) -> tuple[tables.Table, ...]`; entering its name in STYLES is
all it needs. Modules are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from ..errors import UsageError
from ..results import RunResult
from ..tables import Table

#: Name for --style -> module of this package.
STYLES: dict[str, str] = {"capy": "capy", "cobalt": "cobalt"}


class StyleError(UsageError):
    """No such style, or nothing in the run that it prints."""


def titles() -> dict[str, str]:
    """One-line description of each style."""
    return {name: str(_module(name).TITLE) for name in STYLES}


def check(name: str, suites: Iterable[str] | None = None) -> None:
    """StyleError where there is no such style, or where it prints none of `suites` (if given)."""
    if name not in STYLES:
        raise StyleError(f"unknown style {name!r}; known: {', '.join(STYLES)}")
    printed = _module(name).SUITES
    if suites is not None and not set(printed) & set(suites):
        raise StyleError(
            f"style {name!r} prints none of the selected suites, but {', '.join(printed)}"
        )


def style_tables(name: str, result: RunResult) -> tuple[Table, ...]:
    """The run's tables in a published form.

    Raises StyleError for an unknown name, or when no cell of the run belongs to that page.
    """
    check(name, {cell.suite for cell in result.cells})
    tables: tuple[Table, ...] = _module(name).tables(result)
    return tables


def _module(name: str) -> Any:
    return import_module(f".{STYLES[name]}", __name__)
