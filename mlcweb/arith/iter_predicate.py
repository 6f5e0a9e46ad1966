"""Reading a predicate as bounds of iterators and of sums of iterators."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from mlcweb.arith.analyzer import conjuncts
from mlcweb.arith.interval import INDEX_TYPES
from mlcweb.arith.iter_arithmetic import NotAffine, add, subtract
from mlcweb.arith.known import without_hint
from mlcweb.ir.visitor import walk
from mlcweb.tir import expr as E
from mlcweb.tir.folding import integer
from mlcweb.tir.substitute import uses_any


class Bound(NamedTuple):
    """lower <= value < upper, where `value` has iterators and the ends, if given, have none."""

    value: E.PrimExpr
    lower: E.PrimExpr | None
    upper: E.PrimExpr | None


def bounds_of_iterators(predicate: E.PrimExpr, iterators: Container[E.Var]) -> list[Bound]:
    """The bounds that a predicate sets, those of small sums first.

    NotAffine where a part of the predicate is about iterators but no bound of a sum.
    """
    bounds = [_bound_of(part, iterators) for part in conjuncts(predicate)]
    return sorted((b for b in bounds if b is not None), key=lambda b: len(list(walk(b.value))))


def _bound_of(condition: E.PrimExpr, iterators: Container[E.Var]) -> Bound | None:
    condition = without_hint(condition)
    if isinstance(condition, (E.GT, E.GE)):
        mirrored = E.LT if isinstance(condition, E.GT) else E.LE
        condition = mirrored(condition.b, condition.a)
    if isinstance(condition, E.IntImm) and not condition.value:
        raise NotAffine("the predicate is never true")
    if not uses_any(condition, iterators):
        return None
    if not isinstance(condition, (E.LT, E.LE)) or condition.a.dtype not in INDEX_TYPES:
        raise NotAffine(f"the predicate {condition!r} is not a bound")
    a, b = condition.a, condition.b
    if uses_any(a, iterators) and uses_any(b, iterators):
        a, b = subtract(a, b), integer(0, a.dtype)
    one = integer(1, a.dtype)
    if uses_any(a, iterators):
        return Bound(a, None, add(b, one) if isinstance(condition, E.LE) else b)
    return Bound(b, add(a, one) if isinstance(condition, E.LT) else a, None)
