"""Statements of TensorIR as TVMScript."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from mlcweb.ir.node import Node
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import walk
from mlcweb.script.printer.buffers import buffer_arguments, define_buffer
from mlcweb.script.printer.expressions import (
    dictionary,
    element,
    expression,
    literal,
    region,
    string,
    tuple_text,
    type_text,
)
from mlcweb.script.printer.undeclared import declare_with
from mlcweb.script.printer.writer import Writer
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import MatchBufferRegion
from mlcweb.tir.operators import Family, keys, operator_name

LOOP_CALLS = {
    S.ForKind.SERIAL: "T.serial",
    S.ForKind.PARALLEL: "T.parallel",
    S.ForKind.VECTORIZED: "T.vectorized",
    S.ForKind.UNROLLED: "T.unroll",
    S.ForKind.THREAD_BINDING: "T.thread_binding",
}

AXIS_CALLS = {
    S.IterType.DATA_PARALLEL: "spatial",
    S.IterType.COMM_REDUCE: "reduce",
    S.IterType.ORDERED: "scan",
    S.IterType.OPAQUE: "opaque",
    S.IterType.THREAD_INDEX: "spatial",
}

REMAP_LETTERS = {S.IterType.DATA_PARALLEL: "S", S.IterType.COMM_REDUCE: "R"}


def statement(writer: Writer, stmt: S.Stmt, last: bool = True) -> None:
    """Write a statement. `last` says that nothing follows it in its indented block, so that
    bindings that reach to the end of their block need no indentation of their own."""
    with writer.placing(stmt):
        _PRINTERS[type(stmt)](writer, stmt, last)


def is_statement(value: Node) -> bool:
    return type(value) in _PRINTERS


def _sequence(writer: Writer, stmt: S.SeqStmt, last: bool) -> None:
    for item in stmt.seq[:-1]:
        statement(writer, item, last=False)
    statement(writer, stmt.seq[-1], last)


def _store(writer: Writer, stmt: S.BufferStore, last: bool) -> None:
    target = element(writer.names, stmt.buffer, stmt.indices, is_stored=True)
    writer.write(f"{target} = {expression(writer.names, stmt.value)}")


def _evaluate(writer: Writer, stmt: S.Evaluate, last: bool) -> None:
    text = expression(writer.names, stmt.value)
    call = stmt.value
    bare = isinstance(call, E.Call) and operator_name(call) not in keys(Family.BITWISE)
    writer.write(text if bare and text.endswith(")") else f"T.evaluate({text})")


def _body(writer: Writer, header: str, body: S.Stmt) -> None:
    writer.write(header)
    with writer.indented():
        statement(writer, body)


def _grid(loop: S.For) -> list[S.For]:
    """The perfectly nested plain loops that start at `loop` and do not depend on each other."""
    loops: list[S.For] = []
    inside: set[E.Var] = set()
    current: S.Stmt = loop
    while (
        isinstance(current, S.For)
        and current.kind is S.ForKind.SERIAL
        and not current.annotations
        and arithmetic.is_const_int(current.min, 0)
        and not (inside and _uses(current.extent, inside))
    ):
        loops.append(current)
        inside.add(current.loop_var)
        current = current.body
    return loops


def _uses(value: E.PrimExpr, variables: set[E.Var]) -> bool:
    if isinstance(value, E.IntImm):
        return False
    return any(node in variables for node in walk(value))


def _for(writer: Writer, loop: S.For, last: bool) -> None:
    grid = _grid(loop) if writer.sugar else []
    if len(grid) > 1:
        _for_grid(writer, grid)
        return
    domain = _loop_domain(writer, loop)
    writer.loops[loop.loop_var] = loop
    with writer.names.scope():
        name = writer.names.define(loop.loop_var, loop.loop_var.name)
        line = len(writer.lines)
        _body(writer, f"for {name} in {domain}:", loop.body)
        writer.place_part(loop.loop_var, line, len("for "), len(name))


def _loop_domain(writer: Writer, loop: S.For) -> str:
    names = writer.names
    plain = loop.kind is S.ForKind.SERIAL and not loop.annotations
    call = "range" if plain else LOOP_CALLS[loop.kind]
    if arithmetic.is_const_int(loop.min, 0):
        parts = [expression(names, loop.extent)]
    else:
        stop = arithmetic.add(loop.min, loop.extent)
        parts = [expression(names, loop.min), expression(names, stop)]
    if loop.thread_binding is not None:
        parts.append(f"thread={string(loop.thread_binding.thread_tag)}")
    if loop.annotations:
        parts.append(f"annotations={dictionary(names, loop.annotations)}")
    return f"{call}({', '.join(parts)})"


def _for_grid(writer: Writer, loops: list[S.For]) -> None:
    extents = ", ".join(expression(writer.names, loop.extent) for loop in loops)
    with writer.names.scope():
        texts = []
        for loop in loops:
            writer.loops[loop.loop_var] = loop
            texts.append(writer.names.define(loop.loop_var, loop.loop_var.name))
        line, column = len(writer.lines), len("for ")
        _body(writer, f"for {', '.join(texts)} in T.grid({extents}):", loops[-1].body)
        for loop, text in zip(loops, texts, strict=True):
            writer.place_part(loop, line, column, len(text))
            writer.place_part(loop.loop_var, line, column, len(text))
            column += len(text) + len(", ")


def _while(writer: Writer, stmt: S.While, last: bool) -> None:
    _body(writer, f"while {expression(writer.names, stmt.condition)}:", stmt.body)


def _if(writer: Writer, stmt: S.IfThenElse, last: bool) -> None:
    _body(writer, f"if {expression(writer.names, stmt.condition)}:", stmt.then_case)
    other = stmt.else_case
    while isinstance(other, S.IfThenElse):
        _body(writer, f"elif {expression(writer.names, other.condition)}:", other.then_case)
        other = other.else_case
    if other is not None:
        _body(writer, "else:", other)


def _let(writer: Writer, stmt: S.LetStmt, last: bool) -> None:
    value = expression(writer.names, stmt.value)
    if last:
        name = writer.names.define(stmt.var, stmt.var.name)
        kind = type_text(stmt.var)
        writer.write(f"{name}: {f'T.let[{kind}]' if writer.dialect.marks_lets else kind} = {value}")
        declare_with(writer, stmt.var)
        statement(writer, stmt.body)
        return
    with writer.names.scope():
        name = writer.names.define(stmt.var, stmt.var.name)
        writer.write(f"with T.LetStmt({value}) as {name}:")
        with writer.indented():
            declare_with(writer, stmt.var)
            statement(writer, stmt.body)


def _attribute(writer: Writer, stmt: S.AttrStmt, last: bool) -> None:
    value = expression(writer.names, stmt.value)
    if S.is_launch(stmt):
        var = stmt.node.var
        if writer.names.knows(var):  # T.env_thread has declared it
            axis = writer.names.of(var, var.name)
            _body(writer, f"with T.launch_thread({axis}, {value}):", stmt.body)
            return
        with writer.names.scope():
            name = writer.names.define(var, var.name)
            tag = string(stmt.node.thread_tag)
            _body(writer, f"with T.launch_thread({tag}, {value}) as {name}:", stmt.body)
        return
    if isinstance(stmt.node, E.Var) and not writer.names.knows(stmt.node):
        # A pragma is about the variable of a loop below it, or that of threads, which are declared
        # at the start.
        writer.names.has_undefined = True
        writer.write(writer.names.declaration(stmt.node))
    thing = literal(writer.names, stmt.node)
    _body(writer, f"with T.attr({thing}, {string(stmt.attr_key)}, {value}):", stmt.body)


def _assert(writer: Writer, stmt: S.AssertStmt, last: bool) -> None:
    condition, message = (
        expression(writer.names, stmt.condition),
        literal(writer.names, stmt.message),
    )
    is_plain = stmt.error_kind == "RuntimeError"
    kind = string(stmt.error_kind)
    if last:
        shown = message if is_plain else f"({kind}, [{message}])"
        writer.write(f"assert {condition}, {shown}")
        statement(writer, stmt.body)
    else:
        shown = message if is_plain else f"{message}, error_kind={kind}"
        _body(writer, f"with T.Assert({condition}, {shown}):", stmt.body)


def _allocate(writer: Writer, stmt: S.AllocBuffer | S.DeclBuffer, last: bool) -> None:
    is_view = isinstance(stmt, S.DeclBuffer)
    maker = "T.decl_buffer" if is_view else writer.dialect.of("T.decl_buffer")
    text = f"{maker}({buffer_arguments(writer.names, stmt.buffer, is_view=is_view)})"
    with nullcontext() if last else writer.names.scope():
        name = define_buffer(writer.names, stmt.buffer)
        if last:
            with writer.placing(stmt.buffer):
                writer.write(f"{name} = {text}")
            declare_with(writer, stmt.buffer.data)
            statement(writer, stmt.body)
            return
        writer.write(f"with {text} as {name}:")
        with writer.indented():
            declare_with(writer, stmt.buffer.data)
            statement(writer, stmt.body)


def _realize(writer: Writer, realize: S.BlockRealize, last: bool) -> None:
    with writer.placing(realize.block):
        writer.write(_block_header(writer, realize.block))
        with writer.indented():
            _block_axes(writer, realize.block.iter_vars, realize.iter_values)
            if not arithmetic.is_const_int(realize.predicate, 1):
                with writer.placing(realize.predicate):
                    writer.write(f"T.where({expression(writer.names, realize.predicate)})")
            _block_rest(writer, realize.block)


def _block_header(writer: Writer, block: S.Block, option: str = "") -> str:
    return f"with {writer.dialect.of('T.block')}({string(block.name_hint)}{option}):"


def _block(writer: Writer, block: S.Block, last: bool) -> None:
    writer.write(_block_header(writer, block, ", no_realize=True"))
    with writer.indented():
        _block_axes(writer, block.iter_vars, (None,) * len(block.iter_vars))
        _block_rest(writer, block)


def _block_rest(writer: Writer, block: S.Block) -> None:
    names = writer.names
    allocations = [buffer_arguments(names, buffer) for buffer in block.alloc_buffers]
    writer.write(f"T.reads({', '.join(region(names, part) for part in block.reads)})")
    writer.write(f"T.writes({', '.join(region(names, part) for part in block.writes)})")
    if block.annotations:
        call = writer.dialect.of("T.block_attr")
        writer.write(f"{call}({dictionary(names, block.annotations)})")
    for buffer, text in zip(block.alloc_buffers, allocations, strict=True):
        allocation(writer, buffer, text)
    for match in block.match_buffers:
        matched_region(writer, match)
    if block.init is not None:
        _body(writer, "with T.init():", block.init)
    statement(writer, block.body)


def matched_region(writer: Writer, match: MatchBufferRegion) -> None:
    """Write the line that lays a buffer over a region."""
    names = writer.names
    text = f"{region(names, match.source)}, {buffer_arguments(names, match.buffer)}"
    with writer.placing(match, match.buffer):
        writer.write(f"{define_buffer(names, match.buffer)} = T.match_buffer({text})")


def allocation(writer: Writer, buffer: Any, text: str | None = None) -> None:
    """Write the line that allocates a buffer in a block."""
    text = buffer_arguments(writer.names, buffer) if text is None else text
    call = writer.dialect.of("T.alloc_buffer")
    with writer.placing(buffer):
        writer.write(f"{define_buffer(writer.names, buffer)} = {call}({text})")
    declare_with(writer, buffer.data)


def _block_axes(writer: Writer, axes: Any, values: Any) -> None:
    run: list[tuple[S.IterVar, E.PrimExpr]] = []
    for axis, value in zip(axes, values, strict=True):
        if _is_plain_remap(writer, axis, value):
            run.append((axis, value))
            continue
        _remap(writer, run)
        run = []
        _axis(writer, axis, value)
    _remap(writer, run)


def _is_plain_remap(writer: Writer, axis: S.IterVar, value: E.PrimExpr | None) -> bool:
    loop = writer.loops.get(value) if writer.sugar else None
    if loop is None or axis.dom is None or axis.iter_type not in REMAP_LETTERS:
        return False
    return _same(axis.dom.min, loop.min) and _same(axis.dom.extent, loop.extent)


def _same(a: E.PrimExpr, b: E.PrimExpr) -> bool:
    if isinstance(a, E.IntImm) and isinstance(b, E.IntImm):
        return a.value == b.value and a.dtype == b.dtype
    return a is b or structural_equal(a, b)


def _remap(writer: Writer, run: list[tuple[S.IterVar, E.PrimExpr]]) -> None:
    if len(run) < 2:
        for axis, value in run:
            _axis(writer, axis, value)
        return
    kinds = "".join(REMAP_LETTERS[axis.iter_type] for axis, _ in run)
    loops = ", ".join(expression(writer.names, value) for _, value in run)
    texts = [writer.names.define(axis.var, axis.var.name) for axis, _ in run]
    line, column = len(writer.lines), 0
    writer.write(f'{", ".join(texts)} = T.axis.remap("{kinds}", [{loops}])')
    for (axis, _), text in zip(run, texts, strict=True):
        writer.place_part(axis, line, column, len(text))
        writer.place_part(axis.var, line, column, len(text))
        column += len(text) + len(", ")


def _axis(writer: Writer, axis: S.IterVar, value: E.PrimExpr | None) -> None:
    names = writer.names
    if axis.dom is None:
        domain = "None"
    elif arithmetic.is_const_int(axis.dom.min, 0):
        domain = expression(names, axis.dom.extent)
    else:
        stop = arithmetic.add(axis.dom.min, axis.dom.extent)
        domain = tuple_text([expression(names, axis.dom.min), expression(names, stop)])
    binding = "" if value is None else f", {expression(names, value)}"
    with writer.placing(axis, axis.var):
        name = names.define(axis.var, axis.var.name)
        writer.write(f"{name} = T.axis.{AXIS_CALLS[axis.iter_type]}({domain}{binding})")


_PRINTERS: dict[type, Callable[[Writer, Any, bool], None]] = {
    S.SeqStmt: _sequence,
    S.BufferStore: _store,
    S.Evaluate: _evaluate,
    S.For: _for,
    S.While: _while,
    S.IfThenElse: _if,
    S.LetStmt: _let,
    S.AttrStmt: _attribute,
    S.AssertStmt: _assert,
    S.AllocBuffer: _allocate,
    S.DeclBuffer: _allocate,
    S.BlockRealize: _realize,
    S.Block: _block,
}
