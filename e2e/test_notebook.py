"""Cells of a notebook: added, deleted, moved, made text; by keys as in Jupyter, and by buttons."""

import json

import pytest
from playwright.sync_api import Locator, expect

from e2e.playground import Playground, replace_text

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}

DOCUMENTS = """
from mlcweb.playground.session import session
print(sorted(name for name, document in session.documents.items() if document.files))
"""


@pytest.fixture
def page(playground: Playground) -> Playground:
    """The page with a new notebook of one empty cell."""
    add_notebook(playground)
    return playground


def add_notebook(page: Playground) -> None:
    page["file-menu"].click()
    page["notebook-add"].click()
    expect(page["notebook"].get_by_test_id("lesson-cell")).to_have_count(1)


def cells(page: Playground) -> Locator:
    return page["notebook"].locator(".lesson-cell, .text-cell")


def write(page: Playground, at: int, code: str) -> None:
    cells(page).nth(at).locator(".cell-code").click()
    replace_text(cells(page).nth(at).locator(".cm-content"), code)


def choose(page: Playground, at: int) -> None:
    """Chooses a cell as a whole, as Escape does."""
    cells(page).nth(at).evaluate("cell => cell.focus()")
    expect(cells(page).nth(at)).to_be_focused()


def press(page: Playground, *keys: str) -> None:
    for key in keys:
        page.page.keyboard.press(key)


def texts(page: Playground) -> list[str]:
    """What is written in the cells, in order."""
    return [
        "\n".join(lines)
        for lines in cells(page).evaluate_all(
            """cells => cells.map((cell) => [
                ...cell.querySelectorAll(".cm-line, pre.numbered .line, .lesson-prose > *"),
            ].map((line) => line.textContent))"""
        )
    ]


def in_menu(page: Playground, at: int, what: str) -> None:
    cells(page).nth(at).get_by_test_id("cell-menu").click()
    page.page.locator(f'.menu:popover-open [data-testid="{what}"]').click()


def download(page: Playground) -> dict:
    page["file-menu"].click()
    with page.page.expect_download() as got:
        page["export-python"].click()
    return json.loads(got.value.path().read_text())


def test_a_notebook_is_written_by_keys_alone(page: Playground) -> None:
    choose(page, 0)
    press(page, "Enter")
    page.page.keyboard.insert_text("x = 20")
    press(page, "Shift+Enter")
    # Behind the last cell there is a new one, to write in.
    expect(cells(page)).to_have_count(2)
    expect(cells(page).nth(1).locator(".cm-content")).to_be_focused()
    page.page.keyboard.insert_text("print(x + 1)")
    press(page, "Control+Enter")
    expect(cells(page).nth(1)).to_be_focused()
    expect(cells(page).nth(1)).to_contain_text("21")
    expect(cells(page).nth(1)).to_contain_text("[2]")
    press(page, "a")
    expect(cells(page)).to_have_count(3)
    expect(cells(page).nth(1)).to_be_focused()
    press(page, "m", "Enter")
    page.page.keyboard.insert_text("# A title")
    press(page, "Escape")
    expect(cells(page).nth(1).get_by_role("heading", name="A title")).to_be_visible()
    press(page, "Alt+ArrowUp")
    assert texts(page) == ["A title", "x = 20", "print(x + 1)"]
    expect(cells(page).nth(0)).to_be_focused()
    expect(page["notebook-said"]).to_have_text("Moved to place 1 of 3")
    press(page, "ArrowDown", "d", "d")
    assert texts(page) == ["A title", "print(x + 1)"]
    expect(page.page.locator("#toast")).to_contain_text("Cell 2 deleted")
    press(page, "z")
    assert texts(page) == ["A title", "x = 20", "print(x + 1)"]
    expect(cells(page).nth(2)).to_contain_text("21")
    got = download(page)["cells"]
    assert [cell["cell_type"] for cell in got] == ["markdown", "code", "code"]
    assert got[2]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": "21\n"}]
    assert got[2]["execution_count"] == 2
    assert len({cell["id"] for cell in got}) == 3
    page.page.reload()
    expect(cells(page)).to_have_count(3)
    assert texts(page) == ["A title", "x = 20", "print(x + 1)"]
    expect(cells(page).nth(2)).to_contain_text("not run in this session")


