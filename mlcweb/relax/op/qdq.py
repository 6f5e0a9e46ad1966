"""Quantised numbers: q = x / scale + zero_point, rounded and kept in the range of integers."""

from __future__ import annotations

from typing import Any

from mlcweb.relax import dims
from mlcweb.relax.expr import Call
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo

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


def _infer_quantize(call: Call, context: Any) -> StructInfo:
    infos = infer.tensors(call, context)
    infer.need_float(call, 0, infos[0])
    infer.need_float(call, 1, infos[1])
    wanted = infer.attribute(call, "out_dtype")
    if wanted not in QUANTIZED:
        raise infer.dtype_error(
            call, f"out_dtype must be one of {', '.join(QUANTIZED)}, not {wanted}"
        )
    _check(call, infos)
    return TensorStructInfo(infos[0].shape, wanted, ndim=infos[0].ndim)


def _infer_dequantize(call: Call, context: Any) -> StructInfo:
    infos = infer.tensors(call, context)
    infer.need_float(call, 1, infos[1])
    wanted = infer.attribute(call, "out_dtype")
    if wanted not in ("float16", "float32"):
        raise infer.dtype_error(call, f"out_dtype must be float16 or float32, not {wanted}")
    _check(call, infos)
    return TensorStructInfo(infos[0].shape, wanted, ndim=infos[0].ndim)


_ARGUMENTS = ("data", "scale", "zero_point")
_QUANTIZE = register("relax.quantize", _ARGUMENTS, _infer_quantize)
_DEQUANTIZE = register("relax.dequantize", _ARGUMENTS, _infer_dequantize)


def quantize(
    data: Any, scale: Any, zero_point: Any, axis: int = -1, out_dtype: str = "int8"
) -> Call:
    """data / scale + zero_point, rounded to even and kept in the range of `out_dtype`.

    `scale` and `zero_point` are numbers, or vectors with an element for each position on `axis`.
    """
    return call(_QUANTIZE, data, scale, zero_point, out_dtype=str(out_dtype), axis=int(axis))


def dequantize(
    data: Any, scale: Any, zero_point: Any, axis: int = -1, out_dtype: str = "float32"
) -> Call:
    """(data - zero_point) * scale; see `quantize`."""
    return call(_DEQUANTIZE, data, scale, zero_point, out_dtype=str(out_dtype), axis=int(axis))
