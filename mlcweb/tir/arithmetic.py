"""Builders of expressions: operand types are matched and constants folded, as TVM's operators do.

`a + 0`, `a * 1` and arithmetic on constants never make nodes, so that texts and programs built here
look as they do in TVM.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node
from mlcweb.ir.op import register_op
from mlcweb.ir.visitor import walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import folding
from mlcweb.tir.folding import Builder, const
from mlcweb.tir.operators import DIVISIONS, OPERATORS, key_of


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
    raise DiagnosticError(f"{describe(value)} is not an expression")


def describe(value: Any) -> str:
    """What a value of Python is, for messages; without addresses, and not at length."""
    shown, kind = repr(value), type(value).__name__
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}, which is not called,"
    return f"a {kind}" if " at 0x" in shown or len(shown) > 80 else f"{shown} ({kind})"


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
    if dtypes.lane_count(dtype) != 1 and dtypes.lane_count(value.dtype) == 1:
        return E.Broadcast(cast(dtypes.element_of(dtype), value), E.lanes_of(dtype))
    if dtypes.lane_count(value.dtype) != dtypes.lane_count(dtype):
        raise TypeError(f"{value} is a vector of type {value.dtype}, and {dtype} is needed here")
    if isinstance(value, E.IntImm):
        return folding.number(dtype, value.value)
    if isinstance(value, E.FloatImm) and dtypes.is_float(dtype):
        rounded = folding.number(dtype, value.value)
        # A literal keeps the digits that it is written with.
        return rounded if math.isinf(rounded.value) else E.FloatImm(dtype, value.value)
    if isinstance(value, E.FloatImm) and dtypes.is_integer(dtype):
        low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
        if low <= value.value <= high:
            return folding.number(dtype, value.value)
    if isinstance(value, E.Broadcast):
        return E.Broadcast(cast(dtypes.element_of(dtype), value.value), value.lanes)
    return E.Cast(dtype, value)


def condition_of(value: Any) -> E.PrimExpr:
    """A value as a condition; a vector as one for each lane."""
    value = convert(value)
    return cast(dtypes.truth_value(value.dtype), value)


def checked_condition(value: Any, role: str) -> E.PrimExpr:
    """A condition, which other values are not taken for."""
    value = convert(value)
    if not dtypes.is_bool(value.dtype):
        raise DiagnosticError(f"{role} is boolean, and {value} is of type {value.dtype}")
    return value


def match_types(a: Any, b: Any) -> tuple[E.PrimExpr, E.PrimExpr]:
    """Both operands in their common type: floats win over integers, wider over narrower, and of
    integers of one width the unsigned."""
    a, b = convert(a), convert(b)
    if a.dtype == b.dtype:
        return a, b
    if isinstance(a, E.StringImm) or isinstance(b, E.StringImm):
        raise DiagnosticError("Strings have no arithmetic")
    longer = a if dtypes.lane_count(a.dtype) != 1 else b
    common = dtypes.like(_common_element(a.dtype, b.dtype), longer.dtype)
    for value in (a, b):
        if isinstance(value, E.IntImm):
            const(value.value, common)  # refuses what is beyond the type
    return cast(common, a), cast(common, b)


def _common_element(a: str, b: str) -> str:
    a, b = dtypes.element_of(a), dtypes.element_of(b)
    if "handle" in (a, b):
        raise DiagnosticError(f"No arithmetic between {a} and {b}")
    if dtypes.is_float(a) or dtypes.is_float(b):
        if dtypes.is_float(a) and dtypes.is_float(b):
            return a if dtypes.bits(a) >= dtypes.bits(b) else b
        return a if dtypes.is_float(a) else b
    if dtypes.is_bool(a) or dtypes.is_bool(b):
        return b if dtypes.is_bool(a) else a
    if dtypes.bits(a) == dtypes.bits(b):
        return a if dtypes.kind(a) == "uint" else b
    return max(a, b, key=dtypes.bits)


def _of_any_types(fold: Builder) -> Builder:
    """The builder of an operation that brings its operands to their common type."""

    def build(a: Any, b: Any) -> E.PrimExpr:
        return fold(*match_types(a, b))

    return build


add = _of_any_types(folding.add)
subtract = _of_any_types(folding.subtract)
multiply = _of_any_types(folding.multiply)


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
    if isinstance(b, E.FloatImm) and (divisor := folding.value_of(b)) != 0:
        if isinstance(a, E.FloatImm):
            return folding.number(a.dtype, folding.value_of(a) / divisor)
        if divisor == 1:
            return a
    return E.Div(a, b)


def may_trap(computed: Node) -> bool:
    """Whether computing a value (or running a statement) can fail or have an effect that is no
    store, so that it must not be done where it is not needed: it divides integers by what may be
    zero, or calls what is no operator."""
    return any(
        (type(node) is E.Call and key_of(node) not in OPERATORS)
        or (type(node) in DIVISIONS and _divides_by_zero(node))
        for node in walk(computed)
    )


def _divides_by_zero(node: Any) -> bool:
    return not dtypes.is_float(node.dtype) and not (isinstance(node.b, E.IntImm) and node.b.value)


truncdiv = _of_any_types(folding.truncdiv)
"""Division of integers that rounds towards zero, as in C."""

truncmod = _of_any_types(folding.truncmod)
"""The remainder of `truncdiv`; it has the sign of `a`."""


def floordiv(a: Any, b: Any) -> E.PrimExpr:
    """Division that rounds towards minus infinity, as Python's `//`."""
    a, b = match_types(a, b)
    if dtypes.is_float(a.dtype):
        from mlcweb.tir.intrinsics import floor

        return floor(divide(a, b))
    return folding.floordiv(a, b)


