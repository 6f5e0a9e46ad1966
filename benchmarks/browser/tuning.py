"""Tuning in the playground's Search view, as a reader does it: two workers, the default space, no
records of earlier searches.

The page is driven by its own controls. What a search finds is read off the view: the best of 64
trials, the best after five seconds, and the whole model with its first layer tuned.
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
LIMIT_MS = 180_000

WALL = f"search/{TRIALS}_trials"
TUNED = "matmul128/tuned_in_page"
COLD = "matmul128/cold_in_page"
MODEL_TUNED = "mlp_model/tuned_in_page"
MODEL_NUMPY = "mlp_model/numpy_in_page"

HEAD = """\
import numpy as np
import tvm
from tvm.script import ir as I, relax as R, tir as T
from mlcweb.runtime.machine_peak import machine_peak
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
peak = machine_peak("float32")
print("peak:", max(peak.flops, peak.fused_flops or 0) / 1e9)
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
        self._seed = 0
        self._found: dict[str, list[float]] = {WALL: [], TUNED: [], COLD: []}

    def prepare(self, name: str) -> None:
        if name not in programs():
            raise NotForThis(f"{name} is no search of the page")

    def sample(self, name: str) -> float:
        """Seconds: of a whole search for the first program, of a call of what it found for others.

        One search serves the first three; each search has another seed.
        """
        if name == MODEL_NUMPY:
            return float(self._printed(HEAD + NUMPY, "seconds:"))
        if name == MODEL_TUNED:
            return self._tuned_model()
        if not self._found[name]:
            self._search()
        return self._found[name].pop(0)

    def peak(self) -> float | None:
        """In GFLOPS, of this page."""
        return float(self._printed(HEAD + PEAK, "peak:"))

    def forget(self, name: str) -> None:
        """Nothing is kept."""

    def _search(self) -> None:
        self._open(PRODUCT)
        begin = self._start()
        self._view.page.wait_for_timeout((COLD_SECONDS - (time.perf_counter() - begin)) * 1e3)
        self._found[COLD].append(self._best())
        self._view.expect_state("ready", timeout_ms=LIMIT_MS)
        self._found[WALL].append(time.perf_counter() - begin)
        self._found[TUNED].append(self._best())

    def _tuned_model(self) -> float:
        self._open(HEAD + MODEL)
        self._view["search-primfunc"].select_option("linear0")
        self._start()
        self._view.expect_state("ready", timeout_ms=LIMIT_MS)
        self._view["search-best"].click()
        self._view["search-model-times"].click()
        result = self._view["search-model-result"]
        self._view.page.wait_for_function(
            "element => element.dataset.after", arg=result.element_handle(), timeout=LIMIT_MS
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

    def _best(self) -> float:
        """Seconds of the best that the view shows."""
        return float(self._view["search-best"].get_attribute("data-ms") or "inf") / 1e3

    def _printed(self, program: str, mark: str) -> str:
        """The word after a mark in what a program prints."""
        self._view.run_to_end(program)
        text = self._view["console"].inner_text()
        found = re.search(rf"{mark}\s+(\S+)", text)
        if found is None:
            raise RuntimeError(f"the page says: {text.strip()}")
        return found[1]
