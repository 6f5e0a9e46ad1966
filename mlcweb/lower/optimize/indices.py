"""Index arithmetic for loop optimisation: integer expressions as sums of scaled atoms.

Every pass needs to know how an index moves with a loop, whether two indices are the same place, and
what an index becomes when a loop is unrolled. All three are plain on a linear form whose terms are
atoms: variables, and expressions that are no sums. Atoms and sums are interned, so that equal ones
are the same object, and what was found out is kept by identity: a copy of a statement in an
unrolled loop costs a few dictionary lookups. (The analyzer of `mlcweb.arith` proves far more, at a
hundred times the cost.)
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from mlcweb.arith.equality import Interning
from mlcweb.arith.interval import ConstIntBound, ValueRanges, in_type, type_bound
from mlcweb.arith.linear import LinearForm
from mlcweb.ir.node import replace
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.contents import variables_used

Sum = LinearForm[E.PrimExpr, int]


class Indices(ValueRanges):
    """Sums of the index expressions of one function.

    `ranges` are the bounds of its variables, which must not change: a loop with other bounds needs
    another variable.
    """

    def __init__(self) -> None:
        super().__init__()
        self.interned = Interning()
        self._sums: dict[E.PrimExpr, Sum] = {}
        self._written: dict[Any, E.PrimExpr] = {}
        self._normal: dict[E.PrimExpr, E.PrimExpr] = {}

    def sum_of(self, expression: E.PrimExpr) -> Sum:
        """An integer scalar as a sum."""
        total = self._sums.get(expression)
        if total is None:
            rule = _SUM_RULES.get(type(expression))
            total = rule(self, expression) if rule else self.atom(expression)
            self._sums[expression] = total
        return total

    def atom(self, expression: E.PrimExpr) -> Sum:
        """The sum of a single expression that is no sum itself."""
        return LinearForm({self.interned(expression): 1}, 0, expression.dtype)

    def expression(self, total: Sum) -> E.PrimExpr:
        """The sum as an expression, the constant last; equal sums give the same object."""
        dtype = total.dtype
        if not total.terms:
            value = dtypes.wrap_integer(total.constant, dtype)
            return self._interned((value, dtype), total, lambda: E.IntImm(dtype, value))
        terms = tuple(sorted(total.terms.items(), key=_writing_order))
        base = self._interned((terms, dtype), total.with_constant(0), lambda: _write(terms, dtype))
        if not total.constant:
            return base
        constant = dtypes.wrap_integer(total.constant, dtype)
        return self._interned(
            (base, constant), total, lambda: E.Add(base, E.IntImm(dtype, constant))
        )

    def _interned(self, key: Any, total: Sum, write: Callable[[], E.PrimExpr]) -> E.PrimExpr:
        written = self._written.get(key)
        if written is None:
            written = self._written[key] = write()
            self._sums[written] = total
            self._normal[written] = written
        return written

    def normal(self, expression: E.PrimExpr) -> E.PrimExpr:
        """An integer scalar in its normal form; itself, if it has that form."""
        normal = self._normal.get(expression)
        if normal is None:
            normal = self.expression(self.sum_of(expression))
            if normal is not expression and self.interned(normal) is self.interned(expression):
                normal = expression
            self._normal[expression] = normal
        return normal

    def scale_of(self, expression: E.PrimExpr, var: E.Var) -> int | None:
        """How far an index moves with a step of `var`; None where that is not constant."""
        total = self.sum_of(expression)
        for atom in total.terms:
            if atom is not var and not isinstance(atom, E.Var) and var in variables_used(atom):
                return None
        return total.terms.get(var, 0)

    def exact(self, expression: E.PrimExpr) -> ConstIntBound:
        """Bounds of the result before it is wrapped into its type; equal terms cancel."""
        if isinstance(expression, (E.Add, E.Sub, E.Mul)):
            total = self.sum_of(expression)
            if expression not in total.terms:
                return self.exact_sum(total)
        return super().exact(expression)

    def exact_sum(self, total: Sum) -> ConstIntBound:
        """Bounds of a sum before it is wrapped into its type."""
        low: int | float = total.constant
        high: int | float = total.constant
        for atom, scale in total.terms.items():
            least, greatest = self.interval(atom)
            if scale < 0:
                least, greatest = greatest, least
            low += least * scale
            high += greatest * scale
        return ConstIntBound(low, high)

    def sum_interval(self, total: Sum) -> ConstIntBound:
        """Bounds of a sum, wrap-around included."""
        return in_type(self.exact_sum(total), total.dtype)

    def is_exact(self, total: Sum) -> bool:
        """Whether a sum certainly stays within its type, so that it may be divided term by term."""
        return self.exact_sum(total).is_within(type_bound(total.dtype))


def _writing_order(term: tuple[E.PrimExpr, int]) -> tuple[int, str]:
    return -abs(term[1]), getattr(term[0], "name", "")


def _write(terms: tuple[tuple[E.PrimExpr, int], ...], dtype: str) -> E.PrimExpr:
    result: E.PrimExpr | None = None
    for atom, scale in terms:
        if atom.dtype != dtype:
            atom = E.Cast(dtype, atom)
        written = (
            atom if scale == 1 else E.Mul(atom, E.IntImm(dtype, dtypes.wrap_integer(scale, dtype)))
        )
        result = written if result is None else E.Add(result, written)
    assert result is not None
    return result


def _multiply(indices: Indices, expression: E.Mul) -> Sum:
    a, b = indices.sum_of(expression.a), indices.sum_of(expression.b)
    if not b.terms:
        return a.times(b.constant)
    if not a.terms:
        return b.times(a.constant)
    return indices.atom(_with_operands(indices, expression, a, b))


def _cast(indices: Indices, expression: E.Cast) -> Sum:
    value = expression.value
    widens = (
        dtypes.kind(expression.dtype) == dtypes.kind(value.dtype) == "int"
        and dtypes.lanes(expression.dtype) == 1
        and dtypes.bits(expression.dtype) >= dtypes.bits(value.dtype)
    )
    if widens:
        inner = indices.sum_of(value)
        if not inner.terms or indices.is_exact(inner):
            return LinearForm(inner.terms, inner.constant, expression.dtype)
        return indices.atom(replace(expression, value=indices.expression(inner)))
    if dtypes.is_integer(value.dtype):
        return indices.atom(replace(expression, value=indices.normal(value)))
    return indices.atom(expression)


def _with_operands(indices: Indices, expression: Any, a: Sum, b: Sum) -> Any:
    first, second = indices.expression(a), indices.expression(b)
    if first is expression.a and second is expression.b:
        return expression
    return type(expression)(first, second, span=expression.span)


def _divmod(total: Sum, divisor: int) -> tuple[Sum, Sum]:
    """(quotient, rest), where the constant of the rest is a remainder."""
    quotient, rest = total.separate(divisor)
    carry, left = divmod(rest.constant, divisor)
    return quotient.with_constant(quotient.constant + carry), rest.with_constant(left)


def _split_digits(indices: Indices, total: Sum, divisor: int) -> tuple[Sum, Sum, Sum, int] | None:
    """`total` as `multiple * divisor + upper * unit + lower` with 0 <= lower < unit, where `unit`
    divides `divisor`; None where terms may overflow."""
    if divisor <= 0 or not indices.is_exact(total):
        return None
    multiple, rest = _divmod(total, divisor)
    units = {gcd(scale, divisor) for scale in rest.terms.values()} | {divisor}
    for unit in sorted(units, reverse=True):
        upper, lower = _divmod(rest, unit)
        low, high = indices.sum_interval(lower)
        if 0 <= low and high < unit:
            return multiple, upper, lower, unit
    return None


def _divide(indices: Indices, expression: E.FloorDiv | E.FloorMod) -> Sum:
    a, b = indices.sum_of(expression.a), indices.sum_of(expression.b)
    digits = None if b.terms else _split_digits(indices, a, b.constant)
    if digits is None:
        return indices.atom(_with_operands(indices, expression, a, b))
    multiple, upper, lower, unit = digits
    divisor = b.constant // unit
    low, high = indices.sum_interval(upper)
    fixed = int(low // divisor) if low // divisor == high // divisor else None
    operands = indices.expression(upper), E.IntImm(a.dtype, divisor)
    if isinstance(expression, E.FloorDiv):
        if fixed is not None:
            return multiple.with_constant(multiple.constant + fixed)
        return multiple.plus(indices.atom(E.FloorDiv(*operands)))
    if fixed is not None:
        remainder = upper.with_constant(upper.constant - fixed * divisor)
    else:
        remainder = indices.atom(E.FloorMod(*operands))
    return remainder.times(unit).plus(lower)


_SUM_RULES: dict[type, Callable[[Indices, Any], Sum]] = {
    E.IntImm: lambda indices, value: LinearForm({}, value.value, value.dtype),
    E.Var: lambda indices, var: LinearForm({var: 1}, 0, var.dtype),
    E.Add: lambda indices, e: indices.sum_of(e.a).plus(indices.sum_of(e.b)),
    E.Sub: lambda indices, e: indices.sum_of(e.a).plus(indices.sum_of(e.b), -1),
    E.Mul: _multiply,
    E.Cast: _cast,
    E.FloorDiv: _divide,
    E.FloorMod: _divide,
}
