"""Stepping through a trace, changing its decisions, timing its steps, and taking it along."""

import json
import re

import pytest
from playwright.sync_api import expect

from e2e.programs import MATMUL

TWO_TRACES = """
import tvm
from tvm.script import tir as T

@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j in T.grid(64, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

first = tvm.tir.Schedule(MyModule)
i, j = first.get_loops(first.get_block("B"))
j_0, j_1 = first.split(j, factors=[None, 8])
first.vectorize(j_1)

second = tvm.tir.Schedule(MyModule)
i, j = second.get_loops(second.get_block("B"))
j_0, j_1 = second.split(j, factors=second.sample_perfect_tile(j, 2, 16, decision=[4, 16]))
second.reorder(j_0, i, j_1)
second.vectorize(j_1)
"""


def opened(playground):
    """The view, once it shows the traces of this run."""
    playground.open_view("trace")
    playground.settle()
    return playground


@pytest.fixture
def trace(playground):
    playground.run_first_program()
    return opened(playground)


@pytest.fixture
def two(playground):
    playground.run_to_end(TWO_TRACES)
    playground.expect_state("ready")
    return opened(playground)


def step(page, text):
    return page["trace-step"].filter(has_text=text)


def test_steps_show_the_module_after_each_and_what_changed(trace):
    steps, module = trace["trace-step"], trace["trace-module"]
    expect(steps).to_have_count(7)  # the program itself, then six instructions
    expect(step(trace, "sch.sample_perfect_tile").locator("mark")).to_contain_text("decision=[")
    step(trace, "sch.get_loops").click()
    expect(module).to_contain_text("T.grid(128, 128, 128)")
    step(trace, "sch.decompose_reduction").click()
    expect(module).to_contain_text('with T.block("C_init"):')
    expect(module.locator("del").filter(has_text="with T.init():")).to_have_count(1)
    expect(module.locator(".added").filter(has_text='T.block("C_init")')).to_have_count(1)
    expect(trace["view-trace"].locator(".step-caption")).to_contain_text(
        "moves the initialization of block C into a new block, C_init, before loop k"
    )
    steps.first.click()
    expect(steps.nth(0)).to_have_attribute("aria-selected", "true")
    trace.page.keyboard.press("ArrowDown")
    expect(steps.nth(1)).to_have_attribute("aria-selected", "true")
    trace.page.keyboard.press("End")
    expect(steps.last).to_have_attribute("aria-selected", "true")


def unchanged_lines_fold_and_unfold_with_the_keyboard(trace):
    step(trace, "sch.reorder").click()
    fold = trace["trace-module"].locator("summary").first
    first = trace["trace-module"].locator(".line").first
    expect(first).to_be_hidden()
    fold.press("Enter")
    expect(first).to_be_visible()
    fold.press("Enter")
    expect(first).to_be_hidden()


def steps_are_found_by_words_and_look_ups_left_out(trace):
    shown = trace["trace-step"].filter(visible=True)
    trace["trace-changes-only"].check()
    expect(shown).to_have_count(4)  # sampling, split, reorder, decompose_reduction
    trace["trace-step"].filter(has_text="sch.split").click()
    trace.page.keyboard.press("ArrowUp")
    trace.page.keyboard.press("ArrowUp")  # what is not listed is stepped over
    expect(step(trace, "sch.sample_perfect_tile")).to_have_attribute("aria-selected", "true")
    trace["trace-changes-only"].uncheck()
    trace["trace-find"].fill("init block")  # in what the step did, not in its code
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("sch.decompose_reduction")
    trace["trace-find"].fill("")
    expect(shown).to_have_count(7)


@pytest.mark.thorough
def test_steps_fold_and_are_found(trace):
    """Each part finds the view as the one before has left it."""
    for part in (
        unchanged_lines_fold_and_unfold_with_the_keyboard,
        steps_are_found_by_words_and_look_ups_left_out,
    ):
        part(trace)


def the_loop_nest_tells_extents_kinds_and_where_loops_came_from(two):
    nest = two["trace-loopnest"]
    inner = nest.locator("[data-loop=j_1]")
    expect(inner).to_have_attribute("data-extent", "16")
    expect(inner).to_have_attribute("data-kind", "vectorized")
    expect(inner).to_have_attribute("data-change", "vectorized")
    expect(inner).to_contain_text("inner part of j, 16 of 64")
    # Nested: the outermost loop holds all others, the innermost the block.
    expect(nest.locator("[data-loop=j_0] [data-loop=i] [data-loop=j_1]")).to_have_count(1)
    block = inner.locator("[data-block=B]")
    expect(block).to_contain_text(re.compile(r"reads\s*A\[vi, vj\]\s*writes\s*B\[vi, vj\]"))
    # Loops have the colour of the loop of the program that they came from.
    colour = "element => getComputedStyle(element).getPropertyValue('--origin')"
    [i, outer, inner] = (
        nest.locator(f"[data-loop={name}]").evaluate(colour) for name in ("i", "j_0", "j_1")
    )
    assert outer == inner != i
    step(two, "sch.reorder").click()
    expect(nest.locator("[data-loop=j_0]")).to_have_attribute("data-change", "moved")
    step(two, "the unscheduled program").click()
    expect(nest.locator("[data-loop=j]")).to_contain_text("a loop of the program")
    expect(nest.locator("[data-change]")).to_have_count(0)


