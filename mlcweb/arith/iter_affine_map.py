"""Iterator maps under TVM's names, with TVM's classes of results.

The functions of this package work on linear forms (`mlcweb.arith.iter_expr`); those here give and
take `IterSumExpr`, whose `args` are `IterSplitExpr`, whose `source` is an `IterMark`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import reduce
from itertools import permutations
from math import prod
from typing import Any

from mlcweb.arith import iter_expr, iter_map, subspace
from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.inverse_map import InverseMap
from mlcweb.arith.linear import LinearForm
from mlcweb.arith.rules_integer import factors
from mlcweb.ir.errors import TVMError
from mlcweb.ir.structural import COMPARED_AS
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const, convert, is_const_int, logical_or
from mlcweb.tir.buffer import Range
from mlcweb.tir.substitute import variables_in


class IterMapLevel(IntEnum):
    """What is asked of a map: each index of its own and every iterator used (bijective), each
    index of its own (surjective), or nothing."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name: str) -> IterMapLevel:
        """The level of a name: "bijective", "surjective" or "nocheck"."""
        for level in IterMapLevel:
            if level.name.lower() == name.lower():
                return level
        raise ValueError(f'Unknown level "{name}": there are bijective, surjective and nocheck')


_LEVELS = {
    IterMapLevel.Bijective: iter_map.BIJECTIVE,
    IterMapLevel.Surjective: iter_map.SURJECTIVE,
    IterMapLevel.NoCheck: iter_map.NO_CHECK,
}


class IterMapExpr:
    """Base of `IterSplitExpr` and `IterSumExpr`."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class IterMark:
    """An iterator over [0, extent): a variable, or a sum of digits."""

    source: Any
    extent: Any

    def __post_init__(self) -> None:
        if not isinstance(self.source, IterMapExpr):
            self.source = convert(self.source)
        self.extent = convert(self.extent)


@dataclass(eq=False, slots=True)
class IterSplitExpr(IterMapExpr):
    """`source // lower_factor % extent * scale`; all of `source` by default."""

    source: IterMark
    lower_factor: Any = None
    extent: Any = None
    scale: Any = None

    def __post_init__(self) -> None:
        self.extent = self.source.extent if self.extent is None else convert(self.extent)
        one = const(1, self.extent.dtype)
        self.lower_factor = one if self.lower_factor is None else convert(self.lower_factor)
        self.scale = one if self.scale is None else convert(self.scale)

    @property
    def dtype(self) -> str:
        return self.extent.dtype


@dataclass(eq=False, slots=True)
class IterSumExpr(IterMapExpr):
    """The sum of `args`, which are digits of iterators, and of `base`."""

    args: Sequence[IterSplitExpr]
    base: Any

    def __post_init__(self) -> None:
        self.args, self.base = list(self.args), convert(self.base)

    @property
    def dtype(self) -> str:
        return self.base.dtype


@dataclass(eq=False, slots=True)
class IterMapResult:
    """One sum for each index, or none and the reasons in `errors`. `padding_predicate` holds where
    an iterator that was rounded up is outside of its extent."""

    indices: list[IterSumExpr] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    padding_predicate: E.PrimExpr = field(default_factory=lambda: const(False, "bool"))


COMPARED_AS.update(
    {
        IterMark: lambda mark: ("mark", mark.source, mark.extent),
        IterSplitExpr: lambda split: (
            "split", split.source, split.lower_factor, split.extent, split.scale,
        ),
        IterSumExpr: lambda total: ("sum", total.args, total.base),
    }
)  # fmt: skip


class _Outward:
    """Makes TVM's classes of linear forms; a mark that is used twice is one object."""

    def __init__(self) -> None:
        self.marks: dict[iter_expr.IterMark, IterMark] = {}

    def mark(self, mark: iter_expr.IterMark) -> IterMark:
        if mark not in self.marks:
            source = mark.source
            inside = self.sum(source) if isinstance(source, LinearForm) else source
            self.marks[mark] = IterMark(inside, mark.extent)
        return self.marks[mark]

    def sum(self, value: iter_expr.IterSum) -> IterSumExpr:
        splits = [
            IterSplitExpr(self.mark(split.source), split.lower_factor, split.extent, scale)
            for split, scale in value.items()
        ]
        return IterSumExpr(splits, value.constant)

    def index(self, value: iter_expr.IterSum) -> IterSumExpr:
        """An index as one digit, all of a sum, as TVM has it: a digit by itself is such a sum."""
        result = self.sum(value)
        for split in result.args:
            if not (_is_whole(split) and isinstance(split.source.source, IterSumExpr)):
                scale, split.scale = split.scale, const(1, split.dtype)
                alone = IterSumExpr([split], const(0, split.dtype))
                return IterSumExpr(
                    [IterSplitExpr(IterMark(alone, split.extent), scale=scale)], result.base
                )
        return result


