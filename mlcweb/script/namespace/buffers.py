"""Buffers of TVMScript: `T.alloc_buffer`, `T.match_buffer`, `T.decl_buffer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import constructs
from mlcweb.script.namespace.blocks import as_region
from mlcweb.script.namespace.types import make_buffer
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S


def alloc_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: E.Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> constructs.Allocation:
    """A buffer that the enclosing block allocates."""
    return constructs.Allocation(make_buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, axis_separators
    ))  # fmt: skip


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: E.Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> constructs.Declaration:
    """Memory for a buffer from here to the end of the enclosing indented block; with `data`, a view
    of memory that another buffer has."""
    buffer = make_buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, axis_separators
    )
    return constructs.Declaration(buffer, S.AllocBuffer if data is None else S.DeclBuffer)


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: E.Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> constructs.Match:
    """The buffer behind a parameter, or a view of a region of another buffer."""
    source = param if isinstance(param, E.Var) else as_region(param)
    if shape is None:
        if isinstance(source, E.Var):
            raise DiagnosticError("T.match_buffer of a parameter needs the shape")
        shape = tuple(part.extent for part in source.region)
    buffer = make_buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, axis_separators
    )
    return constructs.Match(source, buffer)
