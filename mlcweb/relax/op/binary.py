"""Elementwise operators of two tensors, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.relax.expr import Call, Expr, const
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import Infer, call, register
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.dtype import is_float


def _tensor(value: Any, other: Any) -> Any:
    """A number as a tensor without dimensions, of the other operand's element type."""
    number = constant_value(value)
    if number is None or not isinstance(other, Expr):
        return value
    info = other.struct_info
    dtype = info.dtype if isinstance(info, TensorStructInfo) else None
    fits = dtype is not None and (isinstance(number, int) or is_float(dtype))
    return const(number, dtype if fits else None)


def _binary(name: str, deduce: Infer = infer.elementwise) -> Callable[[Any, Any], Call]:
    op = register(f"relax.{name}", ("x1", "x2"), deduce)

    def build(x1: Any, x2: Any) -> Call:
        return call(op, _tensor(x1, x2), _tensor(x2, x1))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name}(x1, x2) of tensors of one element type, broadcast."
    return build


add = _binary("add")
subtract = _binary("subtract")
multiply = _binary("multiply")
divide = _binary("divide")
floor_divide = _binary("floor_divide")
mod = _binary("mod")
floor_mod = _binary("floor_mod")
power = _binary("power")
maximum = _binary("maximum")
minimum = _binary("minimum")
atan2 = _binary("atan2", infer.elementwise_float)
log_add_exp = _binary("log_add_exp", infer.elementwise_float)

equal = _binary("equal", infer.comparison)
not_equal = _binary("not_equal", infer.comparison)
less = _binary("less", infer.comparison)
less_equal = _binary("less_equal", infer.comparison)
greater = _binary("greater", infer.comparison)
greater_equal = _binary("greater_equal", infer.comparison)

logical_and = _binary("logical_and", infer.elementwise_bool)
logical_or = _binary("logical_or", infer.elementwise_bool)
logical_xor = _binary("logical_xor", infer.elementwise_bool)
bitwise_and = _binary("bitwise_and", infer.elementwise_integer)
bitwise_or = _binary("bitwise_or", infer.elementwise_integer)
bitwise_xor = _binary("bitwise_xor", infer.elementwise_integer)
left_shift = _binary("left_shift", infer.elementwise_integer)
right_shift = _binary("right_shift", infer.elementwise_integer)
