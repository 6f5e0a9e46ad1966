"""Operators on the elements of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags
from mlcweb.topi.shapes import Scalar, ShapeLike


def elementwise(
    data: Tensor, element: Callable[[PrimExpr], PrimExpr], name: str = "compute"
) -> Tensor:
    """The tensor of `element(x)` for all elements x."""
    return compute(data.shape, lambda *index: element(data(*index)), name, tag=tags.ELEMWISE)


def named(data: Tensor, element: Callable[[PrimExpr], PrimExpr], name: str) -> Tensor:
    """As `elementwise`, with TVM's names of loops."""
    return _by_index(data.shape, lambda *index: element(data(*index)), name)


def _by_index(shape: shapes.Shape, element: Callable[..., PrimExpr], name: str) -> Tensor:
    axes = shapes.axis_names(len(shape))
    return compute(shape, element, name, tag=tags.ELEMWISE, varargs_names=axes)


def _operator(name: str, element: Callable[[PrimExpr], PrimExpr]) -> Callable[[Tensor], Tensor]:
    def operator(x: Tensor) -> Tensor:
        return elementwise(x, element)

    operator.__name__ = name
    operator.__doc__ = f"`{name}` of every element."
    return operator


def _kept_integer(name: str) -> Callable[[PrimExpr], PrimExpr]:
    """A rounding: integers are what they round to."""
    rounded = intrinsics.unary_functions[name]
    return lambda x: rounded(x) if dtypes.is_float(x.dtype) else x


_functions = intrinsics.unary_functions
exp, log, log2, log10, sqrt, rsqrt = (
    _operator(name, _functions[name]) for name in ("exp", "log", "log2", "log10", "sqrt", "rsqrt")
)
sin, cos, tan, sinh, cosh, tanh = (
    _operator(name, _functions[name]) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
)
asin, acos, atan, asinh, acosh, atanh = (
    _operator(name, _functions[name])
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
)
sigmoid, erf = (_operator(name, _functions[name]) for name in ("sigmoid", "erf"))
floor, ceil, trunc = (_operator(name, _kept_integer(name)) for name in ("floor", "ceil", "trunc"))
round = _operator("round", _kept_integer("round"))
abs = _operator("abs", intrinsics.absolute)
isnan = _operator("isnan", intrinsics.isnan)
isinf = _operator("isinf", intrinsics.isinf)
isfinite = _operator("isfinite", intrinsics.isfinite)
negative = _operator("negative", lambda x: x * arithmetic.const(-1, x.dtype))
identity = _operator("identity", lambda x: x)
square = _operator("square", lambda x: x * x)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 by the sign of every element."""

    def element(value: PrimExpr) -> PrimExpr:
        zero, one, minus = (arithmetic.const(number, value.dtype) for number in (0, 1, -1))
        negative_or_zero = arithmetic.select(value < zero, minus, zero)
        return arithmetic.select(value > zero, one, negative_or_zero)

    return named(x, element, "T_sign")


def clip(x: Tensor, a_min: Scalar, a_max: Scalar) -> Tensor:
    """Every element kept between `a_min` and `a_max`; NaN stays where the target keeps it."""

    def element(value: PrimExpr) -> PrimExpr:
        low = arithmetic.cast(value.dtype, a_min)
        high = arithmetic.cast(value.dtype, a_max)
        return arithmetic.maximum(arithmetic.minimum(value, high), low)

    return elementwise(x, element)


def logical_not(data: Tensor) -> Tensor:
    """`logical_not` of every element."""
    return named(data, arithmetic.logical_not, "T_logical_not")


def bitwise_not(data: Tensor) -> Tensor:
    """`bitwise_not` of every element."""
    return named(data, arithmetic.bitwise_not, "T_bitwise_not")


def cast(x: Tensor | PrimExpr, dtype: str) -> Any:
    """Every element as another type; of an expression, the cast."""
    dtype = dtypes.full_name(dtype)
    if isinstance(x, PrimExpr):
        return arithmetic.cast(dtype, x)
    return elementwise(x, lambda value: arithmetic.cast(dtype, value))


def ceil_log2(x: PrimExpr | Scalar) -> PrimExpr:
    """The logarithm of a number to base 2, rounded up; that of a positive integer exactly."""
    value = arithmetic.convert(x)
    if dtypes.is_float(value.dtype):
        return _functions["ceil"](_functions["log2"](value))
    zeros = intrinsics.call("int32", "clz", value - 1)
    return arithmetic.cast(value.dtype, dtypes.bits(value.dtype) - zeros)


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The bits of every element as another type of the same width."""
    return elementwise(x, lambda value: intrinsics.reinterpret(dtype, value))


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape, element by element."""
    if not xs:
        raise DiagnosticError("elemwise_sum: there is nothing to sum")

    def element(*index: PrimExpr) -> PrimExpr:
        return reduce(arithmetic.add, (x(*index) for x in xs))

    return _by_index(xs[0].shape, element, "T_elemwise_sum")


def full(shape: ShapeLike, dtype: str, fill_value: Scalar) -> Tensor:
    """A tensor of one value."""
    extents = shapes.as_shape(shape)
    return _by_index(extents, lambda *_: arithmetic.cast(dtype, fill_value), "T_full")


def full_like(x: Tensor, fill_value: Scalar) -> Tensor:
    """One value in the shape and type of `x`."""
    value = arithmetic.cast(x.dtype, fill_value)
    return _by_index(x.shape, lambda *_: value, "T_full_like")
