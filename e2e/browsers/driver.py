"""The few things that the tests ask of any browser.

Firefox speaks WebDriver BiDi by itself, over a WebSocket. WebKit has a program that speaks classic
WebDriver, over HTTP.
"""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import websocket

from e2e.browsers import install

CONTROL = "\ue009"
"""WebDriver's name of the key."""

ANSWER_S = 120
"""Limit for one answer of a browser, which may be busy."""


class Driver(Protocol):
    """A browser with one tab."""

    def open(self, url: str) -> None:
        """Go to an address and wait until its document is there."""
        ...

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page, as JSON."""
        ...

    def click(self, selector: str) -> None:
        """Click in the middle of the first element of a CSS selector, as a reader does."""
        ...

    def select_all(self, selector: str) -> None:
        """Put the cursor into an element and press the keys that select everything in it."""
        ...

    def resize(self, width: int, height: int) -> None:
        """Give the page this size, in CSS pixels."""
        ...

    def screenshot(self, file: Path) -> None:
        """What the page looks like, as a PNG."""
        ...


class Firefox:
    """Firefox over WebDriver BiDi."""

    def __init__(self, line: websocket.WebSocket) -> None:
        self._line = line
        self._numbers = count(1)
        self._ask("session.new", capabilities={})
        self._tab = self._ask("browsingContext.create", type="tab")["context"]

    def open(self, url: str) -> None:
        # A new fragment alone is no navigation that ever completes.
        self._ask("browsingContext.navigate", context=self._tab, url="about:blank", wait="complete")
        self._ask("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def evaluate(self, expression: str) -> Any:
        text = self._result(f"JSON.stringify({expression}) ?? 'null'")["value"]
        return json.loads(text)

    def click(self, selector: str) -> None:
        self._act({
            "type": "pointer",
            "id": "mouse",
            "actions": [
                {"type": "pointerMove", "x": 0, "y": 0, "origin": self._origin(selector)},
                {"type": "pointerDown", "button": 0},
                {"type": "pointerUp", "button": 0},
            ],
        })  # fmt: skip

    def select_all(self, selector: str) -> None:
        self._result(f"document.querySelector({json.dumps(selector)}).focus()")
        keys = [
            ("keyDown", CONTROL),
            ("keyDown", "a"),
            ("keyUp", "a"),
            ("keyUp", CONTROL),
        ]
        actions = [{"type": kind, "value": key} for kind, key in keys]
        self._act({"type": "key", "id": "keys", "actions": actions})

    def resize(self, width: int, height: int) -> None:
        viewport = {"width": width, "height": height}
        self._ask("browsingContext.setViewport", context=self._tab, viewport=viewport)

    def screenshot(self, file: Path) -> None:
        taken = self._ask("browsingContext.captureScreenshot", context=self._tab)
        file.write_bytes(base64.b64decode(taken["data"]))

    def _origin(self, selector: str) -> dict[str, Any]:
        found = self._result(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            "found.scrollIntoView({ block: 'nearest' }); return found; })()"
        )
        return {"type": "element", "element": {"sharedId": found["sharedId"]}}

    def _act(self, source: dict[str, Any]) -> None:
        self._ask("input.performActions", context=self._tab, actions=[source])

    def _result(self, expression: str) -> dict[str, Any]:
        answer = self._ask(
            "script.evaluate",
            expression=expression,
            target={"context": self._tab},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise RuntimeError(f"{answer['exceptionDetails']['text']} in {expression}")
        return answer["result"]

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._line.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._line.recv())
            if message.get("id") != number:
                continue
            if message["type"] == "error":
                raise RuntimeError(f"{method}: {message['error']}: {message['message']}")
            return message["result"]


class WebKit:
    """WebKit over classic WebDriver; `session` is the address of the session."""

    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, url: str) -> None:
        # A new fragment alone would load nothing.
        self._ask("url", {"url": "about:blank"})
        self._ask("url", {"url": url})

    def evaluate(self, expression: str) -> Any:
        return self._ask("execute/sync", {"script": f"return {expression}", "args": []})

    def click(self, selector: str) -> None:
        self._ask(f"element/{self._found(selector)}/click", {})

    def select_all(self, selector: str) -> None:
        self._ask(f"element/{self._found(selector)}/value", {"text": CONTROL + "a"})

    def resize(self, width: int, height: int) -> None:
        # The driver knows the size of the window, which has a frame and bars around the page.
        for _ in range(2):
            inner = self.evaluate("[innerWidth, innerHeight]")
            outer = self._ask("window/rect")
            size = {
                "width": outer["width"] + width - inner[0],
                "height": outer["height"] + height - inner[1],
            }
            self._ask("window/rect", size)

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._ask("screenshot")))

    def _found(self, selector: str) -> str:
        found = self._ask("element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))

    def _ask(self, what: str, params: dict[str, Any] | None = None) -> Any:
        return ask_webdriver(f"{self._session}/{what}", params)


def ask_webdriver(url: str, params: dict[str, Any] | None = None, method: str | None = None) -> Any:
    """What a program that speaks WebDriver answers: to a POST if there are `params`."""
    data = None if params is None else json.dumps(params).encode()
    try:
        with urlopen(Request(url, data, method=method), timeout=ANSWER_S) as answer:
            return json.load(answer)["value"]
    except HTTPError as error:
        told = json.load(error)["value"]
        raise RuntimeError(f"{url}: {told['error']}: {told['message']}") from None


@contextmanager
def start_firefox() -> Iterator[Firefox]:
    """A Firefox of its own, with a profile of its own."""
    program = install.firefox()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="firefox-", ignore_cleanup_errors=True) as profile:
        command = [program, "--headless", "--no-remote", "--profile", profile]
        process = subprocess.Popen(
            [*command, "--remote-debugging-port", "0"], stderr=subprocess.PIPE, text=True
        )
        try:
            line = websocket.create_connection(
                f"{_told_address(process)}/session", timeout=ANSWER_S, suppress_origin=True
            )
            try:
                yield Firefox(line)
            finally:
                line.close()
        finally:
            process.terminate()
            process.communicate()


def _told_address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
            return found[1]
    raise RuntimeError(f"Firefox did not start:\n{''.join(said)}")


@contextmanager
def start_webkit() -> Iterator[WebKit]:
    """WebKit's small browser on a display of its own."""
    program = install.webkit_driver()
    assert program is not None
    with display() as name:
        environment = {
            **os.environ,
            "DISPLAY": name,
            # WebKit's name for this language is no name of a language.
            "LC_ALL": "C",
            # Safari has it in every isolated page; WebKitGTK has to be asked.
            "JSC_useSharedArrayBuffer": "1",
        }
        port = free_port()
        process = subprocess.Popen([program, f"--port={port}"], env=environment)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for_port(port, process)
            wished = {"binary": install.mini_browser(), "args": ["--automation"]}
            capabilities = {"alwaysMatch": {"webkitgtk:browserOptions": wished}}
            opened = ask_webdriver(f"{address}/session", {"capabilities": capabilities})
            session = f"{address}/session/{opened['sessionId']}"
            try:
                yield WebKit(session)
            finally:
                ask_webdriver(session, method="DELETE")
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process takes connections."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), ANSWER_S).close()
            return
        except ConnectionRefusedError:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args} ended at once") from None
            time.sleep(0.05)


@contextmanager
def display() -> Iterator[str]:
    """A display that nobody sees; its name."""
    reading, writing = os.pipe()
    command = [install.DISPLAY_SERVER, "-displayfd", str(writing), "-screen", "0", "1600x1200x24"]
    with open(reading) as told:
        process = subprocess.Popen(
            [*command, "-nolisten", "tcp"], pass_fds=[writing], stderr=subprocess.DEVNULL
        )
        os.close(writing)
        try:
            yield f":{told.readline().strip()}"
        finally:
            process.terminate()
            process.wait()


START = {"firefox": start_firefox, "webkit": start_webkit}
