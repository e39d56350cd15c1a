"""Builds the two extension modules: capybench._core, which measures, and capybench._ledger, which counts.

Everything static is in pyproject.toml. Environment: CAPYBENCH_WERROR=1 turns warnings into errors (for CI);
CAPYBENCH_INJECT="suite/case@contender=10" builds a core in which that cell takes 10 % longer, for tests of comparisons.
"""

import copy
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
CSRC = Path("csrc")
GLIBC_LEAST = (2, 32)  # sys/single_threaded.h


def refuse_unsupported() -> None:
    """Stop with one sentence where the core cannot be built."""
    if sys.platform != "linux":
        sys.exit(f"capybench builds on Linux only, and this is {sys.platform}.")
    libc, version = platform.libc_ver()
    if libc != "glibc":
        sys.exit(
            "capybench needs the GNU C library (glibc 2.32 or newer); this Python runs on another one, such as musl."
        )
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < GLIBC_LEAST:
        sys.exit(f"capybench needs glibc 2.32 or newer, and this system has {version}.")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit(
            "capybench does not support free-threaded Python yet; build it with the default build of Python."
        )


def last_flags() -> list[str]:
    """The flags appended last in every build of the core, whatever the interpreter was built with."""
    flags = (ROOT / CSRC / "cflags").read_text().split()
    by_machine = ROOT / CSRC / f"cflags.{platform.machine()}"
    if by_machine.exists():
        flags += by_machine.read_text().split()
    return flags


def injected() -> list[tuple[str, str]]:
    """Macros of a core that is slower in one cell on purpose; none in a build that anybody uses."""
    text = os.environ.get("CAPYBENCH_INJECT")
    if not text:
        return []
    cell, _, percent = text.rpartition("=")
    if not cell or not percent.isdecimal():
        sys.exit(f"CAPYBENCH_INJECT is suite/case@contender=PERCENT, not {text!r}.")
    return [("CPB_INJECT_CELL", f'"{cell}"'), ("CPB_INJECT_PERCENT", percent)]


def extension(name: str, *, counting: bool) -> Extension:
    """Describe one module; both are built from the same sources."""
    os.chdir(ROOT)
    sources = sorted(str(p) for folder in ("core", "ext") for p in (CSRC / folder).rglob("*.[cS]"))
    headers = sorted(str(p) for p in CSRC.rglob("*.h")) + sorted(
        str(p) for p in CSRC.rglob("*.def")
    )
    warnings = [
        "-Wall",
        "-Wextra",
        "-Wshadow",
        "-Wstrict-prototypes",
        "-Wmissing-prototypes",
        "-Wvla",
    ]
    if os.environ.get("CAPYBENCH_WERROR") == "1":
        warnings.append("-Werror")
    flags = last_flags()
    inject = injected()
    said = [f"-D{name}={value}" for name, value in inject]
    effective = " ".join([*(sysconfig.get_config_var("CFLAGS") or "").split(), *said, *flags])
    return Extension(
        f"capybench.{name}",
        sources,
        depends=[*headers, "csrc/cflags"],
        include_dirs=["csrc/include", "csrc/core", "csrc/ext"],
        define_macros=[
            ("_GNU_SOURCE", "1"),
            ("CPB_LEDGER", "1" if counting else "0"),
            ("CPB_MODULE", name),
            ("CPB_BUILD_FLAGS", '"' + effective.replace('"', "") + '"'),
            ("Py_LIMITED_API", "0x030B0000"),
            *inject,
        ],
        extra_compile_args=["-std=c11", "-fvisibility=hidden", *warnings, *flags],
        extra_link_args=["-Wl,--build-id", "-fno-lto"],
        libraries=["dl"],
        py_limited_api=True,
    )


class BuildExt(build_ext):
    """build_ext with a folder of objects per module: the two differ in their macros, and a parallel build must not mix them."""

    def build_extension(self, ext: Extension) -> None:
        own = copy.copy(self)
        own.build_temp = os.path.join(self.build_temp, ext.name)
        own.compiler = copy.copy(self.compiler)
        if ".S" not in own.compiler.src_extensions:
            own.compiler.src_extensions = [*own.compiler.src_extensions, ".S"]
        build_ext.build_extension(own, ext)


class BuildPy(build_py):
    """build_py that puts capybench.h into the package, where get_include() finds it."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "capybench" / "include"
            self.mkpath(str(target))
            self.copy_file(str(CSRC / "include" / "capybench.h"), str(target / "capybench.h"))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        header = os.path.join(self.build_lib, "capybench", "include", "capybench.h")
        return [*super().get_outputs(include_bytecode), header]


refuse_unsupported()
setup(
    ext_modules=[extension("_core", counting=False), extension("_ledger", counting=True)],
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
