"""Builds the two shared objects of capybench-boost: boost.so, which is measured, and boost_counting.so.

They are no Python modules: one object file serves both, but for what LINKED_APART names. Environment: CAPYBENCH_BOOST
is a prefix with include/boost, such as /usr, in place of the package cmeel-boost; CXX another compiler;
CAPYBENCH_WERROR=1 turns warnings into errors.
"""

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent.resolve()
CHECKOUT = HERE.parent.parent  # csrc, when this is a clone of capybench
BUNDLED = ("include/capybench.h", "cflags", "cflags.x86_64")
BOOST_LEAST = (1, 90)
GXX_LEAST = 12
#: Sources that one of the two objects has alone, and those that are compiled for each of them.
LINKED_APART = {"boost": {"counting_off"}, "boost_counting": {"counting_on"}}
COMPILED_APART = {"coroutine"}
#: Calls of these that the contenders make are counted.
WRAPPED = (
    "malloc",
    "calloc",
    "aligned_alloc",
    "posix_memalign",
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "pthread_mutex_lock",
)


def in_checkout() -> bool:
    """Whether the header and the flags of the project stand beside this folder."""
    return all((CHECKOUT / name).is_file() for name in BUNDLED)


def project_file(name: str) -> Path:
    """A file of the project: the one in the clone, or the copy that the sdist carries."""
    path = (CHECKOUT if in_checkout() else HERE) / name
    if not path.is_file():
        sys.exit(
            f"capybench-boost builds in a clone of capybench or from its own sdist: {path} is missing."
        )
    return path


def boost_version(include: Path) -> tuple[int, int, int] | None:
    """What the headers say they are; None where there are none."""
    header = include / "boost" / "version.hpp"
    if not header.is_file():
        return None
    match = re.search(r"^#define BOOST_VERSION (\d+)", header.read_text(), re.MULTILINE)
    number = int(match[1]) if match else 0
    return number // 100000, number // 100 % 1000, number % 100


class Boost:
    """Where Boost is: headers, folder of libraries, run-time path, and what the result depends on."""

    def __init__(self) -> None:
        chosen = os.environ.get("CAPYBENCH_BOOST")
        self.package = False
        if chosen:
            self.prefix = Path(chosen)
        else:
            try:
                found = distribution("cmeel-boost")
                self.prefix = Path(str(found.locate_file("cmeel.prefix")))
                self.package = True
            except PackageNotFoundError:
                self.prefix = Path("/usr")
        self.include = self.prefix / "include"
        version = boost_version(self.include)
        least = ".".join(map(str, BOOST_LEAST))
        advice = "install the package cmeel-boost, or name a prefix in CAPYBENCH_BOOST"
        if version is None:
            sys.exit(
                f"capybench-boost needs Boost {least} or newer, and {self.include} has none: {advice}."
            )
        self.version = ".".join(map(str, version))
        if version[:2] < BOOST_LEAST:
            sys.exit(
                f"capybench-boost needs Boost {least} or newer, and {self.prefix} has {self.version}: {advice}."
            )
        if not (self.include / "boost" / "cobalt.hpp").is_file():
            sys.exit(f"capybench-boost needs Boost.Cobalt, and {self.include} lacks it: {advice}.")
        multiarch = sysconfig.get_config_var("MULTIARCH") or ""
        folders = [self.prefix / "lib" / multiarch, self.prefix / "lib64", self.prefix / "lib"]
        holding = [folder for folder in folders if (folder / "libboost_context.so").exists()]
        if not holding:
            sys.exit(
                f"capybench-boost needs libboost_context.so, and {self.prefix} lacks it: {advice}."
            )
        self.libraries = holding[0]
        archive = self.libraries / "libboost_cobalt.a"
        self.cobalt_archive = archive if archive.is_file() else None

    def cobalt(self, command: list[str], scratch: Path) -> Path | None:
        """The real libboost_cobalt, if it links: the archive, built so that a shared object may contain it.

        Never the shared one: Asio's per-thread caches would exist twice, in it and here where all is hidden, and
        blocks that one side frees the other would have to ask the heap for.
        """
        if self.cobalt_archive is None:
            return None
        whole = ["-Wl,--whole-archive", str(self.cobalt_archive), "-Wl,--no-whole-archive"]
        probe = [*command, "-shared", "-o", str(scratch / "probe.so"), *whole]
        links = subprocess.run(probe, capture_output=True, check=False).returncode == 0
        return self.cobalt_archive if links else None

    def requires(self) -> list[str]:
        """The run requirement: the library's name carries its full version, so it is that one."""
        return [f"cmeel-boost=={self.version}.*"] if self.package else []

    def run_paths(self, target: Path, *, in_place: bool) -> list[str]:
        """Where the loader looks for libboost_context, from the folder of the plug-in."""
        if not self.package:
            return [] if self.prefix == Path("/usr") else [str(self.libraries)]
        if not in_place:
            return ["$ORIGIN/../cmeel.prefix/lib"]
        installed = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "lib"
        return ["$ORIGIN/" + os.path.relpath(installed, target)]