def test_a_moved_cell_keeps_its_output_and_marks_what_follows(page: Playground) -> None:
    write(page, 0, "x = 1")
    page["add-code-end"].click()
    write(page, 1, "print(x)")
    page["notebook-run-all"].click()
    expect(cells(page).nth(1)).to_have_attribute("data-state", "done")
    in_menu(page, 1, "cell-up")
    assert texts(page) == ["print(x)", "x = 1"]
    expect(cells(page).nth(0)).to_contain_text("1")
    # Its name for tracebacks is its own: the other cell does not take it over.
    write(page, 1, "def f():\n    raise ValueError('of f')")
    press(page, "Control+Enter")
    expect(cells(page).nth(1)).to_have_attribute("data-state", "done")
    write(page, 0, "f()")
    press(page, "Control+Enter")
    expect(cells(page).nth(0)).to_contain_text("raise ValueError('of f')")
    page["notebook-run-all"].click()
    expect(cells(page).nth(0)).to_contain_text("NameError")
    expect(cells(page).nth(1)).to_contain_text("not run in this session")


def test_buttons_do_it_on_a_phone(open_playground) -> None:
    page = open_playground(**PHONE)
    add_notebook(page)
    page["add-text-end"].tap()
    cells(page).nth(1).get_by_role("textbox").fill("Some *text*")
    cells(page).nth(1).get_by_test_id("cell-shown").tap()
    expect(cells(page).nth(1).locator("em")).to_have_text("text")
    in_menu(page, 1, "cell-up")
    expect(cells(page).nth(0).locator("em")).to_have_text("text")
    in_menu(page, 0, "cell-add-below")
    expect(cells(page)).to_have_count(3)
    in_menu(page, 1, "cell-become")
    in_menu(page, 2, "cell-delete")
    expect(cells(page)).to_have_count(2)
    page.page.get_by_role("button", name="Undo").tap()
    expect(cells(page)).to_have_count(3)
    for button in cells(page).first.get_by_role("button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 36
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_a_removed_notebook_is_closed_in_python(page: Playground) -> None:
    write(page, 0, "x = 20")
    press(page, "Control+Enter")
    expect(cells(page).nth(0)).to_have_attribute("data-state", "done")
    page["file-tab"].first.click()
    page.run_to_end(DOCUMENTS)
    expect(page["console"]).to_contain_text("['program', 'untitled.ipynb']")
    page["file-tab"].nth(1).click()
    page["file-remove"].click()
    page.run_to_end()
    expect(page["console"]).to_contain_text("['program']")
    page.page.get_by_role("button", name="Undo").click()
    expect(cells(page).nth(0)).to_contain_text("not run in this session")
    write(page, 0, "x")
    press(page, "Control+Enter")
    expect(cells(page).nth(0)).to_contain_text("NameError")


def test_a_renamed_notebook_goes_on(page: Playground) -> None:
    write(page, 0, "x = 20")
    press(page, "Control+Enter")
    expect(cells(page).nth(0)).to_have_attribute("data-state", "done")
    page["file-tab"].nth(1).focus()
    press(page, "F2")
    page.page.get_by_label("New name of untitled.ipynb").fill("course.ipynb")
    press(page, "Enter")
    expect(page["file-tab"].nth(1)).to_have_text("course.ipynb")
    write(page, 0, "x + 1")
    press(page, "Control+Enter")
    expect(cells(page).nth(0)).to_contain_text("21")
    # Another that takes its old name is another document.
    page["file-menu"].click()
    page["notebook-add"].click()
    expect(page["file-tab"].nth(2)).to_have_text("untitled.ipynb")
    write(page, 0, "x")
    press(page, "Control+Enter")
    expect(cells(page).nth(0)).to_contain_text("NameError")
    page.page.reload()
    page["file-tab"].nth(1).click()
    expect(cells(page).nth(0)).to_contain_text("21")


def test_lessons_left_for_long_are_closed_in_python(playground: Playground) -> None:
    playground.page.evaluate("location.hash = 'lesson'")
    links = playground.page.locator("#pane-lesson ol.detailed a")
    expect(links.nth(5)).to_be_attached()
    ids = [str(each.get_attribute("href")) for each in links.all()][:6]
    first = playground["lesson-cell"].first
    for address in ids[:-2]:
        playground.page.evaluate("address => { location.hash = address }", address)
        name = address.removeprefix("#lesson=")
        expect(playground.page.locator("#pane-lesson")).to_have_attribute("data-lesson", name)
        with playground.to_end():
            first.get_by_test_id("cell-run").click()
    for address in [ids[-2], ids[0]]:
        playground.page.evaluate("address => { location.hash = address }", address)
        name = address.removeprefix("#lesson=")
        expect(playground.page.locator("#pane-lesson")).to_have_attribute("data-lesson", name)
    expect(first).to_contain_text("not run in this session")
