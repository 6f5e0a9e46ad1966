"""How fast compiled programs are, beside other engines, in one run. See README.md.

python -m benchmarks [--only PATTERN…] [--engines NAME,…] [--rounds N] [--fused on|off] [--json F]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path

from benchmarks.bench import BUILDS, CALL
from benchmarks.browser import engines as pages
from benchmarks.browser import tuning as page_tuning
from benchmarks.browser.search import SEARCH, SearchEngine
from benchmarks.engine import Engine, NotForThis
from benchmarks.kernels import WORKLOADS
from benchmarks.native import LlvmEngine, NativeEngine, NumpyEngine, TVMEngine
from benchmarks.report import markdown, plain
from benchmarks.suite import measure
from benchmarks.tuning import quality, rate, strategies
from mlcweb.codegen.registry import RELAXED_MADD

TUNING = (*strategies.STRATEGIES, quality.TUNED, quality.COLD)
ENGINES = (
    *pages.TITLES,
    "native",
    "llvm",
    "tvm",
    "tvm-host",
    "numpy-host",
    "search",
    page_tuning.IN_PAGE,
    *TUNING,
    rate.RATE,
)
BUILT_PAGE = Path(__file__).parents[1] / "web" / "dist"


def all_programs() -> list[str]:
    """The names of everything that can be measured."""
    kernels = [f"{w.name}/{program}" for w in WORKLOADS.values() for program in w.programs]
    return [*kernels, CALL, *BUILDS, SEARCH]


def long_programs() -> list[str]:
    """The names of what takes minutes, and is measured only where it is asked for."""
    tuned = [*strategies.programs(), *quality.programs(), *rate.programs()]
    return [*tuned, *page_tuning.programs()]


def open_engines(options: argparse.Namespace, stack: ExitStack) -> list[Engine]:
    """The engines asked for that are there; a line on stderr about each that is not."""
    names = options.engines
    config = {} if options.fused is None else {RELAXED_MADD: options.fused == "on"}
    engines: list[Engine] = []
    in_page = [name for name in names if name in pages.TITLES]

    def note(reason: object) -> None:
        print(f"left out: {reason}", file=sys.stderr)

    for name in pages.missing_peers():
        if name in in_page:
            in_page.remove(name)
            note(f"{name}: `npm ci` in benchmarks/peers installs it")
    chromium = cache(lambda: pages.launch(stack))
    makers: dict[str, Callable[[], list[Engine]]] = {
        "native": lambda: [NativeEngine(config)],
        "llvm": lambda: [LlvmEngine(config)],
        "tvm": lambda: [TVMEngine(stack)],
        "tvm-host": lambda: [TVMEngine(stack, on_host=True)],
        "numpy-host": lambda: [NumpyEngine()],
        "search": lambda: [SearchEngine(chromium(), stack, options.built_page)],
        page_tuning.IN_PAGE: lambda: [
            page_tuning.PageSearchEngine(chromium(), stack, options.built_page)
        ],
        rate.RATE: lambda: [rate.RateEngine()],
    }
    if in_page:
        engines_in_page = partial(pages.open_page, chromium, stack, in_page, config)
        makers = {in_page[0]: engines_in_page, **makers}
    if any(name in TUNING for name in names):
        tuning = [*strategies.engines(), *quality.engines()]
        makers |= {each.name: lambda each=each: [each] for each in tuning}
    for name, make in makers.items():
        try:
            engines += make() if name in names else []
        except NotForThis as reason:
            note(reason)
    return engines


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="PATTERN", default=None)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES))
    parser.add_argument("--fused", choices=("on", "off"))
    parser.add_argument("--built-page", type=Path, default=BUILT_PAGE, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.engines) - set(ENGINES):
        parser.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    available = [*all_programs(), *long_programs()]
    patterns = [p if "/" in p or "*" in p else f"{p}/*" for p in options.only or ()]
    programs = [p for p in available if any(fnmatch(p, pattern) for pattern in patterns)]
    if options.only is None:
        programs = all_programs()
    if options.list or not programs:
        print("programs:", *available, "engines:", *ENGINES, sep="\n  ")
        return
    with ExitStack() as stack:
        engines = open_engines(options, stack)
        results = measure(
            engines, programs, options.rounds, lambda line: print(line, file=sys.stderr, flush=True)
        )
    print(markdown(results, engines, programs))
    if options.json:
        options.json.write_text(json.dumps(plain(results), indent=1))


if __name__ == "__main__":
    main()
