"""Buffers, ranges and regions: the multi-dimensional arrays that programs read and write."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

from mlcweb.ir import printing
from mlcweb.ir.array import ArrayOf
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.node import Node, attribute, definition, hint, node, reference, replace
from mlcweb.ir.structural import BINDING_CLASSES
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import add, const, convert, multiply, subtract
from mlcweb.tir.expr import BufferLoad, IntImm, PointerType, PrimExpr, Ramp, Var, lanes_of


@node
class Range(Node):
    """The integers from `min` (included), `extent` of them."""

    min: PrimExpr
    extent: PrimExpr

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any) -> Range:
        return Range(convert(min_value), convert(extent))

    def __repr__(self) -> str:
        return printing.text(self)


class BufferTypeError(DiagnosticError, TypeError, ValueError):
    """There is no such buffer."""


class RankError(DiagnosticError, IndexError):
    """A buffer is accessed by more or fewer indices than it has dimensions."""


@node
class Buffer(Node):
    """An array of `shape` in the memory that `data` points to.

    Empty `strides` mean a compact row-major array. `elem_offset` counts elements from `data` and is
    known to be a multiple of `offset_factor`. Made by `decl_buffer`.
    """

    is_identity: ClassVar[bool] = True

    READ: ClassVar[int] = 1
    WRITE: ClassVar[int] = 2
    """What `access_ptr` is asked for."""

    data: Var
    dtype: str = attribute()
    shape: ArrayOf[PrimExpr]
    strides: ArrayOf[PrimExpr]
    elem_offset: PrimExpr
    name: str = hint()
    data_alignment: int = attribute(default=64)
    offset_factor: int = attribute(default=1)
    axis_separators: ArrayOf[int] = attribute(default=())

    def scope(self) -> str:
        """The storage scope: "global", "local", "shared", …"""
        pointer = self.data.type_annotation
        return pointer.storage_scope if pointer else "global"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def access_ptr(
        self,
        access_mask: int | str = "rw",
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: Any = 0,
        extent: Any = None,
    ) -> PrimExpr:
        """A pointer for an external call. `access_mask`: "r" (1), "w" (2), "rw" (3)."""
        from mlcweb.tir.intrinsics import access_ptr

        return access_ptr(self, access_mask, ptr_type, content_lanes, offset, extent)

    def vload(self, begin: Any, dtype: str | None = None) -> BufferLoad:
        """A vector read of `dtype` (default: one element) that starts at `begin`: one index for
        each dimension, or the only one by itself. A last index that is a vector says itself which
        elements are read.

        Raises: DiagnosticError: `dtype` has other elements, or not as many as that vector.
        """
        if isinstance(begin, (int, PrimExpr)):
            begin = (begin,)
        self._check_rank(len(begin))
        indices = [convert(index) for index in begin]
        plain = BufferLoad(self, tuple(indices))
        dtype = dtype or plain.dtype
        if dtypes.element_of(dtype) != dtypes.element_of(self.dtype):
            raise DiagnosticError(f'Buffer "{self.name}" has no {dtype}: it is of {self.dtype}')
        if dtype == plain.dtype:
            return plain
        number, rest = divmod(dtypes.lane_count(dtype), dtypes.lane_count(self.dtype))
        if rest or plain.dtype != self.dtype or not indices:
            raise DiagnosticError(f"{plain} is of {plain.dtype}, not of {dtype}")
        lanes = lanes_of(dtypes.with_lanes(self.dtype, number))
        indices[-1] = Ramp(indices[-1], const(1, indices[-1].dtype), lanes)
        return BufferLoad(self, tuple(indices))

    def vstore(self, begin: Any, value: Any) -> Node:
        """The statement that stores an element, or a vector, from `begin` on."""
        from mlcweb.tir.stmt import BufferStore

        value = convert(value)
        return BufferStore(self, value, self.vload(begin, value.dtype).indices)

    def offset_of(self, indices: Sequence[Any]) -> list[PrimExpr]:
        """How many elements from `data` on the element at `indices` is, simplified, in a list."""
        self._check_rank(len(indices))
        offset = self.elem_offset
        for index, stride in zip(indices, row_major_strides(self), strict=True):
            offset = add(offset, multiply(convert(index), stride))
        return [provided(__name__, "simplify")(offset)]

    def get_flattened_buffer(self) -> Buffer:
        """The buffer over the same memory with one dimension for each group of dimensions that
        the axis separators make; itself where it has those."""
        starts = (0, *self.axis_separators)
        ends = (*self.axis_separators, len(self.shape))
        if self.strides:
            sizes = [multiply(self.shape[start], self.strides[start]) for start in starts]
        else:
            groups = [self.shape[start:end] for start, end in zip(starts, ends, strict=True)]
            sizes = [reduce(multiply, group, const(1)) for group in groups]
        if len(sizes) == len(self.shape) and not self.strides:
            return self
        separators = tuple(range(1, len(sizes)))
        return replace(self, shape=tuple(sizes), strides=(), axis_separators=separators)

    def __getitem__(self, indices: Any) -> BufferLoad | BufferRegion:
        items = indices if isinstance(indices, tuple) else (indices,)
        self._check_rank(len(items))
        if not any(isinstance(item, slice) for item in items):
            return BufferLoad(self, tuple(convert(item) for item in items))
        return BufferRegion(
            self,
            tuple(
                self._range(item, extent) for item, extent in zip(items, self.shape, strict=True)
            ),
        )

    def _check_rank(self, count: int) -> None:
        if count != len(self.shape):
            raise RankError(
                f'Buffer "{self.name}" has {len(self.shape)} dimension(s); {count} index(es) given'
            )

    def _range(self, item: Any, extent: PrimExpr) -> Range:
        if not isinstance(item, slice):
            index = convert(item)
            return Range(index, const(1, index.dtype))
        start = convert(0 if item.start is None else item.start)
        stop = extent if item.stop is None else convert(item.stop)
        return Range(start, subtract(stop, start))

    def __repr__(self) -> str:
        return printing.text(self)


BINDING_CLASSES.add(Buffer)


def decl_buffer(
    shape: Sequence[Any] | Any,
    dtype: str | None = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    axis_separators: Sequence[int] | None = None,
    span: Any = None,
    layout: Any = None,
) -> Buffer:
    """A buffer with TVM's defaults, of float32 where none is given. A symbolic `elem_offset` is
    made where `offset_factor` asks for one; it counts in the type of the shape, and in int64 for a
    scalar.

    Raises:
        DiagnosticError: a `layout` is given; those of tirx are for GPUs.
        BufferTypeError: the extents are no integers, or `data` is no pointer.
        ValueError: `axis_separators` do not increase, or are beyond the dimensions.
    """
    if layout is not None:
        raise DiagnosticError(
            "A buffer with a layout is not supported; write the indices that the layout gives"
        )
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    dtype = dtypes.full_name(dtype or "float32")
    dtypes.parse(dtype)  # refuses what is no type
    extents = tuple(convert(extent) for extent in dims)
    if floats := [extent for extent in extents if dtypes.is_float(extent.dtype)]:
        raise BufferTypeError(f"The extents of buffer {name!r} are integers, not {floats[0]}")
    if data is not None and data.dtype != "handle":
        raise BufferTypeError(f"The data of buffer {name!r} is a pointer, not of {data.dtype}")
    index_type = extents[0].dtype if extents else "int64"
    separators = tuple(axis_separators or ())
    if any(a > b for a, b in pairwise((0, *separators, len(extents)))):
        raise ValueError(
            f"axis_separators of buffer {name!r} lie between its {len(extents)} dimensions, in "
            f"order; not {list(separators)}"
        )
    if data is None:
        data = Var(name, "handle", PointerType(dtype, scope or "global"))
    if elem_offset is None:
        elem_offset = (
            Var(f"{name}_elem_offset", index_type) if offset_factor else const(0, index_type)
        )
    return Buffer(
        data,
        dtype,
        extents,
        tuple(convert(stride) for stride in strides or ()),
        convert(elem_offset),
        name,
        data_alignment if data_alignment > 0 else 64,
        offset_factor or 1,
        separators,
        span=span,
    )


@node
class BufferRegion(Node):
    """The part of a buffer with one range per dimension."""

    buffer: Buffer = reference()
    region: ArrayOf[Range]

    @property
    def source(self) -> Buffer:
        """The buffer, under its name since 2026."""
        return self.buffer

    def __repr__(self) -> str:
        return printing.text(self)


@node
class MatchBufferRegion(Node):
    """A buffer that views a region of another inside a block."""

    buffer: Buffer = definition()
    source: BufferRegion


def full_region(buffer: Buffer) -> BufferRegion:
    """The whole of a buffer."""
    return BufferRegion(
        buffer, tuple(Range(const(0, extent.dtype), extent) for extent in buffer.shape)
    )


def constant_shape(buffer: Buffer) -> tuple[int, ...] | None:
    """The shape as integers; None where a dimension is symbolic."""
    if all(isinstance(extent, IntImm) for extent in buffer.shape):
        return tuple(int(extent) for extent in buffer.shape)  # type: ignore[call-overload]
    return None


def row_major_strides(buffer: Buffer) -> Sequence[PrimExpr]:
    """The strides of a buffer in elements, those of a compact array where it names none."""
    if buffer.strides:
        return buffer.strides
    strides: list[PrimExpr] = []
    step: PrimExpr = const(1, buffer.shape[0].dtype if buffer.shape else "int32")
    for extent in reversed(buffer.shape):
        strides.append(step)
        step = multiply(extent, step)
    return strides[::-1]


def compact_strides(shape: Sequence[int]) -> list[int]:
    """The strides, in elements, of a compact row-major array."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def is_compact(buffer: Buffer) -> bool:
    """Whether a buffer names no strides, or numbers that are those of a compact array."""
    if not buffer.strides:
        return True
    shape = constant_shape(buffer)
    strides = [getattr(stride, "value", None) for stride in buffer.strides]
    return shape is not None and strides == compact_strides(shape)


def has_constant_layout(buffer: Buffer) -> bool:
    """Whether the shape, the strides and the offset are numbers."""
    parts = (*buffer.shape, *buffer.strides, buffer.elem_offset)
    return all(isinstance(part, IntImm) for part in parts)


__all__ = [
    "Buffer",
    "BufferRegion",
    "MatchBufferRegion",
    "Range",
    "compact_strides",
    "constant_shape",
    "decl_buffer",
    "full_region",
    "has_constant_layout",
    "is_compact",
    "row_major_strides",
]
