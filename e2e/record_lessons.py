"""Records what the cells of the lessons print, for readers who have not run them yet.

    python -m e2e.record_lessons [LESSON ...]

Runs the lessons of the built page in headless Chromium and writes `web/lessons/outputs/*.json`; the
page has to be built again afterwards. A lesson whose cells do not all run through is an error.
"""

from __future__ import annotations

import json
import sys
import threading
from datetime import date

from playwright.sync_api import Browser, sync_playwright

from e2e import chromium
from e2e.conftest import DIST
from e2e.lesson_page import LessonPage
from e2e.playground import Playground
from mlcweb.server import PageServer
from web.scripts.lesson_source import OUTPUTS, Lesson, lessons


def main(names: list[str]) -> int:
    """Records the lessons of these names, or all."""
    wanted = [lesson for lesson in lessons() if not names or lesson.id in names]
    with PageServer(DIST, isolated=True) as server, sync_playwright() as playwright:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.FLAGS)
        try:
            failed = [lesson.id for lesson in wanted if not record(lesson, browser, server.url)]
        finally:
            browser.close()
            server.shutdown()
            thread.join()
    return 1 if failed else 0


def record(lesson: Lesson, browser: Browser, address: str) -> bool:
    """Records a lesson in a fresh page; False where a cell fails."""
    page = browser.new_page()
    page.goto(address)
    Playground(page).expect_state("ready")
    lesson_page = LessonPage(page)
    lesson_page.open(lesson.id)
    lesson_page.run_all()
    outputs = lesson_page.outputs()
    for output in outputs:
        if output["state"] != "done":
            shown = lesson_page.cell(output["number"]).get_by_test_id("lesson-output").inner_text()
            print(f"{lesson.id}: cell {output['number']} failed: {shown}", file=sys.stderr)
            page.close()
            return False
    page.close()
    content = {
        "date": date.today().isoformat(),
        "browser": f"Chromium {browser.version.split('.')[0]}",
        "cells": {
            str(cell.number): {
                "digest": cell.digest,
                "text": output["text"],
                "modules": output["modules"],
            }
            for cell, output in zip(lesson.cells, outputs, strict=True)
        },
    }
    OUTPUTS.mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (OUTPUTS / f"{lesson.id}.json").write_text(text + "\n", "utf8")
    print(f"{lesson.id}: {len(lesson.cells)} cells")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
