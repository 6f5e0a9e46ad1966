"""Conditions in conjunctive normal form, simplified between any two of their parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeVar

from mlcweb.ir.structural import structural_equal
from mlcweb.tir import expr as E

Simplify = Callable[[E.PrimExpr], E.PrimExpr]
Clause = list[E.PrimExpr]
"""What `or` connects."""

Part = TypeVar("Part")

MAX_CLAUSES = 64
"""Conditions of more are left as they are: each `or` multiplies their number."""


def and_of_ors(condition: E.PrimExpr, simplify: Simplify) -> E.PrimExpr:
    """`a or (b and c)` as `(a or b) and (a or c)`. Of two terms of an `or`, and of two clauses that
    differ by one term, the later one becomes what `simplify` finds for both, and the other goes."""
    clauses = _clauses(condition, simplify)
    if not clauses or len(clauses) > MAX_CLAUSES:
        return condition
    clauses = [_merged(clause, lambda a, b: _one(E.Or(a, b), simplify)) for clause in clauses]
    clauses = _merged(clauses, lambda a, b: _joined(a, b, simplify))
    return simplify(reduce(E.And, (reduce(E.Or, clause) for clause in clauses)))


def _clauses(condition: E.PrimExpr, simplify: Simplify) -> list[Clause]:
    """The clauses, none where there are too many."""
    if not isinstance(condition, (E.And, E.Or)):
        return [[simplify(condition)]]
    left, right = (_clauses(side, simplify) for side in (condition.a, condition.b))
    if isinstance(condition, E.And):
        return [*left, *right] if left and right else []
    if len(left) * len(right) > MAX_CLAUSES:
        return []
    return [[*a, *b] for a in left for b in right]


def _merged(parts: list[Part], join: Callable[[Part, Part], Part | None]) -> list[Part]:
    """The parts, where a later one takes up each earlier one that `join` puts it together with,
    unless that is the earlier one itself."""
    kept: list[Part] = []
    for part in parts:
        for index, other in reversed(list(enumerate(kept))):
            joined = join(other, part)
            if joined is other:
                break
            if joined is not None:
                part = joined
                del kept[index]
        else:
            kept.append(part)
    return kept


def _one(connected: E.And | E.Or, simplify: Simplify) -> E.PrimExpr | None:
    """One term for two, if there is one."""
    simple = simplify(connected)
    return None if isinstance(simple, (E.And, E.Or)) else simple


def _joined(left: Clause, right: Clause, simplify: Simplify) -> Clause | None:
    """One clause for two, if there is one."""
    only_left = [term for term in left if not _has(right, term)]
    only_right = [term for term in right if not _has(left, term)]
    if not only_left or not only_right:  # one follows from the other
        return left if not only_left else right
    if len(only_left) != 1 or len(only_right) != 1:
        return None
    both = _one(E.And(only_left[0], only_right[0]), simplify)
    if both is None:
        return None
    return [both if term is only_right[0] else term for term in right]


def _has(clause: Clause, term: E.PrimExpr) -> bool:
    return any(structural_equal(term, other) for other in clause)
