"""From an empty tab to a page that runs programs: isolated or not, wide or narrow."""

import re

import pytest
from playwright.sync_api import expect

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOADING_MS = 90_000


def test_loads_to_ready_from_its_own_origin_with_the_lesson_in_the_editor(open_playground, serve):
    playground = open_playground()
    expect(playground["editor"]).to_contain_text("class MyModule:")
    playground.expect_state("ready", timeout_ms=LOADING_MS)
    assert playground.page.evaluate("crossOriginIsolated") is True
    assert len(playground.requests) > 5
    assert [url for url in playground.requests if not url.startswith(serve(True))] == []


def test_runs_and_stops_without_isolation_headers(open_playground):
    playground = open_playground(isolated=False)
    assert playground.page.evaluate("crossOriginIsolated") is False
    playground.expect_state("ready", timeout_ms=LOADING_MS)
    playground.run_to_end("print(6 * 7)")
    expect(playground["console"]).to_contain_text("42")
    playground.run("print('begun')\nwhile True: pass")
    expect(playground["console"]).to_contain_text("begun", timeout=LOADING_MS)
    playground["stop"].click()
    playground.expect_state("ready", timeout_ms=LOADING_MS)
    playground.run_to_end("print('once ' + 'more')")
    expect(playground["console"]).to_contain_text("once more")


def test_fits_a_phone_in_every_pane(open_playground):
    playground = open_playground(**PHONE)
    playground.expect_state("ready", timeout_ms=LOADING_MS)
    playground.run_to_end()
    playground.expect_state("ready")
    for pane in ("editor", "console", "tensorir", "trace", "search"):
        playground[f"tab-{pane}"].tap()
        expect(playground["run"]).to_be_in_viewport()
        width = playground.page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"], pane


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_follows_the_colour_scheme(open_playground, scheme):
    playground = open_playground(color_scheme=scheme)
    colour = playground.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
    assert (brightness > 128) == (scheme == "light")
