"""Builders of expressions: operand types are matched and constants folded, as TVM's operators do.

`a + 0`, `a * 1` and arithmetic on constants never make nodes, so that texts and programs built here
look as they do in TVM.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.op import register_op
from mlcweb.ir.visitor import walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.operators import DIVISIONS, OPERATORS, Key, key_of


def const(value: int | float | bool, dtype: str | None = None) -> E.PrimExpr:
    """A constant. Without `dtype`: bool, int32 (int64 where it does not fit) or float32.

    A vector `dtype` gives a broadcast constant. Equal integers are mostly the same object.
    """
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
        else:
            dtype = "float32"
    if type(value) is int:
        return _constant_of(value, dtype)
    return _new_constant(value, dtype)


def _new_constant(value: int | float | bool, dtype: str) -> E.PrimExpr:
    lanes = dtypes.lanes(dtype)
    if lanes > 1:
        return E.Broadcast(const(value, dtypes.element_of(dtype)), lanes)
    if dtypes.is_float(dtype):
        limit = dtypes.max_value(dtype)
        if not -limit <= value <= limit and math.isfinite(value):
            raise DiagnosticError(
                f"{value} is beyond {dtype}, whose greatest value is {limit}; write "
                f'T.{dtype}("inf") where infinity is meant'
            )
        return E.FloatImm(dtype, float(value))
    if dtypes.is_bool(dtype):
        return E.IntImm(dtype, int(bool(value)))
    return E.IntImm(dtype, dtypes.wrap_integer(int(value), dtype))


_constant_of = lru_cache(maxsize=4096)(_new_constant)


def convert(value: Any) -> E.PrimExpr:
    """`value` as an expression: expressions as they are, numbers and strings as constants."""
    if isinstance(value, E.PrimExpr):
        return value
    if isinstance(value, (bool, int, float)):
        return const(value)
    if isinstance(value, str):
        return E.StringImm(value)
    as_expression = getattr(value, "asobject", None)
    if callable(as_expression):
        return convert(as_expression())
    if hasattr(value, "item"):
        return const(value.item(), str(value.dtype))
    raise DiagnosticError(f"{value!r} ({type(value).__name__}) is not an expression")


def is_const_int(value: Any, number: int) -> bool:
    """Whether an expression is the integer constant `number`."""
    return isinstance(value, E.IntImm) and value.value == number


def constant_value(value: Any) -> int | float | None:
    """The number that a constant expression (or number) is, else None."""
    if isinstance(value, (E.IntImm, E.FloatImm)):
        return value.value
    return value if isinstance(value, (int, float)) else None


def cast(dtype: str, value: Any) -> E.PrimExpr:
    """`value` converted to `dtype`; nothing where it has that type, folded where it is constant."""
    value = convert(value)
    if value.dtype == dtype:
        return value
    if dtypes.lanes(dtype) > 1 and dtypes.lanes(value.dtype) == 1:
        return E.Broadcast(cast(dtypes.element_of(dtype), value), dtypes.lanes(dtype))
    if isinstance(value, E.IntImm):
        return const(value.value, dtype)
    if isinstance(value, E.FloatImm) and dtypes.is_float(dtype):
        return _rounded(dtype, value.value)
    if isinstance(value, E.Broadcast):
        return E.Broadcast(cast(dtypes.element_of(dtype), value.value), value.lanes)
    return E.Cast(dtype, value)


def match_types(a: Any, b: Any) -> tuple[E.PrimExpr, E.PrimExpr]:
    """Both operands in their common type: floats win over integers, wider over narrower."""
    a, b = convert(a), convert(b)
    if a.dtype == b.dtype:
        return a, b
    if isinstance(a, E.StringImm) or isinstance(b, E.StringImm):
        raise DiagnosticError("Strings have no arithmetic")
    lanes = max(dtypes.lanes(a.dtype), dtypes.lanes(b.dtype))
    common = dtypes.with_lanes(_common_element(a.dtype, b.dtype), lanes)
    return cast(common, a), cast(common, b)


def _common_element(a: str, b: str) -> str:
    a, b = dtypes.element_of(a), dtypes.element_of(b)
    if "handle" in (a, b):
        raise DiagnosticError(f"No arithmetic between {a} and {b}")
    if dtypes.is_float(a) or dtypes.is_float(b):
        if dtypes.is_float(a) and dtypes.is_float(b):
            return a if dtypes.bits(a) >= dtypes.bits(b) else b
        return a if dtypes.is_float(a) else b
    if dtypes.kind(a) == dtypes.kind(b):
        return a if dtypes.bits(a) >= dtypes.bits(b) else b
    if dtypes.is_bool(a) or dtypes.is_bool(b):
        return b if dtypes.is_bool(a) else a
    return f"int{max(dtypes.bits(a), dtypes.bits(b))}"


def _fold(key: Key, dtype: str, operands: tuple[Any, ...]) -> E.PrimExpr:
    """The constant that an operator gives for constants."""
    fold = OPERATORS[key].fold
    assert fold is not None
    return _rounded(dtype, fold(*operands))


def _rounded(dtype: str, value: int | float) -> E.PrimExpr:
    """A result as a constant: what is beyond a float is infinite."""
    if dtypes.is_float(dtype) and abs(value) > dtypes.max_value(dtype):
        return E.FloatImm(dtype, math.copysign(math.inf, value))
    return const(value, dtype)


def _constants(a: E.PrimExpr, b: E.PrimExpr) -> tuple[Any, Any] | None:
    if isinstance(a, E.IntImm) and isinstance(b, E.IntImm):
        return a.value, b.value
    if isinstance(a, E.FloatImm) and isinstance(b, E.FloatImm):
        return a.value, b.value
    return None


def _is_zero(a: E.PrimExpr) -> bool:
    return isinstance(a, (E.IntImm, E.FloatImm)) and a.value == 0


def _is_one(a: E.PrimExpr) -> bool:
    return isinstance(a, (E.IntImm, E.FloatImm)) and a.value == 1


def add(a: Any, b: Any) -> E.PrimExpr:
    a, b = match_types(a, b)
    if both := _constants(a, b):
        return _fold(E.Add, a.dtype, both)
    if _is_zero(a):
        return b
    return a if _is_zero(b) else E.Add(a, b)


def subtract(a: Any, b: Any) -> E.PrimExpr:
    a, b = match_types(a, b)
    if both := _constants(a, b):
        return _fold(E.Sub, a.dtype, both)
    return a if _is_zero(b) else E.Sub(a, b)


def multiply(a: Any, b: Any) -> E.PrimExpr:
    a, b = match_types(a, b)
    if both := _constants(a, b):
        return _fold(E.Mul, a.dtype, both)
    if _is_one(a) or (_is_zero(b) and isinstance(b, E.IntImm)):
        return b
    if _is_one(b) or (_is_zero(a) and isinstance(a, E.IntImm)):
        return a
    return E.Mul(a, b)


def negate(a: Any) -> E.PrimExpr:
    a = convert(a)
    if isinstance(a, (E.IntImm, E.FloatImm)):
        return const(-a.value, a.dtype)
    return multiply(a, const(-1, a.dtype))


def divide(a: Any, b: Any) -> E.PrimExpr:
    """True division of floats. Integers must say which division they mean."""
    a, b = match_types(a, b)
    if not dtypes.is_float(a.dtype):
        raise DiagnosticError(
            "The division of integers is ambiguous: write `//` (T.floordiv), or T.truncdiv for "
            "rounding towards zero, or cast to a float type first"
        )
    both = _constants(a, b)
    if both and both[1] != 0:
        return _fold(E.Div, a.dtype, both)
    return a if _is_one(b) else E.Div(a, b)


def _checked_divisor(b: E.PrimExpr) -> None:
    if _is_zero(b):
        raise DiagnosticError("Division by zero")


def may_trap(expression: E.PrimExpr) -> bool:
    """Whether computing a value can fail or have an effect, so that it must not be computed where
    it is not needed: it divides integers by what may be zero, or calls what is no operator."""
    return any(
        (type(node) is E.Call and key_of(node) not in OPERATORS)
        or (type(node) in DIVISIONS and _divides_by_zero(node))
        for node in walk(expression)
    )


def _divides_by_zero(node: Any) -> bool:
    return not dtypes.is_float(node.dtype) and not (isinstance(node.b, E.IntImm) and node.b.value)


def truncdiv(a: Any, b: Any) -> E.PrimExpr:
    """Division of integers that rounds towards zero, as in C."""
    a, b = match_types(a, b)
    _checked_divisor(b)
    if both := _constants(a, b):
        return _fold(E.Div, a.dtype, both)
    return a if _is_one(b) else E.Div(a, b)


def truncmod(a: Any, b: Any) -> E.PrimExpr:
    """The remainder of `truncdiv`; it has the sign of `a`."""
    a, b = match_types(a, b)
    _checked_divisor(b)
    if both := _constants(a, b):
        return _fold(E.Mod, a.dtype, both)
    return const(0, a.dtype) if _is_one(b) else E.Mod(a, b)


def floordiv(a: Any, b: Any) -> E.PrimExpr:
    """Division that rounds towards minus infinity, as Python's `//`."""
    a, b = match_types(a, b)
    if dtypes.is_float(a.dtype):
        from mlcweb.tir.intrinsics import floor

        return floor(divide(a, b))
    _checked_divisor(b)
    if both := _constants(a, b):
        return _fold(E.FloorDiv, a.dtype, both)
    return a if _is_zero(a) or _is_one(b) else E.FloorDiv(a, b)


