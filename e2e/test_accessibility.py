"""The page for everyone: axe finds nothing in any state, keys reach everything, nothing moves."""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from e2e import page_states, test_embedding
from e2e.conftest import ROOT, Playground
from e2e.page_states import PHONE, STATES, WIDE

AXE = (ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js").read_text("utf8")

CHECK = """async () => (await axe.run()).violations.map(
    ({ id, nodes }) => [id, ...nodes.map(({ target, html }) => `${target}: ${html}`)])"""

HOSTS_OWN = [{"id": name, "enabled": False} for name in ("region", "landmark-one-main")]

THEMES = ("light", "dark")
SIZES = pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"], indirect=True)

embed, host = test_embedding.embed, test_embedding.host


def violations(page: Page) -> list[list[str]]:
    """What axe finds in the page and its frames, in both themes."""
    for frame in page.frames:
        if not frame.evaluate("() => 'axe' in window"):
            # As text, since the page allows no script of elsewhere.
            frame.evaluate(AXE)
    found = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        found += [[theme, *each] for each in page.evaluate(CHECK)]
    page.emulate_media(color_scheme="light")
    return found


def is_cut(page: Page) -> bool:
    """Whether something is wider than the window."""
    return page.evaluate("() => document.documentElement.scrollWidth > innerWidth")


@pytest.fixture(scope="module")
def size(request: pytest.FixtureRequest) -> dict[str, int]:
    return request.param


@pytest.fixture(scope="module")
def stage(
    open_context: Callable[..., BrowserContext], serve: Callable[[bool], str], size: dict[str, int]
) -> Iterator[Playground]:
    """A page of this size that goes through its states."""
    with open_context(viewport={"width": size["width"], "height": size["height"]}) as context:
        playground = Playground(context.new_page())
        playground.page.goto(serve(True))
        yield playground


@SIZES
@pytest.mark.parametrize("states", STATES, ids=lambda states: states.__name__)
def test_axe_finds_nothing_in_any_state(stage, states):
    found = {}
    cut = []
    for state in states(stage):
        if violated := violations(stage.page):
            found[state] = violated
        if is_cut(stage.page):
            cut.append(state)
    assert found == {}
    assert cut == []


@SIZES
def test_axe_finds_nothing_while_python_loads(open_playground, size):
    playground = page_states.while_loading(open_playground, viewport=size)
    assert violations(playground.page) == []
    assert not is_cut(playground.page)


@pytest.mark.parametrize("lesson", ["", '<mlc-lesson lesson="02-tensorir">TensorIR</mlc-lesson>'])
def test_axe_finds_nothing_in_a_page_with_frames(embed, lesson):
    page = embed(lesson or test_embedding.SCHEDULE)
    # What surrounds the elements is the host's own.
    page.evaluate("() => { document.documentElement.lang = 'en' }")
    page.evaluate(AXE)
    page.evaluate(f"() => axe.configure({{ rules: {json.dumps(HOSTS_OWN)} }})")
    assert violations(page) == []
    frame = test_embedding.start(page)
    ran = frame.get_by_test_id("status" if not lesson else "lesson-nav")
    expect(ran.first).to_be_visible()
    if not lesson:
        expect(ran).to_have_attribute("data-state", "ready")
    assert violations(page) == []


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


def test_the_order_of_tab_is_the_order_of_reading(open_playground):
    playground = open_playground()
    page = playground.page
    playground.expect_state("ready")
    order = []
    while len(order) < 40 and "view-tensorir" not in order and "tab-tensorir" not in order:
        page.keyboard.press("Escape" if page.evaluate(IN_EDITOR) else "Shift")
        page.keyboard.press("Tab")
        order.append(page.evaluate(FOCUSED))
    assert order == [
        *("open-lessons", "open-program", "run"),
        *("share-link", "file-menu", "reset", "theme-toggle"),
        *("file-tab", "file-add", "cm-content", "split-rows"),
        *("clear", "console", "split-columns", "tab-tensorir"),
    ]


def test_everything_is_done_without_a_mouse(open_playground):
    playground = open_playground()
    page = playground.page
    keys = page.keyboard
    playground.expect_state("ready")

    tab_to(page, playground["run"])
    keys.press("Enter")
    expect(playground["console"]).to_contain_text("Attempt 4")
    playground.expect_state("ready")

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
    keys.type("900")
    tab_to(page, playground["search-start"])
    keys.press("Enter")
    playground.expect_state("running")
    tab_to(page, playground["search-stop"])
    keys.press("Enter")
    playground.expect_state("ready")

    tab_to(page, playground["open-lessons"])
    keys.press("Enter")
    lesson = page.get_by_role("link", name="TensorIR: loops, buffers, blocks")
    tab_to(page, lesson)
    keys.press("Enter")
    cell = playground["lesson-cell"].first
    tab_to(page, cell.get_by_test_id("cell-run"))
    keys.press("Enter")
    expect(cell).to_have_attribute("data-state", "done")


def test_nothing_is_animated_where_motion_is_unwelcome(open_playground):
    playground = open_playground(reduced_motion="reduce")
    moving = "() => document.getAnimations().map(({ effect }) => effect.target.className)"
    playground.run("print('begun')\nwhile True:\n    pass")
    expect(playground["console"]).to_contain_text("begun")
    assert playground.page.evaluate(moving) == []
    playground["stop"].click()
    playground.expect_state("ready", "error")
    assert playground.page.evaluate(moving) == []


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
