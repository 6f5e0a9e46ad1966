"""A lesson in the page: opening it, running its cells, reading what they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page, expect

from e2e.playground import replace_text

_OUTPUTS = """() => [...document.querySelectorAll('[data-testid="lesson-cell"]')].map((cell) => {
    let text = "";
    const modules = [];
    for (const part of cell.querySelector('[data-testid="lesson-output"]').children) {
        if (part.matches("pre.out-stdout")) text += part.textContent;
        if (!part.matches("details.shown-module")) continue;
        const title = part.dataset.title;
        text += `→ TensorIR: ${title}\\n`;
        modules.push({ title, source: part.querySelector("code").textContent });
    }
    return { number: Number(cell.dataset.number), state: cell.dataset.state, text, modules };
})"""


@dataclass(frozen=True)
class LessonPage:
    """The page, with a lesson open in it."""

    page: Page

    def open(self, lesson: str) -> None:
        """Opens a lesson by the page's address, as a link does."""
        self.page.evaluate("id => { location.hash = `lesson=${id}` }", lesson)
        expect(self.page.locator("#pane-lesson")).to_have_attribute("data-lesson", lesson)
        expect(self.cells.first).to_be_visible()

    @property
    def cells(self) -> Locator:
        return self.page.get_by_test_id("lesson-cell")

    def cell(self, number: int) -> Locator:
        """The cell with this number, from 1."""
        return self.cells.nth(number - 1)

    def run_all(self) -> None:
        """Runs every cell in a fresh namespace and waits for the last, or the first that fails."""
        self.page.get_by_test_id("lesson-run-all").click()
        # Those above are done when the last one is.
        ended = self.page.locator(
            '[data-testid="lesson-cell"]:is(:nth-last-child(1 of [data-testid="lesson-cell"])'
            '[data-state="done"], [data-state="failed"])'
        )
        expect(ended.first).to_be_attached()

    def outputs(self) -> list[dict[str, Any]]:
        """Of each cell ``number``, ``state``, what it printed (``text``) and the ``modules``."""
        return self.page.evaluate(_OUTPUTS)

    def write(self, number: int, code: str) -> None:
        """Replaces the text of a cell."""
        cell = self.cell(number)
        cell.locator(".cell-code").click()
        replace_text(cell.locator(".cm-content"), code)

    def run(self, number: int, *, state: str = "done") -> None:
        """Runs a cell and waits until it is in `state`."""
        self.cell(number).get_by_test_id("cell-run").click()
        expect(self.cell(number)).to_have_attribute("data-state", state)

    def check(self, number: int, *, state: str) -> str:
        """Runs and checks an exercise; the checker's message."""
        self.cell(number).get_by_test_id("cell-check").click()
        verdict = self.cell(number).get_by_test_id("lesson-check")
        expect(verdict).to_have_attribute("data-state", state)
        return verdict.inner_text()

    def take_solution(self, number: int) -> None:
        """Puts the solution that follows a cell into it."""
        cell = self.cell(number)
        solution = cell.locator("xpath=following-sibling::*[@data-testid='lesson-solution'][1]")
        solution.locator("summary").click()
        solution.get_by_role("button", name="Use this solution").click()
