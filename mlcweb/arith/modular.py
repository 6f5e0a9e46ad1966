"""What is known of the remainder of an integer expression: a value of coeff * x + base."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple

from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import is_index_type, may_wrap, operand_pair
from mlcweb.tir import expr as E
from mlcweb.tir.operators import Key, key_of


class ModularSet(NamedTuple):
    """The integers coeff * x + base for any integer x; only `base` where `coeff` is 0.

    `base` lies in [0, coeff) where `coeff` is positive.
    """

    coeff: int
    base: int

    def contains(self, value: int) -> bool:
        """Whether `value` is a member."""
        return (value - self.base) % self.coeff == 0 if self.coeff else value == self.base


ANY_INTEGER = ModularSet(1, 0)


def modular_set(coeff: int, base: int) -> ModularSet:
    """The set in its normal form."""
    coeff = abs(coeff)
    return ModularSet(coeff, base % coeff if coeff else base)


def union(a: ModularSet, b: ModularSet) -> ModularSet:
    """The smallest set that holds both."""
    return modular_set(gcd(a.coeff, b.coeff, a.base - b.base), a.base)


def intersection(a: ModularSet, b: ModularSet) -> ModularSet | None:
    """The integers of both sets, by the Chinese remainder theorem; None where there are none."""
    if a.coeff == 0 or b.coeff == 0:
        value, other = (a.base, b) if a.coeff == 0 else (b.base, a)
        return ModularSet(0, value) if other.contains(value) else None
    common = gcd(a.coeff, b.coeff)
    if (b.base - a.base) % common:
        return None
    step = b.coeff // common
    times = (b.base - a.base) // common * pow(a.coeff // common, -1, step) % step
    return modular_set(a.coeff * step, a.base + a.coeff * times)


def compute_modular_set(expression: E.PrimExpr, analyzer: Facts) -> ModularSet:
    """The modular set of an expression, from those of its operands; arithmetic that wraps around
    may leave any remainder."""
    if isinstance(expression, E.IntImm):
        return ModularSet(0, expression.value)
    if isinstance(expression, E.Var):
        return _variable(expression, analyzer)
    if isinstance(expression, E.Cast):
        return _cast(expression, analyzer)
    if isinstance(expression, E.Let):
        inside = analyzer.clone()
        inside.bind(expression.var, expression.value)
        return inside.modular_set(expression.body)
    rule = _RULES.get(key_of(expression))
    if rule is None:
        return ANY_INTEGER
    if isinstance(expression, E.Div) and analyzer.const_int_bound(expression.a).min_value >= 0:
        rule = _floordiv
    remainders = rule(*map(analyzer.modular_set, operand_pair(expression)))
    return ANY_INTEGER if remainders.coeff != 1 and may_wrap(expression) else remainders


def _variable(variable: E.Var, analyzer: Facts) -> ModularSet:
    value = analyzer.value_of(variable)
    if value is not variable:
        return analyzer.modular_set(value)
    declared = analyzer.modular_set_of_variable.get(variable)
    if declared is not None:
        return declared
    low, high = analyzer.const_int_bound(variable)
    return ModularSet(0, int(low)) if low == high else ANY_INTEGER


def _cast(expression: E.Cast, analyzer: Facts) -> ModularSet:
    """Of indices, which fit in the type that they are cast to."""
    both = expression.dtype, expression.value.dtype
    return analyzer.modular_set(expression.value) if all(map(is_index_type, both)) else ANY_INTEGER


def _shift_left(a: ModularSet, b: ModularSet) -> ModularSet:
    if b.coeff == 0 and 0 <= b.base < 64:
        return _multiply(a, ModularSet(0, 1 << b.base))
    return ANY_INTEGER


def _shift_right(a: ModularSet, b: ModularSet) -> ModularSet:
    if b.coeff == 0 and 0 <= b.base < 64:
        return _floordiv(a, ModularSet(0, 1 << b.base))
    return ANY_INTEGER


def _bitwise_and(a: ModularSet, b: ModularSet) -> ModularSet:
    """By a mask of the lowest bits, it is the remainder."""
    if b.coeff == 0 and b.base > 0 and b.base & (b.base + 1) == 0:
        return _floormod(a, ModularSet(0, b.base + 1))
    return ANY_INTEGER


def _multiply(a: ModularSet, b: ModularSet) -> ModularSet:
    coeff = gcd(a.coeff * b.coeff, a.coeff * b.base, a.base * b.coeff)
    return modular_set(coeff, a.base * b.base)


def _floordiv(a: ModularSet, b: ModularSet) -> ModularSet:
    if b.coeff == 0 and b.base > 0 and a.coeff % b.base == 0:
        return modular_set(a.coeff // b.base, a.base // b.base)
    return ANY_INTEGER


def _floormod(a: ModularSet, b: ModularSet) -> ModularSet:
    if b.coeff == 0 and b.base > 0:
        return modular_set(gcd(a.coeff, b.base), a.base % b.base)
    return ANY_INTEGER


def _truncdiv(a: ModularSet, b: ModularSet) -> ModularSet:
    # A base that is not 0 would be rounded down for some of the values, and up for others.
    return _floordiv(a, b) if a.base == 0 else ANY_INTEGER


def _truncmod(a: ModularSet, b: ModularSet) -> ModularSet:
    if b.coeff == 0 and b.base > 0:
        return modular_set(gcd(a.coeff, b.base), a.base)
    return ANY_INTEGER


_RULES: dict[Key, Callable[[ModularSet, ModularSet], ModularSet]] = {
    E.Add: lambda a, b: modular_set(gcd(a.coeff, b.coeff), a.base + b.base),
    E.Sub: lambda a, b: modular_set(gcd(a.coeff, b.coeff), a.base - b.base),
    E.Mul: _multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Div: _truncdiv,
    E.Mod: _truncmod,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "bitwise_and": _bitwise_and,
    **dict.fromkeys((E.Min, E.Max, E.Select, "if_then_else"), union),
}
"""The set of an operation, from those of two operands; of a choice, from those of its values."""
