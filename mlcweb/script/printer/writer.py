"""What a printer writes with: lines, indentation, and where each node was printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mlcweb.ir.dialect import TIR, Dialect
from mlcweb.ir.node import Node
from mlcweb.script.printer.names import Names
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import For


class Place(NamedTuple):
    """Where a node stands: lines from 1 to `end_line` (included); columns, from 0, of the part of
    the first line that names it."""

    line: int
    end_line: int
    column: int
    end_column: int


class Writer:
    """Lines being written, with the names and the enclosing loops that are known at this point."""

    def __init__(self, dialect: Dialect = TIR) -> None:
        self.dialect = dialect
        self.lines: list[str] = []
        self.places: dict[Node, Place] = {}
        self.names = Names(dialect)
        self.loops: dict[Node | None, For] = {}
        self.undeclared: dict[Buffer, set[Var]] = {}
        """Buffers that nothing in the function defines, to be declared after these variables."""
        self.in_module = False
        self.sugar = True
        """Whether grids, `T.axis.remap` and the root block are written in their short forms."""
        self.function_name: str | None = None
        """What a function that stands alone is called, if not by its global symbol."""
        self.module_name = "Module"
        self.quotes_extents = False
        """Whether symbolic extents are written as strings: in the head of a function."""
        self.metadata: dict[str, list[Any]] = {}
        self._indent = ""

    def write(self, text: str) -> None:
        """Add a line, after the declarations that it needs."""
        while self.names.declarations:
            self.lines.append(self._indent + self.names.declarations.pop(0))
        self.lines.append(self._indent + text if text else "")

    def open_indent(self) -> None:
        """Lines stand deeper from here on; names live on."""
        self._indent += "    "

    def close_indent(self) -> None:
        self._indent = self._indent[:-4]

    @contextmanager
    def quoting_extents(self) -> Iterator[None]:
        """Symbolic extents inside are written as strings."""
        self.quotes_extents = True
        yield
        self.quotes_extents = False

    def metadata_index(self, kind: str, thing: Any) -> int:
        """The number of a thing that the text only refers to, such as a large constant."""
        things = self.metadata.setdefault(kind, [])
        for index, other in enumerate(things):
            if other is thing:
                return index
        things.append(thing)
        return len(things) - 1

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines inside stand deeper, and names defined inside end with it."""
        self.open_indent()
        with self.names.scope():
            yield
        self.close_indent()

    @contextmanager
    def placing(self, *things: Any) -> Iterator[None]:
        """The lines written inside are the place of these nodes."""
        first = len(self.lines)
        yield
        if len(self.lines) > first:
            column, end = len(self._indent), len(self.lines[first])
            for thing in things:
                place = Place(first + 1, len(self.lines), column, end)
                self.places.setdefault(thing, place)

    def place_part(self, thing: Node, line: int, column: int, length: int) -> None:
        """Place a node at a part of `line` (counted from 0); it ends with what was written last."""
        column += len(self._indent)
        self.places[thing] = Place(line + 1, len(self.lines), column, column + length)

    def rewind(self, length: int) -> None:
        """Forget the lines from `length` (counted from 0) on, and what was placed there."""
        del self.lines[length:]
        self.places = {thing: at for thing, at in self.places.items() if at.line <= length}

    def text(self) -> str:
        return "\n".join(self.lines)
