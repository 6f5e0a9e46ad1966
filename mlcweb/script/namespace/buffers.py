"""Buffers of TVMScript: `T.alloc_buffer`, `T.match_buffer`, `T.decl_buffer`. What they take beside
the arguments here is what `make_buffer` takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import constructs
from mlcweb.script.namespace.blocks import as_region
from mlcweb.script.namespace.loops import mapping
from mlcweb.script.namespace.types import make_buffer
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, floordiv, is_const_int, multiply
from mlcweb.tir.buffer import Buffer


def alloc_buffer(*args: Any, **options: Any) -> constructs.Allocation:
    """A buffer that the enclosing block allocates."""
    return constructs.Allocation(make_buffer(*args, **options))


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: E.PrimExpr | Buffer | None = None,
    *args: Any,
    annotations: Mapping[str, Any] | None = None,
    **options: Any,
) -> constructs.Declaration | Buffer:
    """Memory for a buffer from here to the end of the enclosing indented block; with `data`, a view
    of memory that another buffer has. `annotations` become attributes of what follows."""
    pointer = data if isinstance(data, (E.Var, Buffer)) else None
    buffer = make_buffer(shape, dtype, pointer, *args, **options)
    if buffer is data:
        return buffer
    statement = S.AllocBuffer if data is None else S.DeclBuffer
    memory = None if isinstance(data, Buffer) or pointer is data else data
    return constructs.Declaration(
        buffer, statement, mapping(annotations or {}, "annotations"), memory
    )


def view(
    buffer: Buffer, *shape: Any, dtype: Any = None, layout: Any = None
) -> constructs.Declaration | Buffer:
    """The memory of a buffer with another shape (`B = A.view(64)`), of which one extent may be -1,
    or with elements of another type: `B = A.view("int8")`.

    Raises:
        DiagnosticError: the memory is no whole number of such elements or rows.
    """
    if layout is not None:
        raise DiagnosticError(
            "A view with a layout is not supported; write the indices that the layout gives"
        )
    offset = None if is_const_int(buffer.elem_offset, 0) else buffer.elem_offset
    if len(shape) == 1 and isinstance(shape[0], str):
        dtype = shape[0]
        *outer, last = buffer.shape
        shape = (*outer, _count_of(last, buffer.dtype, dtype))
        offset = None if offset is None else _count_of(offset, buffer.dtype, dtype)
    elif -1 in [extent for extent in shape if isinstance(extent, int)]:
        fixed = [extent for extent in shape if not (isinstance(extent, int) and extent == -1)]
        rest = floordiv(reduce(multiply, buffer.shape), reduce(multiply, fixed, const(1)))
        shape = tuple(rest if isinstance(n, int) and n == -1 else n for n in shape)
    return decl_buffer(shape, dtype or buffer.dtype, buffer.data, elem_offset=offset)


def _count_of(count: E.PrimExpr, old: str, new: str) -> E.PrimExpr:
    """How many elements of a type the memory of some of another type holds."""
    have, want = dtypes.size_in_bytes(old), dtypes.size_in_bytes(new)
    if want <= have:
        return multiply(count, have // want)
    if isinstance(count, E.IntImm) and count.value * have % want:
        raise DiagnosticError(
            f"{count.value} elements of {old} are no whole number of elements of {new}"
        )
    return floordiv(count, want // have)


def match_buffer(param: Any, shape: Any = None, *args: Any, **options: Any) -> constructs.Match:
    """The buffer behind a parameter, or a view of a region of another buffer: by default of the
    region's shape and type."""
    source = param if isinstance(param, E.Var) else as_region(param)
    if shape is None:
        if isinstance(source, E.Var):
            raise DiagnosticError("T.match_buffer of a parameter needs the shape")
        shape = tuple(part.extent for part in source.region)
        if not args:
            options.setdefault("dtype", source.buffer.dtype)
    return constructs.Match(source, make_buffer(shape, *args, **options))
