"""The page as the tests of other browsers know it: parts by their test ids, and states."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from e2e.browsers.driver import Driver

LIMIT_S = 600
"""Against hanging alone: a start of WebKit was seen to take minutes on a very busy machine."""
POLL_S = 0.1

# The constructor of ClipboardEvent does not take the data everywhere.
PASTE = """(() => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", %s);
    const paste = new Event("paste", { bubbles: true, cancelable: true });
    Object.defineProperty(paste, "clipboardData", { value: clipboardData });
    document.querySelector(%s).dispatchEvent(paste);
})()"""


def part(name: str) -> str:
    """The CSS selector of a part of the page, by its test id."""
    return f'[data-testid="{name}"]'


class BrowserPage:
    """The page in a browser."""

    def __init__(self, driver: Driver, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, address: str = "") -> None:
        """Open an address below the page's own anew."""
        self.driver.open(self.url + address)

    def wait(self, expression: str, met: Callable[[Any], bool] = bool) -> Any:
        """Wait until a JavaScript expression has a value that is as wished; the value."""
        end = time.monotonic() + LIMIT_S
        while not met(value := self.driver.evaluate(expression)):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} is still {value!r}")
            time.sleep(POLL_S)
        return value

    def attribute(self, selector: str, name: str) -> str:
        """A JavaScript expression for an attribute; null while there is no such element."""
        return (
            f"(document.querySelector({json.dumps(selector)})?.getAttribute({json.dumps(name)})"
            " ?? null)"
        )

    def wait_state(self, *states: str) -> str:
        """Wait until the page is loading, ready, running or in error."""
        return self.wait(self.attribute(part("status"), "data-state"), lambda now: now in states)

    def text(self, name: str) -> str:
        """What a part of the page says."""
        return self.driver.evaluate(f"document.querySelector({json.dumps(part(name))}).innerText")

    def wait_text(self, name: str, wished: str) -> None:
        """Wait until a part of the page says something."""
        self.wait(
            f"document.querySelector({json.dumps(part(name))})?.innerText ?? ''",
            lambda text: wished in text,
        )

    def click(self, name: str) -> None:
        """Click a part of the page."""
        self.driver.click(part(name))

    def set_value(self, name: str, value: str) -> None:
        """Give a field or a selection another value."""
        self.driver.evaluate(
            f"(() => {{ const field = document.querySelector({json.dumps(part(name))});"
            f"field.value = {json.dumps(value)};"
            "for (const kind of ['input', 'change'])"
            " field.dispatchEvent(new Event(kind, { bubbles: true })); })()"
        )

    def write(self, code: str, editor: str = '[data-testid="editor"] .cm-content') -> None:
        """Replace the text of an editor; pasted text stays as it is."""
        self.driver.select_all(editor)
        self.driver.evaluate(PASTE % (json.dumps(code), json.dumps(editor)))

    def take_first_program(self) -> None:
        """Put the program back that a first visit finds."""
        self.driver.click("#reset")

    def ended(self) -> int:
        """How many runs have ended since the page was opened."""
        return int(self.driver.evaluate(self.attribute(part("status"), "data-ended")) or 0)

    def run(self, code: str | None = None) -> str:
        """Run the editor's text, or `code` in its place, to its end; what the console says then."""
        if code is not None:
            self.write(code)
        before = self.ended()
        self.click("run")
        self.wait_ended(before)
        return self.text("console")

    def wait_ended(self, before: int) -> None:
        """Wait until more runs have ended than `before`."""
        self.wait(self.attribute(part("status"), "data-ended"), lambda now: int(now or 0) > before)
        self.wait_state("ready", "error")
