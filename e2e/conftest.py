"""Browser tests: the built page, served by our own server, in headless Chromium.

Each test has a page of its own, in a context of its own (`playground`, `open_playground`). Python
starts there from the snapshot that the run has made once; a test about loading opens it `cold`.
Starting takes most of a short test, so those that leave the page able to run anything take the page
that the test before has left (`used_playground`, `run`).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from e2e import chromium, snapshot
from e2e.chromium import FLAGS
from e2e.playground import LIMIT_MS, Playground
from e2e.snapshot import Snapshot, SnapshotServer

ROOT = Path(__file__).parents[1]
DIST = Path(os.environ.get("MLCWEB_DIST", ROOT / "web" / "dist"))
"""The built page; the variable names another build of it."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Our choice of Chromium, without traffic of its own."""
    path = chromium.find()
    if path is None:
        pytest.fail("no Chromium: `python e2e/chromium.py` gets one", pytrace=False)
    return {**browser_type_launch_args, "executable_path": path, "args": FLAGS}


@pytest.fixture(scope="session")
def server() -> Iterator[Callable[..., SnapshotServer]]:
    """A function that serves a build of the page, isolated or not, each once."""
    with ExitStack() as stack:
        started: dict[tuple[bool, Path], SnapshotServer] = {}

        def start(isolated: bool, folder: Path = DIST) -> SnapshotServer:
            if (isolated, folder) not in started:
                server = stack.enter_context(SnapshotServer(folder, isolated=isolated))
                thread = threading.Thread(target=server.serve_forever, args=(0.05,))
                thread.start()
                stack.callback(thread.join)
                stack.callback(server.shutdown)
                started[isolated, folder] = server
            return started[isolated, folder]

        yield start


@pytest.fixture(scope="session")
def serve(server: Callable[..., SnapshotServer]) -> Callable[[bool], str]:
    """A function that serves the built page, isolated or not, and returns its address."""
    return lambda isolated: server(isolated).url


@pytest.fixture(scope="session")
def page_snapshot(
    browser: Browser,
    serve: Callable[[bool], str],
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> Snapshot:
    """The snapshot of Python's memory that all processes of this test run share."""
    folder = tmp_path_factory.getbasetemp()
    return snapshot.shared(folder if worker_id == "master" else folder.parent, browser, serve(True))


def _context(browser: Browser, **options: Any) -> BrowserContext:
    """A context without the service worker, which fetches the whole page behind the test's back."""
    context = browser.new_context(**{"service_workers": "block", **options})
    context.set_default_timeout(LIMIT_MS)
    return context


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """A function that makes a context of the browser with the options given."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(_context(browser, **options))


def _open(
    serving: SnapshotServer,
    context: BrowserContext,
    start: Snapshot | None,
    prepare: Callable[[BrowserContext], object] = lambda context: None,
) -> Playground:
    """Opens the page; from a snapshot it is there once Python is."""
    if start:
        serving.snapshot = start
        snapshot.install(context, serving.url, start)
    prepare(context)
    playground = Playground(context.new_page())
    playground.page.goto(serving.url)
    if start:
        playground.expect_state("ready")
        expect(playground["status"]).to_have_attribute("data-start", "restored")
    return playground


@pytest.fixture
def open_playground(
    server: Callable[..., SnapshotServer],
    new_context: Callable[..., BrowserContext],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Playground]]:
    """A function that opens the page in a context of its own with the options given, and waits
    until Python is there; `cold` as on a first visit, without waiting for Python.

    `prepare` is called with the context before the page is opened. An error in the browser's
    console fails the test.
    """
    opened: list[Playground] = []

    def start(
        *,
        isolated: bool = True,
        cold: bool = False,
        folder: Path = DIST,
        prepare: Callable[[BrowserContext], object] = lambda context: None,
        **options: Any,
    ) -> Playground:
        snapshot = None if cold else request.getfixturevalue("page_snapshot")
        playground = _open(server(isolated, folder), new_context(**options), snapshot, prepare)
        opened.append(playground)
        return playground

    yield start
    assert [problem for playground in opened for problem in playground.problems] == []


@pytest.fixture(scope="session")
def idle_playgrounds() -> dict[tuple[Browser, bool], Playground]:
    """What tests have left to the next, isolated (True) and not."""
    return {}


@pytest.fixture
def used_playground(
    browser: Browser,
    server: Callable[..., SnapshotServer],
    page_snapshot: Snapshot,
    idle_playgrounds: dict[tuple[Browser, bool], Playground],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Playground]]:
    """A function like `open_playground`, for tests that leave the page able to run any program:
    each takes the page of the test before, with an empty console. One that fails leaves none.
    """
    taken: dict[tuple[Browser, bool], Playground] = {}
    failures = request.session.testsfailed

    def take(*, isolated: bool = True) -> Playground:
        playground = idle_playgrounds.pop((browser, isolated), None)
        if playground is None:
            playground = _open(server(isolated), _context(browser), page_snapshot)
        taken[browser, isolated] = playground
        playground["open-program"].click()
        playground.page.locator("#clear").click()
        return playground

    yield take
    problems = [problem for playground in taken.values() for problem in playground.problems]
    if problems or request.session.testsfailed > failures:
        for playground in taken.values():
            playground.page.context.close()
    else:
        idle_playgrounds.update(taken)
    assert problems == []


@pytest.fixture
def playground(open_playground: Callable[..., Playground]) -> Playground:
    """A page of its own for the test, ready."""
    return open_playground()


@pytest.fixture
def run(used_playground: Callable[..., Playground]) -> Callable[[str], str]:
    """A function that runs a program to its good end and returns what it printed; the page has run
    other programs before."""
    return used_playground().run_to_good_end
