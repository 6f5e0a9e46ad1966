"""What a reader does first, in the browsers that are not Chromium."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from e2e.browsers.browser_page import BrowserPage, part

pytestmark = pytest.mark.thorough

TUNE = """\
import tvm
from mlcweb.meta_schedule.runner import LocalRunner
from tvm import meta_schedule as ms
from tvm.script import tir as T

@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"),
             C: T.Buffer((64, 64), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

database = ms.tune_tir(
    mod=MyModule, target="llvm", max_trials_global=10, num_trials_per_iter=5, work_dir="./tune",
    runner=LocalRunner(timeout_sec=120),  # however busy the machine is
)
workload = database.get_top_k(database.commit_workload(MyModule), 1)
print("tuned", len(workload), workload[0].run_secs[0] > 0)
"""

OpenPage = Callable[..., BrowserPage]


@pytest.mark.parametrize("isolated", [True, False])
def test_the_first_program_runs(open_page: OpenPage, isolated: bool):
    page = open_page(isolated)
    assert page.driver.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.take_first_program()
    said = page.run()
    assert page.wait_state("ready", "error") == "ready", said
    assert "Time cost of MyModule" in said
    assert "=====Attempt 4" in said


def test_the_second_visit_restores_python(open_page: OpenPage):
    page = open_page()
    if page.driver.evaluate(page.attribute(part("status"), "data-start")) == "plain":
        page.wait(page.attribute(part("status"), "data-snapshot"))
    page.open()
    page.wait_state("ready")
    assert page.driver.evaluate(page.attribute(part("status"), "data-start")) == "restored"
    assert "sum 42" in page.run('print("sum", 20 + 22)')


@pytest.mark.parametrize("isolated", [True, False])
def test_stop_ends_an_endless_program(open_page: OpenPage, isolated: bool):
    page = open_page(isolated)
    page.write("print('begun')\nwhile True:\n    pass\n")
    before = page.ended()
    page.click("run")
    page.wait_text("console", "begun")
    page.click("stop")
    page.wait_ended(before)
    page.wait_state("ready")
    assert "sum 42" in page.run('print("sum", 20 + 22)')


def test_a_search_of_ten_trials(open_page: OpenPage):
    page = open_page()
    page.take_first_program()
    page.run()
    page.click("tab-search")
    page.set_value("search-strategy", "random")
    page.set_value("search-trials", "10")
    before = page.ended()
    page.click("search-start")
    page.wait_ended(before)
    assert page.wait_state("ready", "error") == "ready"
    rows = f"document.querySelectorAll('{part('search-row')}').length"
    assert page.driver.evaluate(rows) >= 10


def test_a_cell_of_a_lesson(open_page: OpenPage):
    page = open_page()
    page.open("#lesson=02-tensorir")
    cell = part("lesson-cell")
    page.wait(f"document.querySelector('{cell}') !== null")
    page.wait_state("ready")
    page.driver.click(f"{cell} {part('cell-run')}")
    state = page.wait(page.attribute(cell, "data-state"), lambda now: now in ("done", "failed"))
    assert state == "done"


def test_an_embedded_cell(open_page: OpenPage):
    page = open_page()
    page.open("course.html")
    console = (
        "document.querySelector('mlc-cell').shadowRoot?.querySelector('iframe')"
        f"?.contentDocument?.querySelector('{part('console')}')?.innerText ?? ''"
    )
    page.wait(console, lambda text: "sum 42" in text)


@pytest.mark.parametrize("isolated", [True, False])
def test_a_program_tunes_synchronously(open_page: OpenPage, isolated: bool):
    page = open_page(isolated)
    said = page.run(TUNE)
    assert "tuned 1 True" in said
    coarse = "no JavaScript Promise Integration" in said
    suspends = page.driver.evaluate("'Suspending' in WebAssembly")
    # From the second visit on, the page's service worker isolates it where its host does not.
    shares_memory = page.driver.evaluate("crossOriginIsolated")
    assert shares_memory or not isolated
    assert coarse == (not shares_memory and not suspends)
