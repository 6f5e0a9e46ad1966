"""The built playground, opened for a benchmark."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browser.engines import serve
from benchmarks.engine import NotForThis
from e2e.playground import Playground


def open_built_page(chromium: Browser, stack: ExitStack, built: Path) -> Playground:
    """The page of the folder `built`, ready; it is served until the stack is closed.

    Raises:
        NotForThis: there is no built page.
    """
    if not (built / "index.html").is_file():
        raise NotForThis(f"no built page in {built}: `npm run build` in web/ makes it")
    page = chromium.new_page()
    playground = Playground(page)
    page.goto(serve(stack, built))
    playground.expect_state("ready")
    return playground
