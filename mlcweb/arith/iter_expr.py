"""Iterator maps as data: what an affine index is made of.

An `IterMark` is an iterator: a loop variable, or several fused, of some extent. An `IterSplit` is a
digit of it, `mark // lower_factor % extent * scale`. An `IterSum` is a sum of splits and a base in
which no iterator occurs.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.arith.analyzer import Analyzer
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.folding import add, floordiv, floormod, integer, multiply


@dataclass(eq=False, slots=True)
class IterMark:
    """An iterator over [0, extent). `source` is an expression (a loop variable) or a fused sum."""

    source: E.PrimExpr | IterSum
    extent: E.PrimExpr


@dataclass(eq=False, slots=True)
class IterSplit:
    """`source // lower_factor % extent * scale`."""

    source: IterMark
    lower_factor: E.PrimExpr
    extent: E.PrimExpr
    scale: E.PrimExpr

    @staticmethod
    def whole(mark: IterMark) -> IterSplit:
        """All of an iterator."""
        one = integer(1, mark.extent.dtype)
        return IterSplit(mark, one, mark.extent, one)

    def with_scale(self, scale: E.PrimExpr) -> IterSplit:
        return IterSplit(self.source, self.lower_factor, self.extent, scale)


@dataclass(eq=False, slots=True)
class IterSum:
    """The sum of `args` and `base`."""

    args: tuple[IterSplit, ...]
    base: E.PrimExpr


def sum_to_expr(value: IterSum, analyzer: Analyzer) -> E.PrimExpr:
    """The expression of a sum, term by term in order."""
    result: E.PrimExpr = integer(0, value.base.dtype)
    for split in value.args:
        result = add(result, split_to_expr(split, analyzer))
    return add(result, value.base)


def split_to_expr(split: IterSplit, analyzer: Analyzer) -> E.PrimExpr:
    """The expression of a split: no remainder where it is the outermost digit, no quotient where
    it is the innermost."""
    mark = split.source
    source = mark.source
    text = sum_to_expr(source, analyzer) if isinstance(source, IterSum) else source
    innermost = is_const_int(split.lower_factor, 1)
    covered = multiply(split.lower_factor, split.extent)
    if innermost and analyzer.can_prove_equal(split.extent, mark.extent):
        return multiply(text, split.scale)
    if is_const_int(split.extent, 1):
        return integer(0, split.extent.dtype)
    if not analyzer.can_prove_equal(mark.extent, covered):
        text = floormod(text, covered)
    return multiply(floordiv(text, split.lower_factor), split.scale)
