"""Kernels that a search tries run apart from everything else: what goes wrong costs one trial."""

import re

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground, without_promise_integration

PROGRAM = """\
import itertools
import tvm
from tvm.script import tir as T


@T.prim_func
def copy(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]


@T.prim_func
def divides(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.truncdiv(A[vi], A[vi] - A[vi])


@T.prim_func
def adds(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + 1


@T.prim_func
def hangs(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i, j, k in T.grid(1000000000, 1000000000, 16):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vk] = B[vk] * 3 + A[vk]


@T.prim_func
def huge(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    C = T.alloc_buffer((16, 80000000), "int32")
    for i, j in T.grid(16, 80000000):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi]
    for i, j in T.grid(16, 80000000):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi] = C[vi, vj]


Copy = tvm.IRModule({"main": copy})
COUNT = itertools.count()


def tiled(sch, number):
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, factors=[None, 2 ** (number % 5)])
    return sch


def fine(sch):
    return tiled(sch, next(COUNT))


def faulty(sch):
    number = next(COUNT)
    bad = {1: divides, 2: adds, 3: hangs, 4: huge}.get(number)
    return tvm.tir.Schedule(bad) if bad is not None else tiled(sch, number)


def slow_at_first(sch):
    number = next(COUNT)
    return tvm.tir.Schedule(hangs) if number == 0 else tiled(sch, number)


def slow_at_last(sch):
    number = next(COUNT)
    return tvm.tir.Schedule(hangs) if number >= 4 else tiled(sch, number)
"""

CATCH_WORKERS = """() => {
    const Plain = window.Worker;
    window.trialWorkers = [];
    window.kernelsBegun = 0;
    window.Worker = class extends Plain {
        constructor(url, options) {
            super(url, options);
            if (options?.name === "trials") window.trialWorkers.push(this);
        }
        postMessage(message, transfer) {
            super.postMessage(message, transfer);
            if (message.type === "run") window.kernelsBegun += 1;
        }
    };
}"""


@pytest.fixture
def programs(playground: Playground) -> Playground:
    """The page after the programs above have run, with the Search view open."""
    playground.run_to_end(PROGRAM)
    playground.open_view("search")
    # What hung or failed before is to do so again.
    playground["tab-search-records"].click()
    playground["search-reuse"].set_checked(False)
    playground["tab-search-times"].click()
    return playground


def start(playground: Playground, function: str, trials: int, workers: int = 2) -> None:
    playground["search-strategy"].select_option("function")
    playground.page.locator("#search-function").select_option(function)
    playground.page.locator("#search-module").select_option("Copy")
    playground["search-trials"].fill(str(trials))
    playground["search-workers"].fill(str(workers))
    playground["search-start"].click()


def outcomes(playground: Playground) -> dict[int, str]:
    """The text of each trial's row, by the trial's number."""
    rows = playground["search-row"].all()
    return {int(row.get_attribute("data-trial") or -1): row.inner_text() for row in rows}


def fates(playground: Playground) -> list[str]:
    """What became of each trial: "failed" or "checked", be it as an earlier trial of its code."""
    states = [row.get_attribute("data-state") for row in playground["search-row"].all()]
    return ["failed" if state == "failed" else "checked" for state in states]


def test_each_fault_costs_one_trial_and_has_its_reason(programs):
    with programs.to_end():
        start(programs, "faulty", 8)
    told = outcomes(programs)
    assert sorted(told) == list(range(8))
    assert fates(programs) == ["checked", *["failed"] * 4, *["checked"] * 3]
    assert "divided an integer by zero" in told[1]
    assert "differ from the unscheduled program's" in told[2]
    # 10 s, and what measuring takes by its settings.
    assert re.search(r"TimeoutError: no result within 10(\.\d+)? s", told[3])
    assert "OutOfMemory" in told[4]
    failures = programs["search-failures"]
    expect(failures.locator("li")).to_have_count(4)
    expect(failures).to_contain_text("1 failed: TimeoutError")
    expect(programs["search-rate"]).to_contain_text("trials/s · 2 workers")
    failures.locator("button", has_text="TimeoutError").click()
    chosen = programs.page.locator("tr[aria-selected=true]")
    expect(chosen).to_have_attribute("data-trial", "3")


@pytest.mark.thorough
def test_a_worker_killed_mid_trial_costs_one_trial(programs):
    programs.page.evaluate(CATCH_WORKERS)
    with programs.to_end():
        start(programs, "slow_at_first", 4, workers=1)
        # The unscheduled program runs first, then a trial that never ends by itself.
        programs.page.wait_for_function("() => kernelsBegun === 2")
        assert programs.page.evaluate("trialWorkers.length") == 1
        programs.page.evaluate("trialWorkers[0].terminate()")
    assert programs.page.evaluate("trialWorkers.length") == 2
    assert fates(programs) == ["failed", "checked", "checked", "checked"]


@pytest.mark.thorough
def test_stop_cuts_running_kernels_off_and_keeps_what_was_found(programs):
    with programs.to_end():
        start(programs, "slow_at_last", 1000)
        expect(programs["search-row"]).to_have_count(4)
        programs["search-stop"].click()
    # Kernels that are left to their time limit would be failed trials.
    assert fates(programs) == ["checked"] * 4
    # Python has not been restarted: it still knows the trials, and the next search runs.
    programs["search-best"].click()
    expect(programs["view-search"]).to_contain_text("sch.split")
    programs.run_to_end(PROGRAM)
    programs.open_view("search")
    with programs.to_end():
        start(programs, "fine", 3)
    assert fates(programs) == ["checked"] * 3


@pytest.mark.thorough
def test_a_program_may_search_by_itself(programs):
    programs.run_to_end(
        PROGRAM
        + """
from tvm import meta_schedule as ms
from tvm.meta_schedule.events import Confirmed, Trial
from tvm.meta_schedule.history import History
from tvm.meta_schedule.measure.artifact import random_inputs
from tvm.meta_schedule.search import search
from tvm.meta_schedule.search_strategy.replay import CallFunction

module = Copy
runner = ms.runner.LocalRunner().open(random_inputs(module))
history = History(ms.database.MemoryDatabase(), module)
events = [
    event
    async for event in search(
        module, None, CallFunction(fine), runner=runner, history=history, trials=6
    )
]
runner.close()
trials = [event for event in events if isinstance(event, Trial)]
failed = [trial for trial in trials if trial.state == "failed"]
print(len(trials), len(failed), any(isinstance(event, Confirmed) for event in events))
"""
    )
    programs.expect_state("ready")
    expect(programs["console"]).to_contain_text("6 0 True")


@pytest.mark.thorough
def test_searching_works_without_isolation(open_playground):
    playground = open_playground(isolated=False)
    playground.run_to_end(PROGRAM)
    playground.open_view("search")
    with playground.to_end():
        start(playground, "fine", 4)
    assert fates(playground) == ["checked"] * 4


@pytest.mark.thorough
def test_searching_works_where_python_cannot_wait(open_playground):
    """Without JavaScript Promise Integration, as in some browsers."""
    playground = open_playground(prepare=without_promise_integration)
    playground.run_to_end(PROGRAM + "\nfrom pyodide.ffi import can_run_sync\nprint(can_run_sync())")
    expect(playground["console"]).to_contain_text("False")
    playground.open_view("search")
    with playground.to_end():
        start(playground, "fine", 4)
    assert fates(playground) == ["checked"] * 4
