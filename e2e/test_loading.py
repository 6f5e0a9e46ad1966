"""From an empty tab to a page that runs programs: isolated or not, wide or narrow."""

import re

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.thorough
def test_runs_and_stops_without_isolation_headers(open_playground):
    playground = open_playground(isolated=False)
    assert playground.page.evaluate("crossOriginIsolated") is False
    playground.run("print('begun')\nwhile True: pass")
    expect(playground["console"]).to_contain_text("begun")
    playground.stop()
    playground.run_to_end("print('once ' + 'more')")
    expect(playground["console"]).to_contain_text("once more")


def test_fits_a_phone_in_every_pane(open_playground):
    playground = open_playground(**PHONE)
    playground.run_first_program()
    for pane in ("editor", "console", "tensorir", "trace", "search"):
        playground[f"tab-{pane}"].tap()
        expect(playground["run"]).to_be_in_viewport()
        expect(playground.page.locator(".pane:visible")).to_have_count(1)
        width = playground.page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"], pane
    # Smaller ones, too: nothing of the bar is cut off.
    for width in (360, 320):
        playground.page.set_viewport_size({"width": width, "height": 640})
        for name in ("open-lessons", "run", "stop", "file-menu"):
            expect(playground[name]).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_follows_the_colour_scheme(open_playground, scheme):
    playground = open_playground(cold=True, color_scheme=scheme)
    colour = playground.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
    assert (brightness > 128) == (scheme == "light")


@pytest.mark.thorough
def test_a_later_visit_restores_the_snapshot_of_the_first(open_playground):
    first = open_playground(cold=True)
    first.run_to_end("import random\nprint('random', random.random())")
    first.expect_snapshot()
    drawn = {first["console"].inner_text().split("\n")[0]}
    later = Playground(first.page.context.new_page())
    for _ in range(2):
        later.page.goto(first.page.url)
        later.expect_state("ready")
        expect(later["status"]).to_have_attribute("data-start", "restored")
        later.run_to_end(
            "import random\nprint('random', random.random())\nraise ValueError('here')"
        )
        # The sources in tracebacks are no part of the memory, but are there all the same.
        expect(later["console"]).to_contain_text("ValueError: here")
        drawn.add(later["console"].inner_text().split("\n")[0])
    assert len(drawn) == 3, "random numbers differ from visit to visit"
    # Modules that are imported late are there, too.
    later.page.locator("#reset").click()
    later.run_first_program()
    expect(later["console"]).to_contain_text("Attempt 4")


@pytest.mark.thorough
def test_a_damaged_snapshot_is_replaced(open_playground):
    playground = open_playground()
    playground.page.evaluate(
        """async () => {
            const cache = await caches.open("mlcweb-start");
            const [address] = await cache.keys();
            const junk = new Blob([new Uint8Array(1 << 20)]).stream();
            const packed = junk.pipeThrough(new CompressionStream("gzip"));
            await cache.put(address, new Response(await new Response(packed).blob()));
        }"""
    )
    playground.page.reload()
    playground.expect_state("ready")
    expect(playground["status"]).to_have_attribute("data-start", "plain")
    playground.expect_snapshot()
    playground.run_to_end("print(6 * 7)")
    expect(playground["console"]).to_contain_text("42")
    playground.page.reload()
    playground.expect_state("ready")
    expect(playground["status"]).to_have_attribute("data-start", "restored")
