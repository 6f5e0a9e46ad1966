"""Operators on two operands, tensors or scalars, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags
from mlcweb.topi.shapes import Operand, ShapeLike

Element = Callable[[PrimExpr, PrimExpr], PrimExpr]


def _operator(name: str, element: Element, what: str) -> Callable[..., Any]:
    def operator(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
        if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
            return element(arithmetic.convert(lhs), arithmetic.convert(rhs))
        left, right = _operand(lhs, rhs), _operand(rhs, lhs)
        shape = shapes.broadcast(
            name, *(side.shape for side in (left, right) if isinstance(side, Tensor))
        )

        def value(*index: PrimExpr) -> PrimExpr:
            return element(_at(left, index, shape), _at(right, index, shape))

        both = isinstance(left, Tensor) and isinstance(right, Tensor)
        tag = tags.BROADCAST if both else tags.ELEMWISE
        axes = shapes.axis_names(len(shape))
        return compute(shape, value, f"T_{name}", tag=tag, varargs_names=axes)

    operator.__name__ = name
    operator.__doc__ = f"{what}, elementwise with broadcasting."
    return operator


def _operand(value: Operand, other: Operand) -> Tensor | PrimExpr:
    """A scalar beside a tensor takes the tensor's type, as a literal in NumPy does."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float)) and isinstance(other, Tensor):
        dtype = other.dtype
        if isinstance(value, float) and not dtypes.is_float(dtype):
            dtype = "float32"
        return arithmetic.const(value, dtype)
    return arithmetic.convert(value)


def _at(operand: Tensor | PrimExpr, index: tuple[PrimExpr, ...], shape: shapes.Shape) -> PrimExpr:
    if isinstance(operand, Tensor):
        return operand(*shapes.broadcast_index(operand.shape, index, shape))
    return operand


def _matched(element: Element) -> Element:
    return lambda a, b: element(*arithmetic.match_types(a, b))


def _quotient(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Of integers the quotient towards zero, as TVM's `divide` gives it."""
    a, b = arithmetic.match_types(a, b)
    return a / b if dtypes.is_float(a.dtype) else arithmetic.truncdiv(a, b)


def _remainder(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    a, b = arithmetic.match_types(a, b)
    return (
        intrinsics.call(a.dtype, "fmod", a, b)
        if dtypes.is_float(a.dtype)
        else (arithmetic.truncmod(a, b))
    )


def _floor_quotient(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    a, b = arithmetic.match_types(a, b)
    if dtypes.is_float(a.dtype):
        return intrinsics.floor(a / b)
    return a // b


def _floor_remainder(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    a, b = arithmetic.match_types(a, b)
    if dtypes.is_float(a.dtype):
        return a - intrinsics.floor(a / b) * b
    return a % b


def _log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """log(exp(a) + exp(b)) without overflow."""
    a, b = arithmetic.match_types(a, b)
    top = arithmetic.maximum(a, b)
    return top + intrinsics.log(intrinsics.exp(a - top) + intrinsics.exp(b - top))


add = _operator("add", _matched(arithmetic.add), "The sum")
subtract = _operator("subtract", _matched(arithmetic.subtract), "The difference")
multiply = _operator("multiply", _matched(arithmetic.multiply), "The product")
divide = _operator("divide", _quotient, "The quotient; of integers towards zero")
floor_divide = _operator("floor_divide", _floor_quotient, "The quotient, rounded down")
mod = _operator("mod", _remainder, "The remainder with the sign of the dividend")
floor_mod = _operator("floor_mod", _floor_remainder, "The remainder with the sign of the divisor")
maximum = _operator("maximum", _matched(arithmetic.maximum), "The greater one")
minimum = _operator("minimum", _matched(arithmetic.minimum), "The lesser one")
power = _operator("power", intrinsics.power, "The power")
atan2 = _operator("atan2", intrinsics.binary_functions["atan2"], "The angle of (y, x)")
log_add_exp = _operator("log_add_exp", _log_add_exp, "log(exp(a) + exp(b))")
left_shift = _operator("left_shift", _matched(arithmetic.shift_left), "The left shift")
right_shift = _operator("right_shift", _matched(arithmetic.shift_right), "The right shift")
bitwise_and = _operator("bitwise_and", _matched(arithmetic.bitwise_and), "The bitwise and")
bitwise_or = _operator("bitwise_or", _matched(arithmetic.bitwise_or), "The bitwise or")
bitwise_xor = _operator("bitwise_xor", _matched(arithmetic.bitwise_xor), "The bitwise xor")
equal = _operator("equal", arithmetic.equal, "Whether a == b")
not_equal = _operator("not_equal", arithmetic.not_equal, "Whether a != b")
less = _operator("less", arithmetic.less, "Whether a < b")
less_equal = _operator("less_equal", arithmetic.less_equal, "Whether a <= b")
greater = _operator("greater", arithmetic.greater, "Whether a > b")
greater_equal = _operator("greater_equal", arithmetic.greater_equal, "Whether a >= b")
logical_and = _operator("logical_and", arithmetic.logical_and, "Whether both hold")
logical_or = _operator("logical_or", arithmetic.logical_or, "Whether one of the two holds")
logical_xor = _operator("logical_xor", arithmetic.bitwise_xor, "Whether just one of the two holds")


def broadcast_to(data: Tensor, shape: ShapeLike) -> Tensor:
    """`data` repeated to `shape`."""
    extents = shapes.as_shape(shape)
    result = shapes.broadcast("broadcast_to", data.shape, extents)
    if len(result) != len(extents) or not all(map(shapes.same_extent, result, extents)):
        raise DiagnosticError(
            f"broadcast_to: {shapes.show(data.shape)} does not broadcast to {shapes.show(extents)}"
        )
    return compute(
        extents,
        lambda *index: data(*shapes.broadcast_index(data.shape, index, extents)),
        "T_broadcast_to",
        tag=tags.BROADCAST,
        varargs_names=shapes.axis_names(len(extents)),
    )
