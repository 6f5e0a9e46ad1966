"""Convolutions (cross-correlations, as in all of deep learning) and their transposes."""

from __future__ import annotations

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.layout import Lettered
from mlcweb.relax.op.legalize import attribute, reordered, te, topi
from mlcweb.relax.op.nn.layouts import (
    SPATIAL,
    Extents,
    arranged,
    check_counts,
    check_layout,
    check_rank,
    extents_of,
    numbers,
    paddings,
    window_extent,
    without_blocks,
)  # fmt: skip
from mlcweb.relax.op.registry import ALWAYS, Infer, Legalize, call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir.arithmetic import floormod
from mlcweb.tir.expr import IntImm


def _infer(rank: int, transposed: bool) -> Infer:
    spatial = SPATIAL[rank]

    def deduce(call: Call, context: Context) -> StructInfo:
        data, weight = infer.tensors(call, context)
        data_layout = check_layout(call, "data_layout", f"NC{spatial}")
        kernel_layout = check_layout(call, "kernel_layout", f"OI{spatial}")
        out_layout = check_layout(call, "out_layout", f"NC{spatial}")
        _check_attributes(call, rank)
        dtype = infer.dtype_or(call, "", "out_dtype") or infer.common_dtype(call, [data, weight])
        check_rank(call, 0, data, data_layout)
        check_rank(call, 1, weight, kernel_layout)
        if data.values is None or weight.values is None:
            return TensorStructInfo(None, dtype, ndim=len(out_layout))
        batch, channels, *image = extents_of(data, data_layout, f"NC{spatial}")
        filters, inner, *kernel = extents_of(weight, kernel_layout, f"OI{spatial}")
        groups = infer.attribute(call, "groups")
        both = f"{infer.described(call, 0, data)} and {infer.described(call, 1, weight)}"
        expected_channels = inner if transposed else inner * groups
        if dims.differ(channels, expected_channels):
            expected = infer.text(dims.simplify(expected_channels))
            raise infer.shape_error(
                call,
                f"{both} do not fit with groups={groups}: the weight is for {expected} channels, "
                f"the data has {infer.text(channels)}",
            )
        grouped = channels if transposed else filters
        if dims.differ(floormod(grouped, groups), IntImm("int64", 0)):
            what = f"{infer.text(grouped)} {'channels' if transposed else 'filters'}"
            raise infer.shape_error(call, f"{both}: {what} are no {groups} equal groups")
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


def _check_attributes(call: Call, rank: int) -> Call:
    """Gives a call whose numbers are as many as there are axes, and refuses others."""
    check_counts(call, rank, strides=rank, dilation=rank, padding=2 * rank)
    groups = infer.attribute(call, "groups")
    if groups < 1:
        raise infer.shape_error(call, f"groups is the number of groups, at least 1, not {groups}")
    return call


def _legalize_convolution(rank: int) -> Legalize:
    """Convolutions give the layout of the data, and are put in `out_layout` after."""

    name = f"conv{rank}d"

    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        data_layout, kernel_layout, out_layout = (attribute(call, key) for key in _LAYOUTS.names)
        images, kernels = without_blocks(data_layout), without_blocks(kernel_layout)

        def convolve(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
            result = getattr(topi.nn, name)(
                reordered(data, data_layout, images),
                reordered(weight, kernel_layout, kernels),
                strides=attribute(call, "strides"),
                padding=attribute(call, "padding"),
                dilation=attribute(call, "dilation"),
                groups=attribute(call, "groups"),
                data_layout=images,
                kernel_layout=kernels,
                out_dtype=attribute(call, "out_dtype"),
            )
            return reordered(result, images, out_layout)

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


_LAYOUTS = Lettered(("data_layout", "kernel_layout", "out_layout"), arguments=2)


def _for_each(number: int, rank: int) -> Extents:
    """A default for all spatial axes; TVM's is a tuple where there are several."""
    return number if rank == 1 else (number,) * rank


def _convolution(rank: int):
    spatial, one, none = SPATIAL[rank], _for_each(1, rank), _for_each(0, rank)

    @operator(
        f"relax.nn.conv{rank}d", "data", "weight",
        infer=_infer(rank, transposed=False), legalize=_legalize_convolution(rank),
        layout=_LAYOUTS, precision=ALWAYS,
    )  # fmt: skip
    def build(
        data: ExprLike, weight: ExprLike,
        strides: Extents = one, padding: Extents = none, dilation: Extents = one,
        groups: int = 1, data_layout: str = f"NC{spatial}", kernel_layout: str = f"OI{spatial}",
        out_layout: str | None = None, out_dtype: str | None = None,
    ) -> Call:  # fmt: skip
        """A convolution along the spatial axes, by filters.

        Args:
            data: (n, c, h, w) where there are two, or as `data_layout` says.
            weight: (filters, c / groups, kh, kw), or as `kernel_layout` says.
            padding: a number, (h, w), or (top, left, bottom, right).
            groups: the channels are divided into so many groups, each with filters of its own.
            out_layout: that of the data by default.
            out_dtype: the type of sums and result, that of the data by default.
        """
        return _check_attributes(call(
            build, data, weight,
            strides=numbers(strides, rank), padding=paddings(padding, rank),
            dilation=numbers(dilation, rank), groups=whole(groups), data_layout=data_layout,
            kernel_layout=kernel_layout, out_layout=out_layout or data_layout,
            out_dtype=str(out_dtype or "void"),
        ), rank)  # fmt: skip

    return build


def _transpose(rank: int):
    spatial, one, none = SPATIAL[rank], _for_each(1, rank), _for_each(0, rank)

    @operator(
        f"relax.nn.conv{rank}d_transpose", "data", "weight",
        infer=_infer(rank, transposed=True), legalize=_legalize_transpose(rank),
        layout=_LAYOUTS, precision=ALWAYS,
    )  # fmt: skip
    def build(
        data: ExprLike, weight: ExprLike,
        strides: Extents = one, padding: Extents = none, output_padding: Extents = none,
        dilation: Extents = one, groups: int = 1, data_layout: str = f"NC{spatial}",
        kernel_layout: str = f"IO{spatial}", out_layout: str | None = None,
        out_dtype: str | None = None,
    ) -> Call:  # fmt: skip
        """The transpose of a convolution: each element of the data puts a filter, `strides` apart.

        Args:
            weight: (c, filters / groups, kh, kw), or as `kernel_layout` says.
            padding: how much of the result is cut off at each side.
            output_padding: how much is added behind.
        """
        return _check_attributes(call(
            build, data, weight,
            strides=numbers(strides, rank), padding=paddings(padding, rank),
            output_padding=numbers(output_padding, rank), dilation=numbers(dilation, rank),
            groups=whole(groups), data_layout=data_layout, kernel_layout=kernel_layout,
            out_layout=out_layout or data_layout, out_dtype=str(out_dtype or "void"),
        ), rank)  # fmt: skip

    return build


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)
conv1d_transpose, conv2d_transpose, conv3d_transpose = _transpose(1), _transpose(2), _transpose(3)
