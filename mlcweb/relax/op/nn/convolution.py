"""Convolutions (cross-correlations, as in all of deep learning) and their transposes."""

from __future__ import annotations

from typing import Any

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import (
    Call,
    Expr,
    ExprLike,
    constant_int,
)
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import (
    attribute,
    reordered,
    te,
    topi,
)
from mlcweb.relax.op.nn.layouts import (
    SPATIAL,
    Extents,
    arranged,
    check_counts,
    check_layout,
    extents_of,
    numbers,
    paddings,
    window_extent,
)  # fmt: skip
from mlcweb.relax.op.registry import Builder, Infer, Legalize, call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo


def _infer(rank: int, transposed: bool) -> Infer:
    spatial = SPATIAL[rank]

    def deduce(call: Call, context: Context) -> StructInfo:
        data, weight = infer.tensors(call, context)
        data_layout = check_layout(call, "data_layout", f"NC{spatial}")
        kernel_layout = check_layout(call, "kernel_layout", f"OI{spatial}")
        out_layout = check_layout(call, "out_layout", f"NC{spatial}")
        check_counts(call, rank, strides=rank, dilation=rank, padding=2 * rank)
        dtype = infer.dtype_or(call, "", "out_dtype") or infer.common_dtype(call, [data, weight])
        infer.need_rank(call, 0, data, rank + 2, data_layout)
        infer.need_rank(call, 1, weight, rank + 2, kernel_layout)
        if data.values is None or weight.values is None:
            return TensorStructInfo(None, dtype, ndim=rank + 2)
        batch, channels, *image = extents_of(data, data_layout, f"NC{spatial}")
        filters, inner, *kernel = extents_of(weight, kernel_layout, f"OI{spatial}")
        groups = infer.attribute(call, "groups")
        both = f"{infer.described(call, 0, data)} and {infer.described(call, 1, weight)}"
        wanted = inner if transposed else inner * groups
        if dims.differ(channels, wanted):
            expected = infer.text(dims.simplify(wanted))
            raise infer.shape_error(
                call,
                f"{both} do not fit with groups={groups}: the weight is for {expected} channels, "
                f"the data has {infer.text(channels)}",
            )
        grouped = channels if transposed else filters
        count = constant_int(grouped)
        if count is not None and count % groups:
            what = "channels" if transposed else "filters"
            raise infer.shape_error(call, f"{both}: {count} {what} are no {groups} equal groups")
        outputs = []
        padding = infer.attribute(call, "padding")
        strides, dilation = infer.attribute(call, "strides"), infer.attribute(call, "dilation")
        for axis, (extent, width) in enumerate(zip(image, kernel, strict=True)):
            both_sides = padding[axis] + padding[rank + axis]
            stride, spread = strides[axis], dilation[axis]
            if not transposed:
                outputs.append(window_extent(call, extent, width, stride, both_sides, spread))
                continue
            extra = infer.attribute(call, "output_padding")[axis]
            if extra >= max(stride, spread):
                raise infer.shape_error(
                    call, f"output_padding {extra} must be less than stride or dilation {stride}"
                )
            size = (extent - 1) * stride - both_sides + (width - 1) * spread + 1 + extra
            outputs.append(dims.simplify(size))
        produced = dims.simplify(filters * groups) if transposed else filters
        shape = arranged([batch, produced, *outputs], f"NC{spatial}", out_layout)
        return TensorStructInfo(shape, dtype)

    return deduce


