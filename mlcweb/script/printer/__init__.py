"""The printer: IR → TVMScript, deterministic, and read back by the parser as the same program."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from mlcweb.ir import printing
from mlcweb.ir.dialect import dialect_of
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.ir.node import Node
from mlcweb.script.printer import options
from mlcweb.script.printer.expressions import expression, is_expression, range_index, region
from mlcweb.script.printer.functions import (
    function_printers, module, node_printers, standalone,
)  # fmt: skip
from mlcweb.script.printer.writer import Writer, Place
from mlcweb.script.printer.statements import is_statement, statement
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.stmt import IterVar

__all__ = [
    "Place",
    "Writer",
    "function_printers",
    "node_printers",
    "render_with_marks",
    "script",
    "script_with_lines",
]


def script(
    value: Any,
    underline: Iterable[Node] = (),
    *,
    dialect: str = "tir",
    show_meta: bool = False,
    name: str | None = None,
    obj_to_underline: Iterable[Node] | None = None,
    **style: Any,
) -> str:
    """TVMScript of a module, function, statement, expression, buffer or region.

    Nodes in `underline`, or in `obj_to_underline`, are marked by carets below their first line.
    `dialect` is one of the spellings of `mlcweb.ir.dialect`. `show_meta` writes large constants
    before the program instead of a note after it. `name` is that of a function. `style` has the
    other options of TVM's `script()`.
    """
    options.check(style)
    marked = (*underline, *(obj_to_underline or ()))
    if name is not None and isinstance(value, BaseFunc):
        value = value.with_attr("global_symbol", name)
    writer = _print(value, dialect)
    text = _with_marks(writer, marked) if marked else options.styled(writer.text(), style)
    if not writer.metadata:
        return text
    from mlcweb.script.metadata import NOTE, metadata_text

    return f"{metadata_text(writer.metadata)}\n\n{text}" if show_meta else f"{text}\n\n{NOTE}"


def script_with_lines(value: Any) -> tuple[str, dict[Node, tuple[int, int]]]:
    """The text, and for each statement, block and buffer its first and last line, counted from
    1."""
    writer = _print(value)
    return writer.text(), {
        thing: (place.line, place.end_line) for thing, place in writer.places.items()
    }


def render_with_marks(value: Any, nodes: Iterable[Node]) -> str:
    """The text with a line of carets below the first line of each of `nodes`."""
    return _with_marks(_print(value), tuple(nodes))


def _print(value: Any, dialect: str = "tir") -> Writer:
    if "mlcweb.relax.expr" in sys.modules:
        # Enters the printers of the graph level; before it is loaded, there is nothing to print.
        from mlcweb.script.printer import relax as _
    writer = Writer(dialect_of(dialect))
    with nesting_limit("printed"):
        _write(writer, value)
    return writer


def _write(writer: Writer, value: Any) -> None:
    if isinstance(value, IRModule):
        module(writer, value)
    elif type(value) in node_printers:
        node_printers[type(value)](writer, value)
    elif isinstance(value, BaseFunc):
        standalone(writer, value)
    elif is_statement(value):
        statement(writer, value)
    else:
        text = _small(writer, value)
        writer.names.declarations.clear()  # an expression alone is not a program
        writer.write(text)


def _small(writer: Writer, value: Any) -> str:
    names = writer.names
    if is_expression(value):
        return expression(names, value)
    if isinstance(value, BufferRegion):
        return region(names, value)
    if isinstance(value, Buffer):
        return names.of(value, value.name)
    if isinstance(value, Range):
        return range_index(names, value)
    if isinstance(value, IterVar):
        return names.of(value.var, value.var.name)
    return object.__repr__(value)


def _with_marks(writer: Writer, nodes: tuple[Node, ...]) -> str:
    marks: dict[int, list[Place]] = {}
    for node in nodes:
        place = writer.places.get(node)
        if place is not None:
            marks.setdefault(place.line, []).append(place)
    lines = []
    for number, line in enumerate(writer.lines, start=1):
        lines.append(line)
        if number in marks:
            lines.append(_carets(marks[number]))
    return "\n".join(lines)


def _carets(places: list[Place]) -> str:
    line = [" "] * max(place.end_column for place in places)
    for place in places:
        line[place.column : place.end_column] = "^" * (place.end_column - place.column)
    return "".join(line)


printing.register_printer(script)
printing.register_marking_printer(render_with_marks)
