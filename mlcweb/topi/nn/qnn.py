"""Quantisation with the rounding and the limits of a type that a scalar tells, in the type of the
data."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags

SQNN_DISABLE, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = range(4)
SQNN_DTYPE_TO_CODE = {
    "disable": SQNN_DISABLE, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32,
}  # fmt: skip
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in SQNN_DTYPE_TO_CODE.items()}

_INTEGERS = [dtype for dtype in SQNN_DTYPE_TO_CODE if dtype != "disable"]

Value = Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr]
"""What becomes of an element, with its scale and its zero point."""


def simulated_quantize(
    data: Tensor,
    out_dtype: Tensor | PrimExpr,
    output_scale: Tensor | None = None,
    output_zero_point: Tensor | None = None,
    axis: int = -1,
) -> Tensor:
    """round(data / scale) + zero point, inside of the limits of a type.

    Args:
        out_dtype: a code of SQNN_DTYPE_TO_CODE, as an expression or a tensor; "disable" leaves the
            data as they are.
        output_scale, output_zero_point: one, or one for each index along `axis`.
    """

    def limited(dtype: str) -> Value:
        low, high = intrinsics.min_value(dtype), intrinsics.max_value(dtype)

        def value(x: PrimExpr, scale: PrimExpr, zero: PrimExpr) -> PrimExpr:
            steps = intrinsics.unary_functions["round"](x / scale) + zero
            return arithmetic.maximum(arithmetic.minimum(steps, high), low)

        return value

    rules = {dtype: limited(dtype) for dtype in _INTEGERS}
    return _simulated(data, out_dtype, output_scale, output_zero_point, axis, rules)


def simulated_dequantize(
    data: Tensor,
    in_dtype: Tensor | PrimExpr,
    input_scale: Tensor | None = None,
    input_zero_point: Tensor | None = None,
    axis: int = -1,
) -> Tensor:
    """(data - zero point) * scale: see `simulated_quantize`."""
    rules = dict.fromkeys(_INTEGERS, lambda x, scale, zero: (x - zero) * scale)
    return _simulated(data, in_dtype, input_scale, input_zero_point, axis, rules)


def _simulated(
    data: Tensor, code: Tensor | PrimExpr, scale: Tensor | None, zero: Tensor | None, axis: int,
    rules: dict[str, Value],
) -> Tensor:  # fmt: skip
    if scale is None or zero is None:
        raise DiagnosticError("Simulated quantisation needs a scale and a zero point")
    place = shapes.axis_of("simulated quantisation", axis, data.ndim)

    def parameter(tensor: Tensor, index: tuple[PrimExpr, ...]) -> PrimExpr:
        return tensor(arithmetic.floormod(index[place], tensor.shape[0]))

    def element(*index: PrimExpr) -> PrimExpr:
        value = data(*index)
        number = code(*[0] * code.ndim) if isinstance(code, Tensor) else code
        result = value
        for dtype, rule in rules.items():
            chosen = arithmetic.equal(number, SQNN_DTYPE_TO_CODE[dtype])
            changed = rule(value, parameter(scale, index), parameter(zero, index))
            result = intrinsics.if_then_else(chosen, changed, result)
        return result

    return compute(data.shape, element, tag=tags.ELEMWISE)
