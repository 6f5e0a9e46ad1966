"""What the page may weigh and how long it may keep the browser busy; as a script, how it stands.

    python -m e2e.budgets

Sizes are of what a first visit fetches, each file as gzip sends it. The blocking of the main
thread is measured from the page's first moment until Python is ready.
"""

from __future__ import annotations

import gzip
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

from e2e import chromium
from e2e.conftest import DIST
from e2e.playground import Playground
from mlcweb.server import PageServer

SHELL_SCRIPTS_KB = 350
"""Scripts that the first view loads, without Python's own."""
DOWNLOAD_MB = 12
"""All that a first visit fetches, with Python and NumPy, and what it keeps for being offline."""
BLOCKING_MS = 200
"""Total time beyond 50 ms of the main thread's long tasks while Python starts."""
MAX_TASK_MS = 100
"""Longest task of the main thread while 200,000 accesses are shown, played and gone through."""
LAYOUT_SHIFT = 0.05
"""Sum of the scores of layout shifts that no input caused, while the page loads and runs."""

OBSERVE = """
window.seen = { tasks: [], shifts: [] };
new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.tasks.push(duration);
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (hadRecentInput) continue;
        seen.shifts.push([value, sources.map(({ node }) => node?.id || node?.className || "?")]);
    }
}).observe({ type: "layout-shift", buffered: true });
"""


@dataclass(frozen=True)
class Budget:
    """A figure and its limit, both in `unit`."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def kept(self) -> bool:
        return self.value <= self.limit


@dataclass(frozen=True)
class Visit:
    """What was seen in a first visit, times in milliseconds since its begin."""

    requests: list[str]
    """Addresses up to the end of the first program's run."""
    first_paint: float
    ready: float
    tasks: list[float]
    """Lengths of the main thread's tasks over 50 ms until Python was ready."""
    shifts: list[tuple[float, list[str]]]
    """Score of each layout shift that no input caused, and which elements moved."""
    problems: list[str]
    """Errors that the browser has reported."""

    @property
    def blocking(self) -> float:
        return sum(task - 50 for task in self.tasks)

    @property
    def layout_shift(self) -> float:
        return sum(score for score, _ in self.shifts)


def visit(page: Page, address: str) -> Visit:
    """Opens the page for the first time, waits for Python, and runs the first program."""
    page.add_init_script(OBSERVE)
    playground = Playground(page)
    page.goto(address)
    playground.expect_state("ready")
    ready: float = page.evaluate("() => performance.now()")
    tasks: list[float] = page.evaluate("() => [...seen.tasks]")
    playground.run_to_end()
    playground.expect_state("ready")
    page.wait_for_selector("html[data-offline=ready]", state="attached")
    seen: dict[str, Any] = page.evaluate(
        """() => ({
            shifts: seen.shifts,
            paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
        })"""
    )
    shifts = [(float(score), nodes) for score, nodes in seen["shifts"]]
    paint = float(seen["paint"])
    return Visit(playground.requests, paint, ready, tasks, shifts, playground.problems)


def gzipped(path: Path) -> int:
    """Bytes of a file as it is sent; archives are compressed already."""
    content = path.read_bytes()
    return len(content) if path.suffix in {".whl", ".zip"} else len(gzip.compress(content, 9))


def files(requests: list[str], root: Path) -> list[Path]:
    """The page's files among the requests, each once."""
    names = sorted({urlsplit(address).path.lstrip("/") or "index.html" for address in requests})
    return [path for path in (root / name for name in names) if path.is_file()]


def sizes(seen: Visit, root: Path) -> list[Budget]:
    """The budgets of a visit that do not depend on the machine's speed."""
    fetched = files(seen.requests, root)
    scripts = [path for path in fetched if path.parent.name == "assets" and path.suffix == ".js"]
    kept = {
        path
        for path in root.rglob("*")
        if path.is_file() and path.suffix not in {".gz", ".br"} and path.name != "embed.js"
    }
    return [
        Budget("scripts of the shell", sum(map(gzipped, scripts)) / 1000, SHELL_SCRIPTS_KB, "kB"),
        Budget("first download", sum(map(gzipped, kept | {*fetched})) / 1e6, DOWNLOAD_MB, "MB"),
        Budget("layout shift", seen.layout_shift, LAYOUT_SHIFT, ""),
    ]


def times(seen: Visit, longest_task: float) -> list[Budget]:
    """The budgets of a visit that do."""
    return [
        Budget("longest task of the accesses", longest_task, MAX_TASK_MS, "ms"),
        Budget("blocking while Python starts", seen.blocking, BLOCKING_MS, "ms"),
        Budget("first paint, of the time until ready", seen.first_paint, seen.ready, "ms"),
    ]


def longest_task(playground: Playground) -> float:
    """Milliseconds of the page's longest task while it shows a long run of accesses; 0 if all tasks
    were below 50."""
    page = playground.page
    playground.open_view("access")
    playground.settle()
    page.evaluate("() => { seen.tasks = [] }")
    playground["access-size"].select_option(label="as it is")
    playground.settle()
    playground["access-speed"].select_option("20000")
    playground["access-start"].click()
    playground["access-play"].click()
    page.wait_for_timeout(1000)
    playground["access-position"].fill("150000")
    playground["access-position"].fill("100")
    return page.evaluate("() => Math.max(0, ...seen.tasks)")


def main() -> int:
    """Prints every budget of one first visit; 1 if one is exceeded."""
    with PageServer(DIST) as server, sync_playwright() as playwright:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.FLAGS)
        try:
            page = browser.new_page()
            seen = visit(page, server.url)
            longest = longest_task(Playground(page))
        finally:
            browser.close()
            server.shutdown()
            thread.join()
    budgets = [*sizes(seen, DIST), *times(seen, longest)]
    for budget in budgets:
        verdict = "kept" if budget.kept else "EXCEEDED"
        print(
            f"{budget.name:38} {budget.value:9.2f} of {budget.limit:8.2f} {budget.unit:3} {verdict}"
        )
    print("longest tasks, ms:", *(f"{task:.0f}" for task in sorted(seen.tasks, reverse=True)[:5]))
    for score, nodes in sorted(seen.shifts, reverse=True)[:5]:
        print(f"moved by {score:.4f}: {', '.join(nodes)}")
    return 0 if all(budget.kept for budget in budgets) else 1


if __name__ == "__main__":
    sys.exit(main())
