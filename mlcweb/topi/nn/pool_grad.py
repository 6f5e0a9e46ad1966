"""The gradient of pooling: what each window gives goes back to the elements that it is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import reduction, shapes
from mlcweb.topi.nn.pooling import Windows, spatial_axes


def pool_grad(
    grads: Tensor,
    data: Tensor,
    kernel: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    pool_type: str,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The gradient of `pool` for its data, of that of its result. That of a maximum goes to the
    first of equal elements."""
    places = spatial_axes(f"pool_grad {pool_type}", data, pool_type, layout)
    operator = f"pool{len(places)}d_grad {pool_type}"
    windows = _Windows(operator, data, places, kernel, stride, dilation, padding)
    if pool_type == "max":
        return windows.distributed(grads, windows.first_greatest(grads.shape))

    def share(*index: PrimExpr) -> PrimExpr:
        count = windows.count(index, count_include_pad)
        return grads(*index) / arithmetic.cast(data.dtype, count)

    return windows.distributed(compute(grads.shape, share, "pool_share"))


class _Windows(Windows):
    """Windows that give back what they were made of."""

    def first_greatest(self, shape: Sequence[PrimExpr]) -> Tensor:
        """The place in each window, counted row by row, of its first greatest element."""
        rank = len(shape)

        def element(*index: PrimExpr) -> PrimExpr:
            inside = list(index[:rank])
            offsets = shapes.unravel_index(index[rank], shapes.as_shape(self.size))
            for d, place in enumerate(self.places):
                inside[place] = self.position(d, index[place], offsets[d])
            there = [
                logic.all(inside[place] >= 0, inside[place] < self.data.shape[place])
                for place in self.places
            ]
            least = intrinsics.min_value(self.data.dtype)
            return intrinsics.if_then_else(logic.all(*there), self.data(*inside), least)

        count = arithmetic.const(math.prod(self.size), shape[0].dtype)
        return reduction.argmax(compute([*shape, count], element, "pool_window"), -1)

    def position(self, d: int, window: PrimExpr, offset: PrimExpr) -> PrimExpr:
        """Where on axis d of the data an element of a window lies."""
        return window * self.strides[d] + offset * self.dilation[d] - self.low[d]

    def distributed(self, grads: Tensor, chosen: Tensor | None = None) -> Tensor:
        """For each element of the data the sum over the windows it is in; with `chosen`, over those
        in which it has the place that this says."""
        axes = self.axes()

        def element(*index: PrimExpr) -> PrimExpr:
            window, conditions = list(index), []
            for d, place in enumerate(self.places):
                begin = index[place] + self.low[d] - axes[d].var * self.dilation[d]
                window[place] = begin // self.strides[d]
                conditions += [
                    begin >= 0,
                    (begin % self.strides[d]).equal(0),
                    window[place] < grads.shape[place],
                ]
            value = grads(*window)
            if chosen is not None:
                own = shapes.ravel_index([axis.var for axis in axes], shapes.as_shape(self.size))
                here = arithmetic.cast("int32", own).equal(chosen(*window))
                zero = arithmetic.const(0, grads.dtype)
                value = intrinsics.if_then_else(here, value, zero)
            inside = intrinsics.if_then_else(
                logic.all(*conditions), value, arithmetic.const(0, grads.dtype)
            )
            return reducers.sum(inside, axes)

        return compute(self.data.shape, element, "pool_grad")
