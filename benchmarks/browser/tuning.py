"""Tuning in the playground's Search view, as a reader does it: two workers, the default space, no
records of earlier searches.

The page is driven by its own controls: 64 trials, of which the best of all and the best after five
seconds are put into the program and timed there, and the whole model with its first layer tuned.
"""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browser.built_page import open_built_page
from benchmarks.engine import NotForThis
from benchmarks.kernels.mlp import MODEL

IN_PAGE = "page_search"
TRIALS = 64
WORKERS = 2
COLD_SECONDS = 5.0

WALL = f"search/{TRIALS}_trials"
TUNED = "matmul128/tuned_in_page"
COLD = "matmul128/cold_in_page"
MODEL_TUNED = "mlp_model/tuned_in_page"
MODEL_NUMPY = "mlp_model/numpy_in_page"

HEAD = """\
import numpy as np
import tvm
from tvm.script import ir as I, relax as R, tir as T
from mlcweb.runtime.machine_peak import multiply_add_timer, operations_an_iteration
"""

PRODUCT = (
    HEAD
    + """
@I.ir_module
class Module:
    @T.prim_func
    def main(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
)

PEAK = """
ITERATIONS = 250_000
operations = operations_an_iteration("float32") * ITERATIONS
timers = [multiply_add_timer("float32", fused) for fused in (False, True)]

def peak():
    return max(operations / timer(ITERATIONS) / 1e9 for timer in timers)

print("peak:", max(peak() for _ in range(3)))
"""

FOUND = """
rng = np.random.default_rng(0)
arrays = [tvm.nd.array(rng.uniform(-1, 1, (128, 128)).astype("float32")) for _ in range(3)]
library = tvm.build(Module, target="llvm")
timer = library.time_evaluator("main", tvm.cpu(), number=20, repeat=3)
times = [timer(*arrays).min for _ in range(9)]
print("seconds:", sorted(times)[4])
"""

NUMPY = """
import time
rng = np.random.default_rng(0)
x, w0, b0, w1, b1 = (
    rng.uniform(-1, 1, shape).astype("float32")
    for shape in ((1, 784), (128, 784), (128,), (10, 128), (10,))
)
times = []
for _ in range(9):
    start = time.perf_counter()
    for _ in range(200):
        np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
    times.append((time.perf_counter() - start) / 200)
print("seconds:", sorted(times)[4])
"""


def programs() -> list[str]:
    """The names of what is measured."""
    return [WALL, TUNED, COLD, MODEL_TUNED, MODEL_NUMPY]


class PageSearchEngine:
    """The built playground, whose Search view is asked."""

    name = IN_PAGE
    title = "Search view"
    only_best = False

    def __init__(self, chromium: Browser, stack: ExitStack, built: Path) -> None:
        self._view = open_built_page(chromium, stack, built)
        # So high that the editor draws every line, and the program can be read off it.
        self._view.page.set_viewport_size({"width": 1400, "height": 4000})
        self._seed = 0
        self._wall = 0.0
        self._found: dict[str, str] = {}

    def prepare(self, name: str) -> None:
        if name not in programs():
            raise NotForThis(f"{name} is no search of the page")

    def sample(self, name: str) -> float:
        """Seconds: of a whole search for the first program, of a call of what it found for others.

        The first searches, each time with another seed; what it match is timed when its turn comes.
        """
        if name == MODEL_NUMPY:
            return float(self._printed(HEAD + NUMPY, "seconds:"))
        if name == MODEL_TUNED:
            return self._tuned_model()
        if name == WALL or name not in self._found:
            self._search()
        if name == WALL:
            return self._wall
        return float(self._printed(self._found[name] + FOUND, "seconds:"))

    def peak(self) -> float | None:
        """In GFLOPS, of this page."""
        return float(self._printed(HEAD + PEAK, "peak:"))

    def forget(self, name: str) -> None:
        """Nothing is kept."""

    def _search(self) -> None:
        self._open(PRODUCT)
        begin = self._start()
        self._view.page.wait_for_timeout((COLD_SECONDS - (time.perf_counter() - begin)) * 1e3)
        early = self._best()
        self._view.expect_state("ready")
        self._wall = time.perf_counter() - begin
        self._found = {TUNED: self._program_of(self._best()), COLD: self._program_of(early)}

    def _tuned_model(self) -> float:
        self._open(HEAD + MODEL)
        self._view["search-primfunc"].select_option("linear0")
        self._start()
        self._view.expect_state("ready")
        self._view["search-best"].click()
        self._view["search-model-times"].click()
        result = self._view["search-model-result"]
        self._view.page.wait_for_function(
            "element => element.dataset.after", arg=result.element_handle()
        )
        return float(result.get_attribute("data-after") or "nan") / 1e3

    def _open(self, program: str) -> None:
        """Run a program, and open the view without records and with settings of its own."""
        view = self._view
        view.run_to_end(program)
        view.open_view("search")
        view["tab-search-records"].click()
        if view["search-clear"].is_enabled():
            view["search-clear"].click()
            view["search-clear"].click()
        view["tab-search-times"].click()
        self._seed += 1
        view["search-strategy"].select_option("evolutionary")
        view["search-trials"].fill(str(TRIALS))
        view["search-unit"].select_option("trials")
        view["search-workers"].fill(str(WORKERS))
        view["search-seed"].fill(str(self._seed))

    def _start(self) -> float:
        begin = time.perf_counter()
        self._view["search-start"].click()
        self._view.expect_state("running")
        return begin

    def _best(self) -> str:
        """The number of the trial that the view shows as the best."""
        text = self._view["search-best"].inner_text()
        match = re.search(r"trial (\d+)", text)
        if match is None:
            raise RuntimeError(f"the view says: {text}")
        return match[1]

    def _program_of(self, trial: str) -> str:
        """The program with its function replaced by what a trial made of it."""
        view = self._view
        view.write(PRODUCT)
        view.open_view("search")
        view["search-row"].and_(view.page.locator(f"[data-trial='{trial}']")).click()
        view.page.get_by_role("heading", name=re.compile(rf"^Trial {trial}\b")).wait_for()
        view["search-replace"].click()
        lines = view["editor"].locator(".cm-line")
        lines.filter(has_text="update_func").wait_for()
        return "\n".join(lines.all_inner_texts()) + "\n"

    def _printed(self, program: str, mark: str) -> str:
        """The word after a mark in what a program prints."""
        self._view.run_to_end(program)
        text = self._view["console"].inner_text()
        match = re.search(rf"{mark}\s+(\S+)", text)
        if match is None:
            raise RuntimeError(f"the page says: {text.strip()}")
        return match[1]
