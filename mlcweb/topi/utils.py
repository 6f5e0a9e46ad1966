"""`tvm.topi.utils`: numbers out of extents, names of layouts, positions, and constant tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any, TypeVar

from mlcweb.arith.analyzer import Analyzer
from mlcweb.te import Tensor, compute
from mlcweb.tir import arithmetic, logic
from mlcweb.tir.arithmetic import convert, floordiv, floormod
from mlcweb.tir.expr import FloatImm, PrimExpr, Select, Var
from mlcweb.tir.intrinsics import absolute, if_then_else
from mlcweb.topi import shapes
from mlcweb.topi.nn.window import paddings
from mlcweb.topi.shapes import Extent, Numbers, Padding

T = TypeVar("T")


class InvalidShapeError(ValueError):
    """An operator has no implementation for a shape."""


def get_const_int(expr: Any) -> int:
    """The number that an extent is; a ValueError where it is symbolic."""
    number = shapes.constant(simplify(expr))
    if number is None:
        raise ValueError(f"Expect value to be constant int, but {expr} is symbolic")
    return int(number)


def get_const_float(expr: Any) -> float:
    """The number that a constant of a floating-point type is; a ValueError for anything else."""
    value = simplify(expr)
    if not isinstance(value, (float, FloatImm)):
        raise ValueError(f"Expect value to be constant float, not {expr}")
    return float(value)


def get_const_tuple(in_tuple: Sequence[Extent]) -> tuple[Any, ...]:
    """The extents of a shape as numbers; symbolic ones stay as they are."""
    if isinstance(in_tuple, Tensor):
        raise TypeError("A tuple of extents is wanted, such as tensor.shape, not a tensor")
    ints = [shapes.constant(e if isinstance(e, Var) else simplify(e)) for e in in_tuple]
    return tuple(simplify(e) if n is None else int(n) for e, n in zip(in_tuple, ints, strict=True))


def get_float_tuple(in_tuple: Sequence[Any]) -> tuple[float, ...]:
    """Each of several constants as a number; raises as `get_const_float`."""
    return tuple(map(get_const_float, in_tuple))


def equal_const_int(expr: Any, value: int) -> bool:
    return shapes.constant(simplify(expr)) == value


def simplify(expr: Any) -> Any:
    """An expression simplified; a number as it is; a tensor of simplified elements."""
    if isinstance(expr, Tensor):
        name = tag = "simplify"
        return compute(
            expr.shape,
            lambda *indices: Analyzer().simplify(convert(expr[indices])),
            f"{name}_output",
            tag,
        )
    return expr if isinstance(expr, (int, float)) else Analyzer().simplify(convert(expr))


def prod(x: Sequence[Any]) -> Any:
    """The product of extents; a constant 1 of none."""
    return reduce(mul, x) if x else arithmetic.const(1, "int32")


def ceil_div(a: Extent, b: Extent) -> PrimExpr:
    """A quotient rounded up."""
    return floordiv(a + (b - 1), b)


def is_empty_shape(shape: Sequence[Extent]) -> bool:
    """Whether an extent is 0."""
    return any(equal_const_int(extent, 0) for extent in shape)


def is_dynamic_shape(shape: Sequence[Extent]) -> bool:
    """Whether an extent is a variable."""
    return any(isinstance(extent, Var) for extent in shape)


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The greatest power of 2, not above `max_value`, that divides a positive number."""
    factor = n & -n
    while max_value is not None and factor > max_value:
        factor //= 2
    return factor


def swap(arr: list[T], axis: int) -> list[T]:
    """A list with an element and the last one exchanged."""
    new = list(arr)
    new[axis], new[-1] = new[-1], new[axis]
    return new


def ravel_index(indices: Sequence[Extent], shape: Sequence[Extent]) -> Extent:
    """The position in a flat array of an element of an array of a shape."""
    flat = indices[0]
    for index, extent in zip(indices[1:], shape[1:], strict=True):
        flat = flat * extent + index
    return flat


def unravel_index(idx: Extent, shape: Sequence[Extent]) -> list[Any]:
    """The indices of the element at a position of a flat array, which lies inside of it."""
    indices: list[Any] = []
    for extent in reversed(shape[1:]):
        is_empty = equal_const_int(extent, 0)
        indices.insert(0, 0 if is_empty else floormod(idx, extent))
        idx = idx if is_empty else floordiv(idx, extent)
    return [idx, *indices]


