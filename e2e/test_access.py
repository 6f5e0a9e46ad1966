"""Why is it faster? Sentences, the animation, the cache's table, and the roofline."""

import re

import pytest
from playwright.sync_api import Locator, expect

from e2e.test_code import PROGRAM

ENDLESS = """\
import tvm
from tvm.script import tir as T


@T.prim_func
def endless(A: T.Buffer((4,), "float32")):
    while T.int32(1) > T.int32(0):
        T.evaluate(0)
"""

BY_HAND = """\
from tvm.script import tir as T


@T.prim_func
def reverse(A: T.Buffer((40, 40), "float32"), B: T.Buffer((40, 40), "float32")):
    for i, j in T.grid(40, 40):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[39 - vj, vi]
"""


def show(playground, program: str = PROGRAM):
    """Runs a program and opens the view, with its animation at rest at the start."""
    playground.run_to_end(program)
    playground.expect_state("ready")
    playground.open_view("access")
    expect(playground["cache-table"]).to_be_visible()
    playground.settle()
    playground["access-start"].click()
    return playground


@pytest.fixture
def access(playground):
    return show(playground)


def row(page, buffer: str, kind: str) -> Locator:
    """The row of the last subscript of a buffer in the table of hits."""
    return page["cache-table"].locator(f'tr[data-buffer="{buffer}"][data-kind="{kind}"]').last


def figure(of: Locator, name: str) -> Locator:
    return of.locator(f'[data-figure="{name}"]')


def picture(page, buffer: str) -> str:
    """The content of a buffer's canvas."""
    canvas = page["access-stage"].locator(f'[data-buffer="{buffer}"] canvas')
    next_frame(page)
    return canvas.evaluate("(canvas) => canvas.toDataURL()")


def next_frame(page) -> None:
    """Waits until what the page has to draw is drawn."""
    page.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def sentences_say_what_the_schedule_changes(access):
    sentences = access["access-sentences"].locator("li")
    expect(sentences.nth(0)).to_contain_text(
        "The loops are i, j_0, k, j_1 (16, 2, 16, 8 iterations)"
    )
    expect(sentences.nth(1)).to_have_text(
        "B is now read with stride 1 in the innermost loop j_1 instead of stride 16 (a row) in k: "
        "8 times fewer lines fetched (512 instead of 4,096)."
    )
    expect(access["access-note"]).to_have_text(
        "Shown at a smaller size (128 → 16), with the same schedule."
    )
    access["access-other"].select_option(label="after step 3, split")
    access.settle()
    expect(sentences.nth(0)).to_contain_text("instead of i, j_0, j_1, k.")
    access["access-other"].select_option(label="none")
    access.settle()
    expect(sentences.first).to_contain_text("accesses fetch")


def the_table_counts_hits_of_every_access(access):
    read = row(access, "B", "read")
    expect(read.locator(".stride")).to_have_text("unit in j_1")
    expect(figure(read, "accesses")).to_have_text("4,096")
    expect(figure(read, "hits")).to_have_text("3,584")
    expect(figure(read, "misses")).to_contain_text("512")
    expect(figure(read, "rate")).to_have_text("87.5 %")
    expect(figure(read, "bytes")).to_have_text("16 KiB")
    access["access-program"].select_option(label="MyModule")
    expect(read.locator(".stride")).to_have_text("stride 16 in k")
    expect(figure(read, "rate")).to_have_text("0 %")
    expect(row(access, "C", "write").locator(".stride")).to_have_text("same in k")


def test_sentences_and_the_table_explain_a_program(access):
    """Each part finds the view as the one before has left it."""
    for part in (
        sentences_say_what_the_schedule_changes,
        the_table_counts_hits_of_every_access,
    ):
        access["access-start"].click()
        part(access)


def another_cache_starts_anew(access):
    access["access-step"].click()
    expect(access["access-position"]).to_have_value("1")
    access["cache-size"].select_option(label="4 KiB")
    expect(figure(row(access, "B", "read"), "misses")).to_have_text(re.compile(r"^32all first"))
    access["access-start"].click()
    expect(access["access-position"]).to_have_value("0")
    access["cache-line"].select_option(label="64 B")
    expect(figure(row(access, "B", "read"), "misses")).to_have_text(re.compile(r"^16all first"))
    expect(access["access-sentences"]).to_contain_text("instead of stride 16 (a row) in k")
    access["cache-size"].select_option(label="128 B")
    expect(access["cache-ways"].locator("option:not([disabled])")).to_have_text(
        ["1 (direct)", "2 ways", "full"]
    )
    expect(access["cache-ways"]).to_have_value("0")


def accesses_are_gone_through_step_by_step(access):
    caption = access["access-caption"]
    expect(caption).to_have_text("Nothing is touched yet; 16,640 accesses follow.")
    blank = picture(access, "C")
    access["access-step"].click()
    expect(caption).to_have_text(
        "Access 1 of 16,640: writes C[0, 0] at i=0, j_0=0, j_1_init=0: a miss; line 64 is fetched."
    )
    first = picture(access, "C")
    assert first != blank
    access["access-stage"].focus()
    for _ in range(9):
        access.page.keyboard.press("ArrowRight")
    expect(caption).to_contain_text(
        "Access 10 of 16,640: reads A[0, 0] at i=0, j_0=0, k=0, j_1=0: a"
    )
    access["access-miss"].click()
    expect(caption).to_contain_text("reads B[0, 0]")
    expect(caption).to_contain_text("a miss; line 32 is fetched")
    expect(access["access-code"].locator(".is-current")).to_contain_text("A[vi, vk] * B[vk, vj]")
    access["access-stage"].focus()
    access.page.keyboard.press("End")
    expect(caption).to_contain_text("Access 16,640 of 16,640: writes C[15, 15]")
    slider = access["access-position"]
    expect(slider).to_have_attribute("aria-valuetext", re.compile("writes C"))
    slider.fill("1")
    expect(caption).to_contain_text("Access 1 of 16,640")
    assert picture(access, "C") == first
    access["access-back"].click()
    assert picture(access, "C") == blank


