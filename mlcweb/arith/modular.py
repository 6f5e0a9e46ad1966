"""What is known of the remainder of an integer expression: a value of coeff * x + base."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from mlcweb.arith.interval import may_wrap
from mlcweb.tir import expr as E

if TYPE_CHECKING:
    from mlcweb.arith.analyzer import Analyzer


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


def compute_modular_set(expression: E.PrimExpr, analyzer: Analyzer) -> ModularSet:
    """The modular set of an expression, from those of its operands; arithmetic that wraps around
    may leave any remainder."""
    rule = _RULES.get(type(expression))
    if rule is None:
        return ANY_INTEGER
    found = rule(expression, analyzer)
    return ANY_INTEGER if found.coeff != 1 and may_wrap(expression) else found


def _variable(expression: E.Var, analyzer: Analyzer) -> ModularSet:
    known = analyzer.modular_set_of_variable.get(expression)
    if known is not None:
        return known
    low, high = analyzer.const_int_bound(expression)
    return ModularSet(0, int(low)) if low == high else ANY_INTEGER


def _operands(expression: Any, analyzer: Analyzer) -> tuple[ModularSet, ModularSet]:
    return analyzer.modular_set(expression.a), analyzer.modular_set(expression.b)


def _add(expression: E.Add, analyzer: Analyzer) -> ModularSet:
    a, b = _operands(expression, analyzer)
    return modular_set(gcd(a.coeff, b.coeff), a.base + b.base)


def _subtract(expression: E.Sub, analyzer: Analyzer) -> ModularSet:
    a, b = _operands(expression, analyzer)
    return modular_set(gcd(a.coeff, b.coeff), a.base - b.base)


def _multiply(expression: E.Mul, analyzer: Analyzer) -> ModularSet:
    a, b = _operands(expression, analyzer)
    coeff = gcd(a.coeff * b.coeff, a.coeff * b.base, a.base * b.coeff)
    return modular_set(coeff, a.base * b.base)


def _floordiv(expression: E.FloorDiv, analyzer: Analyzer) -> ModularSet:
    a, b = _operands(expression, analyzer)
    if b.coeff == 0 and b.base > 0 and a.coeff % b.base == 0:
        return modular_set(a.coeff // b.base, a.base // b.base)
    return ANY_INTEGER


def _floormod(expression: E.FloorMod, analyzer: Analyzer) -> ModularSet:
    a, b = _operands(expression, analyzer)
    if b.coeff == 0 and b.base > 0:
        if a.coeff % b.base == 0:
            return ModularSet(0, a.base % b.base)
        return modular_set(gcd(a.coeff, b.base), a.base)
    return ANY_INTEGER


def _either(expression: E.Min | E.Max, analyzer: Analyzer) -> ModularSet:
    return union(*_operands(expression, analyzer))


def _select(expression: E.Select, analyzer: Analyzer) -> ModularSet:
    return union(
        analyzer.modular_set(expression.true_value), analyzer.modular_set(expression.false_value)
    )


_RULES: dict[type, Callable[[Any, Analyzer], ModularSet]] = {
    E.Var: _variable,
    E.IntImm: lambda expression, analyzer: ModularSet(0, expression.value),
    E.Add: _add,
    E.Sub: _subtract,
    E.Mul: _multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Min: _either,
    E.Max: _either,
    E.Select: _select,
}
