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
    OPERATOR_CALLS,
    dictionary,
    element,
    expression,
    literal,
    region,
    string,
    tuple_text,
)
from mlcweb.script.printer.page import Page
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S

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


def statement(page: Page, stmt: S.Stmt, last: bool = True) -> None:
    """Write a statement. `last` says that nothing follows it in its indented block, so that
    bindings that reach to the end of their block need no indentation of their own."""
    with page.placing(stmt):
        _PRINTERS[type(stmt)](page, stmt, last)


def is_statement(value: Node) -> bool:
    return type(value) in _PRINTERS


def _sequence(page: Page, stmt: S.SeqStmt, last: bool) -> None:
    for item in stmt.seq[:-1]:
        statement(page, item, last=False)
    statement(page, stmt.seq[-1], last)


def _store(page: Page, stmt: S.BufferStore, last: bool) -> None:
    target = element(page.names, stmt.buffer, stmt.indices)
    page.write(f"{target} = {expression(page.names, stmt.value)}")


def _evaluate(page: Page, stmt: S.Evaluate, last: bool) -> None:
    text = expression(page.names, stmt.value)
    call = stmt.value
    bare = isinstance(call, E.Call) and getattr(call.op, "name", "") not in OPERATOR_CALLS
    page.write(text if bare and text.endswith(")") else f"T.evaluate({text})")


def _body(page: Page, header: str, body: S.Stmt) -> None:
    page.write(header)
    with page.indented():
        statement(page, body)


def _grid(loop: S.For) -> list[S.For]:
    """The perfectly nested plain loops that start at `loop` and do not depend on each other."""
    loops: list[S.For] = []
    inside: set[int] = set()
    current: S.Stmt = loop
    while (
        isinstance(current, S.For)
        and current.kind is S.ForKind.SERIAL
        and not current.annotations
        and arithmetic.is_const_int(current.min, 0)
        and not (inside and _uses(current.extent, inside))
    ):
        loops.append(current)
        inside.add(id(current.loop_var))
        current = current.body
    return loops


def _uses(value: E.PrimExpr, variables: set[int]) -> bool:
    if isinstance(value, E.IntImm):
        return False
    return any(id(node) in variables for node in walk(value))


def _for(page: Page, loop: S.For, last: bool) -> None:
    grid = _grid(loop)
    if len(grid) > 1:
        _for_grid(page, grid)
        return
    domain = _loop_domain(page, loop)
    page.loops[id(loop.loop_var)] = loop
    with page.names.scope():
        name = page.names.define(loop.loop_var, loop.loop_var.name)
        line = len(page.lines)
        _body(page, f"for {name} in {domain}:", loop.body)
        page.place_part(loop.loop_var, line, len("for "), len(name))


def _loop_domain(page: Page, loop: S.For) -> str:
    names = page.names
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


def _for_grid(page: Page, loops: list[S.For]) -> None:
    extents = ", ".join(expression(page.names, loop.extent) for loop in loops)
    with page.names.scope():
        texts = []
        for loop in loops:
            page.loops[id(loop.loop_var)] = loop
            texts.append(page.names.define(loop.loop_var, loop.loop_var.name))
        line, column = len(page.lines), len("for ")
        _body(page, f"for {', '.join(texts)} in T.grid({extents}):", loops[-1].body)
        for loop, text in zip(loops, texts, strict=True):
            page.place_part(loop, line, column, len(text))
            page.place_part(loop.loop_var, line, column, len(text))
            column += len(text) + len(", ")


def _while(page: Page, stmt: S.While, last: bool) -> None:
    _body(page, f"while {expression(page.names, stmt.condition)}:", stmt.body)


def _if(page: Page, stmt: S.IfThenElse, last: bool) -> None:
    _body(page, f"if {expression(page.names, stmt.condition)}:", stmt.then_case)
    other = stmt.else_case
    while isinstance(other, S.IfThenElse):
        _body(page, f"elif {expression(page.names, other.condition)}:", other.then_case)
        other = other.else_case
    if other is not None:
        _body(page, "else:", other)


def _let(page: Page, stmt: S.LetStmt, last: bool) -> None:
    value = expression(page.names, stmt.value)
    if last:
        name = page.names.define(stmt.var, stmt.var.name)
        page.write(f"{name}: {type_text(stmt.var)} = {value}")
        statement(page, stmt.body)
        return
    with page.names.scope():
        name = page.names.define(stmt.var, stmt.var.name)
        _body(page, f"with T.LetStmt({value}) as {name}:", stmt.body)


def type_text(var: E.Var) -> str:
    """The annotation of a scalar or pointer variable."""
    pointer = var.type_annotation
    if pointer is None:
        return f"T.{var.dtype}"
    scope = "" if pointer.storage_scope == "global" else f", {string(pointer.storage_scope)}"
    return f"T.handle({string(pointer.element_type)}{scope})"


def _attribute(page: Page, stmt: S.AttrStmt, last: bool) -> None:
    value = expression(page.names, stmt.value)
    if stmt.attr_key == "thread_extent" and isinstance(stmt.node, S.IterVar):
        with page.names.scope():
            var = stmt.node.var
            name = page.names.define(var, var.name)
            tag = string(stmt.node.thread_tag)
            _body(page, f"with T.launch_thread({tag}, {value}) as {name}:", stmt.body)
        return
    thing = literal(page.names, stmt.node)
    _body(page, f"with T.attr({thing}, {string(stmt.attr_key)}, {value}):", stmt.body)


