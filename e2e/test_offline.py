"""The service worker: offline after the first load, isolation without headers, new versions."""

import json
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import DIST
from e2e.playground import Playground, wait_until


@pytest.fixture
def visited(open_playground):
    """Opens the page and waits until everything of it is stored."""

    def visit(**options) -> Playground:
        playground = open_playground(service_workers="allow", **options)
        expect_stored(playground.page)
        return playground

    return visit


def expect_stored(page: Page) -> None:
    expect(page.locator("html")).to_have_attribute("data-offline", "ready")


def test_works_without_a_network_after_the_first_visit(visited):
    playground = visited()
    playground.page.context.set_offline(True)
    playground.page.reload()
    playground.expect_state("ready")
    playground.run_to_end("import numpy\nimport tvm\nprint('offline', numpy.ones(3).sum())")
    expect(playground["console"]).to_contain_text("offline 3.0")
    playground.run("while True: pass")
    playground.stop()


@pytest.mark.thorough
def test_a_host_without_headers_gets_an_isolated_page_on_the_second_visit(visited):
    playground = visited(isolated=False)
    assert playground.page.evaluate("crossOriginIsolated") is False
    playground.page.reload()
    assert playground.page.evaluate("crossOriginIsolated") is True
    playground.expect_state("ready")
    playground.run_to_end("print(6 * 7)")
    expect(playground["console"]).to_contain_text("42")


def test_a_new_version_takes_the_place_of_the_old_one(visited, tmp_path):
    copy = tmp_path / "dist"
    shutil.copytree(DIST, copy)
    page = visited(folder=copy).page
    for title, version in [("newer", "fedcba9876543210"), ("newest", "0123456789abcdef")]:
        publish(copy, title, version)
        # The new version is fetched behind a page, and serves the visits after that.
        page.reload()
        wait_until(page, IS_SERVED, f"mlcweb-page-{version}")
        page.reload()
        expect(page).to_have_title(re.compile(f"^{title} mlcweb"))
    # What two versions before left behind is gone.
    versions = ["mlcweb-page-0123456789abcdef", "mlcweb-page-fedcba9876543210"]
    wait_until(
        page,
        """async (versions) => (await caches.keys())
            .filter((name) => /^mlcweb-page-(?!served)/.test(name))
            .sort().join() === versions.join()""",
        versions,
    )
    later = page.context.new_page()
    page.close()
    later.goto(page.url)
    expect(later).to_have_title(re.compile("^newest mlcweb"))


IS_SERVED = """async (version) => {
    const served = await (await caches.open("mlcweb-page-served")).matchAll();
    return (await Promise.all(served.map((name) => name.text()))).includes(version);
}"""


def publish(site: Path, title: str, version: str) -> None:
    """Puts another version of the page in the place of the one that a server gives out."""
    index = site / "index.html"
    index.write_text(re.sub(r"<title>(?:\w+ )?mlcweb", f"<title>{title} mlcweb", index.read_text()))
    release = json.loads((site / "release.json").read_text())
    release["version"] = release["files"]["index.html"] = version
    (site / "release.json").write_text(json.dumps(release))
