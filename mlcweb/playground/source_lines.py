"""Programs whose statements know at which line of their own text they stand.

Passes hand the spans of statements on to what they make of them. If the spans say where a statement
stands in the printed program, what a pass or a code generator made can be traced back to that line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlcweb.ir.node import Node, replace
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import Mutator, children
from mlcweb.script.printer import script_with_lines
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


@dataclass(frozen=True, slots=True)
class Listing:
    """A printed function.

    `function` is the function with spans that are places in `text`: of each statement its first
    and last line. `origins` has for each line of the text the lines, in the text that the spans
    of the given function spoke of, which it was made from.
    """

    function: PrimFunc
    text: str
    origins: tuple[tuple[int, ...], ...]


def listing(func: PrimFunc) -> Listing:
    """Print a function, and mark its statements with their lines."""
    # A statement that stands at several places becomes several, each with a line of its own.
    single = _Copies().rewrite(func)
    text, places = _without_import(*script_with_lines(single))
    origins: list[tuple[int, ...]] = [()] * (text.count("\n") + 1)
    for statement, line in _origins(single.body, None):
        place = places.get(statement)
        if place is None or line is None or not _has_lines(statement):
            continue
        if line not in origins[place[0] - 1]:
            origins[place[0] - 1] += (line,)
    return Listing(_Marks(places).rewrite(single), text, tuple(origins))


def _without_import(
    text: str, places: dict[Node, tuple[int, int]]
) -> tuple[str, dict[Node, tuple[int, int]]]:
    """Printed text without the lines before the function, and places in the rest."""
    above = text[: text.index("@T.")].count("\n")
    moved = {key: (first - above, last - above) for key, (first, last) in places.items()}
    return text.split("\n", above)[above], moved


def line_of(statement: Node) -> int | None:
    """The line at which a statement stands, where that is known."""
    return statement.span.line if statement.span else None


def _has_lines(node: Any) -> bool:
    """Whether a node is a statement with lines of its own: a sequence has those of its parts."""
    return isinstance(node, S.Stmt) and not isinstance(node, S.SeqStmt)


def _origins(statement: Node, outer: int | None) -> Iterator[tuple[Node, int | None]]:
    """The statements below and itself, with the line that their span, or one around it, says."""
    line = line_of(statement) or outer
    yield statement, line
    for child in children(statement):
        if isinstance(child, S.Stmt):
            yield from _origins(child, line)


class _Copies(Mutator):
    """Makes every occurrence of a statement an object of its own."""

    def rewrite(self, node: Any) -> Any:
        new = super().rewrite(node)
        return replace(new) if new is node and isinstance(node, S.Stmt) else new


class _Marks(Mutator):
    """Gives statements their lines as spans."""

    def __init__(self, places: dict[Node, tuple[int, int]]) -> None:
        self.places = places

    def rewrite(self, node: Any) -> Any:
        new = super().rewrite(node)
        place = self.places.get(node)
        if place is None or not _has_lines(node):
            return new
        fields = {name: getattr(new, name) for name in new.role_of_field}
        return type(new)(**fields, span=Span("", place[0], 0, place[1], 0))
