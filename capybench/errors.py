"""The errors that capybench raises on purpose, each with the exit code a command ends with.

A message is one sentence: what was wrong and what would be right.
"""

from __future__ import annotations

from typing import Any


class CapybenchError(Exception):
    """Base of the errors below; `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(CapybenchError, ValueError):
    """Something the user asked for cannot be: a wrong pattern, CPU, budget or contender."""

    exit_code = 2


class SelectionError(UsageError):
    """A pattern or `-k` expression selects nothing or cannot be read.

    `pattern` is the text that failed, `nearest` the names that are closest to it.
    """

    def __init__(self, message: str, pattern: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.pattern = pattern
        self.nearest = nearest


class PluginError(UsageError):
    """A plug-in that was asked for cannot be used: no such file, or refused by the core."""


class JournalError(UsageError):
    """A journal that cannot be resumed: missing, damaged, or of another build or machine."""


class EnvironmentFault(CapybenchError):
    """The machine or the installation does not allow a run: no extension, no permission."""

    exit_code = 3


class TargetError(EnvironmentFault):
    """The result file cannot be written; found out before anything was measured."""


class SaveError(EnvironmentFault):
    """Saving failed after measuring; `document` is the finished result, not lost."""

    def __init__(self, message: str, document: dict[str, Any]) -> None:
        super().__init__(message)
        self.document = document
