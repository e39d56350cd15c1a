"""What tests of the extension share: a bare interpreter, and the tools of the linker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import capybench

PACKAGE = Path(capybench.__file__).parent
ROOT = Path(__file__).parent.parent


def extension(name: str) -> Path:
    """The shared object of capybench._core or capybench._ledger."""
    return next(PACKAGE.glob(f"{name}*.so"))


def bare(code: str, *, timeout: float = 100) -> str:
    """Run code as a worker does, in an interpreter that has imported nothing; its standard output.

    numpy's threads would end the single-threaded state that many cells need.
    """
    program = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n" + code
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=4096"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def output_of(*command: str) -> str:
    """The standard output of a program that must succeed."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
