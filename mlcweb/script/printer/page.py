"""The page that a printer writes on: lines, indentation, and where each node was printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mlcweb.ir.node import Node
from mlcweb.script.printer.names import Names
from mlcweb.tir.stmt import For


class Place(NamedTuple):
    """Where a node stands: lines from 1 to `end_line` (included); columns, from 0, of the part of
    the first line that names it."""

    line: int
    end_line: int
    column: int
    end_column: int


class Page:
    """Lines being written, with the names and the enclosing loops that are known at this point."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: dict[int, Place] = {}
        self.names = Names()
        self.loops: dict[int, For] = {}
        self._indent = ""

    def write(self, text: str) -> None:
        self.lines.append(self._indent + text if text else "")

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines inside stand deeper, and names defined inside end with it."""
        self._indent += "    "
        with self.names.scope():
            yield
        self._indent = self._indent[:-4]

    @contextmanager
    def placing(self, *things: Node) -> Iterator[None]:
        """The lines written inside are the place of these nodes."""
        first = len(self.lines)
        yield
        if len(self.lines) > first:
            column, end = len(self._indent), len(self.lines[first])
            for thing in things:
                place = Place(first + 1, len(self.lines), column, end)
                self.places.setdefault(id(thing), place)

    def place_part(self, thing: Node, line: int, column: int, length: int) -> None:
        """Place a node at a part of `line` (counted from 0), ending with the page as it is now."""
        column += len(self._indent)
        self.places[id(thing)] = Place(line + 1, len(self.lines), column, column + length)

    def text(self) -> str:
        return "\n".join(self.lines)
