"""What the page keeps of documents, for how long, and that nothing the reader asks is dropped."""

import json

import pytest
from playwright.sync_api import expect

from e2e.lesson_page import LessonPage
from e2e.page_states import VIEWS
from e2e.playground import Playground, wait_until, wait_until_kept
from e2e.test_files import drop
from e2e.test_search import LESSON, to_end

FILL = """async () => {
    const opening = indexedDB.open("mlcweb-documents");
    const database = await new Promise((resolve) => {
        opening.onsuccess = () => resolve(opening.result);
    });
    const change = database.transaction("documents", "readwrite");
    for (let at = 1; at <= 40; at += 1)
        change.objectStore("documents").put({ id: `old-${at}`, at, runs: [] });
    await new Promise((resolve) => { change.oncomplete = resolve; });
    database.close();
}"""

NAMES = """() => new Promise((resolve) => {
    const opening = indexedDB.open("mlcweb-documents");
    opening.onsuccess = () => {
        const asked = opening.result.transaction("documents").objectStore("documents").getAllKeys();
        asked.onsuccess = () => resolve(asked.result);
    };
})"""

CELLS = {
    "cells": [
        {"cell_type": "code", "source": source, "outputs": []}
        for source in (
            "x = 1",
            "print('x is', x)",
            "from __future__ import annotations\ndef f(a: Later): ...\nprint('f')",
            "def g(a: Later): ...\nprint(g.__annotations__['a'])",
            "\n".join(f"print({line})" for line in range(60)),
        )
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


# The database opens when the page has stopped waiting for it.
SLOW = """
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = function (...args) {
        const opening = open.apply(this, args);
        const listen = opening.addEventListener.bind(opening);
        opening.addEventListener = (kind, hear) =>
            listen(kind, kind === "success" ? () => setTimeout(hear, 3000) : hear);
        return opening;
    };
"""


def test_a_reload_at_once_keeps_what_has_just_run(playground: Playground):
    drop(playground, "cells.ipynb", json.dumps(CELLS))
    notebook = LessonPage(playground.page)
    notebook.run(1)
    notebook.run(2)
    playground.page.reload()
    expect(notebook.cell(2)).to_contain_text("x is 1")
    expect(notebook.cell(2)).to_contain_text("not run in this session")


def test_results_appear_when_a_slow_database_has_them(playground: Playground):
    page = playground.page
    playground.run_to_end("print('sum', 20 + 22)\n")
    drop(playground, "cells.ipynb", json.dumps(CELLS))
    notebook = LessonPage(page)
    notebook.run(1)
    notebook.run(2)
    wait_until_kept(page, "cells.ipynb", 2)
    page.add_init_script(SLOW)
    page.reload()
    # The reader need not wait for it, and what has been kept before stays.
    notebook.write(1, "x = 3")
    notebook.run(1)
    expect(notebook.cell(1)).to_have_attribute("data-state", "done")
    expect(notebook.cell(2)).to_contain_text("x is 1")
    expect(notebook.cell(2)).to_contain_text("not run in this session")
    wait_until_kept(page, "cells.ipynb", 3)
    playground["file-tab"].first.click()
    expect(playground["console"]).to_contain_text("sum 42")


def test_documents_not_used_for_longest_are_evicted_and_texts_never(playground: Playground):
    page = playground.page
    drop(playground, "notes.ipynb", json.dumps(CELLS))
    playground["file-tab"].first.click()
    playground.run_to_end("print('the first')\n")
    wait_until_kept(page, "program", 1)
    page.evaluate(FILL)
    playground.run_to_end("print('the second')\n")
    wait_until_kept(page, "program", 2)
    wait_until(page, f"async () => (await ({NAMES})()).length === 30")
    names = page.evaluate(NAMES)
    assert "program" in names
    # The notebook is among those used last, and of the old ones the newest are left.
    old = sorted(int(name.split("-")[1]) for name in names if name.startswith("old-"))
    assert old == list(range(41 - len(old), 41))
    page.reload()
    expect(playground["file-tab"]).to_have_text(["lesson.py", "notes.ipynb"])
    expect(playground["editor"]).to_contain_text("the second")
    playground["file-tab"].nth(1).click()
    expect(playground["notebook"].get_by_test_id("lesson-cell")).to_have_count(5)


def test_cells_of_a_notebook_run_one_by_one_and_those_below_an_edit_are_stale(
    playground: Playground,
):
    drop(playground, "cells.ipynb", json.dumps(CELLS))
    notebook = LessonPage(playground.page)
    for number in (1, 2, 3, 4):
        notebook.run(number)
    expect(notebook.cell(2)).to_contain_text("x is 1")
    # The import of a cell holds for those after it.
    expect(notebook.cell(4)).to_contain_text("Later")
    notebook.write(1, "x = 2")
    for number in (1, 2, 3, 4):
        expect(notebook.cell(number)).to_have_attribute("data-state", "stale")
    notebook.run(1)
    notebook.run(2)
    expect(notebook.cell(2)).to_contain_text("x is 2")
    expect(notebook.cell(3)).to_have_attribute("data-state", "stale")


def test_scroll_and_view_of_a_notebook_are_kept_over_a_reload(playground: Playground):
    drop(playground, "cells.ipynb", json.dumps(CELLS))
    notebook = LessonPage(playground.page)
    notebook.run(5)
    playground.open_view("code")
    notebook.cell(5).scroll_into_view_if_needed()
    pane = playground["notebook"]
    pane.evaluate("pane => { pane.scrollTop = 240 }")
    position = pane.evaluate("pane => pane.scrollTop")
    assert position > 0
    wait_until_kept(playground.page, "cells.ipynb", 1, position)
    playground.page.reload()
    expect(notebook.cell(5)).to_contain_text("59")
    expect(playground["tab-code"]).to_have_attribute("aria-selected", "true")
    assert pane.evaluate("pane => pane.scrollTop") == position


@pytest.mark.thorough
@pytest.mark.parametrize("view", VIEWS)
def test_with_any_view_open_programs_run_and_searches_and_measurements_end(
    used_playground, view: str
):
    playground: Playground = used_playground()
    playground.page.locator("#reset").click()
    playground.run_first_program()
    playground.open_view(view)
    # The view is at work on the result while the reader goes on.
    playground.run_to_end("print('again')\n" + LESSON)
    playground.expect_state("ready")
    expect(playground["console"]).to_contain_text("again")
    playground.open_view(view)
    playground.settle()
    playground.open_view("search")
    to_end(playground, 4)
    expect(playground["search-row"]).to_have_count(4)
    playground.open_view("code")
    playground.settle()
    with playground.to_end():
        playground["code-measure"].click()
        playground.open_view(view)
    playground.open_view("code")
    expect(playground["roofline"]).to_contain_text("GFLOPS")


def test_scroll_and_view_of_a_program_are_kept_over_a_reload(playground: Playground):
    page = playground.page
    playground.run_to_end("".join(f"x{line} = {line}\n" for line in range(200)))
    playground.open_view("trace")
    scroller = playground["editor"].locator(".cm-scroller")
    scroller.evaluate("scroller => { scroller.scrollTop = 1500 }")
    wait_until_kept(page, "program", 1, 1500)
    page.reload()
    expect(playground["tab-trace"]).to_have_attribute("aria-selected", "true")
    expect(playground["editor"]).to_contain_text("x80 = 80")
    wait_until(page, "async () => document.querySelector('.cm-scroller').scrollTop === 1500")
    # And over a lesson.
    lesson = LessonPage(page)
    lesson.open("02-tensorir")
    playground["open-program"].click()
    wait_until(page, "async () => document.querySelector('.cm-scroller').scrollTop === 1500")
