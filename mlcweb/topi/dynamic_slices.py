"""Slices whose positions are in tensors."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes
from mlcweb.topi.index import from_end
from mlcweb.topi.shapes import ShapeLike
from mlcweb.topi.transform import moved


def dynamic_strided_slice(
    a: Tensor, begin: Tensor, end: Tensor, strides: Tensor, output_shape: ShapeLike
) -> Tensor:
    """Elements begin, begin + stride, … along all axes, in an `output_shape` that is given.

    Negative positions count from the end, and positions outside are kept to the tensor.
    """
    _check_positions("dynamic_strided_slice", a, begin, end, strides)

    def element(*index: PrimExpr) -> PrimExpr:
        place = []
        for axis, i in enumerate(index):
            step = strides(axis)
            start = from_end(begin(axis), a.shape[axis])
            back = step < 0
            low = arithmetic.select(back, arithmetic.const(-1, start.dtype), 0)
            last = arithmetic.cast(start.dtype, a.shape[axis])
            high = arithmetic.select(back, last - 1, last)
            kept = arithmetic.minimum(arithmetic.maximum(start, low), high)
            place.append(arithmetic.cast(i.dtype, kept) + i * arithmetic.cast(i.dtype, step))
        return a(*place)

    return moved(output_shape, element, "T_strided_slice_dynamic")


def dynamic_slice_shape(a: Tensor, begin: Tensor, end: Tensor, strides: Tensor) -> Tensor:
    """How many elements `dynamic_strided_slice` takes along each axis before `end`, a vector of
    int64: the `output_shape` of all of them."""
    _check_positions("dynamic_strided_slice", a, begin, end, strides)

    def length(axis: PrimExpr) -> PrimExpr:
        extent: PrimExpr = arithmetic.const(-1, "int64")
        for place, size in enumerate(a.shape):
            extent = arithmetic.select(
                arithmetic.equal(axis, place), arithmetic.cast("int64", size), extent
            )
        step = arithmetic.cast("int64", strides(axis))
        back = step < 0
        low = arithmetic.select(back, arithmetic.const(-1, "int64"), arithmetic.const(0, "int64"))
        start, stop = (
            arithmetic.minimum(
                arithmetic.maximum(from_end(arithmetic.cast("int64", place), extent), low),
                low + extent,
            )
            for place in (begin(axis), end(axis))
        )
        distance = arithmetic.select(back, start - stop, stop - start)
        width = arithmetic.select(back, -step, step)
        count = (distance + width - 1) // width
        return arithmetic.maximum(count, arithmetic.const(0, "int64"))

    return compute((a.ndim,), length, "T_shape_func_strided_slice_dynamic")


def strided_set(
    a: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None
) -> Tensor:
    """`a` with the elements of `v` at begin, begin + stride, … before end, along all axes.

    Negative positions count from the end; strides are 1 without `strides`.
    """
    _check_positions("strided_set", a, begin, end, *([] if strides is None else [strides]))

    def element(*index: PrimExpr) -> PrimExpr:
        conditions, source = [], []
        for axis, i in enumerate(index):
            dtype = begin.dtype
            at = arithmetic.cast(dtype, i)
            extent = arithmetic.cast(dtype, a.shape[axis])
            step = arithmetic.const(1, dtype) if strides is None else strides(axis)
            back = step < 0
            start = from_end(begin(axis), extent)
            start = arithmetic.select(
                back, arithmetic.minimum(start, extent - 1), arithmetic.maximum(start, 0)
            )
            stop = from_end(end(axis), extent)
            distance = arithmetic.select(back, start - at, at - start)
            inside = arithmetic.select(
                back, at > stop, at < stop
            )  # fmt: skip
            width = arithmetic.select(back, -step, step)
            conditions += [
                distance >= 0,
                inside,
                arithmetic.equal(distance % width, 0),
            ]
            source.append(distance // width)
        return intrinsics.if_then_else(logic.all(*conditions), v(*source), a(*index))

    return moved(a.shape, element, "strided_set")


def _check_positions(operator: str, a: Tensor, *positions: Tensor) -> None:
    for one in positions:
        if one.ndim != 1 or shapes.constant(one.shape[0]) not in (a.ndim, None):
            raise DiagnosticError(
                f"{operator}: {a.ndim} positions for {shapes.show(a.shape)}, not "
                f"{shapes.show(one.shape)}"
            )
