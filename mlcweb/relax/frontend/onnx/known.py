"""Small tensors whose elements are known when a model is imported: shapes and what is made of them.

Exporters write shapes as graphs: Shape, Gather, Mul, Concat, then Reshape. Here such values are
lists of numbers, where symbolic extents may stand among them, and folding.py computes with them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import expr as E
from mlcweb.relax.constant_data import HostArray, contents, host_array
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import IntImm, PrimExpr

MAX_ELEMENTS = 1024
"""Constants of more elements stay constants: they are weights, not shapes."""


Element: TypeAlias = Any
"""A number, or a symbolic extent: which of them follows from the element type and the graph."""


@dataclass(frozen=True, slots=True)
class Known:
    """A tensor by its elements, in row-major order: Python numbers or symbolic extents."""

    shape: tuple[int, ...]
    elements: tuple[Element, ...]
    dtype: str

    def __post_init__(self) -> None:
        if len(self.elements) != math.prod(self.shape):
            raise DiagnosticError(f"{len(self.elements)} elements do not fill {self.shape}")

    @property
    def symbolic(self) -> bool:
        return any(isinstance(element, PrimExpr) for element in self.elements)

    def constant(self) -> E.Constant:
        """The constant of these elements; there may be no symbolic ones."""
        data = host_array(list(self.elements) if self.shape else self.elements[0], self.dtype)
        return E.Constant(HostArray(self.shape, self.dtype, contents(data)[2]))


def known(shape: Sequence[int], elements: Sequence[Element], dtype: str) -> Known:
    """Elements brought into the range and precision of their type."""
    return Known(tuple(shape), tuple(_fitted(element, dtype) for element in elements), dtype)


def known_list(values: Sequence[Element], dtype: str = "int64") -> Known:
    """A tensor of one dimension."""
    return known((len(values),), values, dtype)


def _fitted(value: Element, dtype: str) -> Element:
    if isinstance(value, IntImm):
        value = value.value
    if isinstance(value, PrimExpr):
        return value
    if dtype == "bool":
        return bool(value)
    if dtypes.is_float(dtype):
        value = float(value)
        narrow = dtype == "float32" and math.isfinite(value) and abs(value) < 3.4e38
        return struct.unpack("<f", struct.pack("<f", value))[0] if narrow else value
    return dtypes.wrap_integer(int(value), dtype)


def as_known(value: object) -> Known | None:
    """What is known of a value of the graph: everything about small constants, else nothing."""
    if isinstance(value, Known):
        return value
    if not isinstance(value, E.Constant):
        return None
    data = value.data
    if math.prod(data.shape) > MAX_ELEMENTS:
        return None
    if not isinstance(data, HostArray):
        data = HostArray(*contents(data))
    return Known(tuple(data.shape), tuple(data.elements()), data.dtype)


def positions(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All indices of a tensor, in row-major order."""
    return product(*(range(extent) for extent in shape))


def flat_index(index: Sequence[int], shape: Sequence[int]) -> int:
    """The place of an index in row-major order."""
    place = 0
    for i, extent in zip(index, shape, strict=True):
        place = place * extent + i
    return place


def broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """The shape that shapes of integers are broadcast to; None if they do not fit."""
    ndim = max((len(shape) for shape in shapes), default=0)
    result = []
    for axis in range(ndim):
        extents = {s[axis - ndim + len(s)] for s in shapes if axis - ndim + len(s) >= 0} - {1}
        if len(extents) > 1:
            return None
        result.append(extents.pop() if extents else 1)
    return tuple(result)


def broadcast_elements(value: Known, shape: Sequence[int]) -> list[Element]:
    """The elements of `value` broadcast to `shape`."""
    if value.shape == tuple(shape):
        return list(value.elements)
    offset = len(shape) - len(value.shape)
    return [
        value.elements[
            flat_index(
                [i if n > 1 else 0 for i, n in zip(index[offset:], value.shape, strict=True)],
                value.shape,
            )
        ]
        for index in positions(shape)
    ]
