"""Two-dimensional convolutions (cross-correlations, as in all of deep learning)."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.pad import pad, pad_widths, pair
from mlcweb.topi.transform import layout_transform


def conv2d(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
    groups: int = 1,
) -> Tensor:
    """A convolution of `groups` groups of channels.

    Args:
        data: (n, c, h, w) for the layout "NCHW", (n, h, w, c) for "NHWC".
        kernel: "OIHW" (filters, c / groups, kh, kw), or "HWIO" (kh, kw, c / groups, filters).
        padding: a number, (h, w), (top, left, bottom, right), "SAME" or "VALID".
    """
    wanted = {"NCHW": "OIHW", "NHWC": "HWIO"}.get(data_layout)
    if wanted is None:
        raise DiagnosticError(f'conv2d: the layout is "NCHW" or "NHWC", not {data_layout!r}')
    if kernel_layout and kernel_layout != wanted:
        kernel = layout_transform(kernel, kernel_layout, wanted)
    if data_layout == "NCHW":
        if groups == 1:
            return conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)
        return group_conv2d_nchw(data, kernel, strides, padding, dilation, groups, out_dtype)
    if groups == 1:
        return conv2d_nhwc(data, kernel, strides, padding, dilation, out_dtype)
    return group_conv2d_nhwc(data, kernel, strides, padding, dilation, groups, out_dtype)


class _Window:
    """The sizes of a sliding window: output extents, strides, dilations, paddings."""

    def __init__(
        self,
        operator: str,
        image: tuple[PrimExpr, PrimExpr],
        kernel: tuple[PrimExpr, PrimExpr],
        strides: Any,
        padding: Any,
        dilation: Any,
    ) -> None:
        self.strides = pair(operator, "stride", strides)
        self.dilation = pair(operator, "dilation", dilation)
        spread = tuple(
            arithmetic.add(arithmetic.multiply(arithmetic.subtract(k, 1), d), 1)
            for k, d in zip(kernel, self.dilation, strict=True)
        )
        top, left, bottom, right = pad_widths(operator, padding, spread)
        self.before, self.after = (top, left), (bottom, right)
        self.output = tuple(
            arithmetic.add(
                arithmetic.floordiv(
                    arithmetic.subtract(arithmetic.add(extent, low + high), width), stride
                ),
                1,
            )
            for extent, width, stride, low, high in zip(
                image, spread, self.strides, self.before, self.after, strict=True
            )
        )
        for extent in self.output:
            number = shapes.constant(extent)
            if number is not None and number < 1:
                raise DiagnosticError(
                    f"{operator}: the window {shapes.show(spread)} is larger than the padded "
                    f"image {shapes.show(image)}"
                )

    def place(self, i: PrimExpr, k: PrimExpr, dimension: int) -> PrimExpr:
        return arithmetic.add(
            arithmetic.multiply(i, self.strides[dimension]),
            arithmetic.multiply(k, self.dilation[dimension]),
        )


def conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
) -> Tensor:
    """(n, c, h, w) by (filters, c, kh, kw)."""
    return _convolution(
        "conv2d_nchw", Input, Filter, "NCHW", stride, padding, dilation, 1, out_dtype
    )


def conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = "float32",
) -> Tensor:
    """(n, h, w, c) by (kh, kw, c, filters)."""
    return _convolution(
        "conv2d_nhwc", Input, Filter, "NHWC", stride, padding, dilation, 1, out_dtype
    )


def group_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """(n, c, h, w) by (filters, c / groups, kh, kw)."""
    return _convolution(
        "group_conv2d_nchw", Input, Filter, "NCHW", stride, padding, dilation, groups, out_dtype
    )


def group_conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """(n, h, w, c) by (kh, kw, c / groups, filters)."""
    return _convolution(
        "group_conv2d_nhwc", Input, Filter, "NHWC", stride, padding, dilation, groups, out_dtype
    )


def _convolution(
    operator: str,
    data: Tensor,
    kernel: Tensor,
    layout: str,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None,
) -> Tensor:
    first = layout == "NCHW"
    shapes.need_rank(operator, data, 4, "(n, c, h, w)" if first else "(n, h, w, c)")
    shapes.need_rank(operator, kernel, 4, "(o, i, kh, kw)" if first else "(kh, kw, i, o)")
    if first:
        batch, channels, high, wide = data.shape
        filters, per_group, kernel_high, kernel_wide = kernel.shape
    else:
        batch, high, wide, channels = data.shape
        kernel_high, kernel_wide, per_group, filters = kernel.shape
    _check_channels(operator, data, kernel, channels, per_group, filters, groups)
    window = _Window(operator, (high, wide), (kernel_high, kernel_wide), stride, padding, dilation)
    low, up = list(window.before), list(window.after)
    padded = (
        pad(data, [0, 0, *low], [0, 0, *up], name="pad_temp")
        if first
        else pad(data, [0, *low, 0], [0, *up, 0], name="pad_temp")
    )
    dtype = out_dtype or data.dtype
    rc, ry, rx = (
        reduce_axis((0, extent), name)
        for extent, name in ((per_group, "rc"), (kernel_high, "ry"), (kernel_wide, "rx"))
    )

    def value(n: PrimExpr, f: PrimExpr, y: PrimExpr, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        channel: PrimExpr = rc.var
        if groups > 1:
            size = arithmetic.floordiv(filters, groups)
            channel = arithmetic.floordiv(f, size) * per_group + rc.var
        row, column = window.place(y, ry.var, 0), window.place(x, rx.var, 1)
        if first:
            return padded(n, channel, row, column), kernel(f, rc.var, ry.var, rx.var)
        return padded(n, row, column, channel), kernel(ry.var, rx.var, rc.var, f)

    def product(values: tuple[PrimExpr, PrimExpr]) -> PrimExpr:
        a, b = (arithmetic.cast(dtype, one) for one in values)
        return a * b

    if first:
        return compute(
            (batch, filters, *window.output),
            lambda nn, ff, yy, xx: reducers.sum(product(value(nn, ff, yy, xx)), [rc, ry, rx]),
            operator,
            tag=operator,
        )
    return compute(
        (batch, *window.output, filters),
        lambda nn, yy, xx, ff: reducers.sum(product(value(nn, ff, yy, xx)), [ry, rx, rc]),
        operator,
        tag=operator,
    )


def _check_channels(
    operator: str,
    data: Tensor,
    kernel: Tensor,
    channels: PrimExpr,
    per_group: PrimExpr,
    filters: PrimExpr,
    groups: int,
) -> None:
    count = shapes.constant(filters)
    divides = count is None or count % groups == 0
    if not divides or not shapes.same_extent(channels, arithmetic.multiply(per_group, groups)):
        raise DiagnosticError(
            f"{operator}: the kernel {shapes.show(kernel.shape)} does not fit the data "
            f"{shapes.show(data.shape)} with {groups} group(s): the kernel has "
            f"{per_group!r} input channels a group and {filters!r} filters, the data {channels!r} "
            "channels"
        )


def depthwise_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
) -> Tensor:
    """Each of the c channels of (n, c, h, w) by its own m filters of (c, m, kh, kw)."""
    return _depthwise(Input, Filter, "NCHW", stride, padding, dilation, out_dtype)


def depthwise_conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    kernel_layout: str = "HWOI",
    out_dtype: str | None = None,
) -> Tensor:
    """Each of the c channels of (n, h, w, c) by its own m filters of (kh, kw, c, m)."""
    return _depthwise(Input, Filter, "NHWC", stride, padding, dilation, out_dtype)


def _depthwise(
    data: Tensor,
    kernel: Tensor,
    layout: str,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
) -> Tensor:
    first = layout == "NCHW"
    operator = f"depthwise_conv2d_{layout.lower()}"
    shapes.need_rank(operator, data, 4, "(n, c, h, w)" if first else "(n, h, w, c)")
    shapes.need_rank(operator, kernel, 4, "(c, m, kh, kw)" if first else "(kh, kw, c, m)")
    if first:
        batch, channels, high, wide = data.shape
        kernel_channels, multiplier, kernel_high, kernel_wide = kernel.shape
    else:
        batch, high, wide, channels = data.shape
        kernel_high, kernel_wide, kernel_channels, multiplier = kernel.shape
    if not shapes.same_extent(channels, kernel_channels):
        raise DiagnosticError(
            f"{operator}: the kernel {shapes.show(kernel.shape)} does not have a filter for each "
            f"channel of the data {shapes.show(data.shape)}"
        )
    window = _Window(operator, (high, wide), (kernel_high, kernel_wide), stride, padding, dilation)
    low, up = list(window.before), list(window.after)
    padded = (
        pad(data, [0, 0, *low], [0, 0, *up], name="PaddedInput")
        if first
        else pad(data, [0, *low, 0], [0, *up, 0], name="PaddedInput")
    )
    dtype = out_dtype or data.dtype
    di, dj = reduce_axis((0, kernel_high), "di"), reduce_axis((0, kernel_wide), "dj")

    def value(b: PrimExpr, c: PrimExpr, i: PrimExpr, j: PrimExpr) -> Any:
        own, which = arithmetic.floordiv(c, multiplier), arithmetic.floormod(c, multiplier)
        row, column = window.place(i, di.var, 0), window.place(j, dj.var, 1)
        if first:
            pixel, weight = padded(b, own, row, column), kernel(own, which, di.var, dj.var)
        else:
            pixel, weight = padded(b, row, column, own), kernel(di.var, dj.var, own, which)
        product = arithmetic.cast(dtype, pixel) * arithmetic.cast(dtype, weight)
        return reducers.sum(product, [di, dj])

    count = arithmetic.multiply(channels, multiplier)
    if first:
        return compute(
            (batch, count, *window.output),
            lambda b, c, i, j: value(b, c, i, j),
            "DepthwiseConv2d",
            tag=operator,
        )
    return compute(
        (batch, *window.output, count),
        lambda b, i, j, c: value(b, c, i, j),
        "DepthwiseConv2d",
        tag=operator,
    )
