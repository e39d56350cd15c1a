"""Boost.Asio and Boost.Cobalt as contenders of capybench.

There is nothing to import here but two paths: capybench finds them through the entry-point group
`capybench.plugins` and opens the shared objects in its workers.
"""

from pathlib import Path

__all__ = ["counting", "plugin"]


def plugin() -> Path:
    """The path of the shared object that is measured."""
    return Path(__file__).parent / "boost.so"


def counting() -> Path:
    """The path of its counting twin, for the ledger; it is never measured."""
    return Path(__file__).parent / "boost_counting.so"
