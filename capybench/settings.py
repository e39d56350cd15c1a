"""Settings of a command: defaults, then [tool.capybench], then the environment, then flags.

Each setting has one converter, so that a wrong value is told alike wherever it was written,
together with the place: `pyproject.toml`, `CAPYBENCH_BLOCKS` or `--blocks`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import UsageError

PREFIX = "CAPYBENCH_"
FORMATS = ("table", "markdown", "json", "csv")

Converter = Callable[[Any], Any]


def whole(least: int) -> Converter:
    """Converter for integers from `least` on."""

    def convert(value: Any) -> int:
        try:
            number = int(value) if not isinstance(value, bool | float) else None
        except ValueError:
            number = None
        if number is None or number < least:
            raise ValueError(f"an integer of at least {least}")
        return number

    return convert


def truth(value: Any) -> bool:
    """Converter for switches."""
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False, "": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError("true or false")


def one_of(*choices: str) -> Converter:
    """Converter for one of a few words."""

    def convert(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return str(value)

    return convert


def text(value: Any) -> str:
    """Converter for a non-empty string."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a name")
    return value.strip()


def names(value: Any) -> tuple[str, ...]:
    """Converter for a list of names: a list, or a string with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts):
        found = tuple(part.strip() for part in parts if part.strip())
        if found:
            return found
    raise ValueError("names with commas between them")


def paths(value: Any) -> tuple[str, ...]:
    """Converter for files: a list, or a string with colons as in PATH."""
    parts = value.split(os.pathsep) if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts):
        found = tuple(part for part in parts if part)
        if found:
            return found
    raise ValueError("paths with colons between them")


def texts(value: Any) -> tuple[str, ...]:
    """Converter for texts that are read later: one, or a list."""
    parts = (value,) if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and parts and all(isinstance(part, str) for part in parts):
        return tuple(parts)
    raise ValueError("a text, or a list of texts")


def share(value: Any) -> float:
    """Converter for a share above 0 and below 1: 0.03 or "3%"."""
    number = str(value).strip()
    try:
        found = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        found = 0.0
    if isinstance(value, bool) or not 0 < found < 1:
        raise ValueError("a share such as 3% or 0.03")
    return found


def duration(value: Any) -> float:
    """Converter for a time in seconds: 90, "90s", "5m", "1h30m"."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    match = None
    if isinstance(value, str):
        number = r"([0-9]+(?:\.[0-9]+)?)"
        pattern = rf"(?:{number}h)?(?:{number}m(?:in)?)?(?:{number}s?)?"
        match = re.fullmatch(pattern, value.strip().lower())
    if match and any(match.groups()):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        if total := hours * 3600 + minutes * 60 + seconds:
            return total
    raise ValueError("a time such as 90s, 5m or 1h30m")


def pin(value: Any) -> int | str | None:
    """Converter for a CPU number, `none` (not pinned) or `auto` (alternating CPUs)."""
    if isinstance(value, str) and value.strip().lower() in ("none", "auto"):
        return None if value.strip().lower() == "none" else "auto"
    try:
        cpu: int = whole(0)(value)
    except ValueError:
        raise ValueError("a CPU number, none or auto") from None
    return cpu


#: Every setting with its converter. A new one is a line here and a flag of the same name.
CONVERTERS: dict[str, Converter] = {
    "quick": truth,
    "budget": duration,
    "blocks": whole(1),
    "samples": whole(1),
    "seed": whole(0),
    "pin": pin,
    "keep_env": truth,
    "plugin": paths,
    "no_plugins": truth,
    "baseline": text,
    "format": one_of(*FORMATS),
    "style": text,
    "unit": text,
    "sort": text,
    "columns": names,
    "threshold": texts,
    "margin": share,
    "fail_on": names,
    "strict": truth,
    "allow_gone": truth,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Values with the place that each one came from; what nobody set has its default."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]

    def get(self, name: str, default: Any = None) -> Any:
        """Value of a setting; `default` where nobody set it."""
        return self.values.get(name, default)

    def was_set(self, name: str) -> bool:
        """Whether anybody set it."""
        return name in self.values


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Lay the three sources over one another; `flags` that are None were not given.

    Raises UsageError for an unknown setting in pyproject.toml or a value that does not fit, naming
    the place and what would be right.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    environ = os.environ if environ is None else environ
    for name, raw, origin in (
        *_from_project(folder or Path.cwd()),
        *_from_environment(environ),
        *((n, raw, "--" + n.replace("_", "-")) for n, raw in flags.items() if raw is not None),
    ):
        try:
            values[name] = CONVERTERS[name](raw)
        except ValueError as error:
            raise UsageError(f"{origin} is {raw!r}, but should be {error}") from None
        origins[name] = origin
    return Settings(values, origins)


def _from_environment(environ: Mapping[str, str]) -> Iterable[tuple[str, Any, str]]:
    for name in CONVERTERS:
        variable = PREFIX + name.upper()
        if environ.get(variable):
            yield name, environ[variable], variable


def _from_project(folder: Path) -> Iterable[tuple[str, Any, str]]:
    path = next(
        (p for base in (folder, *folder.parents) if (p := base / "pyproject.toml").is_file()), None
    )
    if path is None:
        return
    import tomllib

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("capybench", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read settings from {path}: {error}") from None
    if not isinstance(table, dict):
        raise UsageError(f"[tool.capybench] in {path} is not a table")
    for key, raw in table.items():
        name = key.replace("-", "_")
        if name not in CONVERTERS:
            raise UsageError(
                f"unknown setting {key!r} in [tool.capybench] of {path}; "
                f"known: {', '.join(CONVERTERS)}"
            )
        yield name, raw, f"{key} in [tool.capybench] of {path}"
