"""Lessons: every cell runs, every solution passes, and the lesson is there before Python is."""

import json
import re

import pytest
from playwright.sync_api import expect

from e2e.conftest import DIST
from e2e.lesson_page import LessonPage
from e2e.page_states import VIEWS
from e2e.playground import wait_until_kept
from web.scripts.lesson_source import OUTPUTS, Lesson, lessons

LESSONS = lessons()
FIRST = LESSONS[0].id
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def lesson(playground):
    """A page to open lessons in."""
    return LessonPage(playground.page)


@pytest.mark.parametrize(
    "source",
    # Outside the page all of them run in every run.
    [pytest.param(LESSONS[0], id=FIRST)]
    + [pytest.param(each, id=each.id, marks=pytest.mark.thorough) for each in LESSONS[1:]],
)
def test_every_lesson_runs_and_its_solutions_pass(lesson, source: Lesson):
    lesson.open(source.id)
    lesson.run_all()
    recorded = json.loads((OUTPUTS / f"{source.id}.json").read_text("utf8"))["cells"]
    for cell, output in zip(source.cells, lesson.outputs(), strict=True):
        where = f"cell {cell.number}"
        assert output["state"] == "done", where
        if not cell.varies:
            expected = recorded[str(cell.number)]
            assert output["text"] == expected["text"], where
            assert output["modules"] == expected["modules"], where
    for cell in source.cells:
        if cell.exercise:
            lesson.take_solution(cell.number)
            assert lesson.check(cell.number, state="pass").startswith("Solved.")


@pytest.mark.thorough
def test_a_lesson_is_useful_before_python_is_there(open_playground):
    playground = open_playground(cold=True)
    page = playground.page
    page.route("**/pyodide/**", lambda route: None)
    page.goto(f"{page.url}#lesson=02-tensorir")
    page.reload()
    cell = LessonPage(page).cell(1)
    expect(page.get_by_role("heading", name="TensorIR: loops, buffers, blocks")).to_be_visible()
    expect(cell.locator(".tok-keyword").first).to_have_text("import")
    expect(cell).to_contain_text("(128, 128) float32")
    expect(cell).to_contain_text(re.compile(r"recorded on \d{4}-\d\d-\d\d, Chromium \d+"))
    assert page.locator(".cm-editor").count() == 1  # the program's


def test_a_wrong_answer_is_explained(lesson):
    lesson.open("03-tensorir-exercises")
    lesson.run(1)
    verdict = lesson.cell(4).get_by_test_id("lesson-check")
    expect(verdict).to_have_attribute("data-state", "idle")
    assert "C is a copy of A so far" in lesson.check(4, state="fail")
    lesson.write(4, "1 / 0")
    assert "ends in an error" in lesson.check(4, state="fail")


def test_an_access_out_of_bounds_is_shown_with_its_line(lesson):
    lesson.open("11-gpu-puzzles")
    lesson.run(1)
    assert "Reading A[10] is out of bounds" in lesson.check(4, state="fail")
    excerpt = lesson.cell(4).locator(".lesson-check-excerpt").inner_text().splitlines()
    assert "    B[tx] = A[tx] + T.float32(10)" in excerpt[1]
    assert excerpt[2].index("^^^^^") == excerpt[1].index("A[tx]")


def test_with_any_view_open_all_cells_run_and_answers_are_checked(lesson, playground):
    lesson.open(FIRST)
    lesson.take_solution(7)
    for view in VIEWS:
        playground.open_view(view)
        lesson.run_all()
        assert {output["state"] for output in lesson.outputs()} == {"done"}, view
        # The view reacts to what has run; meanwhile the reader goes on.
        assert lesson.check(7, state="pass").startswith("Solved."), view
        lesson.run(3)
        playground.settle()


@pytest.mark.thorough
def test_errors_are_underlined_in_their_cell(lesson):
    lesson.open(FIRST)
    lesson.write(1, "a = 1\nb = a / 0\n")
    lesson.run(1, state="failed")
    expect(lesson.cell(1)).to_contain_text("ZeroDivisionError")
    at_fault = lesson.cell(1).locator(".cm-line", has=lesson.page.locator(".cm-lintRange-error"))
    expect(at_fault).to_have_text("b = a / 0")


