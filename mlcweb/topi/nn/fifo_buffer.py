"""A buffer of the last elements of a stream."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes


def fifo_buffer(data: Tensor, buffer: Tensor, axis: int) -> Tensor:
    """`buffer` moved along an axis by the extent of `data`, which goes in at its end."""
    place = shapes.axis_of("fifo_buffer", axis, buffer.ndim)
    if data.ndim != buffer.ndim:
        raise DiagnosticError(
            f"fifo_buffer: data {shapes.show(data.shape)} and buffer {shapes.show(buffer.shape)} "
            "have as many dimensions"
        )
    new = data.shape[place]
    kept = buffer.shape[place] - new

    def element(*index: PrimExpr) -> PrimExpr:
        def at(i: PrimExpr) -> list[PrimExpr]:
            return [*index[:place], i, *index[place + 1 :]]

        i = index[place]
        return intrinsics.if_then_else(i < kept, buffer(*at(i + new)), data(*at(i - kept)))

    return compute(buffer.shape, element, "new_buffer")
