"""Lowering of sorting, and of operators between numbers and their quantised form."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import attribute, by, enter, known
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes


def _sort(builder: BlockBuilder, call: E.Call) -> Any:
    axis, descending = attribute(call, "axis"), attribute(call, "descending")
    return builder.call_te(topi.sort, call.args[0], axis, not descending)


def _argsort(builder: BlockBuilder, call: E.Call) -> Any:
    axis, ascending = attribute(call, "axis"), not attribute(call, "descending")
    dtype = known(builder, call).dtype
    return builder.call_te(topi.argsort, call.args[0], axis=axis, is_ascend=ascending, dtype=dtype)


def _topk(builder: BlockBuilder, call: E.Call) -> Any:
    data = known(builder, call.args[0])
    k, axis = attribute(call, "k"), attribute(call, "axis")
    extent = getattr(data.values[axis], "value", None)
    if extent is not None:
        k = min(k, extent)
    return builder.call_te(
        topi.topk,
        call.args[0],
        k,
        axis,
        attribute(call, "ret_type"),
        not attribute(call, "largest"),
        attribute(call, "dtype"),
    )


def _along(value: te.Tensor, index: Any, axis: int) -> Any:
    """The element of a scalar, or of a vector along an axis, for an element of a tensor."""
    if value.ndim == 0:
        return value()
    single = arithmetic.is_const_int(value.shape[0], 1)
    return value(0 if single or not index else index[axis])


def _quantize(
    data: te.Tensor, scale: te.Tensor, zero_point: te.Tensor, axis: int, dtype: str
) -> te.Tensor:
    least, most = dtypes.min_value(dtype), dtypes.max_value(dtype)

    def element(*index: Any) -> Any:
        scaled = arithmetic.divide(data(*index), _along(scale, index, axis))
        rounded = intrinsics.unary_functions["nearbyint"](scaled)
        offset = arithmetic.cast(data.dtype, _along(zero_point, index, axis))
        moved = arithmetic.add(rounded, offset)
        low, high = (arithmetic.const(float(bound), data.dtype) for bound in (least, most))
        kept = arithmetic.maximum(arithmetic.minimum(moved, high), low)
        return arithmetic.cast(dtype, kept)

    return te.compute(data.shape, element, "quantized")


def _dequantize(
    data: te.Tensor, scale: te.Tensor, zero_point: te.Tensor, axis: int, dtype: str
) -> te.Tensor:
    wide = "int32" if dtypes.is_integer(data.dtype) else data.dtype

    def element(*index: Any) -> Any:
        offset = arithmetic.cast(wide, _along(zero_point, index, axis))
        away = arithmetic.subtract(arithmetic.cast(wide, data(*index)), offset)
        factor = _along(scale, index, axis)
        product = arithmetic.multiply(arithmetic.cast(factor.dtype, away), factor)
        return arithmetic.cast(dtype, product)

    return te.compute(data.shape, element, "dequantized")


enter({
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "quantize": by(_quantize, "axis", "out_dtype", hint="quantize"),
    "dequantize": by(_dequantize, "axis", "out_dtype", hint="dequantize"),
})  # fmt: skip
