"""Chromium without JavaScript Promise Integration: what older browsers have to do without."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from e2e.browsers.browser_page import LIMIT_S, part
from e2e.browsers.test_smoke import TUNE
from e2e.playground import replace_text, without_promise_integration

pytestmark = pytest.mark.thorough

LIMIT_MS = LIMIT_S * 1000

ENDLESS = TUNE.replace("max_trials_global=10", "max_trials_global=100000")


@pytest.fixture(scope="module", params=[True, False], ids=["isolated", "plain"])
def isolated(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(scope="module")
def opened(browser: Browser, address: Callable[[bool], str], isolated: bool) -> Iterator[Page]:
    """The page, whose workers find no such thing, once Python is there."""
    with browser.new_context(service_workers="block") as context:
        without_promise_integration(context)
        page = context.new_page()
        page.goto(address(isolated))
        expect(page.locator(part("status"))).to_have_attribute(
            "data-state", "ready", timeout=LIMIT_MS
        )
        yield page


@pytest.fixture
def page(opened: Page) -> Page:
    """The page as the test before has left it, with an empty console."""
    opened.locator("#clear").click()
    return opened


def _start(page: Page, program: str) -> None:
    replace_text(page.locator(".cm-content"), program)
    page.locator(part("run")).click()


def test_a_program_tunes_synchronously(page: Page, isolated: bool):
    _start(page, TUNE)
    console = page.locator(part("console"))
    expect(console).to_contain_text("tuned 1 True", timeout=LIMIT_MS)
    coarse = console.get_by_text("no JavaScript Promise Integration")
    expect(coarse).to_have_count(0 if isolated else 1)


def test_stop_ends_a_search_that_blocks_python(page: Page):
    _start(page, ENDLESS)
    console = page.locator(part("console"))
    expect(console).to_contain_text("Task #0", timeout=LIMIT_MS)
    page.locator(part("stop")).click()
    expect(console).to_contain_text("Stopped", timeout=LIMIT_MS)
    expect(page.locator(part("status"))).to_have_attribute("data-state", "ready", timeout=LIMIT_MS)
    _start(page, "print('sum', 20 + 22)")
    expect(console).to_contain_text("sum 42", timeout=LIMIT_MS)
