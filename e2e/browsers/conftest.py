"""Smoke tests of the built page in Firefox and WebKit. Each test opens the page anew."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.browsers import install
from e2e.browsers.browser_page import BrowserPage
from e2e.browsers.driver import START, Driver
from e2e.conftest import DIST
from mlcweb.server import Answer, Headers, PageServer

COURSE_PAGE = """<!doctype html>
<title>A course page</title>
<script src="embed.js"></script>
<mlc-cell autorun><pre><code>
    print("sum", 20 + 22)
</code></pre></mlc-cell>
"""


class CourseServer(PageServer):
    """Serves the page, and beside it a course page that embeds a cell."""

    course: Path

    def answer(self, target: str, given: Headers | None = None) -> Answer:
        if target != "/course.html":
            return super().answer(target, given)
        headers = {**super().answer("/embed.html").headers}
        for name in ("Content-Encoding", "ETag"):
            headers.pop(name, None)
        size = str(self.course.stat().st_size)
        return (
            super()
            .answer("/embed.html")
            ._replace(headers={**headers, "Content-Length": size}, body=self.course)
        )


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], str]]:
    """A function that serves the built page, isolated or not, and returns its address."""
    course = tmp_path_factory.mktemp("course") / "course.html"
    course.write_text(COURSE_PAGE)
    with ExitStack() as stack:
        started: dict[bool, CourseServer] = {}

        def start(isolated: bool) -> str:
            if isolated not in started:
                server = stack.enter_context(CourseServer(DIST, isolated=isolated))
                server.course = course
                thread = threading.Thread(target=server.serve_forever, args=(0.05,))
                thread.start()
                stack.callback(thread.join)
                stack.callback(server.shutdown)
                started[isolated] = server
            return started[isolated].url

        yield start


@pytest.fixture(scope="module", params=["firefox", "webkit"])
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A browser; where it cannot be had the test skips."""
    if reason := install.missing(request.param):
        pytest.skip(f"{reason}: `python e2e/browsers/install.py` gets it where it can")
    with START[request.param]() as started:
        yield started


@pytest.fixture
def open_page(driver: Driver, address: Callable[[bool], str]) -> Callable[[bool], BrowserPage]:
    """A function that opens the page, isolated or not, and waits until it is ready."""

    def opened(isolated: bool = True) -> BrowserPage:
        page = BrowserPage(driver, address(isolated))
        page.open()
        page.wait_state("ready")
        return page

    return opened
