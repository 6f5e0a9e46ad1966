"""Transposes of convolutions: each element of the image puts a filter, a stride apart."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.dialect import also_named
from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes, tags
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.nn.window import SPATIAL, numbers, paddings
from mlcweb.topi.shapes import Numbers, Padding, Scalar


def dilate(
    data: Tensor,
    strides: Numbers,
    dilation_value: Scalar = 0.0,
    name: str = "DilatedInput",
) -> Tensor:
    """`data` with `stride - 1` elements of one value between neighbours on each axis."""
    steps = numbers("dilate", "strides", strides, data.ndim)
    shape = [(extent - 1) * step + 1 for extent, step in zip(data.shape, steps, strict=True)]
    value = arithmetic.cast(data.dtype, dilation_value)

    def element(*index: PrimExpr) -> PrimExpr:
        inside = [i // step for i, step in zip(index, steps, strict=True)]
        met = [
            arithmetic.equal(i % step, 0) for i, step in zip(index, steps, strict=True) if step > 1
        ]
        return intrinsics.if_then_else(logic.all(*met), data(*inside), value) if met else (
            data(*inside))  # fmt: skip

    return compute(shape, element, name, tag=f"{tags.INJECTIVE},dilate")


def conv_transpose(
    data: Tensor,
    kernel: Tensor,
    strides: Numbers,
    padding: Padding,
    output_padding: Numbers,
    dilation: Numbers = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """The transpose of a convolution of (n, filters, …) by (c, filters / groups, …): from
    (n, c, …) to (n, filters, …), with `output_padding` elements more behind."""
    rank = data.ndim - 2
    operator = f"conv{rank}d_transpose"
    if rank not in SPATIAL or kernel.ndim != data.ndim:
        raise DiagnosticError(
            f"{operator}: data {shapes.show(data.shape)} and kernel {shapes.show(kernel.shape)} "
            "are (n, c, …) and (c, filters, …) with as many spatial axes"
        )
    batch, channels, *image = data.shape
    inner, per_group, *sizes = kernel.shape
    count = shapes.constant(channels)
    if not shapes.same_extent(channels, inner) or (count is not None and count % groups):
        raise DiagnosticError(
            f"{operator}: the kernel {shapes.show(kernel.shape)} does not fit the data "
            f"{shapes.show(data.shape)} with {groups} group(s)"
        )
    steps = numbers(operator, "stride", strides, rank)
    spread = numbers(operator, "dilation", dilation, rank)
    extra = numbers(operator, "output padding", output_padding, rank)
    widths = [(size - 1) * d + 1 for size, d in zip(sizes, spread, strict=True)]
    low, high = paddings(operator, padding, widths)
    apart = dilate(data, [1, 1, *steps], name="data_dilate")
    before = [w - (1 + a) for w, a in zip(widths, low, strict=True)]
    after = [w - (1 + a - e) for w, a, e in zip(widths, high, extra, strict=True)]
    padded = pad(apart, [0, 0, *before], [0, 0, *after], name="data_pad")
    each = channels if groups == 1 else channels // groups
    letters = SPATIAL[rank].lower()
    sums = [
        reduce_axis((0, extent), f"d{letter}")
        for extent, letter in zip((each, *sizes), f"c{letters}", strict=True)
    ]
    dtype = out_dtype or data.dtype

    def turned(*index: PrimExpr) -> PrimExpr:
        o, i, *inside = index
        ends = (s - 1 - k for s, k in zip(sizes, inside, strict=True))
        return kernel(i, o, *ends)

    mirrored = compute(
        [per_group, channels, *sizes],
        turned,
        "kernel_transform",
        varargs_names=["o", "i", *letters],
    )

    def element(*index: PrimExpr) -> PrimExpr:
        b, c, *place = index
        channel, *inside = (axis.var for axis in sums)
        chosen = c
        if groups > 1:
            channel = c // per_group * each + channel
            chosen = c % per_group
        pixel = [p + k * d for p, k, d in zip(place, inside, spread, strict=True)]
        return reducers.sum(
            arithmetic.cast(dtype, padded(b, channel, *pixel))
            * arithmetic.cast(dtype, mirrored(chosen, channel, *inside)),
            sums,
        )

    sized = zip(image, steps, widths, low, high, extra, strict=True)
    output = [(n - 1) * s + (w + (e - a - z)) for n, s, w, a, z, e in sized]
    return compute(
        [batch, per_group * groups, *output],
        element,
        tag=f"{operator}_nc{letters}",
        varargs_names=["b", "c", *letters],
    )


_spelled = also_named(Input="data", Filter="kernel", stride="strides")


def _plain(rank: int) -> Callable[..., Tensor]:
    @_spelled
    def build(
        data: Tensor, kernel: Tensor, strides: Numbers, padding: Padding, out_dtype: str | None,
        output_padding: Numbers,
    ) -> Tensor:  # fmt: skip
        return conv_transpose(data, kernel, strides, padding, output_padding, out_dtype=out_dtype)

    return _named(build, f"conv{rank}d_transpose_nc{SPATIAL[rank].lower()}")


def _grouped(rank: int) -> Callable[..., Tensor]:
    @_spelled
    def build(
        data: Tensor, kernel: Tensor, strides: Numbers, padding: Padding, out_dtype: str | None,
        output_padding: Numbers, groups: int,
    ) -> Tensor:  # fmt: skip
        return conv_transpose(
            data, kernel, strides, padding, output_padding, groups=groups, out_dtype=out_dtype
        )

    return _named(build, f"group_conv{rank}d_transpose_nc{SPATIAL[rank].lower()}")


def _named(build: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    build.__name__ = build.__qualname__ = name
    build.__doc__ = "(n, c, …) by (c, filters / groups, …). See `conv_transpose`."
    return build


conv1d_transpose_ncw, conv2d_transpose_nchw, conv3d_transpose_ncdhw = map(_plain, SPATIAL)
group_conv1d_transpose_ncw, group_conv2d_transpose_nchw, group_conv3d_transpose_ncdhw = map(
    _grouped, SPATIAL
)