def within_index(b: Extent, e: Extent, s: Extent, i: Extent) -> PrimExpr:
    """Whether the slice `b:e:s` has position `i`."""
    begin, end, step, at = map(convert, (b, e, s, i))
    outside = logic.any(*_outside(begin, end, step, at))
    backwards = (at - end + floormod(end, absolute(step)) + 1) % absolute(step)
    rest = if_then_else(step < 0, backwards, (at - begin) % step)
    return Select(outside, arithmetic.const(False), arithmetic.equal(rest, 0))


def make_idx(b: Extent, e: Extent, s: Extent, z: Extent, i: Extent) -> PrimExpr:
    """Where in the slice `b:e:s` of an axis of extent `z` position `i` is, if it is in it."""
    begin, end, step, extent, at = map(convert, (b, e, s, z, i))
    outside = logic.any(*_outside(begin, end, step, at))
    first = Select(extent < begin, extent - 1, begin)
    steps = if_then_else(step < 0, floordiv(first - at, absolute(step)), floordiv(at - first, step))
    return if_then_else(outside, 88, steps)  # TVM's number for what is not in the slice


def _outside(
    begin: PrimExpr, end: PrimExpr, step: PrimExpr, at: PrimExpr
) -> tuple[PrimExpr, PrimExpr]:
    """Whether a position is before a slice, and whether it is after it."""
    return Select(step < 0, at <= end, at < begin), Select(step < 0, at > begin, at >= end)


def const_vector(vector: Any, name: str = "const_vector") -> Tensor:
    """A tensor of the elements of an array of one dimension."""
    import numpy as np

    return _constant(np.asarray(vector), name, None)


def const_matrix(
    matrix: Any, name: str = "const_matrix", attrs: dict[str, object] | None = None
) -> Tensor:
    """A tensor of the elements of an array of two dimensions."""
    matrix_attrs = {"const_matrix": True, "schedule_rule": "None"} if attrs is None else attrs
    return _constant(matrix, name, matrix_attrs)


def _constant(array: Any, name: str, attrs: dict[str, object] | None) -> Tensor:
    dtype = str(array.dtype)

    def element(*indices: PrimExpr) -> PrimExpr:
        value = arithmetic.const(0, dtype)
        for position in range(array.size):
            at = unravel_index(position, array.shape)
            here = (arithmetic.equal(i, int(n)) for i, n in zip(indices, at, strict=True))
            number = arithmetic.const(array.flat[position].item(), dtype)
            value = Select(logic.all(*here), number, value)
        return value

    return compute(array.shape, element, name, attrs=attrs)


def ncw_pack_layout(layout_info: str) -> bool:
    """Whether a layout is NCW with blocks of samples and of channels: NCW4n8c."""
    return layout_info.startswith("NCW") and "c" in layout_info and "n" in layout_info


def ncw_xc_layout(layout_info: str) -> bool:
    """Whether a layout is NCW with blocks of channels: NCW8c."""
    return re.fullmatch(r"NCW\d+c", layout_info) is not None


def nchw_pack_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with blocks of samples and of channels: NCHW4n8c."""
    return layout_info.startswith("NCHW") and "c" in layout_info and "n" in layout_info


def nchw_xc_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with blocks of channels: NCHW8c."""
    return re.fullmatch(r"NCHW\d+c", layout_info) is not None


def get_shape(src_shape: Sequence[Extent], src_layout: str, dst_layout: str) -> tuple[Any, ...]:
    """A shape in another order of axes.

    Raises: ValueError: the layouts have other axes.
    """
    source, target = (re.findall(r"\d*[A-Za-z]", layout) for layout in (src_layout, dst_layout))
    if sorted(source) != sorted(target):
        raise ValueError(f"The axes of {src_layout} and {dst_layout} are not the same")
    return get_const_tuple([src_shape[source.index(axis)] for axis in target])


def get_pad_tuple(padding: Padding, kernel: Sequence[Extent]) -> tuple[int, ...]:
    """Widths of a two-dimensional padding: top, left, bottom, right."""
    before, behind = paddings("pad", padding, [convert(extent) for extent in kernel])
    return (*before, *behind)


def get_pad_tuple1d(padding: Padding, kernel: Numbers) -> tuple[int, ...]:
    """Widths of a one-dimensional padding: left, right."""
    return get_pad_tuple(padding, kernel if isinstance(kernel, Sequence) else (kernel,))


get_pad_tuple3d = get_pad_tuple
