"""The page for everyone: keys reach everything, nothing moves, high contrast shows what matters."""

import pytest
from playwright.sync_api import Locator, Page, expect


def has_focus(target: Locator) -> bool:
    return target.evaluate("element => element.contains(document.activeElement)")


def tab_to(page: Page, target: Locator) -> None:
    """Presses Tab until something in `target` has the focus."""
    passed = []
    for _ in range(90):
        page.keyboard.press("Escape" if page.evaluate(IN_EDITOR) else "Shift")
        page.keyboard.press("Tab")
        if has_focus(target):
            return
        passed.append(page.evaluate(FOCUSED))
    pytest.fail(f"Tab does not reach {target}; it passes {passed}")


IN_EDITOR = "() => document.activeElement.matches('.cm-content')"
FOCUSED = """() => {
    const { id, dataset, className, tagName } = document.activeElement;
    return dataset.testid || id || className || tagName;
}"""


@pytest.mark.thorough
def test_the_order_of_tab_is_the_order_of_reading(playground):
    page = playground.page
    order = []
    while len(order) < 40 and "view-tensorir" not in order and "tab-tensorir" not in order:
        page.keyboard.press("Escape" if page.evaluate(IN_EDITOR) else "Shift")
        page.keyboard.press("Tab")
        order.append(page.evaluate(FOCUSED))
    assert order == [
        *("open-lessons", "open-program", "run", "stop"),
        *("share-link", "file-menu", "reset", "theme-toggle"),
        *("file-tab", "file-add", "cm-content", "split-rows"),
        *("runs", "clear", "console", "split-columns", "tab-tensorir"),
    ]


def test_everything_is_done_without_a_mouse(playground):
    page = playground.page
    keys = page.keyboard

    tab_to(page, playground["run"])
    for _ in range(2):
        with playground.to_end():
            keys.press("Enter")
        expect(playground["console"]).to_contain_text("Attempt 4")
        expect(playground["run"]).to_be_focused()

    tab_to(page, playground["tab-tensorir"])
    keys.press("ArrowRight")
    expect(playground["view-trace"]).to_be_visible()
    steps = playground["view-trace"].get_by_role("listbox").first
    tab_to(page, steps)
    keys.press("Home")
    expect(playground["trace-step"].first).to_have_attribute("aria-selected", "true")
    keys.press("ArrowDown")
    expect(playground["trace-step"].nth(1)).to_have_attribute("aria-selected", "true")

    tab_to(page, playground["tab-trace"])
    keys.press("End")
    expect(playground["view-search"]).to_be_visible()
    tab_to(page, playground["search-trials"])
    keys.press("ControlOrMeta+a")
    keys.type("10000")
    tab_to(page, playground["search-start"])
    with playground.to_end():
        keys.press("Enter")
        playground.expect_state("running")
        expect(playground["search-start"]).to_be_focused()
        # What runs does not start twice.
        keys.press("Enter")
        tab_to(page, playground["search-stop"])
        keys.press("Enter")
    expect(playground["search-stop"]).to_be_focused()

    tab_to(page, playground["open-lessons"])
    keys.press("Enter")
    lesson = page.get_by_role("link", name="TensorIR: loops, buffers, blocks")
    tab_to(page, lesson)
    keys.press("Enter")
    cell = playground["lesson-cell"].first
    tab_to(page, cell.get_by_test_id("cell-run"))
    keys.press("Enter")
    expect(cell).to_have_attribute("data-state", "done")


@pytest.mark.thorough
def test_nothing_is_animated_where_motion_is_unwelcome(open_playground):
    playground = open_playground(reduced_motion="reduce")
    moving = "() => document.getAnimations().map(({ effect }) => effect.target.className)"
    playground.run("print('begun')\nwhile True:\n    pass")
    expect(playground["console"]).to_contain_text("begun")
    assert playground.page.evaluate(moving) == []
    playground.stop()
    assert playground.page.evaluate(moving) == []


@pytest.mark.thorough
def test_high_contrast_shows_what_is_chosen_and_what_has_the_focus(open_playground):
    playground = open_playground(forced_colors="active")
    page = playground.page
    style = "(element, name) => getComputedStyle(element)[name]"
    chosen, other = playground["tab-tensorir"], playground["tab-trace"]
    for name in ("backgroundColor", "color"):
        assert chosen.evaluate(style, name) != other.evaluate(style, name)
    playground["file-menu"].focus()
    page.keyboard.press("Enter")
    item = page.get_by_role("menuitem").first
    expect(item).to_be_focused()
    assert item.evaluate(style, "outlineStyle") == "solid"
    assert (
        playground["status"].locator(".status-dot").evaluate(style, "forcedColorAdjust") == "none"
    )
