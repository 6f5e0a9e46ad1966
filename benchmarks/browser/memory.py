"""The memory of a long search in the page: `python -m benchmarks.browser.memory --trials 10000`.

A small program with many schedules is searched through the Search view, two workers at once. Now
and then the search pauses, and what the page and Python hold is printed in MiB: JavaScript heap
of the page after a collection, and the memory of Python, which never shrinks.
"""

from __future__ import annotations

import argparse
import re
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import CDPSession

from benchmarks.__main__ import BUILT_PAGE
from benchmarks.browser.engines import launch, serve
from e2e.playground import LIMIT_MS, Playground

PROGRAM = """\
import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64, 64), "float32"), B: T.Buffer((64, 64, 64), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(64, 64, 64):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk] + T.float32(1)


def schedule(sch):
    for loop in sch.get_loops(sch.get_block("B")):
        sch.split(loop, sch.sample_perfect_tile(loop, 3, 64))
"""

PYTHON = """\
import gc
import pyodide_js

gc.collect()
print("Python holds", pyodide_js._module.HEAP8.length / 2**20, "MiB,", len(gc.get_objects()))
"""


def main() -> None:
    """Search, and print how much memory that takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--built-page", type=Path, default=BUILT_PAGE, metavar="FOLDER")
    options = parser.parse_args()
    with ExitStack() as stack:
        page = launch(stack).new_page()
        view = Playground(page)
        page.goto(serve(stack, options.built_page))
        view.expect_state("ready")
        inspector = page.context.new_cdp_session(page)
        begin = time.monotonic()
        view.run_to_end(PROGRAM)
        view.open_view("search")
        view["search-strategy"].select_option("function")
        page.locator("#search-function").select_option("schedule")
        view["search-trials"].fill(str(options.trials))
        view["search-workers"].fill("2")
        view["search-start"].click()
        for count in range(options.every, options.trials + 1, options.every):
            page.wait_for_function(
                "count => Number(document.querySelector('#search-shown option:checked')"
                ".dataset.trials) >= count",
                arg=count,
                timeout=LIMIT_MS * 10,
            )
            if count < options.trials:
                view["search-pause"].click()
            view.expect_state("ready")
            print(f"{time.monotonic() - begin:.0f} s, {held(view, inspector)}", flush=True)
            view.open_view("search")
            if count < options.trials:
                view["search-pause"].click()


def held(view: Playground, inspector: CDPSession) -> str:
    """What the page and Python hold."""
    trials = view.page.evaluate(
        "document.querySelector('#search-shown option:checked').dataset.trials"
    )
    view.run_to_end(PYTHON)
    match = re.search(r"Python holds (\S+) MiB, (\d+)", view["console"].inner_text())
    inspector.send("HeapProfiler.collectGarbage")
    heap = inspector.send("Runtime.getHeapUsage")["usedSize"] / 2**20
    python = f"{float(match[1]):.0f} MiB, {match[2]} objects" if match else "unknown"
    return f"{trials} trials: JavaScript {heap:.1f} MiB, Python {python}"


if __name__ == "__main__":
    main()
