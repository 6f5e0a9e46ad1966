"""The service worker: offline after the first load, isolation without headers, new versions."""

import re
import shutil
import threading
from pathlib import Path

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
            for title, version in [("newer", "fedcba9876543210"), ("newest", "0123456789abcdef")]:
                publish(copy, title, version)
                # The new version installs behind the page, and serves the visits after that.
                for _ in range(30):
                    page.reload(timeout=LOADING_MS)
                    if page.title().startswith(title):
                        break
                    page.wait_for_timeout(1000)
                expect(page).to_have_title(re.compile(f"^{title} mlcweb"))
            # What two versions before left behind is gone.
            versions = ["mlcweb-page-0123456789abcdef", "mlcweb-page-fedcba9876543210"]
            page.wait_for_function(
                """async (versions) => (await caches.keys())
                    .filter((name) => /^mlcweb-page-(?!served)/.test(name))
                    .sort().join() === versions.join()""",
                arg=versions,
            )
            page.close()
            page = context.new_page()
            page.goto(server.url)
            expect(page).to_have_title(re.compile("^newest mlcweb"))
        finally:
            server.shutdown()
            thread.join()


def publish(site: Path, title: str, version: str) -> None:
    """Puts another version of the page in the place of the one that a server gives out."""
    index = site / "index.html"
    index.write_text(re.sub(r"<title>(?:\w+ )?mlcweb", f"<title>{title} mlcweb", index.read_text()))
    worker = site / "service-worker.js"
    changed = re.sub(r'("index.html":")\w+', rf"\g<1>{version}", worker.read_text())
    worker.write_text(re.sub(r'(version":")\w+', rf"\g<1>{version}", changed))
