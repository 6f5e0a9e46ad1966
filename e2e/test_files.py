"""Several files, files in and out, and text that is never lost."""

import json
import re

import pytest
from playwright.sync_api import expect

from e2e.lesson_page import LessonPage
from e2e.playground import wait_until_kept

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# A title\n", "![a dot](attachment:dot.png)"],
            "attachments": {"dot.png": {"image/png": PNG}},
        },
        {
            "cell_type": "code",
            "metadata": {},
            "execution_count": 1,
            "outputs": [],
            "source": ["x = 20\n", "print(x + 1)"],
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}

HTML_CELL = """\
class Page:
    def _repr_html_(self):
        return f"<i>{x}</i>"
Page()
"""

RICH = {
    "cells": [
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["from elsewhere\n"]}],
        },
        {
            "cell_type": "code",
            "source": "show()",
            "outputs": [{"output_type": "display_data", "data": {"text/html": "<b>bold</b>"}}],
        },
        {
            "cell_type": "code",
            "source": "def f(a: Later): ...\nprint(f.__annotations__['a'])",
            "outputs": [],
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}

DROP = """(area, {name, text}) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name));
    for (const type of ["dragover", "drop"]) {
        area.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }
}"""


@pytest.fixture
def page(playground):
    return playground


def drop(page, name, text, area=".cm-content"):
    page.page.locator(area).first.evaluate(DROP, {"name": name, "text": text})


def test_one_file_imports_another(page):
    page["file-add"].click()
    page.write("def twice(x):\n    return 2 * x\n")
    page["file-tab"].nth(1).dblclick()
    page.page.get_by_label("New name of untitled.py").fill("helper.py")
    page.page.keyboard.press("Enter")
    expect(page["file-tab"]).to_have_text(["lesson.py", "helper.py"])
    page["file-tab"].first.click()
    page.run_to_end("from helper import twice\nprint(twice(21))")
    expect(page["console"]).to_contain_text("42")
    page["file-tab"].nth(1).click()
    page.write("def twice(x):\n    return 'changed'\n")
    page["file-tab"].first.click()
    page.run_to_end()
    expect(page["console"]).to_contain_text("changed")


@pytest.mark.thorough
def test_names_that_cannot_be_imported_are_refused(page):
    page["file-tab"].first.focus()
    page.page.keyboard.press("F2")
    field = page.page.get_by_label("New name of lesson.py")
    field.fill("my file")
    page.page.keyboard.press("Enter")
    expect(field).to_be_visible()
    page.page.keyboard.press("Escape")
    expect(page["file-tab"]).to_have_text(["lesson.py"])


@pytest.mark.thorough
def test_a_removed_file_comes_back_by_undo(page):
    page["file-add"].click()
    page.write("precious = 1")
    # The offer goes after some seconds, by a clock that stands here.
    page.page.clock.install()
    page.page.clock.pause_at(page.page.evaluate("Date.now()") + 1000)
    page["file-remove"].click()
    expect(page["file-tab"]).to_have_count(1)
    page.page.get_by_role("button", name="Undo").click()
    page.page.clock.resume()
    expect(page["file-tab"]).to_have_count(2)
    expect(page["editor"]).to_contain_text("precious = 1")


@pytest.mark.thorough
def test_each_file_has_its_own_undo(page):
    page.write("first")
    page["file-add"].click()
    page.write("second")
    page.page.keyboard.press("ControlOrMeta+z")
    page["file-tab"].first.click()
    expect(page["editor"]).to_contain_text("first")
    page["editor"].locator(".cm-content").focus()
    page.page.keyboard.press("ControlOrMeta+z")
    expect(page["editor"]).to_contain_text("import tvm")


def test_files_outlive_a_reload_and_a_crash(page):
    page.write("kept = 'to the last letter'")
    page.page.reload()
    expect(page["editor"]).to_contain_text("to the last letter")
    page["file-add"].click()
    page.write("second = 2")
    # A tab that crashes tells nobody; what was typed a moment ago is there all the same.
    page.page.wait_for_function(
        "() => Object.values(localStorage).some((text) => text.includes('second = 2'))"
    )
    crashed = page.page
    twin = crashed.context.new_page()
    twin.goto(crashed.url)
    expect(twin.get_by_test_id("file-tab")).to_have_text(["lesson.py", "untitled.py"])
    expect(twin.get_by_test_id("editor")).to_contain_text("second = 2")