def every_step_is_timed_on_demand(two):
    expect(two["trace-step-time"]).to_have_count(0)
    two["trace-time"].click()
    # The program itself, split, reorder, vectorize; look-ups leave it as it is.
    expect(two["trace-step-time"]).to_have_count(4)
    two.expect_state("ready")
    for cell in two["trace-step-time"].all():
        assert float(cell.get_attribute("data-seconds")) > 0
    expect(step(two, "sch.vectorize").get_by_test_id("trace-step-time")).to_have_attribute(
        "data-factor", re.compile(r"^\d")
    )
    # The times stay with the steps.
    step(two, "sch.reorder").click()
    two.open_view("tensorir")
    two.open_view("trace")
    expect(two["trace-step-time"]).to_have_count(4)


ENDLESS = """
import tvm
from tvm.script import tir as T


@T.prim_func
def endless(A: T.Buffer((16,), "int32")):
    for i, j, k in T.grid(1000000000, 1000000000, 16):
        with T.block("A"):
            vi, vj, vk = T.axis.remap("RRS", [i, j, k])
            A[vk] = A[vk] * 3 + vi


sch = tvm.tir.Schedule(endless)
sch.split(sch.get_loops("A")[2], factors=[None, 4])
"""


@pytest.mark.thorough
def test_timing_can_be_stopped(playground):
    playground.run_to_end(ENDLESS)
    opened(playground)
    playground["trace-time"].click()
    playground["trace-time-stop"].click()
    expect(playground["view-trace"]).to_contain_text("Stopped")
    playground.expect_state("ready")
    expect(playground["trace-step-time"]).to_have_count(0)
    expect(playground["trace-time"]).to_be_enabled()


def a_changed_decision_derives_checks_and_times_the_program(two):
    control = two["trace-decision"].filter(has_text="tiles of j (64)")
    outer, inner = (control.get_by_test_id("trace-decision-value").nth(n) for n in (0, 1))
    inner.focus()
    inner.select_option(label="8")
    expect(two["trace-outcome"]).to_contain_text("Same result as the unscheduled program")
    two.expect_state("ready")
    expect(outer.locator("option:checked")).to_have_text("8")
    expect(two["trace-loopnest"].locator("[data-loop=j_1]")).to_have_attribute("data-extent", "8")
    expect(step(two, "sample_perfect_tile")).to_contain_text("decision=[8, 8]")
    expect(inner).to_be_focused()
    two["trace-decision-reset"].click()
    expect(two["trace-loopnest"].locator("[data-loop=j_1]")).to_have_attribute("data-extent", "16")
    expect(two["trace-decision-reset"]).to_be_disabled()
    two.expect_state("ready")


def decisions_can_be_changed_to_what_is_possible(two):
    inner = two["trace-decision-value"].last
    options = inner.locator("option")
    expect(options.filter(has_text="9: 7·9 ≠ 64")).to_be_disabled()
    expect(
        options.filter(has_text="32: innermost factor 32 > max_innermost_factor 16")
    ).to_be_disabled()
    expect(options.filter(has_text=re.compile("^8$"))).to_be_enabled()
    # So can the factors that are written into a split.
    two["view-trace"].get_by_label("Schedule").select_option(label="first")
    control = two["trace-decision"].filter(has_text="factors of j (64)")
    control.get_by_test_id("trace-decision-value").select_option(label="4")
    expect(two["trace-outcome"]).to_contain_text("Same result")
    two.expect_state("ready")
    expect(two["trace-loopnest"].locator("[data-loop=j_0]")).to_have_attribute("data-extent", "16")


def test_decisions_are_changed_to_what_is_possible_checked_and_timed(two):
    """Each part finds the view as the one before has left it."""
    for part in (
        a_changed_decision_derives_checks_and_times_the_program,
        decisions_can_be_changed_to_what_is_possible,
    ):
        part(two)


