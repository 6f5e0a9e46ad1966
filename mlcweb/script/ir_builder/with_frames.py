"""What `with` opens: blocks, inits, bindings and the like.

Each is a context manager: it gives what `as` names, takes the statements that are emitted inside,
and emits its own. `names` are those after `as`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from mlcweb.analysis.access_regions import block_access_regions
from mlcweb.ir.node import replace
from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.frames import BlockContents, Wrapper
from mlcweb.script.ir_builder.naming import describe, name_buffer
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, Range

if TYPE_CHECKING:
    from mlcweb.script.ir_builder.statements import StatementBuilder


def _one_name(self: StatementBuilder, names: Sequence[str], node: Any) -> str:
    if len(names) != 1:
        raise self.error("Give it a name: `with … as name:`", node)
    return names[0]


@contextmanager
def _block(
    self: StatementBuilder, frame: C.BlockFrame, names: Sequence[str], node: Any
) -> Iterator[None]:
    contents = BlockContents(frame.name, self.span(node))
    self.blocks.append(contents)
    self.scopes.push()
    _listed_axes(self, frame, contents, names, node)
    with self.indented() as inside:
        yield
    body = inside.statement or S.Evaluate(arithmetic.const(0), span=self.span(node))
    self.scopes.pop()
    self.blocks.pop()
    around = _implied_loops(contents)
    for var in contents.unbound:
        raise self.error(f'Say what the axis "{var.name}" is: T.bind({var.name}, …)', node)

    def regions(block: S.Block) -> tuple[tuple[BufferRegion, ...], ...]:
        reads, writes, opaque = block_access_regions(block, self.buffers)
        if opaque:
            unseen = ", ".join(f'"{region.buffer.name}"' for region in opaque)
            raise self.error(
                f'What the block "{frame.name}" does to {unseen} cannot be seen, as it uses the '
                "address: write T.reads(…) and T.writes(…)",
                node,
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
    self: StatementBuilder,
    frame: C.BlockFrame,
    contents: BlockContents,
    names: Sequence[str],
    node: Any,
) -> None:
    """The axes that `with T.block([8, 8], "C") as [vi, vj]:` lists; `T.bind` binds them later."""
    if len(names) != len(frame.axes):
        raise self.error(
            f'The block "{frame.name}" lists {len(frame.axes)} axes, and names {len(names)}', node
        )
    for name, axis in zip(names, frame.axes, strict=True):
        self.axis(name, axis, node)
        contents.unbound.add(contents.axes[-1].var)


@contextmanager
def _init(
    self: StatementBuilder, frame: C.InitFrame, names: Sequence[str], node: Any
) -> Iterator[None]:
    contents = self.block("T.init()", node)
    if contents.init is not None:
        raise self.error(f'The block "{contents.name}" has an init already', node)
    with self.indented() as inside:
        yield
    contents.init = self.some(inside, "T.init()", node)


@contextmanager
def _binding(
    self: StatementBuilder, name: str, value: Any, node: Any, what: str, wrap: Wrapper
) -> Iterator[Any]:
    """A name for the statements inside, and what stands around them."""
    self.scopes.push()
    self.scopes.bind(name, value, what)
    with self.indented() as inside:
        yield value
    self.scopes.pop()
    self.emit(wrap(self.some(inside, "`with`", node)))


@contextmanager
def _wrapped(self: StatementBuilder, wrap: Wrapper, node: Any, value: Any = None) -> Iterator[Any]:
    with self.indented() as inside:
        yield value
    self.emit(wrap(self.some(inside, "`with`", node)))


def _let(
    self: StatementBuilder, frame: C.LetFrame, names: Sequence[str], node: Any
) -> AbstractContextManager[E.Var]:
    span = self.span(node)
    frame_var = frame.var
    if frame_var is not None:
        return _wrapped(
            self, lambda body: S.LetStmt(frame_var, frame.value, body, span=span), node, frame_var
        )
    name = _one_name(self, names, node)
    var = E.Var(name, frame.value.dtype, span=span)
    what = f"a name of line {span.line}" if span else ""
    return _binding(
        self, name, var, node, what, lambda body: S.LetStmt(var, frame.value, body, span=span)
    )


def _wrapper(
    self: StatementBuilder, frame: C.WrapperFrame, names: Sequence[str], node: Any
) -> AbstractContextManager[None]:
    span = self.span(node)
    return _wrapped(self, lambda body: frame.wrap(body, span), node)


def _thread(
    self: StatementBuilder, frame: C.ThreadFrame, names: Sequence[str], node: Any
) -> AbstractContextManager[E.Var]:
    name = names[0] if len(names) == 1 else ""
    axis = thread_axis(self, frame, name, node)
    what = f'the thread axis "{axis.thread_tag}"'
    return _binding(
        self,
        name or axis.var.name,
        axis.var,
        node,
        what,
        lambda body: launch(axis, frame.extent, body),
    )


def thread_axis(self: StatementBuilder, frame: C.ThreadFrame, name: str, node: Any) -> S.IterVar:
    """The axis that `T.launch_thread` launches; its variable is called `name` if it is new."""
    domain = Range(arithmetic.const(0, frame.extent.dtype), frame.extent)
    if isinstance(frame.axis, str):
        var = E.Var(name or frame.axis.replace(".", "_"), frame.extent.dtype)
        self.threads[var] = frame.axis
        return S.IterVar(domain, var, S.IterType.THREAD_INDEX, frame.axis)
    tag = self.threads.get(frame.axis) or _axis_in_name(self, frame.axis)
    if tag is None:
        raise self.error(f'"{frame.axis.name}" is not a variable of T.env_thread', node)
    self.threads[frame.axis] = tag
    return S.IterVar(domain, frame.axis, S.IterType.THREAD_INDEX, tag)


_NAME_OF_AXIS = re.compile(r"(blockIdx|threadIdx|vthread)_([xyz])(_\d+)?")


def _axis_in_name(self: StatementBuilder, var: E.Var) -> str | None:
    """The axis that a variable is called after, where only `v = T.int32()` declares it: so TVM
    prints axes that are used outside of their launch."""
    name = _NAME_OF_AXIS.fullmatch(var.name)
    declared = self.scopes.origin(var.name) == "a variable"
    return f"{name[1]}.{name[2]}" if name and declared else None


def launch(axis: S.IterVar, extent: E.PrimExpr, body: S.Stmt) -> S.Stmt:
    """`body` on the threads of an axis."""
    return S.AttrStmt(axis, S.launch_key(axis.thread_tag), extent, body)


def _declaration(
    self: StatementBuilder, frame: C.Declaration, names: Sequence[str], node: Any
) -> AbstractContextManager[Buffer]:
    name, span = _one_name(self, names, node), self.span(node)
    buffer = name_buffer(frame.buffer, name)
    self.buffers[buffer.data] = buffer
    return _binding(
        self,
        name,
        buffer,
        node,
        f'the buffer "{name}"',
        lambda body: frame.around(buffer, body, span),
    )


def _known_buffer(
    self: StatementBuilder, frame: Buffer, names: Sequence[str], node: Any
) -> AbstractContextManager[Buffer]:
    if not names:
        raise self.error(f"`with` does not take {describe(frame)}", node)
    name = _one_name(self, names, node)
    return _binding(self, name, frame, node, "a buffer", lambda body: body)


FRAMES: dict[type, Callable[..., AbstractContextManager[Any]]] = {
    C.BlockFrame: _block,
    C.InitFrame: _init,
    C.LetFrame: _let,
    C.WrapperFrame: _wrapper,
    C.ThreadFrame: _thread,
    C.Declaration: _declaration,
    Buffer: _known_buffer,
}
"""How to enter what `with` is given, by its type."""
