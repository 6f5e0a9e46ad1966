"""Padding, and shuffling and flattening of images."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import attribute, by, to_result_shape, topi
from mlcweb.relax.op.registry import FOLLOW, call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo

PAD_MODES = ("constant", "reflect", "replicate", "circular")


def _infer_pad(call: Call, context: Context) -> StructInfo:
    info, widths = infer.tensor(call, 0, context), infer.attribute(call, "pad_width")
    mode = infer.attribute(call, "pad_mode")
    if mode not in PAD_MODES:
        raise infer.dtype_error(call, f'pad_mode is one of {", ".join(PAD_MODES)}, not "{mode}"')
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    if len(widths) != 2 * info.ndim:
        raise infer.shape_error(
            call,
            f"pad_width needs two numbers per axis of {infer.described(call, 0, info)}, not "
            f"{list(widths)}",
        )
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    pairs = zip(widths[::2], widths[1::2], strict=True)
    shape = [dims.simplify(n + (a + b)) for n, (a, b) in zip(info.values, pairs, strict=True)]
    if any((constant_int(extent) or 0) < 0 for extent in shape):
        raise infer.shape_error(
            call, f"pad_width {list(widths)} cuts more than {infer.described(call, 0, info)} has"
        )
    return TensorStructInfo(shape, info.dtype)


def _legalize_pad(builder: BlockBuilder, call: Call) -> Expr:
    widths, mode = list(attribute(call, "pad_width")), attribute(call, "pad_mode")
    before, after = widths[::2], widths[1::2]
    if mode != "constant":
        return builder.call_te(getattr(topi.nn, f"{mode}_pad"), *call.args, before, after)
    return builder.call_te(topi.nn.pad, *call.args, before, after, attribute(call, "pad_value"))


@operator("relax.nn.pad", "data", infer=_infer_pad, legalize=_legalize_pad)
def pad(
    data: ExprLike,
    pad_width: Sequence[int],
    pad_mode: str = "constant",
    pad_value: float = 0.0,
) -> Call:
    """So many elements put before and behind along each axis.

    Args:
        pad_width: before axis 0, behind axis 0, before axis 1, …
        pad_mode: "constant" puts `pad_value`, "reflect" the mirror image without the border,
            "replicate" the border, "circular" the other end.
    """
    widths = [whole(width) for width in pad_width]
    return call(pad, data, pad_width=widths, pad_value=float(pad_value), pad_mode=pad_mode)


def _infer_batch_flatten(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=2)
    if not info.values:
        raise infer.shape_error(call, "data is a scalar; it has no batch dimension")
    return TensorStructInfo([info.values[0], dims.product(info.values[1:])], info.dtype)


@operator(
    "relax.nn.batch_flatten", infer=_infer_batch_flatten, legalize=to_result_shape, precision=FOLLOW
)
def batch_flatten(data: ExprLike) -> Call:
    """(n, …) as (n, product of the rest)."""
    return call(batch_flatten, data)


def _infer_pixel_shuffle(call: Call, context: Context) -> StructInfo:
    info, factor = infer.tensor(call, 0, context), infer.attribute(call, "upscale_factor")
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    if info.ndim < 3:
        raise infer.shape_error(call, f"{infer.described(call, 0, info)} is no (…, c, h, w)")
    *outer, channels, high, wide = info.values
    count = constant_int(channels)
    if factor < 1 or (count is not None and count % factor**2):
        raise infer.shape_error(
            call,
            f"the channels of {infer.described(call, 0, info)} are not divided by {factor}²",
        )
    inner = (channels // factor**2, high * factor, wide * factor)
    return TensorStructInfo([*outer, *(dims.simplify(n) for n in inner)], info.dtype)


@operator(
    "relax.nn.pixel_shuffle", "data",
    infer=_infer_pixel_shuffle,
    legalize=by("nn.pixel_shuffle.pixel_shuffle", "upscale_factor", hint="pixel_shuffle"),
)  # fmt: skip
def pixel_shuffle(data: ExprLike, upscale_factor: int) -> Call:
    """(…, c r², h, w) as (…, c, h r, w r): channels become neighbouring pixels."""
    return call(pixel_shuffle, data, upscale_factor=whole(upscale_factor))