def two_traces_stand_side_by_side(two):
    two["trace-second"].select_option(label="first")
    pairs = two["trace-pair"]
    expect(pairs.filter(has_text="not there").filter(has_text="sch.reorder")).to_have_count(1)
    expect(two["trace-compare-nest"]).to_have_count(2)
    expect(two["trace-compare-nest"].first).to_contain_text("inner part of j, 16 of 64")
    expect(two["trace-compare-nest"].last).to_contain_text("inner part of j, 8 of 64")
    expect(two["trace-compare-verdict"]).to_have_text(
        re.compile(r"first, compared with second: \d+ lines added, \d+ removed")
    )
    expect(two["trace-compare-diff"].locator(".added").first).to_be_visible()
    pairs.first.click()
    two.page.keyboard.press("End")
    expect(pairs.last).to_have_attribute("aria-selected", "true")
    nests = two["trace-compare-nest"]
    for part in (nests.first, nests.last, two["trace-compare-diff"]):
        two.page.keyboard.press("Tab")
        expect(part).to_be_focused()
    two["trace-second"].select_option(label="none")
    expect(two["trace-loopnest"]).to_be_visible()
    # A changed trace stands beside the recorded one.
    two["trace-decision-value"].last.select_option(label="2")
    expect(two["trace-outcome"]).to_contain_text("Same result")
    two.expect_state("ready")
    two["trace-second"].select_option(label="this one as recorded")
    decided = two["trace-pair"].locator(".decision")
    expect(decided).to_have_text(["decision=[32, 2]", "decision=[4, 16]"])


def saved(page, name):
    page["trace-export"].click()
    with page.page.expect_download() as download:
        page[name].click()
    return download.value.path().read_text(encoding="utf-8")


def test_a_trace_is_exported_as_a_record_of_tvm_and_as_python_that_runs(two):
    record = json.loads(saved(two, "trace-save-json"))
    [steps, decisions], _, target, arguments = record["record"]
    assert [step[0] for step in steps][-1] == "Vectorize"
    assert decisions == [[2, [4, 16]]]
    assert target["kind"] == "llvm"
    assert arguments == [["TENSOR", "float32", [64, 64]]] * 2
    text = saved(two, "trace-save-python")
    assert "decision=[4, 16]" in text
    two.run_to_end(text)
    expect(two["trace-step"]).to_have_count(7)


@pytest.mark.thorough
def test_a_link_brings_back_the_step_and_the_decisions(two, open_playground):
    two["trace-decision-value"].last.select_option(label="8")
    two.expect_state("ready")
    expect(two["trace-outcome"]).to_contain_text("Same result")
    step(two, "sch.reorder").click()
    share = two.page.locator("#share")
    share.click()
    expect(share).to_have_attribute("data-link", re.compile("code="))
    link = share.get_attribute("data-link")
    two.page.keyboard.press("Escape")
    other = open_playground()
    other.page.goto(link)
    other.page.reload()
    other.expect_state("ready")
    expect(other["trace-step"]).to_have_count(0)  # nothing runs by itself
    other.run_to_end()
    other.open_view("trace")
    expect(step(other, "sch.reorder")).to_have_attribute("aria-selected", "true")
    expect(step(other, "sample_perfect_tile")).to_contain_text("decision=[8, 8]")


def nothing_is_wider_than_a_phone(two):
    two.page.set_viewport_size({"width": 390, "height": 844})
    two["tab-trace"].click()
    assert two.page.evaluate("document.documentElement.scrollWidth") <= 390
    view = two["view-trace"]
    assert view.evaluate("element => element.scrollWidth <= element.clientWidth")
    two["trace-loopnest"].scroll_into_view_if_needed()
    expect(two["trace-loopnest"]).to_be_in_viewport()
    two["trace-second"].select_option(label="first")
    expect(two["trace-compare"]).to_be_visible()
    assert view.evaluate("element => element.scrollWidth <= element.clientWidth")


@pytest.mark.thorough
def test_loops_times_and_two_traces(two):
    """The first parts begin at the last step, and leave the trace as it is."""
    for part in (
        the_loop_nest_tells_extents_kinds_and_where_loops_came_from,
        every_step_is_timed_on_demand,
        two_traces_stand_side_by_side,
    ):
        two["trace-step"].last.click()
        part(two)
    two["trace-second"].select_option(label="none")
    nothing_is_wider_than_a_phone(two)


def test_a_program_that_does_all_in_a_function_has_traces_and_modules(playground):
    playground.run_to_end(
        MATMUL
        + """

def main():
    sch = tvm.tir.Schedule(MyModule)
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, i)
    mod = sch.mod


if __name__ == "__main__":
    main()
"""
    )
    view = playground.open_view("trace")
    expect(view.get_by_test_id("trace-step")).to_have_count(4)
    playground.open_view("search")
    options = playground.page.locator("#search-module option")
    expect(options).to_have_text(["MyModule", "mod in main"])
