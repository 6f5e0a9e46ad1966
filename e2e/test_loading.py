"""From an empty tab to a page that runs programs: isolated or not, wide or narrow."""

import re

import pytest
from playwright.sync_api import expect

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOADING_MS = 90_000


def test_loads_to_ready_from_its_own_origin_with_the_lesson_in_the_editor(open_playground, serve):
    playground = open_playground(cold=True)
    expect(playground["editor"]).to_contain_text("class MyModule:")
    playground.expect_state("ready", timeout_ms=LOADING_MS)
    assert playground.page.evaluate("crossOriginIsolated") is True
    assert len(playground.requests) > 5
    assert [url for url in playground.requests if not url.startswith(serve(True))] == []


def test_runs_and_stops_without_isolation_headers(open_playground):
    playground = open_playground(isolated=False, cold=True)
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
        expect(playground.page.locator(".pane:visible")).to_have_count(1)
        width = playground.page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"], pane


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_follows_the_colour_scheme(open_playground, scheme):
    playground = open_playground(cold=True, color_scheme=scheme)
    colour = playground.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
    assert (brightness > 128) == (scheme == "light")


def test_a_later_visit_starts_from_kept_memory(open_playground):
    first = open_playground(cold=True)
    first.expect_state("ready", timeout_ms=LOADING_MS)
    expect(first["status"]).to_have_attribute("data-start", "plain")
    first.run_to_end("import random\nprint('random', random.random())")
    expect(first["status"]).to_have_attribute("data-kept", "true", timeout=LOADING_MS)

    later = [first.page.context.new_page() for _ in range(2)]
    drawn = {first["console"].inner_text()}
    for page in later:
        page.goto(first.page.url)
        status = page.get_by_test_id("status")
        expect(status).to_have_attribute("data-state", "ready", timeout=LOADING_MS)
        expect(status).to_have_attribute("data-start", "restored")
        again = type(first)(page)
        again.write("import random\nprint('random', random.random())\nraise ValueError('here')")
        again["run"].click()
        expect(again["console"]).to_contain_text("ValueError: here", timeout=LOADING_MS)
        drawn.add(again["console"].inner_text().split("\n")[0])
        # The lesson compiles and runs, and so late imports and sources are there.
        page.locator("#reset").click()
        again.run_to_end()
        expect(again["console"]).to_contain_text("Attempt 4", timeout=LOADING_MS)
        expect(status).to_have_attribute("data-state", "ready")
    assert len(drawn) == 3, "random numbers differ from visit to visit"


def test_kept_memory_that_is_spoilt_is_dropped(open_playground):
    first = open_playground(cold=True)
    first.expect_state("ready", timeout_ms=LOADING_MS)
    expect(first["status"]).to_have_attribute("data-kept", "true", timeout=LOADING_MS)
    first.page.evaluate(
        """async () => {
            const cache = await caches.open("mlcweb-start");
            const [address] = await cache.keys();
            const junk = new Blob([new Uint8Array(1 << 20)]).stream();
            const packed = junk.pipeThrough(new CompressionStream("gzip"));
            await cache.put(address, new Response(await new Response(packed).blob()));
        }"""
    )
    first.page.reload()
    first.expect_state("ready", timeout_ms=LOADING_MS)
    expect(first["status"]).to_have_attribute("data-start", "plain")
    expect(first["status"]).to_have_attribute("data-kept", "true", timeout=LOADING_MS)
    first.run_to_end("print(6 * 7)")
    expect(first["console"]).to_contain_text("42")