def floormod(a: Any, b: Any) -> E.PrimExpr:
    """The remainder of `floordiv`; it has the sign of `b`, as Python's `%`."""
    a, b = match_types(a, b)
    if dtypes.is_float(a.dtype):
        return subtract(a, multiply(floordiv(a, b), b))
    _checked_divisor(b)
    if both := _constants(a, b):
        return _fold(E.FloorMod, a.dtype, both)
    if _is_zero(a):
        return a
    return const(0, a.dtype) if _is_one(b) else E.FloorMod(a, b)


def _extremum(node: type[E.BinaryExpr], a: Any, b: Any) -> E.PrimExpr:
    a, b = match_types(a, b)
    if both := _constants(a, b):
        return _fold(node, a.dtype, both)
    return a if a is b else node(a, b)


def minimum(a: Any, b: Any) -> E.PrimExpr:
    return _extremum(E.Min, a, b)


def maximum(a: Any, b: Any) -> E.PrimExpr:
    return _extremum(E.Max, a, b)


def _comparison(node: type[E.ComparisonExpr]) -> Any:
    def build(a: Any, b: Any) -> E.PrimExpr:
        a, b = match_types(a, b)
        both = _constants(a, b)
        return _fold(node, "bool", both) if both else node(a, b)

    return build


equal, not_equal = _comparison(E.EQ), _comparison(E.NE)
less, less_equal = _comparison(E.LT), _comparison(E.LE)
greater, greater_equal = _comparison(E.GT), _comparison(E.GE)


