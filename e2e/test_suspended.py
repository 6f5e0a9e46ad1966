"""A tab that the browser suspends: its program goes on or waits, and nothing is lost."""

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground

PRINTING = """
print("begun")
for part in range(3):
    sum(range(3_000_000))
    print("x" * 30_000)
print("the " + "end")
"""


FRAMES = """() => new Promise((done) => {
  let drawn = 0;
  const next = () => (++drawn < 60 ? requestAnimationFrame(next) : done());
  next();
})"""


def freeze(playground: Playground) -> None:
    """Freeze the page while another draws 60 frames, as a browser does with tabs that nobody looks
    at."""
    session = playground.page.context.new_cdp_session(playground.page)
    session.send("Page.setWebLifecycleState", {"state": "frozen"})
    other = playground.page.context.new_page()
    other.evaluate(FRAMES)
    other.close()
    session.send("Page.setWebLifecycleState", {"state": "active"})


@pytest.mark.thorough
@pytest.mark.parametrize("isolated", [True, False])
def test_a_program_prints_to_its_end_though_the_page_is_frozen(used_playground, isolated):
    playground = used_playground(isolated=isolated)
    playground.run(PRINTING)
    expect(playground["console"]).to_contain_text("begun")
    freeze(playground)
    expect(playground["console"]).to_contain_text("the end")
    playground.expect_state("ready")


@pytest.mark.thorough
@pytest.mark.parametrize("isolated", [True, False])
def test_stop_works_after_the_page_was_frozen(used_playground, isolated):
    playground = used_playground(isolated=isolated)
    playground.run("print('begun')\nwhile True: pass")
    expect(playground["console"]).to_contain_text("begun")
    freeze(playground)
    playground.stop()
    expect(playground["console"]).to_contain_text("Stopped")


@pytest.mark.thorough
def test_the_way_back_finds_the_text_and_a_python(playground):
    playground.run_to_end("x = 1  # precious")
    playground.page.goto("about:blank")
    playground.page.go_back()
    playground.expect_state("ready")
    expect(playground["editor"]).to_contain_text("# precious")
    playground.run_to_end("print('once ' + 'more')")
    expect(playground["console"]).to_contain_text("once more")
