"""Python's memory as one visit keeps it for later ones, laid into new contexts of the browser.

A cold start takes several times as long. Nothing else of the earlier visit is taken along.
"""

from __future__ import annotations

import base64
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import BrowserContext, Page

from mlcweb.server import Answer, PageServer

IS_THERE = """async () => {
    const cache = await caches.open("mlcweb-start");
    return (await cache.keys()).length > 0;
}"""

READ = """async () => {
    const cache = await caches.open("mlcweb-start");
    const [request] = await cache.keys();
    const memory = await (await cache.match(request)).blob();
    const reader = new FileReader();
    await new Promise((done) => { reader.onload = done; reader.readAsDataURL(memory); });
    return [new URL(request.url).pathname, reader.result.split(",")[1]];
}"""

LAY = """async (key) => {
    await (await caches.open("mlcweb-start")).put(key, await fetch(key));
}"""


class KeptMemory(NamedTuple):
    """Where the page looks for it, and the file that it is in."""

    key: str
    file: Path


class VisitedServer(PageServer):
    """Serves the page, and besides it the memory that was kept."""

    kept: KeptMemory | None = None

    def answer(self, target: str, accepted: str = "", known: str = "") -> Answer:
        if self.kept is None or target != self.kept.key:
            return super().answer(target, accepted, known)
        length = str(self.kept.file.stat().st_size)
        return Answer(HTTPStatus.OK, {"Content-Length": length}, self.kept.file)


def read(page: Page, file: Path, timeout_ms: float) -> KeptMemory:
    """Writes the memory that a page has kept, or is about to keep, into a file."""
    page.wait_for_function(IS_THERE, timeout=timeout_ms)
    key, content = page.evaluate(READ)
    file.write_bytes(base64.b64decode(content))
    return KeptMemory(key, file)


def lay(context: BrowserContext, address: str, kept: KeptMemory) -> None:
    """Has a context that is new begin with the memory, as the server at `address` sends it."""
    page = context.new_page()
    page.goto(f"{address}icon.svg")
    page.evaluate(LAY, kept.key)
    page.close()
