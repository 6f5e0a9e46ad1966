"""Reads lessons: which pieces of code a Markdown file holds, and what each is for.

A lesson's fences say what they are in the words behind "```python":

- nothing: a cell to run; `varies`: its output differs from run to run; `folded`: shown closed;
- `static`: shown, never run;
- `exercise=NAME`: a cell that the reader completes and the checker NAME judges;
- `solution=NAME`: a solution of it.

A fence of kind "hint NAME" holds Markdown. The page reads the same in `plugins/lesson_markdown.ts`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "lessons"
OUTPUTS = FOLDER / "outputs"

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of code to run. `number` counts the cells of a lesson from 1."""

    number: int
    source: str
    varies: bool
    exercise: str | None

    @property
    def digest(self) -> str:
        """Names the source, so that a recorded output is known to belong to it."""
        return sha256(self.source.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson's code. `solutions` are by the names of their exercises."""

    id: str
    title: str
    text: str
    cells: tuple[Cell, ...]
    solutions: dict[str, str]
    hints: dict[str, int]

    @property
    def exercises(self) -> list[str]:
        return [cell.exercise for cell in self.cells if cell.exercise]


def lessons() -> list[Lesson]:
    """All lessons, in order."""
    return [read(path) for path in sorted(FOLDER.glob("*.md"))]


def read(path: Path) -> Lesson:
    """The lesson in a file."""
    text = path.read_text("utf8")
    title = re.search(r"^title: (.*)$", text, re.MULTILINE)
    if title is None:
        raise ValueError(f"{path.name} has no title")
    cells: list[Cell] = []
    solutions: dict[str, str] = {}
    hints: dict[str, int] = {}
    for kind, words, source in _FENCE.findall(text):
        names = dict(word.partition("=")[::2] for word in words.split())
        if kind == "hint":
            hints[words.strip()] = hints.get(words.strip(), 0) + 1
        elif kind != "python" or "static" in names:
            continue
        elif "solution" in names:
            solutions[names["solution"]] = source
        else:
            cells.append(Cell(len(cells) + 1, source, "varies" in names, names.get("exercise")))
    return Lesson(path.stem, title[1].strip('"'), text, tuple(cells), solutions, hints)
