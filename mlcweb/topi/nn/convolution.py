"""Convolutions (cross-correlations, as in all of deep learning) along one, two or three axes."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.window import SPATIAL, Window, check_layout
from mlcweb.topi.shapes import Numbers, Padding

_KERNELS = {
    "NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO",
    "HWCN": "HWIO",
}  # fmt: skip
"""The layout that kernels have by default, by that of the data."""
_LOOPS = {"N": "nn", "C": "ff", "D": "zz", "H": "yy", "W": "xx"}
_SUMS = {"C": "rc", "D": "rz", "H": "ry", "W": "rx"}


def convolution(
    data: Tensor,
    kernel: Tensor,
    strides: Numbers,
    padding: Padding,
    dilation: Numbers,
    groups: int,
    data_layout: str,
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of `groups` groups of channels; the result has the layout of the data.

    Args:
        data_layout: an order of the letters N, C and the spatial ones, such as "NCHW".
        kernel_layout: an order of O (filters), I (channels of a group) and the spatial letters;
            "OIHW" for NCHW, "HWIO" for NHWC by default.
        padding: a number, one per axis, or all widths before and then all behind.
    """
    rank = len(data_layout) - 2
    spatial = SPATIAL.get(rank, "")
    operator = f"{'group_' if groups > 1 else ''}conv{rank}d_{data_layout.lower()}"
    kernel_layout = kernel_layout or _KERNELS.get(data_layout, f"OI{spatial}")
    check_layout(operator, data_layout, f"NC{spatial}")
    check_layout(operator, kernel_layout, f"OI{spatial}")
    shapes.need_rank(operator, data, rank + 2, data_layout)
    shapes.need_rank(operator, kernel, rank + 2, kernel_layout)
    extents = dict(zip(data_layout, data.shape, strict=True))
    filters, per_group, *sizes = (
        kernel.shape[kernel_layout.index(letter)] for letter in f"OI{spatial}"
    )
    _check_channels(operator, data, kernel, extents["C"], per_group, filters, groups)
    window = Window(
        operator, data, data_layout, sizes, strides, padding, dilation, "pad_temp"
    )  # fmt: skip
    dtype = out_dtype or data.dtype
    sums = {
        letter: reduce_axis((0, extent), "ry" if rank == 1 and letter == "W" else _SUMS[letter])
        for letter, extent in zip(f"C{spatial}", (per_group, *sizes), strict=True)
    }

    def element(*index: PrimExpr) -> PrimExpr:
        place = dict(zip(data_layout, index, strict=True))
        chosen, channel = place["C"], sums["C"].var
        if groups > 1:
            size = filters // groups
            channel = chosen // size * per_group + channel
        inside = [sums[letter].var for letter in spatial]
        weight = dict(zip(f"OI{spatial}", (chosen, sums["C"].var, *inside), strict=True))
        return reducers.sum(
            arithmetic.cast(dtype, window.pixel({**place, "C": channel}, inside))
            * arithmetic.cast(dtype, kernel(*(weight[letter] for letter in kernel_layout))),
            [sums[letter] for letter in data_layout if letter != "N"],
        )

    outputs = {**extents, "C": filters, **dict(zip(spatial, window.output, strict=True))}
    names = ["yy" if rank == 1 and letter == "W" else _LOOPS[letter] for letter in data_layout]
    shape = [outputs[letter] for letter in data_layout]
    return compute(shape, element, operator, tag=operator, varargs_names=names)


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
    if not divides or not shapes.same_extent(channels, per_group * groups):
        raise DiagnosticError(
            f"{operator}: the kernel {shapes.show(kernel.shape)} does not fit the data "
            f"{shapes.show(data.shape)} with {groups} group(s): the kernel has "
            f"{per_group!r} input channels a group and {filters!r} filters, the data {channels!r} "
            "channels"
        )


