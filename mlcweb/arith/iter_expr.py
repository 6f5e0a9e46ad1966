"""Iterator maps as data: what an affine index is made of.

An `IterMark` is an iterator: a loop variable, or several fused, of some extent. An `IterSplit` is a
digit of it. An `IterSum` is a linear form of splits: its coefficients, and its constant, are
expressions in which no iterator occurs.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.linear import LinearForm
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast, is_const_int
from mlcweb.tir.folding import add, floordiv, floormod, integer, multiply


@dataclass(eq=False, slots=True)
class IterMark:
    """An iterator over [0, extent). `source` is an expression (a loop variable) or a fused sum."""

    source: E.PrimExpr | IterSum
    extent: E.PrimExpr

    @property
    def whole(self) -> IterSplit:
        """All of the iterator."""
        return IterSplit(self, integer(1, self.extent.dtype), self.extent)


@dataclass(eq=False, slots=True)
class IterSplit:
    """`source // lower_factor % extent`."""

    source: IterMark
    lower_factor: E.PrimExpr
    extent: E.PrimExpr

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, IterSplit)
            and self.source is other.source
            and same_expression(self.lower_factor, other.lower_factor)
            and same_expression(self.extent, other.extent)
        )

    def __hash__(self) -> int:
        return hash(self.source)

    @property
    def is_whole(self) -> bool:
        """Whether it is plainly all of its iterator."""
        return self.extent is self.source.extent and is_const_int(self.lower_factor, 1)

    @property
    def sum(self) -> IterSum:
        """The split by itself."""
        dtype = self.extent.dtype
        return iter_sum({self: integer(1, dtype)}, integer(0, dtype))


IterSum = LinearForm[IterSplit, E.PrimExpr]


def iter_sum(splits: dict[IterSplit, E.PrimExpr], constant: E.PrimExpr) -> IterSum:
    """The sum of splits times their scales, and a constant."""
    return LinearForm(splits, constant, constant.dtype)


def sum_to_expr(value: IterSum, analyzer: Analyzer) -> E.PrimExpr:
    """The expression of a sum, term by term in order."""
    result: E.PrimExpr = integer(0, value.dtype)
    for split, scale in value.items():
        result = add(result, split_to_expr(split, scale, analyzer))
    return add(result, value.constant)


def mark_to_expr(mark: IterMark, analyzer: Analyzer) -> E.PrimExpr:
    """The expression of an iterator in terms of the loops."""
    source = mark.source
    return sum_to_expr(source, analyzer) if isinstance(source, LinearForm) else source


def split_to_expr(split: IterSplit, scale: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr:
    """The expression of a split times a scale: no remainder where it is the outermost digit, no
    quotient where it is the innermost; in the type of the scale."""
    return multiply(cast(scale.dtype, _digit_to_expr(split, analyzer)), scale)


def _digit_to_expr(split: IterSplit, analyzer: Analyzer) -> E.PrimExpr:
    mark = split.source
    text = mark_to_expr(mark, analyzer)
    if split.is_whole:
        return text
    innermost = is_const_int(split.lower_factor, 1)
    factors = split.extent, split.lower_factor
    covered = multiply(*(reversed(factors) if isinstance(factors[0], E.IntImm) else factors))
    if innermost and analyzer.can_prove_equal(split.extent, mark.extent):
        return text
    if is_const_int(split.extent, 1):
        return integer(0, split.extent.dtype)
    if not analyzer.can_prove_equal(mark.extent, covered):
        text = floormod(text, covered)
    return floordiv(text, split.lower_factor)
