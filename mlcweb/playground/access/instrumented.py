"""The interpreter's text of a function, with a note of every access written into its subscripts.

`A[i, j]` becomes `A[see(7, A, point, (i, j))]`: the number of the subscript, the array, the
iterations of the loops around as one number, and the indices, which `see` hands on. So accesses are
recorded in the order of Python's evaluation, the program's: values are read before a result is
written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mlcweb.codegen.interpreter.expressions import ExpressionText
from mlcweb.codegen.interpreter.source import PythonSource
from mlcweb.ir import Span
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import on
from mlcweb.playground.source_lines import line_of
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer

MAX_POINTS = 2**53
"""Points stay below it, so that JavaScript's numbers hold them. Loops that are too many, or whose
extents are not known, are left out, the outermost first."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around an access: at most `extent` values from `low` on."""

    name: str
    low: int
    extent: int
    kind: S.ForKind


@dataclass(frozen=True, slots=True)
class Subscript:
    """An access in the text: the buffer that owns the memory, `text` such as "A[vi, vk]", the line
    that it stands in, and the loops around, outermost first."""

    owner: Buffer
    write: bool
    text: str
    line: int
    loops: tuple[Loop, ...]


class InstrumentedSource(PythonSource):
    """Writes functions that call ``see`` and ``see_view``; `subscripts` are what these get the
    numbers of. ``see_view`` is for buffers laid over the memory of another, which comes as its
    third argument."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        super().__init__(namespace)
        self.expressions: _InstrumentedText = _InstrumentedText((*namespace, "see", "see_view"))

    @property
    def subscripts(self) -> list[Subscript]:
        return self.expressions.subscripts

    def visit(self, node: Node) -> None:
        with self.expressions.at_line_of(node):
            super().visit(node)

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        self.expressions.loops.append(loop)
        super().loop(loop)
        self.expressions.loops.pop()


class _InstrumentedText(ExpressionText):
    def __init__(self, reserved: Iterable[str]) -> None:
        super().__init__(reserved)
        self.subscripts: list[Subscript] = []
        self.loops: list[S.For] = []
        self.line = 0

    @contextmanager
    def at_line_of(self, node: Node) -> Iterator[None]:
        outer = self.line
        self.line = line_of(node) or outer
        yield
        self.line = outer

    def access(
        self, action: str, buffer: Buffer, indices: tuple[E.PrimExpr, ...], span: Span | None
    ) -> str:
        name, owner = self.names[buffer], self.owners.get(buffer.data, buffer)
        texts = ", ".join(self.text(index) for index in indices)
        if self.ranges.in_bounds(buffer, indices):
            index = f"({texts},)" if texts else "()"
        else:
            index = f"at({self.new_site(action, buffer, span)}, {name}, {texts})"
        around = self.countable_loops()
        number = len(self.subscripts)
        shown = f"{buffer.name}[{', '.join(map(str, indices)) or '()'}]"
        loops = tuple(loop for loop, _ in around)
        self.subscripts.append(Subscript(owner, action == "Writing", shown, self.line, loops))
        point = self.point(around)
        if owner is buffer:
            return f"{name}[see({number}, {name}, {point}, {index})]"
        return f"{name}[see_view({number}, {name}, {self.names[owner]}, {point}, {index})]"

    def countable_loops(self) -> list[tuple[Loop, E.Var]]:
        """The loops around, as far as their iterations can be counted."""
        counted: list[tuple[Loop, E.Var]] = []
        points = 1
        for loop in reversed(self.loops):
            var = loop.loop_var
            low, high = map(int, self.ranges.interval(var))
            points *= high - low + 1
            if points > MAX_POINTS:
                break
            counted.append((Loop(var.name, low, high - low + 1, loop.kind), var))
        return counted[::-1]

    def point(self, loops: list[tuple[Loop, E.Var]]) -> str:
        text = "0"
        for loop, var in loops:
            iteration = f"{self.names[var]} - {loop.low}" if loop.low else self.names[var]
            text = iteration if text == "0" else f"({text}) * {loop.extent} + {iteration}"
        return text
