"""capybench measures what asynchronous machinery costs.

    import capybench

    result = capybench.run(["coroutine"], quick=True)   # a RunResult, measured in fresh workers
    for cell in result.cells:
        print(cell.id, cell.summary.median, cell.unit)

Public names are bound when they are first used: importing the package costs next to nothing, which
the workers that measure depend on.
"""

from capybench._version import __version__

#: Type checkers take this for true; at run time nothing below is imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from capybench.cases import Case, Cell, Listing
    from capybench.comparison import Comparison
    from capybench.errors import CapybenchError
    from capybench.plan import Plan
    from capybench.plugins import Plugin, load_plugin
    from capybench.results import RunResult
    from capybench.runner import Progress

__all__ = [
    "CapybenchError",
    "Case",
    "Cell",
    "Comparison",
    "Listing",
    "Plan",
    "Plugin",
    "Progress",
    "RunResult",
    "__version__",
    "compare",
    "get_include",
    "list_cells",
    "load",
    "load_plugin",
    "run",
]

_HOME = {
    "CapybenchError": "errors",
    "Case": "cases",
    "Cell": "cases",
    "Comparison": "comparison",
    "Listing": "cases",
    "Plan": "plan",
    "Plugin": "plugins",
    "Progress": "runner",
    "RunResult": "results",
    "list_cells": "cases",
    "load_plugin": "plugins",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'capybench' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"capybench.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *_HOME})


def run(
    patterns: "str | Sequence[str]" = (),
    *,
    keyword: "str | None" = None,
    quick: bool = False,
    blocks: "int | None" = None,
    samples: "int | None" = None,
    seed: "int | None" = None,
    pin: "str | int | None" = "auto",
    budget_s: "float | None" = None,
    baseline: "str | None" = None,
    keep_env: bool = False,
    plugins: "Sequence[str | PathLike[str]]" = (),
    use_installed: bool = True,
    variants: "Mapping[str, str | PathLike[str]] | None" = None,
    target: "str | PathLike[str] | None" = None,
    progress: "Progress | None" = None,
    timeout_s: float = 60.0,
) -> "RunResult":
    """Measure cells, each in fresh worker processes, and save the result.

    Args:
        patterns: globs or prefixes of cell ids ("coroutine", "frame_alloc/*@malloc"); all cells
            when empty, with `quick` those marked quick.
        keyword: an expression like pytest's `-k`.
        quick: 3 blocks of 3 samples of 10 ms instead of 10 blocks of 5 samples of 50 ms.
        blocks, samples: override these numbers.
        seed: decides every order; a fresh one when None.
        pin: "auto", a CPU number, or None for no pinning.
        budget_s: seconds; whole blocks are cut before the run begins.
        baseline: contender that the others of a case are compared with.
        keep_env: keep LD_PRELOAD, MALLOC_* and GLIBC_TUNABLES in workers.
        plugins: plug-in files whose cells take part, besides those given to `load_plugin`.
        use_installed: also the plug-ins of installed distributions.
        variants: builds to measure back to back in every block, by name, the last one under test:
            environments, interpreters, core files, plug-in files (see `capybench.variants`). The
            result's `variant(name)` is each one's part.
        target: the result file; .capybench/runs/<UTC time>-<seed>.json when None.
        progress: an object told between workers (`Progress`).
        timeout_s: seconds after which a worker counts as hanging.

    Raises:
        CapybenchError: nothing matches, the file cannot be written, no extension …
        KeyboardInterrupt: after Ctrl-C; its message names the file with the finished workers.
    """
    from capybench import cases, results, runner
    from capybench import plan as plans

    chosen = [patterns] if isinstance(patterns, str) else list(patterns)
    listings = None
    if variants is None:
        listing = cases.list_cells(plugins=plugins, use_installed=use_installed)
    else:
        from capybench import variants as builds

        listings = builds.list_variants(variants, plugins=plugins, use_installed=use_installed)
        listing = builds.union(listings)
    selected = cases.select(listing, chosen, keyword, quick_only=quick)
    planned = plans.make_plan(
        listing,
        selected,
        quick=quick,
        blocks=blocks,
        samples=samples,
        seed=seed,
        pin=pin,
        budget_s=budget_s,
        baseline=baseline,
        keep_env=keep_env,
        patterns=chosen,
        keyword=keyword,
        variants=listings,
    )
    document = runner.run_plan(planned, target=target, progress=progress, timeout_s=timeout_s)
    facts = document["run"]
    if facts["interrupted"]:
        raise KeyboardInterrupt(
            f"{facts['workers_done']} of {facts['workers']} workers had finished; "
            f"they are in {facts['path']}"
        )
    return results.RunResult.from_dict(document)


def load(path: "str | PathLike[str]") -> "RunResult":
    """Read a result file; summaries are computed from its samples.

    Raises ResultError (naming file and place) or OSError.
    """
    from capybench import results

    return results.load(path)


def load_ipython_extension(ipython: object) -> None:
    """`%load_ext capybench`: adds the magic `%capybench`."""
    from capybench import magic

    magic.register(ipython)


def compare(
    base: "str | PathLike[str] | RunResult | Sequence[RunResult]",
    head: "str | PathLike[str] | RunResult | Sequence[RunResult]",
    **options: object,
) -> "Comparison":
    """Judge one run against another; files are loaded. See `capybench.judge.compare_runs`.

    Thresholds may be texts: `compare("base.json", "head.json", thresholds="median:5%")`.

    Raises UsageError (other machines, unknown options' values), ResultError or OSError.
    """
    from os import PathLike, fspath
    from typing import Any

    from capybench import judge, thresholds

    given: Any = options.get("thresholds", ())
    if isinstance(given, str) or any(isinstance(one, str) for one in given):
        options["thresholds"] = thresholds.parse(given)
    sides: list[Any] = [
        load(fspath(side)) if isinstance(side, str | PathLike) else side for side in (base, head)
    ]
    chosen: Any = options
    return judge.compare_runs(*sides, **chosen)


def get_include() -> str:
    """The folder that holds `capybench.h`, for those who compile a plug-in.

    Raises FileNotFoundError when the header came neither with the package nor with a checkout.
    """
    from pathlib import Path

    package = Path(__file__).resolve().parent
    for folder in (package / "include", package.parent / "csrc" / "include"):
        if (folder / "capybench.h").is_file():
            return str(folder)
    raise FileNotFoundError(
        f"capybench.h is neither in {package / 'include'} nor in a checkout beside the package; "
        "install capybench again"
    )
