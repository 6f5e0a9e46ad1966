"""Buffers where they come into being: parameters, allocations, views."""

from __future__ import annotations

from mlcweb.script.printer.expressions import expression, string, tuple_text
from mlcweb.script.printer.names import Names, identifier
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer


def define_buffer(names: Names, buffer: Buffer) -> str:
    """Name a buffer; variables that exist only with it print as its `data`, `strides[0]`, …"""
    name = names.define(buffer, buffer.name)
    names.alias(buffer.data, f"{name}.data")
    if isinstance(buffer.elem_offset, E.Var):
        names.alias(buffer.elem_offset, f"{name}.elem_offset")
    for axis, stride in enumerate(buffer.strides):
        if isinstance(stride, E.Var):
            names.alias(stride, f"{name}.strides[{axis}]")
    return name


def buffer_arguments(
    names: Names, buffer: Buffer, with_dtype: bool = False, is_view: bool = False
) -> str:
    """The arguments of `T.Buffer`, `T.alloc_buffer`, … that make `buffer`, defaults left out; of a
    view, the memory that it looks at comes along.

    Call it before `define_buffer`: symbolic strides that are not defined yet print as strings, and
    so do extents, but those of a view, which never defines them.
    """
    extent_text = expression if is_view else _extent
    parts = [tuple_text([extent_text(names, extent) for extent in buffer.shape])]
    if with_dtype or buffer.dtype != "float32":
        parts.append(string(buffer.dtype))
    if is_view:
        parts.append(f"data={expression(names, buffer.data)}")
    if buffer.strides:
        strides = tuple_text([_extent(names, stride) for stride in buffer.strides])
        parts.append(f"strides={strides}")
    fresh_offset = _is_new(names, buffer.elem_offset)
    if not fresh_offset and not _starts_at_zero(buffer):
        parts.append(f"elem_offset={expression(names, buffer.elem_offset)}")
    if buffer.scope() != "global":
        parts.append(f"scope={string(buffer.scope())}")
    if buffer.data_alignment != 64:
        parts.append(f"align={buffer.data_alignment}")
    if fresh_offset or buffer.offset_factor != 1:
        parts.append(f"offset_factor={buffer.offset_factor}")
    if buffer.axis_separators:
        parts.append(f"axis_separators={list(buffer.axis_separators)}")
    return ", ".join(parts)


def _starts_at_zero(buffer: Buffer) -> bool:
    """Whether the offset is what `decl_buffer` gives a buffer: 0 in the type of the shape, and in
    int64 for a scalar. A buffer made from a scalar may have kept that type."""
    default = buffer.shape[0].dtype if buffer.shape else "int64"
    offset = buffer.elem_offset
    return arithmetic.is_const_int(offset, 0) and offset.dtype == default


def is_plain(buffer: Buffer) -> bool:
    """Whether an annotation `T.Buffer(shape, dtype)` says all there is to say."""
    return (
        all(isinstance(extent, E.IntImm) for extent in buffer.shape)
        and not buffer.strides
        and _starts_at_zero(buffer)
        and buffer.scope() == "global"
        and (buffer.data_alignment, buffer.offset_factor) == (64, 1)
        and not buffer.axis_separators
    )


def _is_new(names: Names, value: E.PrimExpr) -> bool:
    return isinstance(value, E.Var) and not names.knows(value)


def _extent(names: Names, value: E.PrimExpr) -> str:
    if isinstance(value, E.Var) and not names.knows(value):
        return string(value.name and identifier(value.name))
    return expression(names, value)
