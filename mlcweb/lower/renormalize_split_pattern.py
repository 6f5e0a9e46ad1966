"""The pass `tvm.s_tir.transform.RenormalizeSplitPattern`: quotients of what splits and fusions of
loops leave in indices and conditions are in terms of single loops, as far as they divide evenly."""

from __future__ import annotations

from math import gcd

from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import add, const, floordiv, floormod, multiply
from mlcweb.tir.function import PrimFunc

REVERSED: dict[type, type] = {E.GT: E.LT, E.GE: E.LE}
NEGATED: dict[type, type] = {E.LT: E.LE, E.LE: E.LT}


def renormalize_split_pattern(func: PrimFunc) -> PrimFunc:
    """The function with other quotients of the same values:

        (x * 32 + y) // 64   ->  (x + y // 32) // 2        x < 64    ->  x // 64 < 1
        x % 16 // 4          ->  x // 4 % 4                64 <= x   ->  1 <= x // 64

    Comparisons by > and >= become such by < and <=.
    """
    return func.with_body(_Renormalization().rewrite(func.body))


class _Renormalization(Mutator):
    @on(E.FloorDiv)
    def quotient(self, quotient: E.FloorDiv) -> E.PrimExpr:
        new = self.rewrite_children(quotient)
        divisor = _positive(new.b)
        divided = _divided(new.a, divisor) if divisor else None
        return new if divided is None else divided

    @on(E.LT)
    def less(self, comparison: E.LT) -> E.PrimExpr:
        return _compared(self.rewrite_children(comparison))

    @on(E.LE)
    def at_most(self, comparison: E.LE) -> E.PrimExpr:
        return _compared(self.rewrite_children(comparison))

    @on(E.GT, E.GE)
    def greater(self, comparison: E.GT | E.GE) -> E.PrimExpr:
        new = self.rewrite_children(comparison)
        return _compared(REVERSED[type(new)](new.b, new.a))

    @on(E.Not)
    def negation(self, negation: E.Not) -> E.PrimExpr:
        new = self.rewrite_children(negation)
        compared = new.a
        if not isinstance(compared, (E.LT, E.LE)):
            return new
        return NEGATED[type(compared)](compared.b, compared.a)


def _compared(comparison: E.LT | E.LE) -> E.PrimExpr:
    """A comparison with a constant as one of a quotient with 1."""
    is_less = isinstance(comparison, E.LT)
    value, bound = (comparison.a, comparison.b) if is_less else (comparison.b, comparison.a)
    divisor = _positive(bound)
    if divisor < 2:
        return comparison
    quotient, one = _quotient(value, divisor), const(1, bound.dtype)
    return E.LT(quotient, one) if is_less else E.LE(one, quotient)


def _quotient(value: E.PrimExpr, divisor: int) -> E.PrimExpr:
    divided = _divided(value, divisor)
    return floordiv(value, const(divisor, value.dtype)) if divided is None else divided


def _divided(value: E.PrimExpr, divisor: int) -> E.PrimExpr | None:
    """A quotient in terms of smaller ones; None where there is no common factor."""
    if isinstance(value, E.FloorMod):
        modulus = _positive(value.b)
        if not modulus or modulus % divisor:
            return None
        return floormod(_quotient(value.a, divisor), const(modulus // divisor, value.dtype))
    if not isinstance(value, E.Add):
        return None
    product, rest = value.a, value.b
    if isinstance(product, E.Add):
        product, rest = product.a, add(product.b, rest)
    factor = _positive(product.b) if isinstance(product, E.Mul) else 0
    common = gcd(factor, divisor) if factor else 1
    if common == 1:
        return None
    assert isinstance(product, E.Mul)
    whole = multiply(product.a, const(factor // common, value.dtype))
    total = add(whole, _quotient(rest, common))
    return _quotient(total, divisor // common) if divisor > common else total


def _positive(value: E.PrimExpr) -> int:
    """A positive constant, or 0."""
    return max(value.value, 0) if isinstance(value, E.IntImm) else 0