def _legalize_convolution(rank: int) -> Legalize:
    """Convolutions give the layout of the data, and are put in `out_layout` after."""

    name = f"conv{rank}d"

    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        data_layout, out_layout = (attribute(call, key) for key in ("data_layout", "out_layout"))

        def convolve(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
            result = getattr(topi.nn, name)(
                data,
                weight,
                strides=attribute(call, "strides"),
                padding=attribute(call, "padding"),
                dilation=attribute(call, "dilation"),
                groups=attribute(call, "groups"),
                data_layout=data_layout,
                kernel_layout=attribute(call, "kernel_layout"),
                out_dtype=attribute(call, "out_dtype"),
            )
            return reordered(result, data_layout, out_layout)

        return builder.call_te(convolve, *call.args, primfunc_name_hint=name)

    return legalize


def _legalize_transpose(rank: int) -> Legalize:
    """Transposed convolutions are done channels first."""
    spatial = SPATIAL[rank]
    first, kernel_first = f"NC{spatial}", f"IO{spatial}"

    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        def convolve(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
            result = topi.nn.conv_transpose(
                reordered(data, attribute(call, "data_layout"), first),
                reordered(weight, attribute(call, "kernel_layout"), kernel_first),
                attribute(call, "strides"),
                attribute(call, "padding"),
                attribute(call, "output_padding"),
                attribute(call, "dilation"),
                attribute(call, "groups"),
                attribute(call, "out_dtype"),
            )
            return reordered(result, first, attribute(call, "out_layout"))

        return builder.call_te(convolve, *call.args, primfunc_name_hint=f"conv{rank}d_transpose")

    return legalize


def _convolution(
    build: Builder, rank: int, data: ExprLike, weight: ExprLike, options: dict[str, Any]
) -> Call:
    attrs = {
        "strides": numbers(options["strides"], rank),
        "padding": paddings(options["padding"], rank),
    }
    if "output_padding" in options:
        attrs["output_padding"] = numbers(options["output_padding"], rank)
    return call(
        build,
        data,
        weight,
        **attrs,
        dilation=numbers(options["dilation"], rank),
        groups=int(options["groups"]),
        data_layout=options["data_layout"],
        kernel_layout=options["kernel_layout"],
        out_layout=options["out_layout"] or options["data_layout"],
        out_dtype=str(options["out_dtype"] or "void"),
    )


@operator(
    "relax.nn.conv1d", "data", "weight",
    infer=_infer(1, transposed=False), legalize=_legalize_convolution(1),
)  # fmt: skip
def conv1d(
    data: ExprLike, weight: ExprLike,
    strides: Extents = 1, padding: Extents = 0, dilation: Extents = 1,
    groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "OIW",
    out_layout: str | None = None, out_dtype: str | None = None,
) -> Call:  # fmt: skip
    """A convolution along one axis. See `conv2d`."""
    options = locals()
    return _convolution(conv1d, 1, options.pop("data"), options.pop("weight"), options)


@operator(
    "relax.nn.conv2d", "data", "weight",
    infer=_infer(2, transposed=False), legalize=_legalize_convolution(2),
)  # fmt: skip
def conv2d(
    data: ExprLike, weight: ExprLike,
    strides: Extents = (1, 1), padding: Extents = (0, 0), dilation: Extents = (1, 1),
    groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
    out_layout: str | None = None, out_dtype: str | None = None,
) -> Call:  # fmt: skip
    """A convolution of an image by filters.

    Args:
        data: (n, c, h, w), or as `data_layout` says.
        weight: (filters, c / groups, kh, kw), or as `kernel_layout` says.
        padding: a number, (h, w), or (top, left, bottom, right).
        groups: the channels are divided into so many groups, each with filters of its own.
        out_layout: that of the data by default.
        out_dtype: the type of sums and result, that of the data by default.
    """
    options = locals()
    return _convolution(conv2d, 2, options.pop("data"), options.pop("weight"), options)


@operator(
    "relax.nn.conv3d", "data", "weight",
    infer=_infer(3, transposed=False), legalize=_legalize_convolution(3),
)  # fmt: skip
def conv3d(
    data: ExprLike, weight: ExprLike,
    strides: Extents = (1, 1, 1), padding: Extents = (0, 0, 0),
    dilation: Extents = (1, 1, 1), groups: int = 1, data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW", out_layout: str | None = None, out_dtype: str | None = None,
) -> Call:  # fmt: skip
    """A convolution of a volume. See `conv2d`."""
    options = locals()
    return _convolution(conv3d, 3, options.pop("data"), options.pop("weight"), options)


@operator(
    "relax.nn.conv1d_transpose", "data", "weight",
    infer=_infer(1, transposed=True), legalize=_legalize_transpose(1),
)  # fmt: skip
def conv1d_transpose(
    data: ExprLike, weight: ExprLike,
    strides: Extents = 1, padding: Extents = 0, output_padding: Extents = 0,
    dilation: Extents = 1, groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "IOW",
    out_layout: str | None = None, out_dtype: str | None = None,
) -> Call:  # fmt: skip
    """The transpose of a convolution along one axis. See `conv2d_transpose`."""
    options = locals()
    return _convolution(conv1d_transpose, 1, options.pop("data"), options.pop("weight"), options)


@operator(
    "relax.nn.conv2d_transpose", "data", "weight",
    infer=_infer(2, transposed=True), legalize=_legalize_transpose(2),
)  # fmt: skip
def conv2d_transpose(
    data: ExprLike, weight: ExprLike,
    strides: Extents = (1, 1), padding: Extents = (0, 0),
    output_padding: Extents = (0, 0), dilation: Extents = (1, 1), groups: int = 1,
    data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Call:  # fmt: skip
    """The transpose of a convolution: each element of the image puts a filter, `strides` apart.

    Args:
        weight: (c, filters / groups, kh, kw), or as `kernel_layout` says.
        padding: how much of the result is cut off at each side.
        output_padding: how much is added behind.
    """
    options = locals()
    return _convolution(conv2d_transpose, 2, options.pop("data"), options.pop("weight"), options)


@operator(
    "relax.nn.conv3d_transpose", "data", "weight",
    infer=_infer(3, transposed=True), legalize=_legalize_transpose(3),
)  # fmt: skip
def conv3d_transpose(
    data: ExprLike, weight: ExprLike,
    strides: Extents = (1, 1, 1), padding: Extents = (0, 0, 0),
    output_padding: Extents = (0, 0, 0), dilation: Extents = (1, 1, 1), groups: int = 1,
    data_layout: str = "NCDHW", kernel_layout: str = "IODHW", out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Call:  # fmt: skip
    """The transpose of a convolution of a volume. See `conv2d_transpose`."""
    options = locals()
    return _convolution(conv3d_transpose, 3, options.pop("data"), options.pop("weight"), options)
