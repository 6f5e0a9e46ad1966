"""The printer: IR → TVMScript, deterministic, and read back by the parser as the same program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

from mlcweb.ir import printing
from mlcweb.ir.dialect import dialect_of
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.ir.node import Node
from mlcweb.script.printer import options
from mlcweb.script.printer.expressions import (
    ends, expression, is_expression, iteration_variable, pointer_text, reducer, region,
)  # fmt: skip
from mlcweb.script.printer.functions import (
    function_printers, module, node_printers, standalone,
)  # fmt: skip
from mlcweb.script.printer.names import marked_parts
from mlcweb.script.printer.undeclared import declare_for_statement
from mlcweb.script.printer.writer import Writer, Place
from mlcweb.script.printer.statements import is_statement, matched_region, statement
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from mlcweb.tir.expr import PointerType
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.reduction import CommReducer
from mlcweb.tir.stmt import AttrStmt, Block, Evaluate, IterVar, Stmt

__all__ = [
    "Place",
    "Writer",
    "function_printers",
    "node_printers",
    "render_with_marks",
    "script",
    "script_with_lines",
]


Span = tuple[int, int, int]
"""A line, counted from 1, and the columns, from 0, where a part of it starts and ends."""


def script(
    value: Any,
    underline: Iterable[Node] = (),
    *,
    dialect: str = "tir",
    show_meta: bool = False,
    name: str | None = None,
    obj_to_underline: Iterable[Node] | None = None,
    declares: bool = False,
    **style: Any,
) -> str:
    """TVMScript of a module, function, statement, expression, buffer or region.

    Nodes in `underline` are marked by carets below their first line, those in `obj_to_underline`
    below all of their lines, or below the parts of lines that they are.
    `dialect` is one of the spellings of `mlcweb.ir.dialect`. `show_meta` writes large constants
    before the program instead of a note after it. `name` is that of a function. With `declares` a
    statement alone follows what it uses and does not define. `style` has the
    other options of TVM's `script()`: `syntax_sugar=False` writes nested loops for grids, and the
    root block; `int_dtype` and `float_dtype` are the types of constants that are written plainly,
    `verbose_expr` declares the variables of an expression, `show_object_address` adds to each name
    the address of what it names, `obj_to_annotate` has comments by node,
    and `print_line_numbers` numbers the lines. `path_to_underline` and `path_to_annotate` name
    parts by the paths to them from `value`; a comment on a part of a line is on the whole line.
    """
    options.check(style)
    if not is_statement(value):
        declares = style.get("verbose_expr", False)

    def printed(marked: Collection[int] = ()) -> Writer:
        writer = Writer(dialect_of(dialect))
        writer.function_name = name
        writer.sugar = style.get("syntax_sugar", True)
        writer.names.int_dtype = style.get("int_dtype", "int32")
        writer.names.float_dtype = style.get("float_dtype")
        writer.names.shows_addresses = style.get("show_object_address", False)
        writer.names.marked = marked
        return _print(value, writer, declares)

    writer = printed()
    by_path = {
        nearest: comment
        for path, comment in (style.get("path_to_annotate") or {}).items()
        if (nearest := _last_printed(writer, path.values(value))) is not None
    }
    if comments := {**(style.get("obj_to_annotate") or {}), **by_path}:
        _annotate(writer, comments)
    objects = tuple(obj_to_underline or ())
    ways = [list(path.values(value)) for path in style.get("path_to_underline") or ()]
    if underline or objects or ways:
        sought = {*map(id, objects), *map(id, chain(*ways))}
        parts = _parts_of_lines(printed(sought)) if sought else {}
        nearest = [_last_printed(writer, way, parts) for way in ways]
        whole = (*objects, *(node for node in nearest if node is not None))
        text = _with_marks(writer, underline, whole, parts)
    else:
        text = options.styled(writer.text(), style)
    if not writer.metadata:
        return text
    from mlcweb.script.metadata import NOTE, metadata_text

    return f"{metadata_text(writer.metadata)}\n\n{text}" if show_meta else f"{text}\n\n{NOTE}"


def script_with_lines(value: Any) -> tuple[str, dict[Node, tuple[int, int]]]:
    """The text, and for each statement, block and buffer its first and last line, counted from
    1."""
    writer = _print(value, Writer())
    return writer.text(), {
        thing: (place.line, place.end_line) for thing, place in writer.places.items()
    }


def render_with_marks(value: Any, nodes: Iterable[Node]) -> str:
    """The text with a line of carets below the first line of each of `nodes`."""
    return _with_marks(_print(value, Writer()), tuple(nodes))


def _print(value: Any, writer: Writer, declares: bool = False) -> Writer:
    if "mlcweb.relax.expr" in sys.modules:
        # Enters the printers of the graph level; before it is loaded, there is nothing to print.
        from mlcweb.script.printer import relax as _
    with nesting_limit("printed"):
        _write(writer, value, declares)
    return writer


def _write(writer: Writer, value: Any, declares: bool) -> None:
    if isinstance(value, IRModule):
        module(writer, value)
    elif type(value) in node_printers:
        node_printers[type(value)](writer, value)
    elif isinstance(value, BaseFunc):
        standalone(writer, value)
    elif is_statement(value):
        statement(writer, value)
        if declares and writer.names.has_undefined:
            _declared(writer, lambda: statement(writer, value), PrimFunc((), value))
    else:
        _write_small(writer, value, declares)
        whole = _statement_around(value) if declares and writer.names.has_undefined else None
        if whole is not None:
            again = PrimFunc((), whole)
            _declared(writer, lambda: _write_small(writer, value, declares), again)


def _declared(writer: Writer, write: Callable[[], None], whole: PrimFunc) -> None:
    """Write once more what stands alone, after what it uses and does not define."""
    writer.rewind(0)
    writer.names.forget()
    declare_for_statement(writer, whole)
    write()


def _statement_around(value: Any) -> Stmt | None:
    """A statement that uses what this uses."""
    if is_expression(value):
        return Evaluate(value)
    if isinstance(value, IterVar):
        return Evaluate(value.var)
    if isinstance(value, Buffer):
        return AttrStmt(value, "", const(0), Evaluate(const(0)))
    matches = (value,) if isinstance(value, MatchBufferRegion) else ()
    reads = (value,) if isinstance(value, BufferRegion) else ()
    if matches or reads:
        return Block((), reads, (), "", Evaluate(const(0)), match_buffers=matches)
    return None


def _write_small(writer: Writer, value: Any, declares: bool) -> None:
    """Write what is less than a statement, on a line of its own; what an expression binds is only
    declared before it where that is asked for, as it is no program."""
    if isinstance(value, MatchBufferRegion):
        matched_region(writer, value)
        return
    text = _small(writer, value)
    if not declares:
        writer.names.declarations.clear()
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
        return f"I.Range({ends(names, value)})"
    if isinstance(value, IterVar):
        return iteration_variable(names, value)
    if isinstance(value, PointerType):
        return pointer_text(value)
    if isinstance(value, CommReducer):
        return reducer(names, value)
    return repr(value)


def _last_printed(writer: Writer, way: Iterable[Any], parts: Container[int] = ()) -> Any:
    """The last object on the way along a path that is printed, on lines of its own or as one of
    `parts` of lines; None where none is."""
    nodes = [part for part in way if isinstance(part, (Node, IRModule))]
    return next((n for n in reversed(nodes) if id(n) in parts or n in writer.places), None)


def _parts_of_lines(writer: Writer) -> dict[int, list[Span]]:
    """Where each marked part of a line is written, by its `id`."""
    parts: dict[int, list[Span]] = {}
    for number, line in enumerate(writer.lines, start=1):
        for part, start, end in marked_parts(line):
            parts.setdefault(part, []).append((number, start, end))
    return parts


def _annotate(writer: Writer, comments: Mapping[Node, str]) -> None:
    """Write comments behind what is on one line, and above what is on several."""
    for node, comment in comments.items():
        place = writer.places.get(node)
        if place is None:
            continue
        line = writer.lines[place.line - 1]
        if place.line == place.end_line:
            writer.lines[place.line - 1] = f"{line}  # {comment}"
        else:
            indent = line[: len(line) - len(line.lstrip())]
            writer.lines[place.line - 1] = f"{indent}# {comment}\n{line}"


def _with_marks(
    writer: Writer,
    nodes: Iterable[Node] = (),
    whole_nodes: Iterable[Node] = (),
    parts: Mapping[int, Sequence[Span]] = MappingProxyType({}),
) -> str:
    """The text with carets below the first line of `nodes`, and below all lines of `whole_nodes`,
    or where they are `parts` of lines."""
    spans: list[Span] = []
    for node in (*nodes, *whole_nodes):
        if place := writer.places.get(node):
            spans.append((place.line, place.column, place.end_column))
    for node in whole_nodes:
        spans += parts.get(id(node), ())
        if place := writer.places.get(node):
            spans += _other_lines(writer, place)
    marks: dict[int, list[tuple[int, int]]] = {}
    for number, start, end in spans:
        marks.setdefault(number, []).append((start, end))
    lines = []
    for number, line in enumerate(writer.lines, start=1):
        lines.append(line)
        if number in marks:
            lines.append(_carets(marks[number]))
    return "\n".join(lines)


def _other_lines(writer: Writer, place: Place) -> Iterator[Span]:
    """The lines of a place after its first one, and the decorators before it."""
    first = place.line
    while first > 1 and writer.lines[first - 2].lstrip().startswith("@"):
        first -= 1
    for number in range(first, place.end_line + 1):
        line = writer.lines[number - 1].rpartition("\n")[2]  # a comment may be above it
        if number != place.line and line:
            yield number, len(line) - len(line.lstrip()), len(line)


def _carets(columns: list[tuple[int, int]]) -> str:
    line = [" "] * max(end for _, end in columns)
    for start, end in columns:
        line[start:end] = "^" * (end - start)
    return "".join(line)


printing.register_printer(script)
