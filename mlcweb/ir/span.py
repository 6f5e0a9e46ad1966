"""Where a piece of IR came from in the source text."""

from __future__ import annotations

import linecache
from dataclasses import dataclass

MAX_LINES = 8
"""Of a range, what is shown of it at most."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text. Lines count from 1, columns from 0, as in Python's `ast`."""

    filename: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column + 1}"

    def render(self) -> str:
        """The source lines with carets under the range, of a statement with a body those of its
        header; the location alone where there is no text."""
        rendered = [f"  --> {self}"]
        texts = linecache.getlines(self.filename)[self.line - 1 : self.end_line]
        for number, text in enumerate(map(str.rstrip, texts), self.line):
            if number == self.line + MAX_LINES:
                rendered.append("      | …")
                break
            start = self.column if number == self.line else len(text) - len(text.lstrip())
            end = self.end_column if number == self.end_line else len(text)
            rendered.append(f"{number:>5} | {text}")
            if text:
                rendered.append(f"      | {' ' * start}{'^' * max(1, end - start)}")
            if text.endswith(":"):
                break
        return "\n".join(rendered)
