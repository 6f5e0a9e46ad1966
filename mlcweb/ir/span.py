"""Where a piece of IR came from in the source text."""

from __future__ import annotations

import linecache
from dataclasses import dataclass


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
        """The source line with carets under the range; the place alone where there is no text."""
        text = linecache.getline(self.filename, self.line).rstrip("\n")
        place = f"  {self.filename}, line {self.line}"
        if not text:
            return place
        end = self.end_column if self.end_line == self.line else len(text)
        carets = " " * self.column + "^" * max(1, end - self.column)
        gutter = f"{self.line:>5} | "
        return f"{place}\n{gutter}{text}\n{' ' * (len(gutter) - 2)}| {carets}"
