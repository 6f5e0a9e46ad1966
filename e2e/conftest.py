"""Browser tests: the built page, served by our own server, in headless Chromium.

Loading Python takes seconds, so most tests share one loaded page (`playground`) and leave it ready
for the next one. A test that needs a page of its own opens one (`open_playground`), with the memory
of Python that the shared page has kept; a test about loading itself opens it `cold`.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from e2e import chromium, kept_memory
from e2e.kept_memory import VisitedServer

ROOT = Path(__file__).parents[1]
DIST = Path(os.environ.get("MLCWEB_DIST", ROOT / "web" / "dist"))
"""The built page; the variable names another build of it."""

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]

LOADING_MS = 90_000
"""Limit for a cold start of Python on a slow, busy machine."""
RUNNING_MS = 60_000
"""Limit for a program or a search of a test."""


def replace_text(editor: Locator, code: str) -> None:
    """Puts `code` in the place of an editor's text.

    Keys would be indented and bracketed by the editor; pasted text stays as it is.
    """
    editor.focus()
    editor.page.keyboard.press("ControlOrMeta+a")
    editor.evaluate(
        """(element, code) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", code);
            element.dispatchEvent(
                new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }),
            );
        }""",
        code,
    )


class Playground:
    """The page at ``/`` as a reader meets it: its parts, and what can be done with them."""

    def __init__(self, page: Page):
        self.page = page
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))

    def __getitem__(self, name: str) -> Locator:
        """The part of the page with ``data-testid=name``."""
        return self.page.get_by_test_id(name)

    def expect_state(self, *states: str, timeout_ms: float = RUNNING_MS) -> None:
        """Waits until the page is in one of the states loading, ready, running, error."""
        either = re.compile(f"^({'|'.join(states)})$")
        expect(self["status"]).to_have_attribute("data-state", either, timeout=timeout_ms)

    def write(self, code: str) -> None:
        """Replaces the text of the editor."""
        replace_text(self["editor"].locator(".cm-content"), code)

    def run(self, code: str | None = None) -> None:
        """Runs the editor's text, or `code` in its place, without waiting for its end."""
        if code is not None:
            self.write(code)
        self["run"].click()

    def run_to_end(self, code: str | None = None) -> None:
        """Runs a program and waits for its end, however it ends."""
        self.run(code)
        self.expect_state("ready", "error")

    def run_lesson(self) -> None:
        """Puts the lesson's program back and runs it through."""
        self.page.get_by_role("button", name="Reset").click()
        self.run()
        self.expect_state("ready")

    def open_view(self, name: str) -> Locator:
        """Brings a view (tensorir, trace or search) to the front."""
        self[f"tab-{name}"].click()
        return self[f"view-{name}"]

    def underlined_line(self) -> Locator:
        """The line of the editor in which an error is underlined."""
        return self["editor"].locator(".cm-line", has=self.page.locator(".cm-lintRange-error"))

    def _on_console(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text}")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Our choice of Chromium, without traffic of its own."""
    path = chromium.find()
    if path is None:
        pytest.fail("no Chromium: `python e2e/chromium.py` gets one", pytrace=False)
    return {**browser_type_launch_args, "executable_path": path, "args": FLAGS}


@pytest.fixture(scope="session")
def server() -> Iterator[Callable[[bool], VisitedServer]]:
    """A function that starts a server of the built page, isolated or not, once each."""
    with ExitStack() as stack:
        started: dict[bool, VisitedServer] = {}

        def start(isolated: bool) -> VisitedServer:
            if isolated not in started:
                server = stack.enter_context(VisitedServer(DIST, isolated=isolated))
                thread = threading.Thread(target=server.serve_forever, args=(0.05,))
                thread.start()
                stack.callback(thread.join)
                stack.callback(server.shutdown)
                started[isolated] = server
            return started[isolated]

        yield start


@pytest.fixture(scope="session")
def serve(server: Callable[[bool], VisitedServer]) -> Callable[[bool], str]:
    """A function that serves the built page, isolated or not, and returns its address."""
    return lambda isolated: server(isolated).url


@pytest.fixture(scope="session")
def open_context(
    request: pytest.FixtureRequest, browser: Browser, server: Callable[[bool], VisitedServer]
) -> Callable[..., BrowserContext]:
    """A function that makes a context with the options given, in which Python starts from kept
    memory; the caller closes it."""

    def start(isolated: bool = True, **options: Any) -> BrowserContext:
        serving = server(isolated)
        serving.kept = kept = request.getfixturevalue("kept")
        context = browser.new_context(**options)
        kept_memory.lay(context, serving.url, kept)
        return context

    return start


@pytest.fixture
def open_playground(
    browser: Browser,
    serve: Callable[[bool], str],
    open_context: Callable[..., BrowserContext],
) -> Iterator[Callable[..., Playground]]:
    """A function that opens the page anew, in a context of its own with the options given; `cold`
    as on a first visit."""
    opened: list[Playground] = []

    def start(*, isolated: bool = True, cold: bool = False, **options: Any) -> Playground:
        context = browser.new_context(**options) if cold else open_context(isolated, **options)
        playground = Playground(context.new_page())
        opened.append(playground)
        playground.page.goto(serve(isolated))
        return playground

    yield start
    for playground in opened:
        playground.page.context.close()
    assert [problem for playground in opened for problem in playground.problems] == []


@pytest.fixture(scope="session")
def loaded(browser: Browser, serve: Callable[[bool], str]) -> Iterator[Playground]:
    """The page that tests share."""
    with browser.new_context() as context:
        playground = Playground(context.new_page())
        playground.page.goto(serve(True))
        playground.expect_state("ready", timeout_ms=LOADING_MS)
        yield playground


@pytest.fixture(scope="session")
def kept(loaded: Playground, tmp_path_factory: pytest.TempPathFactory) -> kept_memory.KeptMemory:
    """The memory of Python that the shared page has kept."""
    return kept_memory.read(loaded.page, tmp_path_factory.mktemp("kept") / "memory", LOADING_MS)


@pytest.fixture
def playground(loaded: Playground) -> Iterator[Playground]:
    """The shared page, ready; a problem in the browser's console fails the test."""
    loaded.problems.clear()
    yield loaded
    loaded.expect_state("ready", "error", timeout_ms=LOADING_MS)
    assert loaded.problems == []


@pytest.fixture
def run(playground: Playground) -> Callable[[str], str]:
    """A function that runs a program to its good end and returns what it printed."""

    def printed(program: str) -> str:
        playground.run_to_end(program + "\nprint('the end')")
        expect(playground["console"]).to_contain_text("the end")
        playground.expect_state("ready")
        return playground["console"].inner_text()

    return printed
