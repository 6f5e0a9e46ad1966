"""The snapshot of Python's memory that a visit of the page stores, for the pages of tests.

A start from nothing takes several times as long as one that restores the snapshot. It is made once
in a test run, by the page itself, and copied into each new context of the browser; nothing else of
the visit that made it is copied.
"""

from __future__ import annotations

import base64
import fcntl
import json
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext

from e2e.playground import Playground
from mlcweb.server import Answer, Headers, PageServer

READ = """async () => {
    const cache = await caches.open("mlcweb-start");
    const [request] = await cache.keys();
    const body = await (await cache.match(request)).blob();
    const reader = new FileReader();
    await new Promise((done) => { reader.onload = done; reader.readAsDataURL(body); });
    return [new URL(request.url).pathname, reader.result.split(",")[1]];
}"""

STORE = """async (path) => {
    await (await caches.open("mlcweb-start")).put(path, await fetch(path));
}"""


class Snapshot(NamedTuple):
    """A file, and the path under which the page's cache has it.

    The path names the builds of Pyodide and mlcweb, so a page of another build never finds it.
    """

    path: str
    file: Path


class SnapshotServer(PageServer):
    """Serves the page, and the snapshot under its path."""

    snapshot: Snapshot | None = None

    def answer(self, target: str, given: Headers | None = None) -> Answer:
        if self.snapshot is None or target != self.snapshot.path:
            return super().answer(target, given)
        length = str(self.snapshot.file.stat().st_size)
        return Answer(HTTPStatus.OK, {"Content-Length": length}, self.snapshot.file)


def shared(folder: Path, browser: Browser, address: str) -> Snapshot:
    """The snapshot in `folder`; the first process that asks makes it, the others wait."""
    file, name = folder / "snapshot.gz", folder / "snapshot.json"
    with (folder / "snapshot.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not name.exists():
            path, content = _make(browser, address)
            file.write_bytes(content)
            name.write_text(json.dumps(path))
    return Snapshot(json.loads(name.read_text()), file)


def _make(browser: Browser, address: str) -> tuple[str, bytes]:
    """Visits the page until it has stored its snapshot; the path and the content."""
    with browser.new_context(service_workers="block") as context:
        playground = Playground(context.new_page())
        playground.page.goto(address)
        playground.expect_state("ready")
        playground.expect_snapshot()
        path, content = playground.page.evaluate(READ)
        return path, base64.b64decode(content)


def install(context: BrowserContext, address: str, snapshot: Snapshot) -> None:
    """Puts the snapshot into a new context, for pages of the server at `address`."""
    page = context.new_page()
    page.goto(f"{address}icon.svg")
    page.evaluate(STORE, snapshot.path)
    page.close()
