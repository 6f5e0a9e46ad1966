"""Convolutions of images whose channels are in blocks, as vectors of processors take them."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.shapes import Padding
from mlcweb.topi.utils import get_pad_tuple


def conv2d_NCHWc(
    data: Tensor, kernel: Tensor, stride: int | Sequence[int], padding: Padding,
    dilation: int | Sequence[int], layout: str, out_layout: str, out_dtype: str = "float32",
) -> Tensor:  # fmt: skip
    """A two-dimensional convolution of channels in blocks (Liu et al., "Optimizing CNN Model
    Inference on CPUs", 2019).

    Args:
        data: (images, channels // block, height, width, block).
        kernel: (filters // block, channels // block, height, width, block of channels, block of
            filters). It has the channels of one group where it has fewer than `data`.
        padding: a number, two for height and width, four for top, left, bottom and right, or
            "VALID" or "SAME".
        layout, out_layout: such as "NCHW8c"; the shapes say the same.

    Returns: (images, filters // block, height, width, block), of `out_dtype`.
    """
    shapes.need_rank("conv2d_NCHWc", data, 5, "NCHWc")
    shapes.need_rank("conv2d_NCHWc", kernel, 6, "OIHWio")
    extents = [shapes.constant(n) for n in (data.shape[1], data.shape[4], *kernel.shape)]
    if any(extent is None for extent in extents):
        raise DiagnosticError(
            f"conv2d_NCHWc: the channels of {shapes.show(data.shape)}, and the kernel "
            f"{shapes.show(kernel.shape)}, must have extents that are numbers"
        )
    chunks, block, filters, taken, height, width, inner, filter_block = (
        int(extent or 0) for extent in extents
    )
    groups = chunks // taken if taken else 0
    if inner != block or not groups or chunks % taken or filters % groups:
        raise DiagnosticError(
            f"conv2d_NCHWc: the kernel {shapes.show(kernel.shape)} does not divide the channels of "
            f"{shapes.show(data.shape)} into groups"
        )
    strides, steps = (
        [value] * 2 if isinstance(value, int) else list(value) for value in (stride, dilation)
    )
    spans = [(n - 1) * step + 1 for n, step in zip((height, width), steps, strict=True)]
    top, left, bottom, right = get_pad_tuple(padding, spans)
    padded = data
    if any((top, left, bottom, right)):
        padded = pad(data, (0, 0, top, left, 0), (0, 0, bottom, right, 0), name="data_pad")
    out = [
        (extent - span) // by + 1
        for extent, span, by in zip(padded.shape[2:4], spans, strides, strict=True)
    ]
    channel = reduce_axis((0, taken * block), "ic")
    axes = [reduce_axis((0, extent), name) for extent, name in ((height, "kh"), (width, "kw"))]

    def element(n: PrimExpr, f: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr) -> PrimExpr:
        chunk = channel.var // block
        place = channel.var % block
        first = f // (filters // groups) * taken if groups > 1 else 0
        row, column = (
            at * by + axis.var * step
            for at, by, axis, step in zip((y, x), strides, axes, steps, strict=True)
        )
        values = (
            padded(n, chunk + first, row, column, place),
            kernel(f, chunk, axes[0].var, axes[1].var, place, lane),
        )
        one, other = (arithmetic.cast(out_dtype, value) for value in values)
        return reducers.sum(one * other, [channel, *axes])

    shape = (data.shape[0], filters, *out, filter_block)
    return compute(shape, element, "conv2d_NCHWc", tag="conv2d_NCHWc")
