"""Every state that the page can be in, one after the other, for checks that all must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from playwright.sync_api import Page, expect

from e2e import test_gpu
from e2e.lesson_page import LessonPage
from e2e.playground import Playground
from e2e.test_sharing import OLD_LINK
from e2e.test_trace import TWO_TRACES

VIEWS = ("tensorir", "trace", "code", "access", "gpu", "search")

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}

ENDLESS = "print('begun')\nwhile True:\n    pass\n"

MISSPELT = """\
import sys
print("a warning", file=sys.stderr)
first = 1
second = frist + 1
"""


def while_loading(open_playground: Callable[..., Playground], **options: object) -> Playground:
    """A page whose Python never comes."""
    playground = open_playground(cold=True, **options)
    playground.page.route("**/pyodide/**", lambda route: None)
    playground.page.reload()
    playground.expect_state("loading")
    expect(playground["editor"].locator(".cm-content")).to_be_visible()
    return playground


def program_states(playground: Playground) -> Iterator[str]:
    """The program, before it runs, while it does, and after it has failed."""
    page = playground.page
    yield "ready"
    for view in VIEWS:
        playground.open_view(view)
        yield f"{view}, empty"
    run(playground, ENDLESS)
    expect(playground["console"]).to_contain_text("begun")
    yield "running"
    playground.stop()
    yield "stopped"
    run(playground, MISSPELT)
    playground.expect_state("error")
    expect(playground["console"]).to_contain_text("NameError")
    yield "error, console"
    show_editor(playground)
    expect(playground.underlined_line()).to_be_visible()
    yield "error, editor"
    page.locator(".cm-lint-marker-error").first.hover()
    expect(page.locator(".cm-tooltip-lint")).to_be_visible()
    yield "error, its text"
    page.mouse.move(0, 0)


def view_states(playground: Playground) -> Iterator[str]:
    """Each view with something to show."""
    run_first_program(playground)
    yield "console, filled"
    for view in VIEWS[:5]:
        playground.open_view(view)
        playground.settle()
        yield f"{view}, filled"
    show_editor(playground)
    test_gpu.show(playground)
    expect(playground["gpu-sentences"]).to_be_visible()
    yield "gpu, threads"
    run(playground, TWO_TRACES)
    playground.expect_state("ready")
    playground.open_view("trace")
    playground["trace-second"].select_option(label="first")
    expect(playground["trace-compare"]).to_be_visible()
    yield "trace, compared"


def search_states(playground: Playground) -> Iterator[str]:
    """A search before it starts, while it runs, and what it leaves behind."""
    run_first_program(playground)
    playground.open_view("search")
    yield "search, before"
    playground["search-strategy"].select_option("function")
    playground["search-trials"].fill("10000")
    with playground.to_end():
        playground["search-start"].click()
        expect(playground["search-row"].nth(3)).to_be_attached()
        yield "search, running"
        playground["search-stop"].click()
    yield "search, done"
    playground["search-row"].first.click()
    yield "search, a trial"
    for panel in playground["view-search"].get_by_role("tab").all():
        panel.click()
        yield f"search, {panel.inner_text().lower()}"
    playground["tab-search-times"].click()


def lesson_states(playground: Playground) -> Iterator[str]:
    """The list of lessons, and a lesson with answers of all kinds."""
    page = playground.page
    page.evaluate("() => { location.hash = 'lesson' }")
    expect(page.get_by_role("heading", name="Lessons", exact=True)).to_be_visible()
    yield "lessons"
    lesson = LessonPage(page)
    lesson.open("03-tensorir-exercises")
    yield "lesson, recorded"
    page.locator(".lesson-menu summary").click()
    yield "lesson, list open"
    page.locator(".lesson-menu summary").press("Escape")
    lesson.run(1)
    lesson.check(4, state="fail")
    yield "lesson, failed check"
    lesson.take_solution(4)
    lesson.check(4, state="pass")
    yield "lesson, passed check"
    lesson.write(4, "1 / 0")
    lesson.run(4, state="failed")
    yield "lesson, failed cell"
    for hint in page.locator(".lesson-hint:not([open]) > summary").all()[:4]:
        hint.click()
    yield "lesson, hints"


def notebook_states(playground: Playground) -> Iterator[str]:
    """A notebook while its cells are written, chosen and asked what they can do."""
    page = playground.page
    page.evaluate("() => { location.hash = '' }")
    show_editor(playground)
    playground["file-menu"].click()
    playground["notebook-add"].click()
    notebook = playground["notebook"]
    expect(notebook.get_by_test_id("lesson-cell")).to_be_visible()
    yield "notebook, new"
    playground["add-text-end"].click()
    notebook.get_by_role("textbox", name="Markdown").fill("# A title\n\nText with `code`.")
    yield "notebook, text written"
    page.keyboard.press("Escape")
    expect(notebook.get_by_role("heading", name="A title")).to_be_visible()
    yield "notebook, text chosen"
    notebook.get_by_test_id("cell-menu").first.click()
    expect(page.get_by_role("menuitem", name="Delete")).to_be_visible()
    yield "notebook, menu of a cell"
    page.keyboard.press("Escape")


def shell_states(playground: Playground) -> Iterator[str]:
    """What opens above the page, and the strip of files."""
    page = playground.page
    show_editor(playground)
    playground["file-menu"].click()
    expect(page.get_by_role("menu")).to_be_visible()
    yield "file menu"
    page.keyboard.press("Escape")
    playground["file-add"].click()
    playground.write("second = 2\n")
    yield "several files"
    playground["file-tab"].nth(1).focus()
    page.keyboard.press("F2")
    expect(page.get_by_label("New name of untitled.py")).to_be_visible()
    yield "a file's name"
    page.keyboard.press("Escape")
    playground["file-remove"].click()
    expect(page.locator("#toast")).to_be_visible()
    yield "toast"
    playground["share-link"].click()
    expect(playground["share-copy"]).to_be_visible()
    yield "share"
    page.keyboard.press("Escape")
    page.evaluate("code => { location.hash = `code=${code}` }", OLD_LINK)
    expect(playground["view-search"]).to_be_visible()
    show_editor(playground)
    expect(playground["shared-notice"]).to_be_visible()
    yield "shared program"
    playground["shared-back"].click()


STATES = (program_states, view_states, search_states, lesson_states, notebook_states, shell_states)


def run(playground: Playground, program: str) -> None:
    """Starts a program; on a phone the editor has to be in front to be written in."""
    show_editor(playground)
    playground.run(program)


def run_first_program(playground: Playground) -> None:
    show_editor(playground)
    playground.run_first_program()


def show_editor(playground: Playground) -> None:
    """On a phone, brings the editor to the front."""
    if is_narrow(playground.page):
        playground["tab-editor"].click()


def is_narrow(page: Page) -> bool:
    return (page.viewport_size or WIDE)["width"] <= 800
