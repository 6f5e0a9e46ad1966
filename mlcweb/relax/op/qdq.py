"""Quantised numbers: q = x / scale + zero_point, rounded and kept in the range of integers."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import by, te
from mlcweb.relax.op.registry import call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr

QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")
"""The element types of quantised tensors."""


def _check(call: Call, infos: list[TensorStructInfo]) -> None:
    """`scale` and `zero_point` are scalars, or vectors along the axis."""
    data = infos[0]
    axis = infer.attribute(call, "axis")
    place = None if data.ndim == -1 else infer.normalized_axis(call, axis, max(data.ndim, 1))
    for index in (1, 2):
        info = infos[index]
        if info.values is None:
            raise infer.shape_error(
                call, f"the shape of {infer.argument_name(call, index)} must be known"
            )
        if info.ndim > 1:
            raise infer.shape_error(
                call, f"{infer.described(call, index, info)} must be a number or a vector"
            )
        if info.ndim == 1 and data.values is not None and place is not None:
            there = data.values[place]
            if getattr(info.values[0], "value", 0) != 1 and dims.differ(info.values[0], there):
                raise infer.shape_error(
                    call,
                    f"{infer.described(call, index, info)} must have {infer.text(there)} "
                    f"element(s), as {infer.described(call, 0, data)} on axis {place}",
                )


def _infer_quantize(call: Call, context: Context) -> StructInfo:
    infos = infer.tensors(call, context)
    infer.need_float(call, 0, infos[0])
    infer.need_float(call, 1, infos[1])
    dtype = infer.attribute(call, "out_dtype")
    if dtype not in QUANTIZED:
        raise infer.dtype_error(
            call, f"out_dtype must be one of {', '.join(QUANTIZED)}, not {dtype}"
        )
    _check(call, infos)
    return TensorStructInfo(infos[0].shape, dtype, ndim=infos[0].ndim)


def _infer_dequantize(call: Call, context: Context) -> StructInfo:
    infos = infer.tensors(call, context)
    infer.need_float(call, 1, infos[1])
    dtype = infer.attribute(call, "out_dtype")
    if dtype not in ("float16", "float32"):
        raise infer.dtype_error(call, f"out_dtype must be float16 or float32, not {dtype}")
    _check(call, infos)
    return TensorStructInfo(infos[0].shape, dtype, ndim=infos[0].ndim)


def _along(value: te.Tensor, index: Sequence[PrimExpr], axis: int) -> PrimExpr:
    """The element of a scalar, or of a vector along an axis, for an element of a tensor."""
    if value.ndim == 0:
        return value()
    single = arithmetic.is_const_int(value.shape[0], 1)
    return value(0 if single or not index else index[axis])


def _quantize(
    data: te.Tensor, scale: te.Tensor, zero_point: te.Tensor, axis: int, dtype: str
) -> te.Tensor:
    least, most = dtypes.min_value(dtype), dtypes.max_value(dtype)

    def element(*index: PrimExpr) -> PrimExpr:
        scaled = data(*index) / _along(scale, index, axis)
        rounded = intrinsics.unary_functions["nearbyint"](scaled)
        offset = arithmetic.cast(data.dtype, _along(zero_point, index, axis))
        moved = rounded + offset
        low, high = (arithmetic.const(float(bound), data.dtype) for bound in (least, most))
        kept = arithmetic.maximum(arithmetic.minimum(moved, high), low)
        return arithmetic.cast(dtype, kept)

    return te.compute(data.shape, element, "quantized")


def _dequantize(
    data: te.Tensor, scale: te.Tensor, zero_point: te.Tensor, axis: int, dtype: str
) -> te.Tensor:
    wide = "int32" if dtypes.is_integer(data.dtype) else data.dtype

    def element(*index: PrimExpr) -> PrimExpr:
        offset = arithmetic.cast(wide, _along(zero_point, index, axis))
        away = arithmetic.cast(wide, data(*index)) - offset
        factor = _along(scale, index, axis)
        product = arithmetic.cast(factor.dtype, away) * factor
        return arithmetic.cast(dtype, product)

    return te.compute(data.shape, element, "dequantized")


@operator(
    "relax.quantize", "data", "scale", "zero_point",
    infer=_infer_quantize, legalize=by(_quantize, "axis", "out_dtype", hint="quantize"),
)  # fmt: skip
def quantize(
    data: ExprLike, scale: ExprLike, zero_point: ExprLike, axis: int = -1, out_dtype: str = "int8"
) -> Call:
    """data / scale + zero_point, rounded to even and kept in the range of `out_dtype`.

    `scale` and `zero_point` are numbers, or vectors with an element for each position on `axis`.
    """
    return call(quantize, data, scale, zero_point, out_dtype=str(out_dtype), axis=whole(axis))


@operator(
    "relax.dequantize", "data", "scale", "zero_point",
    infer=_infer_dequantize, legalize=by(_dequantize, "axis", "out_dtype", hint="dequantize"),
)  # fmt: skip
def dequantize(
    data: ExprLike,
    scale: ExprLike,
    zero_point: ExprLike,
    axis: int = -1,
    out_dtype: str = "float32",
) -> Call:
    """(data - zero_point) * scale; see `quantize`."""
    return call(dequantize, data, scale, zero_point, out_dtype=str(out_dtype), axis=whole(axis))