def test_a_cell_that_needs_those_above_offers_to_run_them(lesson):
    lesson.open("09-graphs")
    lesson.run(3, state="failed")
    lesson.page.get_by_test_id("offer-above").click()
    expect(lesson.cell(3)).to_have_attribute("data-state", "done")
    expect(lesson.cell(1)).to_have_attribute("data-state", "done")


@pytest.mark.thorough
def test_the_keyboard_runs_cell_after_cell(lesson):
    lesson.open(FIRST)
    lesson.cell(1).locator("pre.code").first.focus()
    lesson.page.keyboard.press("Shift+Enter")
    expect(lesson.cell(1)).to_have_attribute("data-state", "done")
    lesson.page.keyboard.press("Enter")
    expect(lesson.cell(1).locator(".cm-content")).to_be_focused()
    lesson.page.get_by_test_id("run").click()
    expect(lesson.cell(2)).to_have_attribute("data-current", "true")
    lesson.page.get_by_test_id("run").click()
    expect(lesson.cell(2)).to_have_attribute("data-state", "done")


@pytest.mark.thorough
def test_shown_modules_open_in_the_view(lesson):
    lesson.open(FIRST)
    lesson.run(3)
    lesson.cell(3).get_by_role("button", name="→ TensorIR view").click()
    expect(lesson.page.get_by_test_id("view-tensorir")).to_contain_text('with T.block("B"):')
    lesson.page.get_by_role("link", name="Trace view").click()
    expect(lesson.page.get_by_test_id("tab-trace")).to_have_attribute("aria-selected", "true")


@pytest.mark.thorough
def test_a_cell_goes_to_the_editor_with_those_above(lesson, playground):
    lesson.open(FIRST)
    lesson.cell(4).get_by_test_id("cell-open").click()
    expect(lesson.page.get_by_test_id("editor")).to_be_visible()
    playground.run_to_end()
    expect(playground["console"]).to_contain_text("[1. 2. 3. 4. 5. 6.]")
    expect(lesson.page.get_by_test_id("open-program")).to_have_attribute("aria-current", "page")


@pytest.mark.thorough
def test_after_a_restart_cells_say_that_they_have_not_run(lesson, playground):
    lesson.open(FIRST)
    lesson.run(1)
    lesson.write(2, "while True:\n    try:\n        while True: pass\n    except:\n        pass\n")
    lesson.cell(2).get_by_test_id("cell-run").click()
    expect(lesson.cell(2)).to_have_attribute("data-state", "running")
    playground.stop()
    expect(lesson.cell(1)).to_have_attribute("data-state", "stale")
    expect(lesson.cell(1)).to_contain_text("not run in this session")


@pytest.mark.thorough
def test_progress_and_edits_are_kept(lesson):
    lesson.open(FIRST)
    lesson.take_solution(7)
    lesson.run(3)
    lesson.check(7, state="pass")
    lesson.open("10-beat-this-time")
    lesson.open(FIRST)
    expect(lesson.cell(7)).to_contain_text("A[vi] * T.float32(2) + T.float32(1)")
    expect(lesson.cell(7)).to_contain_text("Solved. B is 2 A + 1")
    lesson.page.get_by_test_id("lesson-nav").locator("summary").click()
    done = lesson.page.get_by_role("link", name="1 of 1 exercises solved")
    expect(done).to_contain_text(LESSONS[0].title)
    lesson.cell(7).get_by_test_id("cell-reset").click()
    expect(lesson.cell(7).locator(".cm-content")).to_contain_text("= A[vi] + T.float32(1)")


def test_results_are_kept(lesson, playground):
    lesson.open(FIRST)
    lesson.write(2, "print('written by', 'me')\n")
    lesson.run(2)
    lesson.run(3)
    playground.open_view("tensorir")
    lesson.open("10-beat-this-time")
    expect(playground["view-tensorir"]).not_to_contain_text("def main")
    lesson.open(FIRST)
    expect(lesson.cell(2)).to_have_attribute("data-state", "done")
    expect(lesson.cell(2)).to_contain_text("written by me")
    expect(playground["view-tensorir"]).to_contain_text("def main")
    lesson.cell(3).scroll_into_view_if_needed()
    position = lesson.page.locator("#pane-lesson").evaluate("pane => pane.scrollTop")
    wait_until_kept(lesson.page, FIRST, 2, position)
    lesson.page.reload()
    expect(lesson.cell(2)).to_contain_text("written by me")
    expect(lesson.cell(2)).to_have_attribute("data-state", "stale")
    expect(lesson.cell(2)).to_contain_text("not run in this session")
    expect(playground["tab-tensorir"]).to_have_attribute("aria-selected", "true")
    expect(playground["view-tensorir"]).to_contain_text("def main")
    assert lesson.page.locator("#pane-lesson").evaluate("pane => pane.scrollTop") == position
    lesson.run(2)


