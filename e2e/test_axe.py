"""What the checker axe finds in the page: nothing, in any state, size and theme."""

import json
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from e2e import page_states, test_embedding
from e2e.conftest import ROOT
from e2e.page_states import PHONE, STATES, WIDE
from e2e.playground import Playground

pytestmark = pytest.mark.thorough

AXE = (ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js").read_text("utf8")

CHECK = """async () => (await axe.run()).violations.map(
    ({ id, nodes }) => [id, ...nodes.map(({ target, html }) => `${target}: ${html}`)])"""

HOSTS_OWN = [{"id": name, "enabled": False} for name in ("region", "landmark-one-main")]

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
SIZES = {"wide": WIDE, "phone": PHONE}

embed, host = test_embedding.embed, test_embedding.host


def violations(page: Page, *themes: Theme) -> list[list[str]]:
    """What axe finds in the page and its frames, in each of the themes."""
    for frame in page.frames:
        if not frame.evaluate("() => 'axe' in window"):
            # As text, since the page allows no script of elsewhere.
            frame.evaluate(AXE)
    found = []
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        found += [[theme, *each] for each in page.evaluate(CHECK)]
    return found


def is_cut(page: Page) -> bool:
    """Whether something is wider than the window."""
    return page.evaluate("() => document.documentElement.scrollWidth > innerWidth")


def faults(playground: Playground, states: Iterator[str], *themes: Theme) -> dict[str, object]:
    """What is wrong in each of the states, by the state's name."""
    found: dict[str, object] = {}
    for state in states:
        if violated := violations(playground.page, *themes):
            found[state] = violated
        if is_cut(playground.page):
            found[f"{state}, width"] = "wider than the window"
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("states", STATES, ids=lambda states: states.__name__)
def test_axe_finds_nothing_in_any_state(open_playground, states, size):
    playground = open_playground(viewport=SIZES[size])
    assert faults(playground, states(playground), *THEMES) == {}


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_while_python_loads(open_playground, size):
    playground = page_states.while_loading(open_playground, viewport=SIZES[size])
    assert faults(playground, iter(["loading"]), *THEMES) == {}


@pytest.mark.parametrize(
    "lesson",
    [
        pytest.param("", id="cell"),
        pytest.param(
            '<mlc-lesson lesson="02-tensorir">TensorIR</mlc-lesson>',
            id="lesson",
        ),
    ],
)
def test_axe_finds_nothing_in_a_page_with_frames(embed, lesson):
    page = embed(lesson or test_embedding.SCHEDULE)
    # What surrounds the elements is the host's own.
    page.evaluate("() => { document.documentElement.lang = 'en' }")
    page.evaluate(AXE)
    page.evaluate(f"() => axe.configure({{ rules: {json.dumps(HOSTS_OWN)} }})")
    assert violations(page, *THEMES) == []
    frame = test_embedding.start(page)
    ran = frame.get_by_test_id("status" if not lesson else "lesson-nav")
    expect(ran.first).to_be_visible()
    if not lesson:
        expect(ran).to_have_attribute("data-state", "ready")
    assert violations(page, *THEMES) == []
