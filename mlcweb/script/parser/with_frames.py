"""What `with` opens: blocks, inits, bindings and the like, each with the statements inside."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.analysis.access_regions import block_access_regions
from mlcweb.ir.node import replace
from mlcweb.script import constructs as C
from mlcweb.script.parser.accesses import describe
from mlcweb.script.parser.frames import BlockContents, Wrapper
from mlcweb.script.parser.naming import name_buffer
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, Range

if TYPE_CHECKING:
    from mlcweb.script.parser.statements import StatementParser


def _target_name(self: StatementParser, item: ast.withitem) -> str:
    if not isinstance(item.optional_vars, ast.Name):
        raise self.error("Give it a name: `with … as name:`", item.context_expr)
    return item.optional_vars.id


def _block(self: StatementParser, frame: C.BlockFrame, item: ast.withitem, node: ast.With) -> None:
    contents = BlockContents(frame.name, self.evaluator.span(item.context_expr))
    self.blocks.append(contents)
    self.scopes.push()
    _listed_axes(self, frame, contents, item)
    body = self.body_or_nothing(node.body, node)
    self.scopes.pop()
    self.blocks.pop()
    around = _implied_loops(contents)
    for var in contents.unbound:
        raise self.error(f'Say what the axis "{var.name}" is: T.bind({var.name}, …)', node)

    def regions(block: S.Block) -> tuple[tuple[BufferRegion, ...], ...]:
        reads, writes, opaque = block_access_regions(block, self.buffers)
        if opaque:
            names = ", ".join(f'"{region.buffer.name}"' for region in opaque)
            raise self.error(
                f'What the block "{frame.name}" does to {names} cannot be seen, as it uses the '
                "address: write T.reads(…) and T.writes(…)",
                item.context_expr,
            )
        return reads, writes

    realize = contents.realize(body, regions)
    if contents.reads is None or contents.writes is None:
        self.inferred[realize] = contents
    self.emit(around(realize))


def _implied_loops(contents: BlockContents) -> Wrapper:
    """The loops around a block that lists axes and binds none of them."""
    if not contents.unbound or len(contents.unbound) < len(contents.axes):
        return lambda body: body
    loops = [
        (axis.dom, replace(axis.var, name=f"i{number}"))
        for number, axis in enumerate(contents.axes)
        if axis.dom is not None
    ]
    contents.values[:] = [var for _, var in loops]
    contents.unbound.clear()

    def wrap(body: S.Stmt) -> S.Stmt:
        for dom, var in reversed(loops):
            body = S.For(var, dom.min, dom.extent, S.ForKind.SERIAL, body, span=contents.span)
        return body

    return wrap


def _listed_axes(
    self: StatementParser, frame: C.BlockFrame, contents: BlockContents, item: ast.withitem
) -> None:
    """The axes that `with T.block([8, 8], "C") as [vi, vj]:` lists; `T.bind` binds them later."""
    names = item.optional_vars
    targets = names.elts if isinstance(names, (ast.List, ast.Tuple)) else [names] if names else []
    if len(targets) != len(frame.axes):
        raise self.error(
            f'The block "{frame.name}" lists {len(frame.axes)} axes, and names {len(targets)}',
            item.context_expr,
        )
    for target, axis in zip(targets, frame.axes, strict=True):
        if not isinstance(target, ast.Name):
            raise self.error("The name of an axis is a name", target)
        self.axis(target.id, axis, target)
        contents.unbound.add(contents.axes[-1].var)


def _init(self: StatementParser, frame: C.InitFrame, item: ast.withitem, node: ast.With) -> None:
    contents = self.block("T.init()", node)
    if contents.init is not None:
        raise self.error(f'The block "{contents.name}" has an init already', node)
    contents.init = self.body(node.body, "T.init()", node)


def _enter_binding(self: StatementParser, name: str, var: Any, node: ast.With, what: str) -> S.Stmt:
    self.scopes.push()
    self.scopes.bind(name, var, what)
    body = self.body(node.body, "`with`", node)
    self.scopes.pop()
    return body


def _let(self: StatementParser, frame: C.LetFrame, item: ast.withitem, node: ast.With) -> None:
    span = self.evaluator.span(node)
    if frame.var is not None:
        self.emit(S.LetStmt(frame.var, frame.value, self.body(node.body, "`with`", node)))
        return
    name = _target_name(self, item)
    var = E.Var(name, frame.value.dtype, span=span)
    body = _enter_binding(self, name, var, node, f"a name of line {span.line}")
    self.emit(S.LetStmt(var, frame.value, body, span=span))


def _wrapper(
    self: StatementParser, frame: C.WrapperFrame, item: ast.withitem, node: ast.With
) -> None:
    body = self.body(node.body, "`with`", node)
    self.emit(frame.wrap(body, self.evaluator.span(node)))


def _thread(
    self: StatementParser, frame: C.ThreadFrame, item: ast.withitem, node: ast.With
) -> None:
    name = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""
    axis = thread_axis(self, frame, name, node)
    what = f'the thread axis "{axis.thread_tag}"'
    body = _enter_binding(self, name or axis.var.name, axis.var, node, what)
    self.emit(launch(axis, frame.extent, body))


def thread_axis(self: StatementParser, frame: C.ThreadFrame, name: str, node: ast.AST) -> S.IterVar:
    """The axis that `T.launch_thread` launches; its variable is called `name` if it is new."""
    domain = Range(arithmetic.const(0, frame.extent.dtype), frame.extent)
    if isinstance(frame.axis, str):
        var = E.Var(name or frame.axis.replace(".", "_"), frame.extent.dtype)
        self.threads[var] = frame.axis
        return S.IterVar(domain, var, S.IterType.THREAD_INDEX, frame.axis)
    tag = self.threads.get(frame.axis)
    if tag is None:
        raise self.error(f'"{frame.axis.name}" is not a variable of T.env_thread', node)
    return S.IterVar(domain, frame.axis, S.IterType.THREAD_INDEX, tag)


def launch(axis: S.IterVar, extent: E.PrimExpr, body: S.Stmt) -> S.Stmt:
    """`body` on the threads of an axis."""
    return S.AttrStmt(axis, "thread_extent", extent, body)


def _declaration(
    self: StatementParser, frame: C.Declaration, item: ast.withitem, node: ast.With
) -> None:
    name = _target_name(self, item)
    buffer = name_buffer(frame.buffer, name)
    self.buffers[buffer.data] = buffer
    body = _enter_binding(self, name, buffer, node, f'the buffer "{name}"')
    self.emit(frame.around(buffer, body, self.evaluator.span(node)))


def _known_buffer(self: StatementParser, frame: Buffer, item: ast.withitem, node: ast.With) -> None:
    if item.optional_vars is None:
        raise self.error(f"`with` does not take {describe(frame)}", item.context_expr)
    self.emit(_enter_binding(self, _target_name(self, item), frame, node, "a buffer"))


FRAMES: dict[type, Callable[..., None]] = {
    C.BlockFrame: _block,
    C.InitFrame: _init,
    C.LetFrame: _let,
    C.WrapperFrame: _wrapper,
    C.ThreadFrame: _thread,
    C.Declaration: _declaration,
    Buffer: _known_buffer,
}
"""How to enter what `with` is given, by its type."""
