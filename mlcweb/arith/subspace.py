"""Dividing an iteration space: which part of each index the inner loops make.

A binding is written `outer * extent(inner) + inner`, where `inner` uses the loops of the subspace
alone and `outer` the others alone; blockize makes the inner parts a block of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.iter_arithmetic import NotAffine, add, multiply, subtract
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum, iter_sum, sum_to_expr
from mlcweb.arith.iter_map import SURJECTIVE, analyzer_of, detect_iter_map
from mlcweb.arith.linear import LinearForm
from mlcweb.arith.rules_comparison import TRUE
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const, floordiv, is_const_int, less, logical_and
from mlcweb.tir.buffer import Range
from mlcweb.tir.substitute import uses_any


@dataclass(eq=False, slots=True)
class Subspace:
    """For each binding its (outer, inner) iterators; what the predicate says of either part."""

    divisions: list[tuple[IterMark, IterMark]]
    outer_predicate: E.PrimExpr
    inner_predicate: E.PrimExpr


def subspace_divide(
    bindings: Sequence[E.PrimExpr],
    input_iters: Mapping[E.Var, Range],
    sub_iters: Collection[E.Var],
    predicate: E.PrimExpr | bool = True,
    check_level: str = SURJECTIVE,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> Subspace | None:
    """Divide each binding by the loops `sub_iters`; None where one cannot be divided.

    The expression of an iterator is `mark_to_expr`.
    """
    analyzer = analyzer or analyzer_of(input_iters)
    sums = detect_iter_map(
        bindings, input_iters, predicate, check_level, simplify_trivial_iterators, analyzer
    ).indices
    if sums is None:
        return None
    divider = _Divider(analyzer, frozenset(sub_iters))
    try:
        divisions = [divider.divide_index(index) for index in sums]
    except NotAffine:
        return None
    return Subspace(divisions, divider.outer_predicate, divider.inner_predicate)


class _Divider:
    def __init__(self, analyzer: Analyzer, sub_iters: frozenset[E.Var]) -> None:
        self.analyzer = analyzer
        self.sub_iters = sub_iters
        self.outer_predicate: E.PrimExpr = TRUE
        self.inner_predicate: E.PrimExpr = TRUE
        self.divided: dict[IterMark, tuple[IterMark, IterMark]] = {}

    def divide_index(self, index: IterSum) -> tuple[IterMark, IterMark]:
        if not index.terms:
            return IterMark(index, const(1, index.dtype)), _nothing(index.dtype)
        ((split, scale),) = index.items()
        outer, inner = self.divide_term(split, scale)
        if is_const_int(index.constant, 0):
            return outer, inner
        source = inner.source
        assert isinstance(source, LinearForm)
        shifted = source.with_constant(add(source.constant, index.constant))
        return outer, IterMark(shifted, inner.extent)

    def divide_term(self, split: IterSplit, scale: E.PrimExpr) -> tuple[IterMark, IterMark]:
        """(outer, inner) such that split * scale is outer * extent(inner) + inner."""
        outer, inner = self.divide_split(split)
        if outer is not None and inner is not None and not is_const_int(scale, 1):
            raise NotAffine("a multiple of a divided iterator")
        return self._mark(outer, scale), self._mark(inner, scale)

    def _mark(self, part: IterSplit | None, scale: E.PrimExpr) -> IterMark:
        """A part times a scale as an iterator."""
        if part is None:
            return _nothing(scale.dtype)
        is_sum = part.is_whole and isinstance(part.source.source, LinearForm)
        if is_sum and is_const_int(scale, 1):
            return part.source
        return IterMark(iter_sum({part: scale}, const(0, scale.dtype)), part.extent)

    def divide_split(self, split: IterSplit) -> tuple[IterSplit | None, IterSplit | None]:
        """(outer, inner) such that split is outer * extent(inner) + inner; None is 0."""
        mark = split.source
        if not isinstance(mark.source, LinearForm):
            moves = uses_any(mark.source, self.sub_iters)
            return (None, split) if moves else (split, None)
        if mark not in self.divided:
            self.divided[mark] = self.divide_sum(mark.source, mark.extent)
        outer, inner = self.divided[mark]
        if _is_nothing(inner):
            return IterSplit(outer, split.lower_factor, split.extent), None
        if _is_nothing(outer):
            return None, IterSplit(inner, split.lower_factor, split.extent)
        return self._divide_digit(split, outer, inner)

    def _divide_digit(
        self, split: IterSplit, outer: IterMark, inner: IterMark
    ) -> tuple[IterSplit | None, IterSplit | None]:
        """A digit of outer * extent(inner) + inner: it may lie in one of them or in both."""
        lower, upper = split.lower_factor, multiply(split.lower_factor, split.extent)
        step = inner.extent
        if is_const_int(lower, 1) and self.analyzer.can_prove_equal(upper, split.source.extent):
            return outer.whole, inner.whole
        if self._divides(step, lower):
            return self._digit(outer, self._quotient(lower, step), split.extent), None
        if self._divides(upper, step):
            return None, self._digit(inner, lower, split.extent)
        if self._divides(lower, step) and self._divides(step, upper):
            one = const(1, step.dtype)
            return (
                self._digit(outer, one, self._quotient(upper, step)),
                self._digit(inner, lower, self._quotient(step, lower)),
            )
        raise NotAffine("a digit crosses the border of the subspace")

    def _digit(self, mark: IterMark, lower: E.PrimExpr, extent: E.PrimExpr) -> IterSplit:
        if is_const_int(lower, 1) and self.analyzer.can_prove_equal(extent, mark.extent):
            return mark.whole
        return IterSplit(mark, lower, extent)

    def divide_sum(self, value: IterSum, extent: E.PrimExpr) -> tuple[IterMark, IterMark]:
        """(outer, inner) of a fused sum over [0, extent): inner splits stand after outer ones."""
        if len(value.terms) == 1 and is_const_int(value.constant, 0):
            return self.divide_term(*next(iter(value.items())))
        outer: dict[IterSplit, E.PrimExpr] = {}
        inner: dict[IterSplit, E.PrimExpr] = {}
        # From the innermost on, which is the order of the predicates.
        parts = [self.divide_split(split) for split in reversed(value.terms)]
        for scale, (around, within) in zip(value.terms.values(), reversed(parts), strict=True):
            if around is not None and within is None and not inner:
                outer[around] = scale
            elif around is None and within is not None:
                inner[within] = scale
            else:
                raise NotAffine("the loops of the subspace are not the inner part of an index")
        self._keep_predicate(value, extent, outer, inner)
        zero = const(0, extent.dtype)
        if not inner:
            return IterMark(iter_sum(outer, value.constant), extent), _nothing(extent.dtype)
        if not outer:
            return _nothing(extent.dtype), IterMark(iter_sum(inner, value.constant), extent)
        step = self.analyzer.simplify(self._reach(inner))
        if not all(self._divides(step, scale) for scale in outer.values()):
            raise NotAffine("the inner parts of an index overlap")
        scaled = {split: self._quotient(scale, step) for split, scale in outer.items()}
        return (
            IterMark(iter_sum(scaled, zero), self._quotient(extent, step)),
            IterMark(iter_sum(inner, zero), step),
        )

    def _keep_predicate(
        self,
        value: IterSum,
        extent: E.PrimExpr,
        outer: dict[IterSplit, E.PrimExpr],
        inner: dict[IterSplit, E.PrimExpr],
    ) -> None:
        """A sum that does not fill its digits is bounded; only one part can say so."""
        reach = self._reach(value.terms)
        if is_const_int(value.constant, 0) and self.analyzer.can_prove_equal(reach, extent):
            return
        divided = iter_sum({**outer, **inner}, value.constant)
        bounded = less(sum_to_expr(divided, self.analyzer), extent)
        if not inner:
            self.outer_predicate = logical_and(self.outer_predicate, bounded)
        elif not outer:
            self.inner_predicate = logical_and(self.inner_predicate, bounded)
        else:
            raise NotAffine("a predicate bounds both parts of an index")

    def _reach(self, splits: Mapping[IterSplit, E.PrimExpr]) -> E.PrimExpr:
        """How far a sum of splits reaches, of which the outer ones may step by less than the inner
        ones cover."""
        reach: E.PrimExpr | None = None
        for split, scale in reversed(list(splits.items())):
            covered = multiply(split.extent, scale)
            if reach is not None and self.analyzer.can_prove(scale < reach):
                covered = add(subtract(covered, scale), reach)
            reach = covered
        assert reach is not None
        return reach

    def _divides(self, divisor: E.PrimExpr, value: E.PrimExpr) -> bool:
        return self.analyzer.can_prove_multiple(value, divisor)

    def _quotient(self, a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
        return self.analyzer.simplify(floordiv(a, b))


def _nothing(dtype: str) -> IterMark:
    return IterMark(iter_sum({}, const(0, dtype)), const(1, dtype))


def _is_nothing(mark: IterMark) -> bool:
    return isinstance(mark.source, LinearForm) and not mark.source.terms
