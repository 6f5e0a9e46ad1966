"""Browser tests: the built page, served by our own server, in headless Chromium.

Each test has a page of its own that finds nothing of those before (`playground`,
`open_playground`). Python starts there from the snapshot that the run has made once; a test about
loading opens it `cold`. Starting takes most of a short test, so those that leave the page able to
run anything take the page that the test before has left (`used_playground`, `run`).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect

from e2e import chromium, snapshot
from e2e.chromium import FLAGS
from e2e.playground import LIMIT_MS, Playground
from e2e.snapshot import Snapshot, SnapshotServer

ROOT = Path(__file__).parents[1]
DIST = Path(os.environ.get("MLCWEB_DIST", ROOT / "web" / "dist"))
"""The built page; the variable names another build of it."""

ONE_PROCESS = "--renderer-process-limit=1"
"""Pages of one context share a process, and with it what is compiled of Python."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Our choice of Chromium, without traffic of its own."""
    path = chromium.find()
    if path is None:
        pytest.fail("no Chromium: `python e2e/chromium.py` gets one", pytrace=False)
    return {**browser_type_launch_args, "executable_path": path, "args": [*FLAGS, ONE_PROCESS]}


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


def _blank(context: BrowserContext, serving: SnapshotServer, start: Snapshot) -> Page:
    """A page that runs nothing, of a server whose next pages in the context find the snapshot."""
    serving.snapshot = start
    page = context.new_page()
    page.goto(f"{serving.url}icon.svg")
    snapshot.install(page, start)
    return page


COMPILE = """async () => {
    window.compiled = await WebAssembly.compileStreaming(fetch("pyodide/pyodide.asm.wasm"));
}"""


class Visitor:
    """A context in which one test after the other visits a server and finds nothing of those
    before, but for the snapshot of Python's memory.

    A blank page stays in it and holds Python compiled: compiling is a third of a start.
    """

    def __init__(self, browser: Browser, serving: SnapshotServer, start: Snapshot) -> None:
        self.context = _context(browser)
        self._origin = serving.url.rstrip("/")
        self._blank = _blank(self.context, serving, start)
        self._blank.evaluate(COMPILE)
        self._devtools = self.context.new_cdp_session(self._blank)

    def leave(self) -> None:
        """Closes the pages of a test, and drops what they have stored."""
        self.context.unroute_all()
        for page in self.context.pages:
            if page is not self._blank:
                page.close()
        stored = {"origin": self._origin, "storageTypes": "cookies,indexeddb,local_storage"}
        self._devtools.send("Storage.clearDataForOrigin", stored)


@pytest.fixture(scope="session")
def visitors() -> dict[tuple[Browser, bool], Visitor]:
    """The visitors of isolated servers (True) and others, as far as tests have needed them."""
    return {}


@pytest.fixture
def visitor(
    browser: Browser,
    server: Callable[..., SnapshotServer],
    visitors: dict[tuple[Browser, bool], Visitor],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[bool], BrowserContext]]:
    """A function that returns a context which finds the snapshot at the server, isolated or not,
    and nothing else. A clock that a test installs would stay there: it takes a context of its own.
    """
    taken: set[bool] = set()

    def take(isolated: bool) -> BrowserContext:
        assert isolated not in taken, "a test has one visitor of a server"
        taken.add(isolated)
        if (browser, isolated) not in visitors:
            start = request.getfixturevalue("page_snapshot")
            visitors[browser, isolated] = Visitor(browser, server(isolated), start)
        return visitors[browser, isolated].context

    yield take
    for isolated in taken:
        try:
            visitors[browser, isolated].leave()
        except Error:  # the process with all its pages has ended
            visitors.pop((browser, isolated)).context.close()


MEDIA = {"color_scheme", "forced_colors", "reduced_motion"}
"""Options of a context that a page of its can have by itself, as a viewport can be."""


def _open(
    serving: SnapshotServer, context: BrowserContext, *, cold: bool = False, **options: Any
) -> Playground:
    """Opens the page, and waits for Python unless it starts `cold`."""
    playground = Playground(context.new_page())
    if viewport := options.pop("viewport", None):
        playground.page.set_viewport_size(viewport)
    if options:
        playground.page.emulate_media(**options)
    playground.page.goto(serving.url)
    if not cold:
        playground.expect_state("ready")
        expect(playground["status"]).to_have_attribute("data-start", "restored")
    return playground


@pytest.fixture
def open_playground(
    server: Callable[..., SnapshotServer],
    new_context: Callable[..., BrowserContext],
    visitor: Callable[[bool], BrowserContext],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Playground]]:
    """A function that opens the page and waits until Python is there; `cold` as on a first visit,
    without waiting for Python.

    Each page has storage of its own. It has a context of its own, too, if it is cold, if it needs
    one for the options given, or if that is asked for (`alone`). `prepare` is called with the
    context before the page is opened. An error in the browser's console fails the test.
    """
    opened: list[Playground] = []
    visited: set[bool] = set()

    def start(
        *,
        isolated: bool = True,
        cold: bool = False,
        alone: bool = False,
        folder: Path = DIST,
        prepare: Callable[[BrowserContext], object] = lambda context: None,
        **options: Any,
    ) -> Playground:
        serving = server(isolated, folder)
        of_page = options if options.keys() <= {"viewport", *MEDIA} else {}
        if cold or alone or folder != DIST or isolated in visited or of_page != options:
            context, of_page = new_context(**options), {}
            if not cold:
                _blank(context, serving, request.getfixturevalue("page_snapshot")).close()
        else:
            visited.add(isolated)
            context = visitor(isolated)
        prepare(context)
        playground = _open(serving, context, cold=cold, **of_page)
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
            context, serving = _context(browser), server(isolated)
            _blank(context, serving, page_snapshot).close()
            playground = _open(serving, context)
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
