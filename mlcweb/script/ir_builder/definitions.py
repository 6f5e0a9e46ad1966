"""What `name = T.…` defines: buffers, axes, bindings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.analysis.well_formed import check_match
from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.with_frames import launch, thread_axis
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion

if TYPE_CHECKING:
    from mlcweb.script.ir_builder.statements import StatementBuilder


def _define_allocation(self: StatementBuilder, name: str, value: C.Allocation, node: Any) -> Any:
    earlier = self.scopes.find_here(name)
    if isinstance(earlier, Buffer) and self.allocated_by.get(earlier) is not node:
        raise self.error(f'"{name}" is a buffer of this scope already', node)
    buffer = self.named(value.buffer, name)
    self.allocated_by[buffer] = node
    (self.blocks[-1] if self.blocks else self.function).alloc_buffers.append(buffer)
    return buffer


def _define_declaration(self: StatementBuilder, name: str, value: C.Declaration, node: Any) -> Any:
    buffer, span = self.named(value.buffer, name), self.span(node)
    self.wrap_rest(lambda body: value.around(buffer, body, span))
    return buffer


def _define_match(self: StatementBuilder, name: str, value: C.Match, node: Any) -> Any:
    if isinstance(value.source, BufferRegion):
        contents = self.block("T.match_buffer of a region", node)
        buffer = self.named(value.buffer, name)
        match = MatchBufferRegion(buffer, value.source)
        check_match(match, self.span(node))
        contents.match_buffers.append(match)
        return buffer
    if value.source not in self.function.params or value.source.dtype != "handle":
        raise self.error(
            f'T.match_buffer takes a parameter of type T.handle, not "{value.source.name}"', node
        )
    if value.source in self.function.buffer_map:
        raise self.error(f'The parameter "{value.source.name}" has a buffer already', node)
    buffer = self.function.buffer_map[value.source] = self.named(value.buffer, name)
    return buffer


def _define_axis(self: StatementBuilder, name: str, value: C.Axis, node: Any) -> Any:
    return self.axis(name, value, node)


def _define_buffer(self: StatementBuilder, name: str, value: Buffer, node: Any) -> Any:
    if value.name:
        self.scopes.bind(name, value)
        return value
    outside = "target" in self.function.attrs or not self.function.checked
    if value.data.name or outside:
        # A view of memory that another buffer has, or in a lowered function of memory from outside.
        return self.named(value, name)
    raise self.error(
        "T.Buffer describes parameters, and with `data=` views of memory; use T.alloc_buffer to "
        "allocate a buffer",
        node,
    )


def _define_let(self: StatementBuilder, name: str, value: C.LetFrame, node: Any) -> Any:
    var = E.Var(name, value.value.dtype, span=self.span(node))
    return self.let(name, var, value.value, node)


def _define_thread(self: StatementBuilder, name: str, value: C.ThreadFrame, node: Any) -> Any:
    axis = thread_axis(self, value, name, node)
    self.scopes.bind(name, axis.var, f'the thread axis "{axis.thread_tag}"')
    self.wrap_rest(lambda body: launch(axis, value.extent, body))
    return axis.var


def _define_thread_variable(
    self: StatementBuilder, name: str, value: C.ThreadVariable, node: Any
) -> Any:
    var = E.Var(name, "int32", span=self.span(node))
    self.threads[var] = value.tag
    self.scopes.bind(name, var, f'the thread axis "{value.tag}"')
    return var


def _define_meta_var(self: StatementBuilder, name: str, value: C.MetaVar, node: Any) -> Any:
    self.scopes.bind(name, value.value)
    return value.value


DEFINITIONS: dict[type, Callable[..., Any]] = {
    C.Allocation: _define_allocation,
    C.Declaration: _define_declaration,
    C.Match: _define_match,
    C.Axis: _define_axis,
    C.LetFrame: _define_let,
    C.ThreadFrame: _define_thread,
    C.ThreadVariable: _define_thread_variable,
    C.MetaVar: _define_meta_var,
    Buffer: _define_buffer,
}
"""How to carry out a definition, by the type of the value."""
