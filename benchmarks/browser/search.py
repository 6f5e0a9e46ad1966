"""How many trials of a search the playground makes a second: two workers, 128x128 matrix product.

A program run in the built page's own editor draws tiles for all three loops, and counts the trials
that were measured and whose result was checked.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browser.built_page import open_built_page
from benchmarks.engine import NotForThis

SEARCH = "search/matmul128"
TRIALS = 48
WORKERS = 2
MARK = "seconds a trial:"

PROGRAM = f"""\
import time
import tvm
from tvm.script import tir as T
from mlcweb.meta_schedule.database import MemoryDatabase
from mlcweb.meta_schedule.events import Trial
from mlcweb.meta_schedule.history import History
from mlcweb.meta_schedule.runner import LocalRunner
from mlcweb.meta_schedule.measure.artifact import random_inputs
from mlcweb.meta_schedule.search import search
from mlcweb.meta_schedule.search_strategy.replay import CallFunction


@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        T.func_attr({{"tir.noalias": True}})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def schedule(sch):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1, i_2 = sch.split(i, sch.sample_perfect_tile(i, 3, 8))
    j_0, j_1, j_2 = sch.split(j, sch.sample_perfect_tile(j, 3, 32))
    k_0, k_1 = sch.split(k, sch.sample_perfect_tile(k, 2, 16))
    sch.reorder(i_0, j_0, i_1, j_1, k_0, k_1, i_2, j_2)
    sch.vectorize(j_2)
    sch.decompose_reduction(block, k_0)


async def main():
    runner = LocalRunner(max_workers={WORKERS}).open(random_inputs(Module))
    history = History(MemoryDatabase(), Module)
    events = search(
        Module, None, CallFunction(schedule), runner=runner, history=history, trials={TRIALS},
        seed=SEED,
    )
    try:
        await anext(events)
        start, checked = time.perf_counter(), 0
        async for event in events:
            if isinstance(event, Trial) and event.state == "measured":
                checked, end = checked + 1, time.perf_counter()
    finally:
        runner.close()
    print("{MARK}", (end - start) / checked)


await main()
"""


class SearchEngine:
    """The built playground, asked for searches alone."""

    name = "search"
    title = "search in the page"
    only_best = False

    def __init__(self, chromium: Browser, stack: ExitStack, built: Path) -> None:
        self._playground = open_built_page(chromium, stack, built)
        self._seed = 0

    def prepare(self, name: str) -> None:
        if name != SEARCH:
            raise NotForThis(f"{name} is no search")

    def sample(self, name: str) -> float:
        """Seconds per trial."""
        self._seed += 1
        self._playground.run(PROGRAM.replace("SEED", str(self._seed)))
        self._playground.expect_state("ready", "error")
        text = self._playground["console"].inner_text()
        if MARK not in text:
            raise RuntimeError(f"the page says: {text.strip()}")
        return float(text.rpartition(MARK)[2].split()[0])

    def peak(self) -> None:
        return None

    def forget(self, name: str) -> None:
        """Nothing is kept."""