def _assert(page: Page, stmt: S.AssertStmt, last: bool) -> None:
    condition, message = expression(page.names, stmt.condition), literal(page.names, stmt.message)
    if last:
        page.write(f"assert {condition}, {message}")
        statement(page, stmt.body)
    else:
        _body(page, f"with T.Assert({condition}, {message}):", stmt.body)


def _allocate(page: Page, stmt: S.AllocBuffer, last: bool) -> None:
    text = f"{page.dialect.of('T.decl_buffer')}({buffer_arguments(page.names, stmt.buffer)})"
    with nullcontext() if last else page.names.scope():
        name = define_buffer(page.names, stmt.buffer)
        if last:
            with page.placing(stmt.buffer):
                page.write(f"{name} = {text}")
            statement(page, stmt.body)
        else:
            _body(page, f"with {text} as {name}:", stmt.body)


def _realize(page: Page, realize: S.BlockRealize, last: bool) -> None:
    with page.placing(realize.block):
        page.write(_block_header(page, realize.block))
        with page.indented():
            _block_axes(page, realize.block.iter_vars, realize.iter_values)
            if not arithmetic.is_const_int(realize.predicate, 1):
                with page.placing(realize.predicate):
                    page.write(f"T.where({expression(page.names, realize.predicate)})")
            _block_rest(page, realize.block)


def _block_header(page: Page, block: S.Block) -> str:
    return f"with {page.dialect.of('T.block')}({string(block.name_hint)}):"


def _block(page: Page, block: S.Block, last: bool) -> None:
    page.write(_block_header(page, block))
    with page.indented():
        _block_axes(page, block.iter_vars, (None,) * len(block.iter_vars))
        _block_rest(page, block)


def _block_rest(page: Page, block: S.Block) -> None:
    names = page.names
    allocations = [buffer_arguments(names, buffer) for buffer in block.alloc_buffers]
    page.write(f"T.reads({', '.join(region(names, part) for part in block.reads)})")
    page.write(f"T.writes({', '.join(region(names, part) for part in block.writes)})")
    if block.annotations:
        call = page.dialect.of("T.block_attr")
        page.write(f"{call}({dictionary(names, block.annotations)})")
    for buffer, text in zip(block.alloc_buffers, allocations, strict=True):
        allocation(page, buffer, text)
    for match in block.match_buffers:
        text = f"{region(names, match.source)}, {buffer_arguments(names, match.buffer)}"
        with page.placing(match, match.buffer):
            page.write(f"{define_buffer(names, match.buffer)} = T.match_buffer({text})")
    if block.init is not None:
        _body(page, "with T.init():", block.init)
    statement(page, block.body)


def allocation(page: Page, buffer: Any, text: str | None = None) -> None:
    """Write the line that allocates a buffer in a block."""
    text = buffer_arguments(page.names, buffer) if text is None else text
    call = page.dialect.of("T.alloc_buffer")
    with page.placing(buffer):
        page.write(f"{define_buffer(page.names, buffer)} = {call}({text})")


def _block_axes(page: Page, axes: Any, values: Any) -> None:
    run: list[tuple[S.IterVar, E.PrimExpr]] = []
    for axis, value in zip(axes, values, strict=True):
        if _is_plain_remap(page, axis, value):
            run.append((axis, value))
            continue
        _remap(page, run)
        run = []
        _axis(page, axis, value)
    _remap(page, run)


def _is_plain_remap(page: Page, axis: S.IterVar, value: E.PrimExpr | None) -> bool:
    loop = page.loops.get(id(value))
    if loop is None or axis.dom is None or axis.iter_type not in REMAP_LETTERS:
        return False
    return _same(axis.dom.min, loop.min) and _same(axis.dom.extent, loop.extent)


def _same(a: E.PrimExpr, b: E.PrimExpr) -> bool:
    if isinstance(a, E.IntImm) and isinstance(b, E.IntImm):
        return a.value == b.value and a.dtype == b.dtype
    return a is b or structural_equal(a, b)


def _remap(page: Page, run: list[tuple[S.IterVar, E.PrimExpr]]) -> None:
    if len(run) < 2:
        for axis, value in run:
            _axis(page, axis, value)
        return
    kinds = "".join(REMAP_LETTERS[axis.iter_type] for axis, _ in run)
    loops = ", ".join(expression(page.names, value) for _, value in run)
    texts = [page.names.define(axis.var, axis.var.name) for axis, _ in run]
    line, column = len(page.lines), 0
    page.write(f'{", ".join(texts)} = T.axis.remap("{kinds}", [{loops}])')
    for (axis, _), text in zip(run, texts, strict=True):
        page.place_part(axis, line, column, len(text))
        page.place_part(axis.var, line, column, len(text))
        column += len(text) + len(", ")


def _axis(page: Page, axis: S.IterVar, value: E.PrimExpr | None) -> None:
    names = page.names
    if axis.dom is None:
        domain = "None"
    elif arithmetic.is_const_int(axis.dom.min, 0):
        domain = expression(names, axis.dom.extent)
    else:
        stop = arithmetic.add(axis.dom.min, axis.dom.extent)
        domain = tuple_text([expression(names, axis.dom.min), expression(names, stop)])
    binding = "" if value is None else f", {expression(names, value)}"
    with page.placing(axis, axis.var):
        name = names.define(axis.var, axis.var.name)
        page.write(f"{name} = T.axis.{AXIS_CALLS[axis.iter_type]}({domain}{binding})")


_PRINTERS: dict[type, Callable[[Page, Any, bool], None]] = {
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
    S.BlockRealize: _realize,
    S.Block: _block,
}
