"""Edits that would mend an error, where one is obvious: a misspelled name, a missing import."""

from __future__ import annotations

import builtins
import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

IMPORTS = {
    "np": "import numpy as np",
    "tvm": "import tvm",
    "mlcweb": "import mlcweb",
    "T": "from tvm.script import tir as T",
    "R": "from tvm.script import relax as R",
    "I": "from tvm.script import ir as I",
    "te": "from tvm import te",
    "tir": "from tvm import tir",
    "relax": "from tvm import relax",
    "topi": "from tvm import topi",
    "ms": "from tvm import meta_schedule as ms",
}
"""What names stand for in all courses."""


MIN_LIKENESS = 0.7
"""How alike to an undefined name one is that it may be a misspelling of: more often it is of a cell
that has not run, and `sch` is not `chr`."""


@dataclass(slots=True)
class TextRange:
    """A range of a program's text: lines from 1, columns from 0, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(slots=True)
class Fix(TextRange):
    """An edit that would mend an error: `text` in the place of a range."""

    title: str
    text: str


_NAMED = re.compile(r"\"([^\"\s]+)\"|'([^'\s]+)'|with the name: ([\w.]+)")
_MEANT = re.compile(r"did you mean:? (.+?)\?", re.IGNORECASE)


def suggest(
    error: BaseException,
    message: str,
    place: tuple[int, int, int, int],
    lines: Sequence[str],
    known: Iterable[str] = (),
) -> Fix | None:
    """The edit that would mend an error, None where there is no obvious one; its range is in
    characters, as in `place`.

    Args:
        error: the exception.
        message: what the reader is told about it.
        place: line, column, end line and end column of what is at fault; lines from 1, columns in
            characters from 0.
        lines: the program's lines.
        known: names that the program has.
    """
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        if error.name in IMPORTS:
            return _import(IMPORTS[error.name], lines)
        names = [*known, *dir(builtins)]
        return _replacement(error.name, names, place, lines, MIN_LIKENESS)
    if isinstance(error, AttributeError) and error.name:
        names = [name for name in dir(error.obj) if not name.startswith("_")]
        return _replacement(error.name, names, place, lines)
    undefined = re.match(r'"(\w+)" is not defined', message)
    if undefined and undefined[1] in IMPORTS and not _MEANT.search(message):
        return _import(IMPORTS[undefined[1]], lines)
    if missing := re.search(r"has no (\w+); ", message):
        return _replacement(missing[1], _meant(message), place, lines)
    named = ["".join(forms) for forms in _NAMED.findall(message)]
    if not named:
        return None
    return _replacement(named[0], _meant(message) or named[1:], place, lines)


def _meant(message: str) -> list[str]:
    return [name for text in _MEANT.findall(message) for name in re.findall(r"[\w.]+", text)]


def _replacement(
    wrong: str | None,
    candidates: Iterable[str],
    place: tuple[int, int, int, int],
    lines: Sequence[str],
    min_likeness: float = 0.6,
) -> Fix | None:
    """`wrong`, where it stands in the place at fault, replaced by what it looks most like."""
    others = [name for name in candidates if name != wrong]
    closest = difflib.get_close_matches(wrong or "", others, n=1, cutoff=min_likeness)
    if not wrong or not closest:
        return None
    line, column, end_line, end_column = place
    for number in range(line, min(end_line, len(lines)) + 1):
        text = lines[number - 1]
        start = column if number == line else 0
        end = end_column if number == end_line else len(text)
        match = re.compile(rf"(?<!\w){re.escape(wrong)}(?!\w)").search(text, start, end)
        if match:
            title = f"Change {wrong} to {closest[0]}"
            return Fix(number, match.start(), number, match.end(), title, closest[0])
    return None


def _import(statement: str, lines: Sequence[str]) -> Fix:
    """The statement as a line before the first import, or before the first statement."""
    imports = [n for n, text in enumerate(lines, 1) if re.match(r"(import|from)\s", text)]
    code = [n for n, text in enumerate(lines, 1) if text.strip() and not text.startswith("#")]
    line = next(iter(imports or code), 1)
    return Fix(line, 0, line, 0, f"Add {statement}", f"{statement}\n")
