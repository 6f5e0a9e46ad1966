"""What a call of `T` that is a statement of its own does to the block or function around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mlcweb.ir.structural import structural_equal
from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.naming import name_buffer
from mlcweb.script.ir_builder.with_frames import launch, thread_axis
from mlcweb.tir import stmt as S

if TYPE_CHECKING:
    from mlcweb.script.ir_builder.statements import StatementBuilder


def _block_part(self: StatementBuilder, value: C.BlockPart, node: Any) -> None:
    contents = self.block(f"T.{value.name}", node)
    if getattr(contents, value.name) is not None:
        raise self.error(f'The block "{contents.name}" has a T.{value.name} already', node)
    setattr(contents, value.name, value.value)


def _block_attr(self: StatementBuilder, value: C.BlockAttributes, node: Any) -> None:
    contents = self.block("T.block_attr", node)
    contents.annotations = _merged(
        self, f'block "{contents.name}"', contents.annotations, value.values, node
    )


def _merged(
    self: StatementBuilder, title: str, old: Mapping[str, Any], new: Mapping[str, Any], node: Any
) -> dict[str, Any]:
    """The attributes of two dictionaries; those that are dictionaries themselves are merged."""
    merged = dict(old)
    for key, item in new.items():
        value = merged.get(key)
        if isinstance(value, Mapping) and isinstance(item, Mapping):
            item = _merged(self, f'attribute "{key}" of the {title}', value, item, node)
        elif value is not None and not structural_equal(value, item):
            raise self.error(f'The {title} has an attribute "{key}" already, {value!r}', node)
        merged[key] = item
    return merged


def _bind(self: StatementBuilder, value: C.AxisBinding, node: Any) -> None:
    contents = self.block("T.bind", node)
    for number, axis in enumerate(contents.axes):
        if axis.var is value.axis:
            contents.values[number] = value.value
            contents.unbound.discard(axis.var)
            return
    raise self.error(f'"{value.axis.name}" is not an axis of the block "{contents.name}"', node)


def _func_attr(self: StatementBuilder, value: C.FunctionAttributes, node: Any) -> None:
    self.function.attrs.update(value.values)


def _wrapped_rest(self: StatementBuilder, value: C.WrapperFrame, node: Any) -> None:
    span = self.span(node)
    self.wrap_rest(lambda body: value.wrap(body, span))


def _let_rest(self: StatementBuilder, value: C.LetFrame, node: Any) -> None:
    var, span = value.var, self.span(node)
    if var is None:
        raise self.error("Give it a name: `x = T.LetStmt(…)`", node)
    self.wrap_rest(lambda body: S.LetStmt(var, value.value, body, span=span))


def _thread_rest(self: StatementBuilder, value: C.ThreadFrame, node: Any) -> None:
    axis = thread_axis(self, value, "", node)
    self.wrap_rest(lambda body: launch(axis, value.extent, body))


def _preflattened(self: StatementBuilder, value: C.Preflattened, node: Any) -> None:
    """The caller gives the whole buffer; the body sees a flat view of its memory."""
    buffers, flat = self.function.buffer_map, value.flat
    param = next((param for param, buffer in buffers.items() if buffer is flat), None)
    if param is None:
        raise self.error(f'"{flat.name}" is not the buffer of a parameter', node)
    buffers[param] = name_buffer(value.whole, flat.name)
    span = self.span(node)
    self.wrap_rest(lambda body: S.DeclBuffer(flat, body, span=span))


ACTIONS: dict[type, Callable[..., None]] = {
    C.BlockPart: _block_part,
    C.AxisBinding: _bind,
    C.Preflattened: _preflattened,
    C.BlockAttributes: _block_attr,
    C.FunctionAttributes: _func_attr,
    C.WrapperFrame: _wrapped_rest,
    C.LetFrame: _let_rest,
    C.ThreadFrame: _thread_rest,
}
"""How to carry out a call, by the type of its value."""
