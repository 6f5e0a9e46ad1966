"""The service worker: offline after the first load, isolation without headers, new versions."""

import re
import shutil
import threading

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import DIST, LOADING_MS, Playground
from mlcweb.server import PageServer


@pytest.fixture
def visited(open_playground):
    """Opens the page and waits until everything of it is kept."""

    def visit(**options) -> Playground:
        playground = open_playground(cold=True, **options)
        playground.expect_state("ready", timeout_ms=LOADING_MS)
        expect_kept(playground.page)
        return playground

    return visit


def expect_kept(page: Page) -> None:
    html = page.locator("html")
    expect(html).to_have_attribute("data-offline", "ready", timeout=LOADING_MS)


def test_works_without_a_network_after_the_first_visit(visited):
    playground = visited()
    playground.page.context.set_offline(True)
    playground.page.reload()
    playground.expect_state("ready", timeout_ms=LOADING_MS)
    playground.run_to_end("import numpy\nimport tvm\nprint('offline', numpy.ones(3).sum())")
    expect(playground["console"]).to_contain_text("offline 3.0")
    playground.run("while True: pass")
    playground["stop"].click()
    playground.expect_state("ready", timeout_ms=LOADING_MS)


def test_a_host_without_headers_gets_an_isolated_page_on_the_second_visit(visited):
    playground = visited(isolated=False)
    assert playground.page.evaluate("crossOriginIsolated") is False
    playground.page.reload()
    assert playground.page.evaluate("crossOriginIsolated") is True
    playground.expect_state("ready", timeout_ms=LOADING_MS)
    playground.run_to_end("print(6 * 7)")
    expect(playground["console"]).to_contain_text("42")


def test_a_new_version_takes_the_place_of_the_old_one(browser, tmp_path):
    copy = tmp_path / "dist"
    shutil.copytree(DIST, copy)
    with PageServer(copy) as server, browser.new_context() as context:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            page = context.new_page()
            page.goto(server.url)
            expect_kept(page)
            index = copy / "index.html"
            index.write_text(index.read_text().replace("<title>mlcweb", "<title>newer mlcweb"))
            worker = copy / "service-worker.js"
            changed = re.sub(r'("index.html":")\w+', r"\g<1>0123456789abcdef", worker.read_text())
            worker.write_text(re.sub(r'(version":")\w+', r"\g<1>fedcba9876543210", changed))
            page.reload()
            expect(page).to_have_title(re.compile("^mlcweb"))
            # The new version installs behind the page, and serves the visits after that.
            for _ in range(30):
                page.wait_for_timeout(1000)
                page.reload(timeout=LOADING_MS)
                if page.title().startswith("newer"):
                    break
            expect(page).to_have_title(re.compile("^newer mlcweb"))
        finally:
            server.shutdown()
            thread.join()