def conv1d(
    data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = "VALID",
    dilation: Numbers = 1, groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """(n, c, w) by (filters, c / groups, kw), or as the layouts say. See `convolution`."""
    return convolution(
        data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )


def conv2d(
    input: Tensor, filter: Tensor, strides: Numbers = 1, padding: Padding = 0,
    dilation: Numbers = 1, data_layout: str = "NCHW", kernel_layout: str = "",
    out_dtype: str | None = None, groups: int = 1,
) -> Tensor:  # fmt: skip
    """(n, c, h, w) by (filters, c / groups, kh, kw), or as the layouts say. See `convolution`."""
    return convolution(
        input, filter, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )


def conv3d(
    data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = 0, dilation: Numbers = 1,
    groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """(n, c, d, h, w) by (filters, c / groups, kd, kh, kw), or as the layouts say. See
    `convolution`."""
    return convolution(
        data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )


def _named(
    build: Callable[..., Tensor], layout: str, name: str, what: str
) -> Callable[..., Tensor]:
    build.__name__ = build.__qualname__ = name or f"{what}conv{len(layout) - 2}d_{layout.lower()}"
    kind = "of groups of channels, " if what else "of data "
    build.__doc__ = f"A convolution {kind}{layout} by a kernel {_KERNELS[layout]}."
    return build


def _plain_1d(layout: str) -> Callable[..., Tensor]:
    def build(
        data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = "VALID",
        dilation: Numbers = 1, out_dtype: str | None = None,
    ) -> Tensor:  # fmt: skip
        return convolution(data, kernel, strides, padding, dilation, 1, layout, "", out_dtype)

    return _named(build, layout, "", "")


def _grouped_1d(layout: str) -> Callable[..., Tensor]:
    def build(
        data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = "VALID",
        dilation: Numbers = 1, groups: int = 1, out_dtype: str | None = None,
    ) -> Tensor:  # fmt: skip
        return convolution(data, kernel, strides, padding, dilation, groups, layout, "", out_dtype)

    return _named(build, layout, "", "group_")


def _plain(layout: str) -> Callable[..., Tensor]:
    def build(
        Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
        out_dtype: str | None = None,
    ) -> Tensor:  # fmt: skip
        return convolution(Input, Filter, stride, padding, dilation, 1, layout, "", out_dtype)

    return _named(build, layout, "", "")


def _grouped(layout: str, name: str = "") -> Callable[..., Tensor]:
    def build(
        Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
        groups: int = 1, out_dtype: str | None = None,
    ) -> Tensor:  # fmt: skip
        return convolution(Input, Filter, stride, padding, dilation, groups, layout, "", out_dtype)

    return _named(build, layout, name, "group_")


conv1d_ncw, conv1d_nwc = _plain_1d("NCW"), _plain_1d("NWC")
group_conv1d_ncw, group_conv1d_nwc = _grouped_1d("NCW"), _grouped_1d("NWC")
conv2d_nchw, conv2d_nhwc, conv2d_hwcn = _plain("NCHW"), _plain("NHWC"), _plain("HWCN")
group_conv2d_nchw, group_conv2d_nhwc = (_grouped(layout) for layout in ("NCHW", "NHWC"))
conv3d_ncdhw, conv3d_ndhwc = (
    _grouped(layout, f"conv3d_{layout.lower()}") for layout in ("NCDHW", "NDHWC")
)


def depthwise_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """Each of the channels of NCHW by filters of its own, OIHW of channels O and multiplier I."""
    return _depthwise(Input, Filter, stride, padding, dilation, out_dtype, "NCHW", "OIHW")


def depthwise_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    kernel_layout: str = "HWOI", out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """Each of the channels of NHWC by filters of its own, of channels O and multiplier I."""
    return _depthwise(Input, Filter, stride, padding, dilation, out_dtype, "NHWC", kernel_layout)


def _depthwise(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    out_dtype: str | None, layout: str, kernel_layout: str,
) -> Tensor:  # fmt: skip
    operator = f"depthwise_conv2d_{layout.lower()}"
    shapes.need_rank(operator, Input, 4, layout)
    shapes.need_rank(operator, Filter, 4, f"{kernel_layout} of channels O, multiplier I")
    extents = dict(zip(layout, Input.shape, strict=True))
    channels, multiplier, *sizes = (Filter.shape[kernel_layout.index(letter)] for letter in "OIHW")
    if not shapes.same_extent(extents["C"], channels):
        raise DiagnosticError(
            f"{operator}: the kernel {shapes.show(Filter.shape)} does not have a filter for "
            f"each channel of the data {shapes.show(Input.shape)}"
        )
    window = Window(
        operator, Input, layout, sizes, stride, padding, dilation, "PaddedInput"
    )  # fmt: skip
    dtype = out_dtype or Input.dtype
    sums = [reduce_axis((0, size), name) for size, name in zip(sizes, ("di", "dj"), strict=True)]

    def element(*index: PrimExpr) -> PrimExpr:
        place = dict(zip(layout, index, strict=True))
        own = place["C"] // multiplier
        which = place["C"] % multiplier
        inside = [axis.var for axis in sums]
        weight = dict(zip("OIHW", (own, which, *inside), strict=True))
        return reducers.sum(
            arithmetic.cast(dtype, window.pixel({**place, "C": own}, inside))
            * arithmetic.cast(dtype, Filter(*(weight[letter] for letter in kernel_layout))),
            sums,
        )

    outputs = {**extents, "C": channels * multiplier}
    outputs["H"], outputs["W"] = window.output
    loops = {"N": "b", "C": "c", "H": "i", "W": "j"}
    return compute(
        [outputs[letter] for letter in layout],
        element,
        "DepthwiseConv2d",
        tag=operator,
        varargs_names=[loops[letter] for letter in layout],
    )