class _Inward:
    """The other way round."""

    def __init__(self) -> None:
        self.marks: dict[IterMark, iter_expr.IterMark] = {}

    def mark(self, mark: IterMark) -> iter_expr.IterMark:
        if mark not in self.marks:
            source = mark.source
            inside = self.sum(source) if isinstance(source, IterMapExpr) else source
            self.marks[mark] = iter_expr.IterMark(inside, mark.extent)
        return self.marks[mark]

    def sum(self, value: IterMapExpr) -> iter_expr.IterSum:
        if isinstance(value, IterSplitExpr):
            value = IterSumExpr([value], const(0, value.dtype))
        assert isinstance(value, IterSumExpr)
        splits = {
            iter_expr.IterSplit(self.mark(arg.source), arg.lower_factor, arg.extent): arg.scale
            for arg in value.args
        }
        return iter_expr.iter_sum(splits, value.base)


def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> IterMapResult:
    """Write each index as a sum of digits of independent iterators over `input_iters`.

    Where that cannot be done, `indices` of the result is empty and `errors` says why.
    """
    expressions = [convert(index) for index in indices]
    options = (_level(check_level), simplify_trivial_iterators, analyzer)
    result = iter_map.detect_iter_map(expressions, input_iters, predicate, *options)
    if result.indices is None:
        return IterMapResult(errors=result.errors)
    make = _Outward()
    outside = [
        condition
        for mark in result.padded
        for position in [iter_expr.mark_to_expr(mark.mark, Analyzer())]
        for condition in (
            *(() if is_const_int(mark.left, 0) else [position < mark.left]),
            position >= mark.left + mark.original.extent,
        )
    ]
    padding = Analyzer().simplify(reduce(logical_or, outside, const(False, "bool")))
    return IterMapResult([make.index(index) for index in result.indices], [], padding)


def normalize_to_iter_sum(
    index: Any, input_iters: Mapping[E.Var, Range], analyzer: Analyzer | None = None
) -> IterSumExpr:
    """An index as a sum of digits, the one with the largest scale first: of scales with more
    symbolic factors first. Terms that are not affine in the iterators are part of the base."""
    total = _Outward().sum(iter_map.sum_of_digits(convert(index), input_iters, analyzer))
    analyzer = analyzer or Analyzer()
    splits = [_of_original(split) for split in total.args]
    for low, high in permutations(splits, 2):
        if low in splits and high in splits and _follows(high, low, analyzer):
            extent = analyzer.simplify(low.extent * high.extent)
            whole = IterSplitExpr(low.source, low.lower_factor, extent, low.scale)
            splits[splits.index(low)] = whole
            splits.remove(high)
    splits.sort(key=lambda split: _size_of_scale(split.scale), reverse=True)
    return IterSumExpr(splits, total.base)


