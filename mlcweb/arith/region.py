"""Regions: which part of a buffer is touched while loop variables run through their domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.int_set import IntervalSet, IntSet, eval_range, union
from mlcweb.arith.iter_expr import IterSum
from mlcweb.arith.iter_map import (
    SURJECTIVE,
    detect_iter_map,
    lone_iterators,
    sum_of_iterator,
)  # fmt: skip
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import Range
from mlcweb.tir.folding import integer
from mlcweb.tir.substitute import uses_any


def estimate_region(
    region: Sequence[Range],
    domains: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> list[Range] | None:
    """The union of `region` over the variables of `domains`, exactly; None where that is no box.

    The result may mention variables that `domains` does not hold.
    """
    analyzer = analyzer or Analyzer(domains)
    sets = _strict_sets(region, domains, predicate, analyzer)
    if sets is None:
        return None
    return [item.cover_range(limit, analyzer) for item, limit in zip(sets, region, strict=True)]


def bounding_box(
    region: Sequence[Range],
    var_dom: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> list[IntSet]:
    """A box that holds the union of `region` over the variables of `var_dom`; an end that cannot
    be found is infinite. Each dimension is exact where it can be."""
    analyzer = analyzer or Analyzer(var_dom)
    exact = _strict_sets(region, var_dom, predicate, analyzer, within=True)
    if exact is not None:
        return exact
    result = []
    for dimension in region:
        alone = _strict_sets([dimension], var_dom, predicate, analyzer, within=True)
        result.append(alone[0] if alone else eval_range(dimension, var_dom, analyzer))
    return result


def estimate_region_upper_bound(
    region: Sequence[Range],
    var_dom: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> list[IntervalSet]:
    """`bounding_box` as programs read it."""
    return [IntervalSet(*side) for side in bounding_box(region, var_dom, predicate, analyzer)]


def estimate_region_strict_bound(
    region: Sequence[Range],
    var_dom: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> list[IntervalSet] | None:
    """`estimate_region` as sets."""
    sets = _strict_sets(region, var_dom, predicate, analyzer or Analyzer(var_dom))
    return None if sets is None else [IntervalSet(*side) for side in sets]


estimate_region_lower_bound = estimate_region_strict_bound
"""What TVM calls the lower bound is exact, too."""


def _strict_sets(
    region: Sequence[Range],
    domains: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool,
    analyzer: Analyzer,
    within: bool = False,
) -> list[IntSet] | None:
    """The sides of a region over all iterations; `within` these, where that is enough."""
    if not all(isinstance(dimension.extent, E.IntImm) for dimension in region):
        return None
    sums = _sums(region, domains, predicate, analyzer, within)
    if sums is None:
        return None
    result = []
    for index, dimension in zip(sums, region, strict=True):
        touched = _set_of_sum(index, dimension.extent, analyzer)
        # The ends of a domain may mention another variable, over which the union is, too.
        if touched is None or any(end is not None and uses_any(end, domains) for end in touched):
            return None
        result.append(touched)
    return result


def _sums(
    region: Sequence[Range],
    domains: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool,
    analyzer: Analyzer,
    within: bool,
) -> list[IterSum] | None:
    """Where a region starts, as independent sums of iterators."""
    starts = [dimension.min for dimension in region]
    alone = lone_iterators(starts, domains, predicate)
    rest = [start for start in starts if start not in alone]
    result = detect_iter_map(rest, domains, predicate, SURJECTIVE, analyzer=analyzer)
    if result.indices is None or not (within or result.is_box):
        return None
    if not alone:
        return result.indices
    sums = iter(result.indices)
    return [
        sum_of_iterator(start, domains[start])
        if isinstance(start, E.Var) and start in alone
        else next(sums)
        for start in starts
    ]


def _is_constant_step(count: Any, step: Any, length: Any) -> bool:
    """Whether `count` pieces of a `length` follow in a `step` upwards, all of them constant."""
    return (
        type(count) is type(step) is type(length) is E.IntImm
        and step.value > 0
        and count.dtype == step.dtype == length.dtype
    )


def _set_of_sum(index: IterSum, extent: Any, analyzer: Analyzer) -> IntSet | None:
    """`extent` elements from each value of an index on; None where gaps are left."""
    low = index.constant
    split: Any
    for split, scale in index.items():
        if _is_constant_step(split.extent, scale, extent):
            if extent.value < scale.value:
                return None
            reached = extent.value + (split.extent.value - 1) * scale.value
            extent = integer(reached, extent.dtype)
            continue
        if not analyzer.can_prove(extent >= scale):
            return None
        reach = (split.extent - 1) * scale
        if analyzer.const_int_bound(scale).max_value < 0:
            if not analyzer.can_prove(extent + scale >= 0):
                return None
            low, reach = analyzer.simplify(low + reach), -reach
        extent = extent + reach
    extent = analyzer.simplify(extent)
    return (
        IntSet.point(low)
        if is_const_int(extent, 1)
        else IntSet(low, analyzer.simplify(low + extent - 1))
    )


def union_lower_bound(sets: Iterable[IntSet]) -> IntervalSet:
    """An interval within the union of sets: the first, and what is known to continue it."""
    analyzer = Analyzer()
    result: IntSet | None = None
    for item in sets:
        if item.is_nothing():
            continue
        item = IntSet(*item)
        if result is None:
            result = item
        elif _reaches(result, item, analyzer) and _reaches(item, result, analyzer):
            result = union([result, item], analyzer)
    return IntervalSet.nothing() if result is None else IntervalSet(*result)


def _reaches(a: IntSet, b: IntSet, analyzer: Analyzer) -> bool:
    """Whether b begins with what follows on a, or before."""
    if a.max_value is None or b.min_value is None:
        return True
    return analyzer.can_prove(b.min_value <= a.max_value + 1)