def floormod(a: Any, b: Any) -> E.PrimExpr:
    """The remainder of `floordiv`; it has the sign of `b`, as Python's `%`."""
    a, b = match_types(a, b)
    if dtypes.is_float(a.dtype):
        return subtract(a, multiply(floordiv(a, b), b))
    return folding.floormod(a, b)


minimum = _of_any_types(folding.minimum)
maximum = _of_any_types(folding.maximum)
equal = _of_any_types(folding.equal)
not_equal = _of_any_types(folding.not_equal)
less = _of_any_types(folding.less)
less_equal = _of_any_types(folding.less_equal)
greater = _of_any_types(folding.greater)
greater_equal = _of_any_types(folding.greater_equal)


def logical_and(a: Any, b: Any) -> E.PrimExpr:
    return _connected(folding.logical_and, "and", a, b)


def logical_or(a: Any, b: Any) -> E.PrimExpr:
    return _connected(folding.logical_or, "or", a, b)


def logical_not(a: Any) -> E.PrimExpr:
    return folding.logical_not(checked_condition(a, "The operand of `not`"))


def _connected(fold: Builder, name: str, a: Any, b: Any) -> E.PrimExpr:
    role = f"An operand of `{name}`"
    return fold(*match_types(checked_condition(a, role), checked_condition(b, role)))


def select(condition: Any, true_value: Any, false_value: Any) -> E.PrimExpr:
    """`true_value` where `condition` holds, else `false_value`; both are computed. A vector of
    conditions chooses lane by lane."""
    condition, sides = condition_of(condition), match_types(true_value, false_value)
    return folding.select(condition, *in_lanes_of(condition, sides))


def in_lanes_of(condition: E.PrimExpr, values: Iterable[E.PrimExpr]) -> list[E.PrimExpr]:
    """Values that a condition chooses from, as vectors where it is one."""
    if dtypes.lane_count(condition.dtype) == 1:
        return list(values)
    return [cast(dtypes.like(value.dtype, condition.dtype), value) for value in values]


def _of_one_type(x: Any, y: Any) -> tuple[E.PrimExpr, E.PrimExpr]:
    """`match_types`, but that the bits of Python's integers are those of the other operand."""
    if type(x) is int:
        y = convert(y)
        x = const(x, y.dtype)
    elif type(y) is int:
        x = convert(x)
        y = const(y, x.dtype)
    return match_types(x, y)


def _bitwise(name: str) -> Any:
    op, fold = register_op(f"tir.{name}"), folding.fold_of(name)

    def build(x: Any, y: Any) -> E.PrimExpr:
        x, y = _of_one_type(x, y)
        if dtypes.is_float(x.dtype):
            raise DiagnosticError(f"{name} needs integers, not {x.dtype}")
        if isinstance(x, E.IntImm) and isinstance(y, E.IntImm):
            return const(fold(x.value, y.value), x.dtype)
        return E.Call(x.dtype, op, (x, y))

    return build


bitwise_and, bitwise_or = _bitwise("bitwise_and"), _bitwise("bitwise_or")
bitwise_xor = _bitwise("bitwise_xor")


def _shift(name: str) -> Any:
    shift = _bitwise(name)

    def build(x: Any, y: Any) -> E.PrimExpr:
        x, y = _of_one_type(x, y)
        if isinstance(y, E.IntImm) and not 0 <= y.value < dtypes.bits(x.dtype):
            raise DiagnosticError(
                f"{name} by {y.value}: the shift amount must be non-negative and less than "
                f"{dtypes.bits(x.dtype)}, the number of bits of {x.dtype}"
            )
        return shift(x, y)

    return build


shift_left, shift_right = _shift("shift_left"), _shift("shift_right")


def bitwise_not(x: Any) -> E.PrimExpr:
    x = convert(x)
    if dtypes.is_float(x.dtype):
        raise DiagnosticError(f"~ needs an integer, not {x.dtype}")
    if dtypes.is_bool(x.dtype):
        return logical_not(x)
    return E.Call(x.dtype, register_op("tir.bitwise_not"), (x,))
