"""Reductions of tensors over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import comm_reducer, reduce_axis
from mlcweb.topi import shapes, tags
from mlcweb.topi.elementwise import square
from mlcweb.topi.shapes import Axes, Extent

_all = comm_reducer(arithmetic.logical_and, lambda dtype: arithmetic.const(True, dtype), "all")
_any = comm_reducer(arithmetic.logical_or, lambda dtype: arithmetic.const(False, dtype), "any")


def reduced(
    data: Tensor, axis: Axes, keepdims: bool, reducer: Callable[..., Any], operator: str
) -> Tensor:
    """The elements over axes (all without `axis`) combined by a reducer."""
    axes = shapes.axes_of(operator, axis, data.ndim)
    if not axes:
        return compute(
            data.shape, lambda *index: data(*index), f"{_plain(data)}_red", tag=tags.INJECTIVE
        )
    iterators = {i: reduce_axis((0, data.shape[i]), f"k{i}") for i in axes}

    def value(*index: PrimExpr) -> PrimExpr:
        place = _place(index, iterators, data.ndim, keepdims)
        return reducer(data(*place), list(iterators.values()))

    return compute(
        _reduced_shape(data, axes, keepdims),
        value,
        f"{_plain(data)}_red",
        tag=tags.COMM_REDUCE,
        varargs_names=_axis_names(data, axes, keepdims),
    )


def _place(index: tuple[PrimExpr, ...], iterators: Any, ndim: int, keepdims: bool) -> list[Any]:
    """The element of the input: iterators on the reduced axes, `index` on the others."""
    rest = iter(
        [i for place, i in enumerate(index) if place not in iterators] if keepdims else index
    )
    return [iterators[place] if place in iterators else next(rest) for place in range(ndim)]


def _reduced_shape(data: Tensor, axes: list[int], keepdims: bool) -> list[PrimExpr]:
    if keepdims:
        return [
            arithmetic.const(1, extent.dtype) if i in axes else extent
            for i, extent in enumerate(data.shape)
        ]
    return [extent for i, extent in enumerate(data.shape) if i not in axes]


def _axis_names(data: Tensor, axes: list[int], keepdims: bool) -> list[str]:
    return shapes.axis_names(data.ndim if keepdims else data.ndim - len(axes))


def _plain(data: Tensor) -> str:
    return data.name.replace(".", "_")


def sum(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum over axes."""
    return reduced(data, axis, keepdims, reducers.sum, "sum")


def collapse_sum(data: Tensor, target_shape: Sequence[Extent]) -> Tensor:
    """The sums over the axes along which a tensor of the shape is broadcast to that of `data`."""
    target = [arithmetic.convert(extent) for extent in target_shape]
    added = data.ndim - len(target)
    ones = [
        added + place
        for place, extent in enumerate(target)
        if arithmetic.is_const_int(extent, 1)
        and not arithmetic.is_const_int(data.shape[added + place], 1)
    ]
    axes = [*range(added), *ones]
    if not axes:
        return data
    iterators = {i: reduce_axis((0, data.shape[i]), f"k{i}") for i in axes}

    def value(*index: PrimExpr) -> Any:
        place = [iterators.get(added + i, at) for i, at in enumerate(index)]
        over = [iterators[i] for i in range(added)]
        return reducers.sum(data(*over, *place), list(iterators.values()))

    return compute(
        target, value, f"{_plain(data)}_red", tag=tags.COMM_REDUCE,
        varargs_names=shapes.axis_names(len(target)),
    )  # fmt: skip


def prod(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product over axes."""
    return reduced(data, axis, keepdims, reducers.prod, "prod")


def max(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element over axes."""
    return reduced(data, axis, keepdims, reducers.max, "max")


def min(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least element over axes."""
    return reduced(data, axis, keepdims, reducers.min, "min")


def all(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements of a boolean tensor hold."""
    return reduced(_boolean(data, "all"), axis, keepdims, _all, "all")


def any(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether one of the elements of a boolean tensor holds."""
    return reduced(_boolean(data, "any"), axis, keepdims, _any, "any")


def mean(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over axes."""
    axes = shapes.axes_of("mean", axis, data.ndim)
    count = shapes.size([data.shape[i] for i in axes]) if axes else arithmetic.const(1)
    return sum(data, axes, keepdims) / arithmetic.cast(data.dtype, count)


def variance(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The variance over axes, of the whole population."""
    return mean(square(data - mean(data, axis, True)), axis, keepdims)


def argmax(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The position of the greatest element, the first (or last) of equal ones; int32, counted in
    the flat array where several axes are reduced."""
    return _position(
        data, axis, keepdims, arithmetic.greater, intrinsics.min_value, select_last_index, "argmax"
    )


def argmin(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The position of the least element, the first (or last) of equal ones."""
    return _position(
        data, axis, keepdims, arithmetic.less, intrinsics.max_value, select_last_index, "argmin"
    )


def _position(
    data: Tensor,
    axis: Axes,
    keepdims: bool,
    better: Callable[[PrimExpr, PrimExpr], PrimExpr],
    worst: Callable[[str], PrimExpr],
    last: bool,
    operator: str,
) -> Tensor:
    axes = shapes.axes_of(operator, axis, data.ndim)
    name, names = f"{_plain(data)}_red", _axis_names(data, axes, keepdims)
    if not axes:  # each element is compared with no other one
        zero = arithmetic.const(0)
        return compute(
            data.shape, lambda *_: zero, name, tag=tags.COMM_REDUCE_IDX, varargs_names=names
        )

    def combine(x: Sequence[PrimExpr], y: Sequence[PrimExpr]) -> tuple[PrimExpr, PrimExpr]:
        before = x[0] > y[0] if last else x[0] < y[0]
        same = arithmetic.logical_and(arithmetic.equal(x[1], y[1]), before)
        keep = arithmetic.logical_or(better(x[1], y[1]), same)
        return (
            arithmetic.select(keep, x[0], y[0]),
            arithmetic.select(better(x[1], y[1]), x[1], y[1]),
        )

    reducer = comm_reducer(
        combine, lambda index, value: (arithmetic.const(-1, index), worst(value)), operator
    )
    iterators = {i: reduce_axis((0, data.shape[i]), f"k{i}") for i in axes}
    order = list(iterators.values())

    def value(*index: PrimExpr) -> PrimExpr:
        flat = shapes.ravel_index([k.var for k in order], [data.shape[i] for i in axes])
        place = _place(index, iterators, data.ndim, keepdims)
        return reducer((flat, data(*place)), order)

    shape = _reduced_shape(data, axes, keepdims)
    place, _ = compute(shape, value, f"{name}_temp", tag=tags.COMM_REDUCE_IDX, varargs_names=names)
    return compute(
        shape, lambda *index: place(*index), name, tag=tags.COMM_REDUCE_IDX, varargs_names=names
    )


def _boolean(data: Tensor, operator: str) -> Tensor:
    if not dtypes.is_bool(data.dtype):
        raise DiagnosticError(f'{operator}: "{data.name}" is {data.dtype}; bool is expected')
    return data
