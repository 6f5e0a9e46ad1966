"""Which iterations of a block touch a required region of a buffer.

A block accesses `B[f(v)]` in iteration v. Given a box of B, the iterations whose access lies in the
box are solved for one iterator at a time; where an iterator cannot be solved, it keeps its whole
domain. The result never leaves out an iteration that touches the box.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlcweb.analysis.access_regions import same_range
from mlcweb.arith import Analyzer, IntSet, conjunction, conjuncts, eval_set, intersect, union
from mlcweb.arith.inverse_map import inverse_map, placeholders
from mlcweb.arith.iter_map import SURJECTIVE, detect_iter_map
from mlcweb.arith.padded_inverse import range_of_sum
from mlcweb.ir.node import replace
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import add, const, floordiv, is_const_int, multiply, subtract
from mlcweb.tir.buffer import BufferRegion, Range
from mlcweb.tir.expr import FloorDiv, IntImm, Mul, PrimExpr, Var
from mlcweb.tir.stmt import IterType
from mlcweb.tir.substitute import reads_memory, substitute, uses_any, variables_in

Box = Sequence[IntSet]
Solution = dict[Var, IntSet]
"""The values that iterators need; an iterator that is missing needs its whole domain."""


@dataclass(frozen=True, slots=True)
class IteratorDomain:
    """The values that an iterator has to run through, and the limits that a predicate must keep
    where these values may lie outside of them."""

    values: IntSet
    limits: IntSet | None


def executed_domains(place: BlockPlace) -> dict[Var, Range] | None:
    """What a block's iterators run through: their domains, or parts of them where the loops, or a
    predicate, leave out the rest.

    None where some combinations of their values may be left out.
    """
    domains, loops = place.block.domains, place.inner_loops(None)
    values, analyzer = place.realize.iter_values, Analyzer(loops)
    condition = condition_on_loops(place)
    if condition is None:
        return None
    if is_const_int(condition, 1) and _are_loops(values, domains, loops):
        return domains
    result = detect_iter_map(values, loops, condition, SURJECTIVE)
    if result.indices is None:
        return None
    scales = [scale for index in result.indices for scale in index.terms.values()]
    if not result.is_box or not all(is_const_int(n, 1) or is_const_int(n, -1) for n in scales):
        return None
    runs = [range_of_sum(index, analyzer) for index in result.indices]
    if any(uses_any(run, loops) for run in runs):
        return None  # Loops whose domains depend on others run through no box.
    return {
        var: domain if _same_range(run, domain) else run
        for (var, domain), run in zip(domains.items(), runs, strict=True)
    }


def condition_on_loops(place: BlockPlace) -> PrimExpr | None:
    """What a block's predicate says that does not always hold. None where a part of it is about
    nothing that moves, and leaves out all iterations or none."""
    loops = place.inner_loops(None)
    analyzer = Analyzer(loops)
    conditions = [c for c in conjuncts(place.realize.predicate) if not analyzer.can_prove(c)]
    moving = {var for var, domain in loops.items() if not is_const_int(domain.extent, 1)}
    if not all(uses_any(condition, moving) for condition in conditions):
        return None
    return conjunction(conditions)


def domains_and_condition(place: BlockPlace) -> tuple[dict[Var, Range], PrimExpr] | None:
    """What a block's iterators run through, and what its predicate says of them further.

    None where combinations of their values are left out for another reason.
    """
    loops, realize = place.inner_loops(None), place.realize
    iterators: dict[Var, PrimExpr] = {
        value: axis.var
        for axis, value in realize.iterators
        if isinstance(value, Var) and value in loops
    }
    ends = (end for domain in place.block.domains.values() for end in (domain.min, domain.extent))
    visible = {*iterators, *variables_in(*ends)}
    about, others = list[PrimExpr](), list[PrimExpr]()
    for condition in conjuncts(realize.predicate):
        is_about = variables_in(condition) <= visible and not reads_memory(condition)
        (about if is_about else others).append(condition)
    rest = replace(realize, predicate=conjunction(others))
    domains = executed_domains(dataclasses.replace(place, realize=rest))
    return None if domains is None else (domains, substitute(conjunction(about), iterators))


def first_terms(place: BlockPlace) -> BlockPlace:
    """The block as it runs in the first iterations of the loops that it reduces over: these store
    to what it stores to, whatever a predicate leaves out of the others."""
    loops, others = place.inner_loops(None), set[Var]()
    for axis, value in place.realize.iterators:
        if axis.iter_type == IterType.DATA_PARALLEL:
            others |= variables_in(value)
    first = {var: domain.min for var, domain in loops.items() if var not in others}
    realize = place.realize
    values = tuple(substitute(value, first) for value in realize.iter_values)
    predicate = substitute(realize.predicate, first)
    first_realize = replace(realize, iter_values=values, predicate=predicate)
    return dataclasses.replace(place, realize=first_realize)


def _are_loops(
    values: Sequence[PrimExpr], domains: Mapping[Var, Range], loops: Mapping[Var, Range]
) -> bool:
    """Whether iterators are different loops over the same domains."""
    return len(set(values)) == len(values) and all(
        isinstance(value, Var) and value in loops and same_range(loops[value], domain)
        for value, domain in zip(values, domains.values(), strict=True)
    )


def _same_range(run: Range, domain: Range) -> bool:
    if same_range(run, domain):
        return True
    equal = Analyzer().can_prove_equal
    return equal(run.min, domain.min) and equal(run.extent, domain.extent)


def needed_iterations(
    accesses: Sequence[tuple[BufferRegion, Box]], domains: Mapping[Var, Range], analyzer: Analyzer
) -> Solution:
    """The iterations in which one of the accesses touches the box given with it."""
    solutions = [
        _solve_together(region, box, domains, analyzer)
        or _solve_separately(region, box, domains, analyzer)
        for region, box in accesses
    ]
    if not solutions:
        return {}
    return {
        var: union([solution[var] for solution in solutions], analyzer)
        for var in domains
        if all(var in solution for solution in solutions)
    }


def limited(
    solution: Solution, domains: Mapping[Var, Range], analyzer: Analyzer
) -> dict[Var, IteratorDomain]:
    """The domain of each iterator: what `solution` needs of what it runs through anyway."""
    return {
        var: _limited(solution.get(var), IntSet.from_range(domain), analyzer)
        for var, domain in domains.items()
    }


def _limited(needed: IntSet | None, limits: IntSet, analyzer: Analyzer) -> IteratorDomain:
    if needed is None or needed.min_value is None or needed.max_value is None:
        return IteratorDomain(limits, None)
    common = intersect(needed, limits, analyzer)
    if _same(needed, common, analyzer):
        return IteratorDomain(needed, None)
    if _same(limits, common, analyzer):
        return IteratorDomain(limits, None)
    if isinstance(common.min_value, IntImm) and isinstance(common.max_value, IntImm):
        return IteratorDomain(common, None)
    return IteratorDomain(needed, limits)


def _same(a: IntSet, b: IntSet, analyzer: Analyzer) -> bool:
    if None in (*a, *b):
        return False
    equal = analyzer.can_prove_equal
    return equal(a.min_value, b.min_value) and equal(a.max_value, b.max_value)  # type: ignore[arg-type]


def _solve_together(
    region: BufferRegion, box: Box, domains: Mapping[Var, Range], analyzer: Analyzer
) -> Solution | None:
    """By the inverse of the whole index map, where the access is one element per iteration."""
    if not all(is_const_int(dimension.extent, 1) for dimension in region.region):
        return None
    if any(None in side for side in box):
        return None
    inverse = inverse_map([dimension.min for dimension in region.region], domains)
    if inverse is None or not inverse.has_unit_scale:
        return None
    indices = placeholders(len(box), region.region[0].min.dtype) if box else []
    sides = dict(zip(indices, box, strict=True))
    return {var: eval_set(value, sides, analyzer) for var, value in inverse(indices).items()}


def _solve_separately(
    region: BufferRegion, box: Box, domains: Mapping[Var, Range], analyzer: Analyzer
) -> Solution:
    """Dimension by dimension, where an index depends on a single iterator."""
    solution: Solution = {}
    for dimension, side in zip(region.region, box, strict=True):
        if None in side:
            continue
        constraint = _solve_dimension(dimension, side, domains, analyzer)
        if constraint is not None:
            var, values = constraint
            previous = solution.get(var)
            solution[var] = values if previous is None else intersect(previous, values, analyzer)
    return solution


def _solve_dimension(
    dimension: Range, side: IntSet, domains: Mapping[Var, Range], analyzer: Analyzer
) -> tuple[Var, IntSet] | None:
    """The iterator in a dimension's index and its values for which [index, index + extent) touches
    `side`; None where the index has no such form."""
    index, extent = analyzer.simplify(dimension.min), dimension.extent
    iterators = [var for var in domains if var in variables_in(index)]
    low, high = side
    if len(iterators) != 1 or variables_in(extent) & set(domains) or low is None or high is None:
        return None
    var = iterators[0]
    if isinstance(index, FloorDiv) and index.a is var and is_const_int(extent, 1):
        factor = index.b
        if not analyzer.can_prove(factor >= 1) or variables_in(factor) & {var}:
            return None
        last = analyzer.simplify(add(multiply(high, factor), subtract(factor, 1)))
        return var, IntSet(analyzer.simplify(multiply(low, factor)), last)
    scale = _scale_of(index, var, analyzer)
    if scale is None or not analyzer.can_prove(scale >= 1):
        return None
    offset = analyzer.simplify(subtract(index, multiply(var, scale)))
    if variables_in(offset) & {var}:
        return None
    first = floordiv(subtract(subtract(low, offset), subtract(extent, scale)), scale)
    last = floordiv(subtract(high, offset), scale)
    return var, IntSet(analyzer.simplify(first), analyzer.simplify(last))


def _scale_of(index: PrimExpr, var: Var, analyzer: Analyzer) -> PrimExpr | None:
    """The constant factor of an iterator in an index (or a symbolic one in a plain product)."""
    if isinstance(index, Mul) and var in (index.a, index.b):
        other = index.b if index.a is var else index.a
        return None if var in variables_in(other) else other
    first, second = (substitute(index, {var: const(n, var.dtype)}) for n in (0, 1))
    difference = analyzer.simplify(subtract(second, first))
    return difference if isinstance(difference, IntImm) else None