def test_cells_say_that_their_output_is_of_other_code(lesson):
    lesson.open(FIRST)
    lesson.write(1, "x = 1\n")
    lesson.write(2, "print('x is', x)\n")
    lesson.run(1)
    lesson.run(2)
    lesson.write(1, "x = 2\n")
    expect(lesson.cell(1)).to_contain_text("edited since it ran")
    expect(lesson.cell(2)).to_contain_text("a cell above has changed")
    lesson.write(1, "x = 1\n")
    expect(lesson.cell(2)).to_have_attribute("data-state", "done")
    lesson.write(1, "x = 2\n")
    lesson.run(1)
    expect(lesson.cell(2)).to_have_attribute("data-state", "stale")
    lesson.run(2)
    expect(lesson.cell(2)).to_contain_text("x is 2")


@pytest.mark.thorough
def test_lessons_work_where_storage_is_denied(open_playground):
    playground = open_playground()
    page = playground.page
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })"
    )
    page.goto(f"{page.url}#lesson={FIRST}")
    page.reload()
    lesson = LessonPage(page)
    lesson.run(1)
    expect(lesson.cell(1)).to_contain_text("[[")
    page.get_by_test_id("lesson-nav").get_by_role("link", name="Next lesson").click()
    expect(page.get_by_role("heading", name=LESSONS[1].title)).to_be_visible()


def test_the_list_leads_to_every_lesson(lesson):
    lesson.page.evaluate("location.hash = 'lesson=02-tensors'")
    listed = lesson.page.locator(".lesson-list.detailed a")
    expect(listed).to_have_count(len(LESSONS))
    expect(lesson.page.get_by_role("alert")).to_have_text("There is no lesson “02-tensors”.")
    lesson.page.evaluate("location.hash = 'lesson'")
    expect(lesson.page.get_by_role("alert")).to_have_count(0)
    lesson.page.get_by_test_id("run").click()
    expect(lesson.page.locator("#toast")).to_contain_text("Open a lesson")
    listed.nth(1).click()
    expect(lesson.page.get_by_role("heading", name=LESSONS[1].title)).to_be_visible()
    expect(lesson.page).to_have_title(re.compile("TensorIR"))


@pytest.mark.thorough
def test_a_phone_shows_one_column(open_playground):
    playground = open_playground(viewport=PHONE, has_touch=True)
    page = playground.page
    page.get_by_test_id("open-lessons").tap()
    expect(page.get_by_role("heading", name="Lessons", exact=True)).to_be_visible()
    for address in (FIRST, "02-tensorir", "09-graphs"):
        page.evaluate("id => { location.hash = `lesson=${id}` }", address)
        title = next(each.title for each in LESSONS if each.id == address)
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert (
            page.evaluate(
                "Math.max(...[...document.querySelectorAll('.lesson-text > *')]"
                ".map((part) => part.getBoundingClientRect().right))"
            )
            <= PHONE["width"]
        )
    lesson = LessonPage(page)
    lesson.run(1)
    page.get_by_test_id("tab-tensorir").tap()
    expect(page.get_by_test_id("view-tensorir")).to_be_visible()


def test_the_page_has_each_lesson_as_html():
    for source in LESSONS:
        content = json.loads((DIST / "lessons" / f"{source.id}.json").read_text("utf8"))
        assert content["title"] == source.title
        assert content["html"].count('<pre class="mlc-code">') >= len(source.cells)
        recorded = json.loads((OUTPUTS / f"{source.id}.json").read_text("utf8"))["cells"].values()
        printed = sum(bool(cell["text"]) for cell in recorded)
        assert content["html"].count("recorded on") == printed