def it_plays_and_pauses(access):
    access["access-speed"].select_option("200")
    access["access-play"].click()
    expect(access["access-play"]).to_have_attribute("aria-label", "Pause")
    expect(access["access-caption"]).to_have_attribute("aria-live", "off")
    expect(access["access-position"]).not_to_have_value("0")
    access["access-stage"].focus()
    access.page.keyboard.press("Space")
    expect(access["access-play"]).to_have_attribute("aria-label", "Play")
    at = access["access-position"].input_value()
    next_frame(access)
    expect(access["access-position"]).to_have_value(at)
    access["access-play"].click()
    access.open_view("tensorir")
    access.open_view("access")
    expect(access["access-play"]).to_have_attribute("aria-label", "Play")


def tables_stand_behind_the_pictures_and_strides_with_the_lines(access):
    access["access-view"].locator("summary").click()
    for _ in range(3):
        access["access-step"].click()
    steps = access["access-steps"].locator("tbody tr")
    expect(steps).to_have_count(14)
    current = access["access-steps"].locator("tr[aria-current]")
    expect(current).to_have_text(re.compile(r"3writes C\[0, 2\]i=0, j_0=0, j_1_init=264hit"))
    canvas = access["access-stage"].locator('[data-buffer="C"] canvas')
    expect(canvas).to_have_attribute(
        "aria-label", "Grid of C: 3 accesses so far, 2 of them hits; the last at 0, 2"
    )
    line = access["access-code"].locator(".access-line", has_text="A[vi, vk] * B[vk, vj]")
    expect(line.locator(".line-badge")).to_have_text(
        ["C unit in j_1", "A same in j_1", "B unit in j_1"]
    )


def the_kernel_is_under_its_roof_with_its_traffic(access):
    access["access-measure"].click()
    roofline = access["access-roofline"]
    expect(roofline.locator("svg .dot")).to_have_count(2)
    expect(roofline.locator("tr", has_text="per byte moved")).to_contain_text("0.4")
    assert float(roofline.get_attribute("data-gflops") or "nan") > 0


@pytest.mark.thorough
def test_what_has_no_smaller_form_runs_as_it_is(playground):
    show(playground, BY_HAND)
    expect(playground["access-note"]).to_contain_text("the number 39 stands in an index")
    expect(row(playground, "A", "read").locator(".stride")).to_have_text("stride -40 in j")
    expect(playground["access-other"]).to_have_value("none")


def sizes_can_be_chosen(access):
    access["access-size"].select_option(label="up to 8")
    expect(access["access-note"]).to_contain_text("128 → 8")
    access.settle()
    access["access-size"].select_option(label="as it is")
    expect(access["access-note"]).to_contain_text("ended after 200,000 accesses")
    expect(access["access-sentences"].locator("li").first).to_have_text(
        "Only the first 200,000 accesses of both are compared."
    )


@pytest.mark.thorough
def test_the_animation_the_tables_the_cache_and_sizes_of_a_program(access):
    """Each part begins at the first access; the last ones change what is shown."""
    for part in (
        accesses_are_gone_through_step_by_step,
        it_plays_and_pauses,
        tables_stand_behind_the_pictures_and_strides_with_the_lines,
        the_kernel_is_under_its_roof_with_its_traffic,
        another_cache_starts_anew,
        sizes_can_be_chosen,
    ):
        access["access-start"].click()
        part(access)


@pytest.mark.thorough
def test_a_recording_can_be_stopped(playground):
    playground.run_to_end(ENDLESS)
    view = playground.open_view("access")
    playground.expect_state("running")
    expect(view).to_contain_text("Recording accesses …")
    playground.stop()
    expect(view).to_contain_text("The recording was stopped.")


@pytest.mark.thorough
def test_little_motion_means_single_steps(open_playground):
    page = open_playground(reduced_motion="reduce")
    page.run_to_end(PROGRAM)
    page.open_view("access")
    expect(page["cache-table"]).to_be_visible()
    page.settle()
    expect(page["access-play"]).to_have_attribute("aria-label", "Play")
    expect(page["access-position"]).to_have_value("0")
    expect(page["access-speed"]).to_be_hidden()
    # Two steps a second, by a clock that the test moves.
    page.page.clock.install()
    page.page.clock.pause_at(page.page.evaluate("Date.now()") + 1000)
    page["access-play"].click()
    page.page.clock.run_for(1200)
    expect(page["access-position"]).to_have_value("2")


@pytest.mark.thorough
def test_on_a_phone_nothing_sticks_out(open_playground):
    page = open_playground(viewport={"width": 390, "height": 844}, has_touch=True)
    show(page)
    page["access-miss"].tap()
    expect(page["access-caption"]).to_contain_text("Access 1 of")
    overflow = page.page.evaluate(
        "['html', '#view-access'].map((s) => document.querySelector(s))"
        ".map((box) => box.scrollWidth - box.clientWidth)"
    )
    assert overflow == [0, 0]
    tops = {
        page["access-stage"].locator(f'[data-buffer="{name}"]').bounding_box()["y"]
        for name in "ABC"
    }
    assert len(tops) == 1
