"""Convolutions of images whose channels are in blocks, as vectors of processors take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    shapes.need_rank("conv2d_NCHWc", kernel, 6, "OIHWio")
    filters, taken, height, width, inner, lanes = kernel.shape
    convolution = _Convolution("conv2d_NCHWc", data, (filters, taken, height, width, lanes), inner)

    def weight(at: _Tap) -> PrimExpr:
        return kernel(at.filter, at.chunk, at.row, at.column, at.channel, at.lane)

    return convolution.of(weight, stride, padding, dilation, out_dtype)


def conv2d_NCHWc_OIHWo(
    data: Tensor, kernel: Tensor, stride: int | Sequence[int], padding: Padding,
    dilation: int | Sequence[int], layout: str, out_layout: str, out_dtype: str = "float32",
) -> Tensor:  # fmt: skip
    """`conv2d_NCHWc` by a kernel (filters // block, channels, height, width, block of filters)."""
    operator = "conv2d_NCHWc_OIHWo"
    if kernel.ndim == 6:
        return conv2d_NCHWc(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype)
    shapes.need_rank(operator, kernel, 5, "OIHWo")
    shapes.need_rank(operator, data, 5, "NCHWc")
    filters, channels, height, width, lanes = kernel.shape
    block = data.shape[4]
    taken = shapes.simplified(channels // block)
    convolution = _Convolution(operator, data, (filters, taken, height, width, lanes), block)

    def weight(at: _Tap) -> PrimExpr:
        return kernel(at.filter, at.chunk * block + at.channel, at.row, at.column, at.lane)

    return convolution.of(weight, stride, padding, dilation, out_dtype)


def conv2d_NCHWc_int8(
    data: Tensor, kernel: Tensor, stride: int | Sequence[int], padding: Padding,
    dilation: int | Sequence[int], layout: str, out_layout: str, out_dtype: str = "int32",
    n_elems: int = 4,
) -> Tensor:  # fmt: skip
    """`conv2d_NCHWc` of small integers, whose products instructions sum in groups of `n_elems`: by
    a kernel (filters // block, channels // block, height, width, block of channels // n_elems,
    block of filters, n_elems)."""
    shapes.need_rank("conv2d_NCHWc_int8", kernel, 7, "OIHWioe")
    filters, taken, height, width, inner, lanes, elements = kernel.shape
    block = shapes.simplified(inner * elements)
    convolution = _Convolution(
        "conv2d_NCHWc_int8", data, (filters, taken, height, width, lanes), block
    )

    def weight(at: _Tap) -> PrimExpr:
        group, element = at.channel // n_elems, at.channel % n_elems
        return kernel(at.filter, at.chunk, at.row, at.column, group, at.lane, element)

    rule = {"schedule_rule": "conv2d_NCHWc_int8"}
    return convolution.of(weight, stride, padding, dilation, out_dtype, rule)


@dataclass(frozen=True)
class _Tap:
    """A weight: of a filter, which is a lane of a block, for a channel of a block of channels."""

    filter: PrimExpr
    lane: PrimExpr
    chunk: PrimExpr
    channel: PrimExpr
    row: PrimExpr
    column: PrimExpr


class _Convolution:
    """A convolution of blocks of channels, by whichever layout of weights.

    Args:
        kernel: its extents: blocks of filters, blocks of channels of a group, height, width,
            filters of a block.
        block: the channels of a block of the kernel.
    """

    def __init__(
        self, operator: str, data: Tensor, kernel: Sequence[PrimExpr], block: PrimExpr
    ) -> None:
        shapes.need_rank(operator, data, 5, "NCHWc")
        extents = [shapes.constant(n) for n in (data.shape[1], data.shape[4], block, *kernel)]
        if any(extent is None for extent in extents):
            raise DiagnosticError(
                f"{operator}: the channels of {shapes.show(data.shape)}, and the kernel "
                f"{shapes.show(kernel)}, must have extents that are numbers"
            )
        chunks, self.block, inner, self.filters, self.taken, *window, self.lanes = (
            int(extent or 0) for extent in extents
        )
        self.groups = chunks // self.taken if self.taken else 0
        if (
            inner != self.block
            or not self.groups
            or chunks % self.taken
            or self.filters % self.groups
        ):
            raise DiagnosticError(
                f"{operator}: the kernel {shapes.show(kernel)} does not divide the channels of "
                f"{shapes.show(data.shape)} into groups"
            )
        self.operator, self.data, self.window = operator, data, window

    def of(
        self, weight: Callable[[_Tap], PrimExpr], stride: int | Sequence[int], padding: Padding,
        dilation: int | Sequence[int], out_dtype: str, attrs: dict[str, str] | None = None,
    ) -> Tensor:  # fmt: skip
        """The sums of products with the weights that `weight` reads."""
        strides, steps = (
            [value] * 2 if isinstance(value, int) else list(value) for value in (stride, dilation)
        )
        spans = [(n - 1) * step + 1 for n, step in zip(self.window, steps, strict=True)]
        top, left, bottom, right = get_pad_tuple(padding, spans)
        padded = self.data
        if any((top, left, bottom, right)):
            padded = pad(padded, (0, 0, top, left, 0), (0, 0, bottom, right, 0), name="data_pad")
        out = [
            (extent - span) // by + 1
            for extent, span, by in zip(padded.shape[2:4], spans, strides, strict=True)
        ]
        channel = reduce_axis((0, self.taken * self.block), "ic")
        axes = [
            reduce_axis((0, n), name) for n, name in zip(self.window, ("kh", "kw"), strict=True)
        ]

        def element(n: PrimExpr, f: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr) -> PrimExpr:
            chunk, place = channel.var // self.block, channel.var % self.block
            each = self.filters // self.groups
            first = f // each * self.taken if self.groups > 1 else 0
            row, column = (
                at * by + axis.var * step
                for at, by, axis, step in zip((y, x), strides, axes, steps, strict=True)
            )
            values = (
                padded(n, chunk + first, row, column, place),
                weight(_Tap(f, lane, chunk, place, axes[0].var, axes[1].var)),
            )
            one, other = (arithmetic.cast(out_dtype, value) for value in values)
            return reducers.sum(one * other, [channel, *axes])

        shape = (self.data.shape[0], self.filters, *out, self.lanes)
        return compute(shape, element, self.operator, tag=self.operator, attrs=attrs)