def _of_original(split: IterSplitExpr) -> IterSplitExpr:
    """A digit of an iterator that was rounded up as one of the iterator itself."""
    source = split.source.source
    if isinstance(source, IterSumExpr) and is_const_int(source.base, 0) and len(source.args) == 1:
        inner = source.args[0]
        if _is_whole(inner) and is_const_int(inner.scale, 1):
            return IterSplitExpr(inner.source, split.lower_factor, split.extent, split.scale)
    return split


def _is_whole(split: IterSplitExpr) -> bool:
    return is_const_int(split.lower_factor, 1) and same_expression(
        split.extent, split.source.extent
    )


def _follows(high: IterSplitExpr, low: IterSplitExpr, analyzer: Analyzer) -> bool:
    """Whether two digits of one iterator are one: x // 4 * 4 and x % 4."""
    return (
        high.source is low.source
        and analyzer.can_prove_equal(high.lower_factor, low.lower_factor * low.extent)
        and analyzer.can_prove_equal(high.scale, low.scale * low.extent)
    )


def _size_of_scale(scale: E.PrimExpr) -> tuple[int, int]:
    parts = list(factors(scale))
    constants = [part.value for part in parts if isinstance(part, E.IntImm)]
    return len(parts) - len(constants), prod(constants)


def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> list[E.PrimExpr]:
    """The indices in the normal form of their iterator map; as they are where they have none."""
    expressions = [convert(index) for index in indices]
    options = (_level(check_level), simplify_trivial_iterators, analyzer)
    return iter_map.iter_map_simplify(expressions, input_iters, predicate, *options)


def normalize_iter_map_to_expr(expr: IterMapExpr | IterMark) -> E.PrimExpr:
    """What a sum, a digit or an iterator stands for, as an expression in the variables."""
    if isinstance(expr, IterMark):
        return iter_expr.mark_to_expr(_Inward().mark(expr), Analyzer())
    return iter_expr.sum_to_expr(_Inward().sum(expr), Analyzer())


def subspace_divide(
    bindings: Sequence[Any],
    input_iters: Mapping[E.Var, Range],
    sub_iters: Collection[E.Var],
    predicate: E.PrimExpr | bool = True,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> list[list[IterMark]]:
    """For each binding its part outside of `sub_iters` and its part inside; last, marks whose
    extents are the predicates of both. Empty where a binding cannot be divided."""
    expressions = [convert(binding) for binding in bindings]
    options = (_level(check_level), simplify_trivial_iterators, analyzer)
    divided = subspace.subspace_divide(
        expressions, input_iters, list(sub_iters), predicate, *options
    )
    if divided is None:
        return []
    make = _Outward()
    predicates = (divided.outer_predicate, divided.inner_predicate)
    return [
        *([make.mark(outer), make.mark(inner)] for outer, inner in divided.divisions),
        [IterMark(IterSumExpr([], 0), condition) for condition in predicates],
    ]


def inverse_affine_iter_map(
    iter_map: Sequence[IterSumExpr], outputs: Sequence[Any]
) -> dict[E.Var, E.PrimExpr]:
    """The variables of a bijective map, in terms of what its sums are."""
    make = _Inward()
    sums = [make.sum(value) for value in iter_map]
    domains = {}
    for mark in make.marks.values():
        source = mark.source
        if isinstance(source, E.Sub) and isinstance(source.a, E.Var):
            domains[source.a] = Range(source.b, mark.extent)
        elif isinstance(source, E.Var):
            domains[source] = Range(const(0, source.dtype), mark.extent)
        elif not isinstance(source, LinearForm):
            names = ", ".join(v.name for v in variables_in(source))
            raise TVMError(f"The iterator {source!r} is no variable, of {names}")
    inverse = InverseMap(sums, domains)([convert(output) for output in outputs])
    analyzer = Analyzer()
    return {variable: analyzer.simplify(value) for variable, value in inverse.items()}


def _level(level: IterMapLevel | str) -> str:
    return _LEVELS[IterMapLevel.from_str(level) if isinstance(level, str) else level]
