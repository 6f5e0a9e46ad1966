"""Softmax and its logarithm, without overflow."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.fast_math import fast_exp


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis; the greatest x is subtracted first."""
    place = shapes.axis_of("softmax", axis, x.ndim)
    greatest = _greatest(x, place)
    exponent = compute(
        x.shape,
        lambda *index: intrinsics.exp(x(*index) - greatest(*_without(index, place))),
        "T_softmax_exp",
    )
    return _divided(exponent, place)


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """`softmax` with the approximation `topi.fast_exp`."""
    place = shapes.axis_of("fast_softmax", axis, x.ndim)
    greatest = _greatest(x, place)
    delta = compute(
        x.shape,
        lambda *index: x(*index) - greatest(*_without(index, place)),
        "T_softmax_delta",
    )
    return _divided(fast_exp(delta), place)


def _divided(exponent: Tensor, place: int) -> Tensor:
    """Elements divided by their sums along an axis."""
    x, rest = exponent, _without(exponent.shape, place)
    k = reduce_axis((0, x.shape[place]), "k")
    total = compute(
        rest,
        lambda *index: reducers.sum(exponent(*_with(index, place, k.var)), k),
        "T_softmax_expsum",
    )
    return compute(
        x.shape,
        lambda *index: exponent(*index) / total(*_without(index, place)),
        "T_softmax_norm",
        tag="softmax_output",
        attrs={"axis": place},
    )


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x - max - log(sum(exp(x - max))) along an axis."""
    place = shapes.axis_of("log_softmax", axis, x.ndim)
    greatest = _greatest(x, place)
    k = reduce_axis((0, x.shape[place]), "k")

    def summand(*index: PrimExpr) -> PrimExpr:
        value = x(*_with(index, place, k.var)) - greatest(*index)
        return reducers.sum(intrinsics.exp(value), k)

    total = compute(_without(x.shape, place), summand)

    def element(*index: PrimExpr) -> PrimExpr:
        rest = _without(index, place)
        return x(*index) - greatest(*rest) - intrinsics.log(total(*rest))

    return compute(x.shape, element, tag="log_softmax_output", attrs={"axis": place})


def _greatest(x: Tensor, place: int) -> Tensor:
    k = reduce_axis((0, x.shape[place]), "k")
    return compute(
        _without(x.shape, place),
        lambda *index: reducers.max(x(*_with(index, place, k.var)), k),
        "T_softmax_maxelem",
    )


def _without(items: Sequence[PrimExpr], place: int) -> list[PrimExpr]:
    return [item for i, item in enumerate(items) if i != place]


def _with(items: Sequence[PrimExpr], place: int, item: PrimExpr) -> list[PrimExpr]:
    return [*items[:place], item, *items[place:]]
