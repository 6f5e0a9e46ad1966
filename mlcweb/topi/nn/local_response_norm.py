"""Normalization by the squares of near channels (Krizhevsky et al., "ImageNet Classification with
Deep Convolutional Neural Networks", 2012)."""

from __future__ import annotations

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.pad import pad


def lrn(
    data: Tensor,
    size: int,
    axis: int = 1,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 2,
) -> Tensor:
    """x / (bias + alpha / size * sum of squares)^beta, over `size` neighbours along an axis."""
    place = shapes.axis_of("lrn", axis, data.ndim)
    widths = [size // 2 if i == place else 0 for i in range(data.ndim)]
    padded = pad(data, widths, widths, name="pad_data")
    neighbour = reduce_axis((0, size), "rxs")
    names = shapes.axis_names(data.ndim)

    def square(*index: PrimExpr) -> PrimExpr:
        at = [i + neighbour.var if axis == place else i for axis, i in enumerate(index)]
        return reducers.sum(padded(*at) * padded(*at), neighbour)

    total = compute(data.shape, square, "tensor", varargs_names=names)

    def root(*index: PrimExpr) -> PrimExpr:
        def number(value: float) -> PrimExpr:
            return arithmetic.const(value, data.dtype)

        mean = number(alpha) * total(*index) / number(size)
        return intrinsics.power(number(bias) + mean, number(beta))

    return data / compute(data.shape, root, "tensor", varargs_names=names)
