"""Regions: which part of a buffer is touched while loop variables run through their domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.int_set import IntSet, eval_range
from mlcweb.arith.iter_expr import IterSum
from mlcweb.arith.iter_map import SURJECTIVE, detect_iter_map
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import Range


def estimate_region(
    region: Sequence[Range],
    domains: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> list[Range] | None:
    """The union of `region` over the variables of `domains`, exactly; None where that is no box.

    The result may mention variables that `domains` does not hold.
    """
    sets = _strict_sets(region, domains, predicate, analyzer or Analyzer(domains))
    if sets is None:
        return None
    analyzer = analyzer or Analyzer(domains)
    return [item.cover_range(given, analyzer) for item, given in zip(sets, region, strict=True)]


def estimate_region_upper_bound(
    region: Sequence[Range],
    var_dom: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> list[IntSet]:
    """A box that holds the union of `region` over the variables of `var_dom`; an end that cannot
    be found is infinite. Each dimension is exact where it can be."""
    analyzer = analyzer or Analyzer(var_dom)
    exact = _strict_sets(region, var_dom, predicate, analyzer)
    if exact is not None:
        return exact
    result = []
    for dimension in region:
        alone = _strict_sets([dimension], var_dom, predicate, analyzer)
        result.append(alone[0] if alone else eval_range(dimension, var_dom, analyzer))
    return result


def estimate_region_strict_bound(
    region: Sequence[Range],
    var_dom: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> list[IntSet] | None:
    """`estimate_region` as sets."""
    return _strict_sets(region, var_dom, predicate, analyzer or Analyzer(var_dom))


estimate_region_lower_bound = estimate_region_strict_bound
"""What TVM calls the lower bound is exact, too."""


def _strict_sets(
    region: Sequence[Range],
    domains: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool,
    analyzer: Analyzer,
) -> list[IntSet] | None:
    if not all(isinstance(dimension.extent, E.IntImm) for dimension in region):
        return None
    starts = [dimension.min for dimension in region]
    found = detect_iter_map(starts, domains, predicate, SURJECTIVE, analyzer=analyzer).indices
    if found is None:
        return None
    result = []
    for index, dimension in zip(found, region, strict=True):
        touched = _set_of_sum(index, dimension.extent, analyzer)
        if touched is None:
            return None
        result.append(touched)
    return result


def _set_of_sum(index: IterSum, extent: E.PrimExpr, analyzer: Analyzer) -> IntSet | None:
    """`extent` elements from each value of an index on; None where gaps are left."""
    low = index.constant
    for split, scale in index.items():
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
