"""The page at ``/`` as a reader meets it: its parts, and what can be done with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

LIMIT_MS = 300_000
"""After this time something hangs. No test may depend on anything being faster."""

expect.set_options(timeout=LIMIT_MS)


def replace_text(editor: Locator, code: str) -> None:
    """Replaces an editor's text by `code`.

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


def wait_until(page: Page, condition: str, arg: object = None) -> None:
    """Waits until an asynchronous function of the page is true.

    `wait_for_function` takes the promise itself for the answer.
    """
    page.evaluate(
        f"""(arg) => {{
            window.isTrue = false;
            const check = async () => {{
                window.isTrue = await ({condition})(arg);
                if (!window.isTrue) setTimeout(check, 50);
            }};
            void check();
        }}""",
        arg,
    )
    page.wait_for_function("() => window.isTrue")


def wait_until_kept(page: Page, document: str, runs: int, scroll: float | None = None) -> None:
    """Waits until the browser's database has this many runs of a document, scrolled this far."""
    wait_until(page, _IS_KEPT, [document, runs, scroll])


_IS_KEPT = """([id, runs, scroll]) => new Promise((resolve, reject) => {
    const opening = indexedDB.open("mlcweb-documents");
    opening.onerror = reject;
    opening.onsuccess = () => {
        const asked = opening.result.transaction("documents").objectStore("documents").get(id);
        asked.onsuccess = () => {
            const kept = asked.result;
            resolve(kept?.runs.length === runs && (scroll ?? kept.scroll) === kept.scroll);
        };
    };
})"""


def without_promise_integration(context: BrowserContext) -> None:
    """Makes the next pages such as browsers show that cannot suspend Python."""

    def without(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=NO_INTEGRATION + answer.text())

    context.route("**/assets/worker-*.js", without)


NO_INTEGRATION = "delete WebAssembly.Suspending; delete WebAssembly.promising;\n"


class Playground:
    """A page of the playground; `problems` are the errors that the browser has reported."""

    def __init__(self, page: Page):
        self.page = page
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(LIMIT_MS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))

    def __getitem__(self, name: str) -> Locator:
        """The part of the page with ``data-testid=name``."""
        return self.page.get_by_test_id(name)

    def expect_state(self, *states: str) -> None:
        """Waits until the page is in one of the states loading, ready, running, error."""
        either = re.compile(f"^({'|'.join(states)})$")
        expect(self["status"]).to_have_attribute("data-state", either)

    def expect_snapshot(self) -> None:
        """Waits until the page has stored its snapshot of Python's memory."""
        expect(self["status"]).to_have_attribute("data-snapshot", "stored")

    def write(self, code: str) -> None:
        """Replaces the text of the editor."""
        replace_text(self["editor"].locator(".cm-content"), code)

    def run(self, code: str | None = None) -> None:
        """Runs the editor's text, or `code` in its place, without waiting for its end."""
        if code is not None:
            self.write(code)
        self["run"].click()

    @contextmanager
    def to_end(self) -> Iterator[None]:
        """Waits for the end of what the block starts, however it ends."""
        ended = self["status"].get_attribute("data-ended") or ""
        yield
        expect(self["status"]).not_to_have_attribute("data-ended", ended)
        self.expect_state("ready", "error")

    def run_to_end(self, code: str | None = None) -> None:
        """Runs a program and waits for its end, however it ends."""
        with self.to_end():
            self.run(code)

    def run_to_good_end(self, program: str) -> str:
        """Runs a program that has to end well and returns what is in the console then."""
        self.run_to_end(program + "\nprint('the ' + 'end')")
        expect(self["console"]).to_contain_text("the end")
        self.expect_state("ready")
        return self["console"].inner_text()

    def run_first_program(self) -> None:
        """Runs the program that a new page shows."""
        self.run_to_end()
        self.expect_state("ready")

    def stop(self) -> None:
        """Presses Stop and waits until Python is there again."""
        self["stop"].click()
        self.expect_state("ready", "error")

    def open_view(self, name: str) -> Locator:
        """Brings a view (tensorir, trace, code, access, gpu or search) to the front."""
        self[f"tab-{name}"].click()
        return self[f"view-{name}"]

    def settle(self) -> None:
        """Waits until the view in front shows what was asked for."""
        self.expect_state("ready")
        busy = ".view[aria-busy=true], .view [aria-busy=true]"
        expect(self.page.locator(busy).filter(visible=True)).to_have_count(0)

    def underlined_line(self) -> Locator:
        """The line of the editor in which an error is underlined."""
        return self["editor"].locator(".cm-line", has=self.page.locator(".cm-lintRange-error"))

    def _on_console(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text}")
