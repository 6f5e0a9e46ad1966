"""Where conditions in a loop hold throughout, as a condition on the variables around it.

`1 <= 4 * y + r` holds for each r from 0 to 2 where 1 <= 4 * y: what changes in the loop is replaced
by its least, or by its greatest, value.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from mlcweb.arith.linear import LinearForm
from mlcweb.lower.optimize.indices import Indices, Sum
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const, logical_and

Difference = tuple[E.ComparisonExpr, Sum]
"""A comparison, and its first operand without the second."""

Terms = frozenset[tuple[E.PrimExpr, int]]

_LESS: dict[type, int] = {E.LT: 1, E.LE: 0}
_GREATER: dict[type, int] = {E.GT: 1, E.GE: 0}


def interior(
    indices: Indices, differences: Iterable[Difference], inside: Set[E.Var], around: Set[E.Var]
) -> tuple[E.PrimExpr | None, frozenset[E.ComparisonExpr]]:
    """A condition, None where there is none, and the comparisons that hold where it does.

    Args:
        differences: of the comparisons in a loop, as far as they stay within their type.
        inside: the variables of the loop, and of those in it.
        around: the variables that the condition may ask for.
    """
    limits: dict[Terms, int] = {}
    comparisons: dict[Terms, list[E.ComparisonExpr]] = {}
    for comparison, difference in differences:
        excess = _excess(comparison, difference)
        if excess is None or inside.isdisjoint(excess.terms):
            continue
        outer = {term: scale for term, scale in excess.terms.items() if term not in inside}
        if not outer or not outer.keys() <= around:
            continue
        inner = {term: scale for term, scale in excess.terms.items() if term in inside}
        limit = -indices.exact_sum(LinearForm(inner, excess.constant, excess.dtype))[1]
        if limit < indices.exact_sum(LinearForm(outer, 0, excess.dtype))[0]:
            continue
        terms = frozenset(outer.items())
        limits[terms] = min(int(limit), limits.get(terms, int(limit)))
        comparisons.setdefault(terms, []).append(comparison)
    condition: E.PrimExpr | None = None
    true: list[E.ComparisonExpr] = []
    for terms, limit in limits.items():
        opposite = frozenset((term, -scale) for term, scale in terms)
        if limit + limits.get(opposite, -limit) < 0:
            continue  # Both never hold at once.
        part = _at_most(indices, terms, limit, comparisons[terms][0].a.dtype)
        condition = part if condition is None else logical_and(condition, part)
        true += comparisons[terms]
    return condition, frozenset(true)


def _excess(comparison: E.ComparisonExpr, difference: Sum) -> Sum | None:
    """What is not above 0 where an inequality holds."""
    kind = type(comparison)
    if kind in _LESS:
        return difference.with_constant(difference.constant + _LESS[kind])
    if kind in _GREATER:
        return difference.times(-1).with_constant(_GREATER[kind] - difference.constant)
    return None


def _at_most(indices: Indices, terms: Terms, limit: int, dtype: str) -> E.PrimExpr:
    if all(scale < 0 for _, scale in terms):
        negated = LinearForm({term: -scale for term, scale in terms}, 0, dtype)
        return E.GE(indices.expression(negated), const(-limit, dtype))
    return E.LE(indices.expression(LinearForm(dict(terms), 0, dtype)), const(limit, dtype))
