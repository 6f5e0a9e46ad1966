"""Inverses of index maps that may round dimensions up: the elements that are new are padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.arith import Analyzer, eval_set
from mlcweb.arith.index_map import IndexMap, IndexMapError
from mlcweb.arith.inverse_map import InverseMap
from mlcweb.arith.iter_expr import IterMark, IterSum, sum_to_expr
from mlcweb.arith.iter_map import BIJECTIVE, NO_CHECK, analyzer_of, detect_iter_map
from mlcweb.arith.linear import LinearForm
from mlcweb.tir.arithmetic import const, constant_value, is_const_int, logical_and, logical_or
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.substitute import substitute


def index_ranges(index_map: IndexMap, domains: Mapping[Var, Range]) -> list[Range | None]:
    """What each final index runs through, rounded up where a divisor does not divide; None where
    it is unknown."""
    sums = detect_iter_map(
        index_map.final_indices, domains, True, NO_CHECK, simplify_trivial_iterators=False
    ).indices
    analyzer = Analyzer(domains)
    if sums is not None:
        return [range_of_sum(total, analyzer) for total in sums]
    ranges: list[Range | None] = []
    for index in index_map.final_indices:
        low, high = eval_set(index, domains, analyzer)
        if low is None or high is None:
            ranges.append(None)
            continue
        ranges.append(Range(analyzer.simplify(low), analyzer.simplify(high - low + 1)))
    return ranges


def range_of_sum(total: IterSum, analyzer: Analyzer) -> Range:
    """From the least to the greatest value that a sum takes."""
    low, reach = total.constant, const(0, total.dtype)
    for split, scale in total.items():
        span = (split.extent - 1) * scale
        if analyzer.const_int_bound(scale).max_value < 0:
            low, span = low + span, -span
        reach = reach + span
    return Range(analyzer.simplify(low), analyzer.simplify(reach + 1))


def padded_inverse(index_map: IndexMap, domains: Mapping[Var, Range]) -> tuple[IndexMap, PrimExpr]:
    """The inverse of a map, and the condition on its indices under which they are padding.

    Each index that is a plain iterator keeps its name; the others are called `axis0`, `axis1`, ….
    """
    result = detect_iter_map(
        index_map.final_indices, domains, True, NO_CHECK, simplify_trivial_iterators=False
    )
    if result.indices is None:
        raise IndexMapError(f"{index_map!r} is not affine: {'; '.join(result.errors)}")
    inverse_map = InverseMap(result.indices, domains)
    if not inverse_map.has_unit_scale:
        raise IndexMapError(f"{index_map!r} leaves gaps between neighbouring elements")
    axes = [
        Var(index.name if isinstance(index, Var) else f"axis{n}", index.dtype)
        for n, index in enumerate(index_map.final_indices)
    ]
    analyzer = Analyzer(domains)
    ranges = [range_of_sum(total, analyzer) for total in result.indices]
    axis_domains = dict(zip(axes, ranges, strict=True))
    simplify = analyzer_of(axis_domains).simplify
    preimages = inverse_map(axes)
    inverse = {var: simplify(preimages.get(var, domain.min)) for var, domain in domains.items()}
    doubtful = _not_led_back(index_map, inverse, axes, analyzer)
    if doubtful is not None:
        # Of extents that are variables more is known where all iterations are reached.
        result = detect_iter_map(index_map.final_indices, domains, True, BIJECTIVE)
        if result.indices is None:
            raise IndexMapError(
                f"{index_map!r} is not injective: elements that differ in {doubtful.name} get one "
                "place"
            )
        values = InverseMap(result.indices, domains)(axes)
        inverse = {var: simplify(values.get(var, domain.min)) for var, domain in domains.items()}
    of_axes = Analyzer(axis_domains)
    predicate: PrimExpr = const(False)
    for mark, block in _padded_marks(result.indices):
        predicate = logical_or(predicate, _outside(mark, block, inverse, of_axes))
    inverted_map = IndexMap(tuple(axes), tuple(inverse[var] for var in index_map.initial_indices))
    return inverted_map, predicate


def padded_inverse_map(
    indices: Sequence[PrimExpr], domains: Mapping[Var, Range]
) -> InverseMap | None:
    """The inverse of a map from the iterators `domains` to `indices` that may leave indices unused
    at the ends; None where the map is not affine or two iterations have the same indices.

    Example: `B[vi // 4, vi % 4]` with vi in [0, 30) has the inverse vi = x * 4 + y, for (7, 3) too.
    """
    try:
        padded_inverse(IndexMap(tuple(domains), tuple(indices)), domains)
    except IndexMapError:
        return None
    result = detect_iter_map(indices, domains, True, NO_CHECK, simplify_trivial_iterators=False)
    return None if result.indices is None else InverseMap(result.indices, domains)


def _not_led_back(
    index_map: IndexMap,
    inverse: Mapping[Var, PrimExpr],
    axes: Sequence[Var],
    analyzer: Analyzer,
) -> Var | None:
    """An iterator that the inverse is not known to lead back to: where there is one, the map gives
    two elements one place."""
    there = dict(zip(axes, index_map.final_indices, strict=True))
    for var, value in inverse.items():
        if not analyzer.can_prove_equal(substitute(value, there), var):
            return var
    return None


def _padded_marks(indices: Sequence[IterSum]) -> list[tuple[IterMark, int]]:
    """The iterators that were rounded up, each once, in order of first use, and the size of the
    blocks that they are divided into."""
    marks: list[IterMark] = []
    blocks: dict[IterMark, int] = {}

    def visit(total: IterSum) -> None:
        for split in total.terms:
            mark = split.source
            if not isinstance(mark.source, LinearForm):
                continue
            size = int(constant_value(split.lower_factor) or 1)
            blocks[mark] = max(blocks.get(mark, 1), size)
            if _is_padded(mark, mark.source) and not any(mark is other for other in marks):
                marks.append(mark)
            visit(mark.source)

    for total in indices:
        visit(total)
    return [(mark, blocks[mark]) for mark in marks]


def _is_padded(mark: IterMark, source: IterSum) -> bool:
    if len(source.terms) != 1:
        return False
    (split,) = source.terms
    length, total = split.source.extent, mark.extent
    if not is_const_int(split.lower_factor, 1):
        return False
    if Analyzer().can_prove_equal(length, total):
        return False
    if constant_value(length) is None or constant_value(total) is None:
        raise IndexMapError(
            f"it is not known that {length!r} is divisible, and padding needs a constant extent"
        )
    return True


def _outside(
    mark: IterMark, block: int, inverse: Mapping[Var, PrimExpr], analyzer: Analyzer
) -> PrimExpr:
    """Where a padded iterator is none of the iterations of the original one.

    As TVM writes it: the padding is in the first and in the last block, and there before and after
    a position.
    """
    assert isinstance(mark.source, LinearForm)
    original = next(iter(mark.source.terms)).source
    value = substitute(sum_to_expr(mark.source, Analyzer()), inverse)
    left, length, total = (
        int(constant_value(x) or 0) for x in (mark.source.constant, original.extent, mark.extent)
    )
    edge = left + length
    if isinstance(original.source, LinearForm) or left > block or edge < total - block:
        block = total
    outside: PrimExpr = const(False)
    if left:
        outside = logical_and((value // block).equal(0), value % block < left)
    if edge < total:
        after = logical_and((value // block).equal(edge // block), edge % block <= value % block)
        outside = logical_or(outside, after)
    return analyzer.simplify(outside)