def logical_and(a: Any, b: Any) -> E.PrimExpr:
    a, b = cast("bool", convert(a)), cast("bool", convert(b))
    if isinstance(a, E.IntImm):
        return b if a.value else a
    if isinstance(b, E.IntImm):
        return a if b.value else b
    return E.And(a, b)


def logical_or(a: Any, b: Any) -> E.PrimExpr:
    a, b = cast("bool", convert(a)), cast("bool", convert(b))
    if isinstance(a, E.IntImm):
        return a if a.value else b
    if isinstance(b, E.IntImm):
        return b if b.value else a
    return E.Or(a, b)


def logical_not(a: Any) -> E.PrimExpr:
    a = cast("bool", convert(a))
    return const(not a.value, "bool") if isinstance(a, E.IntImm) else E.Not(a)


def select(condition: Any, true_value: Any, false_value: Any) -> E.PrimExpr:
    """`true_value` where `condition` holds, else `false_value`; both are computed."""
    condition = cast("bool", convert(condition))
    true_value, false_value = match_types(true_value, false_value)
    if isinstance(condition, E.IntImm):
        return true_value if condition.value else false_value
    return E.Select(condition, true_value, false_value)


def _bitwise(name: str) -> Any:
    op = register_op(f"tir.{name}")

    def build(a: Any, b: Any) -> E.PrimExpr:
        a, b = match_types(a, b)
        if dtypes.is_float(a.dtype):
            raise DiagnosticError(f"{name} needs integers, not {a.dtype}")
        both = _constants(a, b)
        return _fold(name, a.dtype, both) if both else E.Call(a.dtype, op, (a, b))

    return build


bitwise_and, bitwise_or = _bitwise("bitwise_and"), _bitwise("bitwise_or")
bitwise_xor = _bitwise("bitwise_xor")
shift_left, shift_right = _bitwise("shift_left"), _bitwise("shift_right")


def bitwise_not(a: Any) -> E.PrimExpr:
    a = convert(a)
    if dtypes.is_bool(a.dtype):
        return logical_not(a)
    return E.Call(a.dtype, register_op("tir.bitwise_not"), (a,))