def test_a_notebook_is_dropped_in_and_goes_out_again(page):
    page["open-lessons"].click()
    drop(page, "Chapter 2.ipynb", json.dumps(NOTEBOOK), "#views")
    expect(page["file-tab"].nth(1)).to_have_text("Chapter_2.ipynb")
    expect(page["notebook"].get_by_role("heading", name="A title")).to_be_visible()
    attached = page["notebook"].get_by_role("img", name="a dot")
    expect(attached).to_have_js_property("naturalWidth", 1)
    page["notebook-run-all"].click()
    cell = page["notebook"].get_by_test_id("lesson-cell").first
    expect(cell).to_have_attribute("data-state", "done")
    expect(cell).to_contain_text("21")
    page["file-menu"].click()
    with page.page.expect_download() as download:
        page["export-python"].click()
    assert download.value.suggested_filename == "Chapter_2.ipynb"
    cells = json.loads(download.value.path().read_text())["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"]
    assert "".join(cells[1]["source"]) == "".join(NOTEBOOK["cells"][1]["source"])
    assert cells[1]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": "21\n"}]
    page["file-menu"].click()
    with page.page.expect_download() as download:
        page["export-notebook"].click()
    assert download.value.suggested_filename == "Chapter_2.py"
    assert download.value.path().read_text().startswith("# %% [markdown]\n# # A title")


def test_a_notebook_keeps_its_outputs_and_edits(page):
    drop(page, "shared.ipynb", json.dumps(RICH))
    cells = page["notebook"].get_by_test_id("lesson-cell")
    expect(cells.nth(0)).to_contain_text("from elsewhere")
    expect(cells.nth(0)).to_have_attribute("data-state", "stale")
    frame = cells.nth(1).locator("iframe.out-html")
    expect(frame).to_have_attribute("sandbox", "")
    expect(frame.content_frame.locator("b")).to_have_text("bold")
    lesson = LessonPage(page.page)
    lesson.write(1, "from __future__ import annotations\nx = 20\n")
    lesson.write(2, HTML_CELL)
    page["notebook-run-all"].click()
    expect(cells.nth(2)).to_have_attribute("data-state", "done")
    expect(cells.nth(1).locator("iframe.out-html").content_frame.locator("i")).to_have_text("20")
    expect(cells.nth(2)).to_contain_text("Later")
    wait_until_kept(page.page, "shared.ipynb", 5)
    page.page.reload()
    expect(cells.nth(1).locator("iframe.out-html").content_frame.locator("i")).to_have_text("20")
    expect(cells.nth(2)).to_contain_text("not run in this session")
    expect(cells.nth(0)).to_contain_text("x = 20")
    page["file-tab"].first.click()
    expect(page["editor"]).to_be_visible()
    expect(page["notebook"]).to_be_hidden()


@pytest.mark.thorough
def test_a_python_file_is_chosen_and_downloaded(page):
    page["file-menu"].click()
    with page.page.expect_file_chooser() as chooser:
        page["file-import"].click()
    chooser.value.set_files(
        [{"name": "kernel.py", "mimeType": "text/x-python", "buffer": b"print('chosen')\n"}]
    )
    expect(page["editor"]).to_contain_text("chosen")
    page["file-menu"].click()
    with page.page.expect_download() as download:
        page["export-python"].click()
    assert download.value.suggested_filename == "kernel.py"
    assert download.value.path().read_text() == "print('chosen')\n"


@pytest.mark.thorough
def test_what_is_no_program_is_refused(page):
    for name, text, reason in [
        ("broken.ipynb", "{}", "Not a Jupyter notebook"),
        ("picture.py", "a\0b", "Not a text file"),
    ]:
        drop(page, name, text)
        expect(page.page.locator("#toast")).to_contain_text(
            re.compile(f"{name} was not opened.*{reason}")
        )
        expect(page["file-tab"]).to_have_count(1)