def compiler() -> list[str]:
    """The C++ compiler, which must be a g++ that is new enough."""
    command = shlex.split(os.environ.get("CXX") or "g++")
    if shutil.which(command[0]) is None:
        sys.exit(f"capybench-boost needs g++ {GXX_LEAST} or newer, and there is no {command[0]}.")
    done = subprocess.run(
        [*command, "-dM", "-E", "-x", "c++", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(re.findall(r"^#define (__GNUC__|__clang__) (\d+)$", done.stdout, re.MULTILINE))
    if "__clang__" in found or int(found.get("__GNUC__", 0)) < GXX_LEAST:
        sys.exit(
            f"capybench-boost needs g++ {GXX_LEAST} or newer, and {' '.join(command)} is another compiler."
        )
    return command


def last_flags() -> list[str]:
    """The flags that every build of the project appends last."""
    flags = project_file("cflags").read_text().split()
    by_machine = f"cflags.{platform.machine()}"
    if by_machine in BUNDLED:
        flags += project_file(by_machine).read_text().split()
    return flags


class BuildExt(build_ext):
    """Compiles once, links twice; knows nothing of Python's ABI, because the objects do not."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"

    def build_extensions(self) -> None:
        if sys.platform != "linux":
            sys.exit(f"capybench-boost builds on Linux only, and this is {sys.platform}.")
        boost = Boost()
        command = compiler()
        scratch = Path(self.build_temp)
        scratch.mkdir(parents=True, exist_ok=True)
        cobalt = boost.cobalt(command, scratch)
        jobs = [(source, False) for source in sorted((HERE / "src").glob("*.cpp"))]
        if cobalt is not None:
            jobs = [job for job in jobs if job[0].stem != "cobalt_runtime"]
        jobs += [(source, True) for source, _ in jobs if source.stem in COMPILED_APART]
        # The slow ones first, so that two at a time end together.
        jobs.sort(key=lambda job: job[0].stat().st_size, reverse=True)
        workers = int(self.parallel or min(2, os.cpu_count() or 1))
        with ThreadPoolExecutor(workers) as pool:
            objects = list(
                pool.map(lambda job: self.compile(command, boost, cobalt is not None, *job), jobs)
            )
        for ext in self.extensions:
            made = [(*job, built) for job, built in zip(jobs, objects, strict=True)]
            self.link(command, boost, cobalt, ext, made)

    def compile(
        self, command: list[str], boost: Boost, real_cobalt: bool, source: Path, counting: bool
    ) -> Path:
        """One object file; kept when it is newer than everything it is made of."""
        major, minor, patch = boost.version.split(".")
        macros = {
            "NDEBUG": 1,
            "CPB_BOOST_COUNTING": int(counting),
            "CPB_BOOST_COBALT_LIBRARY": int(real_cobalt),
            "CPB_BOOST_VERSION": '"' + self.distribution.get_version() + '"',
            "CPB_BOOST_MAJOR": major,
            "CPB_BOOST_MINOR": minor,
            "CPB_BOOST_PATCH": patch,
        }
        flags = ["-std=c++20", "-fPIC", "-g1", "-Wall", "-Wextra", "-Wshadow"]
        if os.environ.get("CAPYBENCH_WERROR") == "1":
            flags.append("-Werror")
        flags += [f"-D{name}={value}" for name, value in macros.items()]
        flags.append(f"-I{project_file('include/capybench.h').parent}")
        flags += shlex.split(os.environ.get("CXXFLAGS", ""))
        flags += last_flags()
        # As in a program: no interposition, thread-locals at fixed offsets. They are a hundred bytes.
        flags += ["-fvisibility=hidden", "-fvisibility-inlines-hidden", "-fno-gnu-unique"]
        flags += ["-fno-semantic-interposition", "-ftls-model=initial-exec"]
        # A folder for each way to compile, so that an object of another one is never taken for this one's.
        # Where the headers are does not matter: an isolated build finds them in a new place each time.
        way = hashlib.sha256("\0".join([*command, *flags, boost.version]).encode()).hexdigest()[:12]
        if boost.prefix != Path("/usr"):
            flags += ["-isystem", str(boost.include)]
        folder = Path(self.build_temp) / way
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"{source.stem}.o"
        inputs = [project_file("include/capybench.h"), source, *(HERE / "src").glob("*.hpp")]
        if (
            not self.force
            and made.exists()
            and all(p.stat().st_mtime < made.stat().st_mtime for p in inputs)
        ):
            return made
        self.spawn([*command, *flags, "-c", str(source), "-o", str(made)])
        return made

    def link(
        self,
        command: list[str],
        boost: Boost,
        cobalt: Path | None,
        ext: Extension,
        objects: list[tuple[Path, bool, Path]],
    ) -> None:
        """One shared object."""
        name = ext.name.rpartition(".")[2]
        counts = name == "boost_counting"
        others = set().union(*LINKED_APART.values()) - LINKED_APART[name]
        chosen = [
            str(made)
            for source, counting, made in objects
            if source.stem not in others
            and (source.stem not in COMPILED_APART or counting == counts)
        ]
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        exports = HERE / "src" / "exports.map"
        flags = [
            "-shared",
            "-fno-lto",
            "-Wl,-z,defs",
            "-Wl,--build-id",
            f"-Wl,--version-script={exports}",
        ]
        if counts:
            flags += [f"-Wl,--wrap={symbol}" for symbol in WRAPPED]
        libraries = [] if cobalt is None else [str(cobalt)]
        libraries += [f"-L{boost.libraries}", "-lboost_context"]
        paths = boost.run_paths(target.parent.resolve(), in_place=bool(self.inplace))
        libraries += [f"-Wl,-rpath,{path}" for path in paths]
        self.spawn([*command, *flags, "-o", str(target), *chosen, *libraries])


class Sdist(sdist):
    """An sdist with its own copies of the header, the flags and the license."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        for name in BUNDLED:
            self.mkpath(str(Path(base_dir, name).parent))
            self.copy_file(str(project_file(name)), str(Path(base_dir, name)))
        license_file = (CHECKOUT.parent if in_checkout() else HERE) / "LICENSE"
        self.copy_file(str(license_file), str(Path(base_dir, "LICENSE")))


class BdistWheel(bdist_wheel):
    """Any Python 3 of this machine's kind: nothing here speaks Python's ABI."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def modules() -> list[Extension]:
    """What setuptools calls extensions: two shared objects from one set of sources."""
    os.chdir(HERE)
    sources = sorted(str(path) for path in Path("src").glob("*.cpp"))
    return [Extension(f"capybench_boost.{name}", sources) for name in LINKED_APART]


setup(
    ext_modules=modules(),
    cmdclass={"build_ext": BuildExt, "sdist": Sdist, "bdist_wheel": BdistWheel},
    install_requires=Boost().requires(),
)
