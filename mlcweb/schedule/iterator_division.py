"""The iterators of a block, each divided between the loops outside and inside of a border."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlcweb.arith import (
    Analyzer,
    IterSum,
    conjuncts,
    detect_iter_map,
    mark_to_expr,
    same_expression,
    subspace_divide,
)
from mlcweb.schedule.scopes import is_trivially_true, loop_ranges
from mlcweb.tir.arithmetic import const, is_const_int, logical_and, subtract
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import BlockRealize, For
from mlcweb.tir.substitute import substitute, variables_in


class Part(NamedTuple):
    """A value in [0, extent)."""

    value: PrimExpr
    extent: PrimExpr


class DividedIterator(NamedTuple):
    """The value of an iterator is `outer * extent of inner + inner + start`."""

    outer: Part
    inner: Part
    start: PrimExpr


class Division(NamedTuple):
    """All iterators of a block, and what its predicate says of either part."""

    iterators: list[DividedIterator]
    outer_predicate: PrimExpr
    inner_predicate: PrimExpr


def divide(
    realize: BlockRealize, outer: Sequence[For], inner: Sequence[For], keep_unit_loops: bool
) -> Division | None:
    """Divide the iterators of a block between the loops `outer` and `inner`; None where one cannot
    be divided.

    Bindings that are not affine are divided too, where each uses the loops of one side alone.
    """
    domains = loop_ranges((*outer, *inner))
    analyzer = Analyzer()
    bindings, predicate = realize.iter_values, realize.predicate
    found = detect_iter_map(
        bindings, domains, predicate, simplify_trivial_iterators=not keep_unit_loops
    )
    subspace = subspace_divide(
        bindings,
        domains,
        {loop.loop_var for loop in inner},
        predicate,
        simplify_trivial_iterators=not keep_unit_loops,
    )
    if found.indices is None or subspace is None or any(map(_has_gaps, found.indices)):
        return _divided_by_use(realize, outer, inner)
    iterators = []
    for index, (around, within) in zip(found.indices, subspace.divisions, strict=True):
        values = [mark_to_expr(mark, analyzer) for mark in (around, within)]
        if not is_const_int(index.constant, 0):
            # The base stands in the inner part, or in the outer one where that is all there is.
            last = 1 if index.terms else 0
            values[last] = analyzer.simplify(subtract(values[last], index.constant))
        parts = Part(values[0], around.extent), Part(values[1], within.extent)
        iterators.append(DividedIterator(*parts, index.constant))
    division = Division(iterators, subspace.outer_predicate, subspace.inner_predicate)
    return _with_whole_predicate(division, realize, outer, inner)


def _has_gaps(index: IterSum) -> bool:
    """Whether an iterator steps by another number than one, as `2 * i` and `4 - i` do: its values
    are not those of `outer * extent + inner`."""
    return any(not is_const_int(scale, 1) for scale in index.terms.values())


def _with_whole_predicate(
    division: Division, realize: BlockRealize, outer: Sequence[For], inner: Sequence[For]
) -> Division | None:
    """The division with those conditions of the predicate that its own predicates do not say (the
    ends of iterators are upper limits); None where one is about both parts."""
    analyzer = Analyzer(loop_ranges((*outer, *inner)))
    units = {loop.loop_var: loop.min for loop in (*outer, *inner) if is_const_int(loop.extent, 1)}
    predicates: list[PrimExpr] = [const(True), const(True)]
    for side, predicate in enumerate((division.outer_predicate, division.inner_predicate)):
        for condition in conjuncts(predicate):
            if not _is_known(condition, predicates, analyzer):
                predicates[side] = logical_and(predicates[side], condition)
    sides = [{loop.loop_var for loop in loops} for loops in (outer, inner)]
    for condition in conjuncts(realize.predicate):
        if _is_known(condition, predicates, analyzer):
            continue
        used = variables_in(condition)
        if used & sides[0] and used & sides[1]:
            condition = analyzer.simplify(substitute(condition, units))
            used = variables_in(condition)
        if used & sides[0] and used & sides[1]:
            return None
        side = 1 if used & sides[1] else 0
        predicates[side] = logical_and(predicates[side], condition)
    return Division(division.iterators, *predicates)


def _is_known(condition: PrimExpr, predicates: Sequence[PrimExpr], analyzer: Analyzer) -> bool:
    """Whether a condition follows from predicates that hold."""
    wanted = analyzer.simplify(condition)
    said = (part for predicate in predicates for part in conjuncts(predicate))
    if any(same_expression(analyzer.simplify(part), wanted) for part in said):
        return True
    with analyzer.constraint(logical_and(*predicates)):
        return analyzer.can_prove(wanted)


def _divided_by_use(
    realize: BlockRealize, outer: Sequence[For], inner: Sequence[For]
) -> Division | None:
    if not is_trivially_true(realize.predicate):
        return None
    around: set[Var] = {loop.loop_var for loop in outer}
    within: set[Var] = {loop.loop_var for loop in inner}
    iterators = []
    for iter_var, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        used = variables_in(value)
        if used & around and used & within:
            return None
        if iter_var.dom is None or not is_const_int(iter_var.dom.min, 0):
            return None
        zero, one = const(0, value.dtype), const(1, value.dtype)
        whole, nothing = Part(value, iter_var.dom.extent), Part(zero, one)
        parts = (nothing, whole) if used & within else (whole, nothing)
        iterators.append(DividedIterator(*parts, zero))
    return Division(iterators, const(True), const(True))
