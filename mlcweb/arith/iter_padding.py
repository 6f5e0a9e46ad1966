"""Rounding iterators up, so that a divisor that does not divide their extent does."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.iter_arithmetic import NotAffine, add, multiply
from mlcweb.arith.iter_expr import IterMark, IterSplit
from mlcweb.arith.iter_fuse import Fuser
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.folding import floordiv, floormod, integer


@dataclass(eq=False, slots=True)
class PaddedMark:
    """`mark` is `original` moved up by `left` and lengthened."""

    original: IterMark
    left: E.PrimExpr
    mark: IterMark


class Padding:
    """The padded iterators of one detection. All uses of an iterator share its padding, which is
    complete only when all indices have been seen once."""

    def __init__(self, analyzer: Analyzer, fuser: Fuser, allowed: bool) -> None:
        self.analyzer = analyzer
        self.fuser = fuser
        self.allowed = allowed
        self.factors: dict[IterMark, int] = {}
        self.padded: list[PaddedMark] = []

    def padded_mark(self, mark: IterMark) -> PaddedMark | None:
        """How `mark` was made; None where it is no padded iterator."""
        return next((padded for padded in self.padded if padded.mark is mark), None)

    def pad(
        self, split: IterSplit, base: E.PrimExpr, divisor: E.PrimExpr, wrap: bool
    ) -> tuple[IterSplit, E.PrimExpr]:
        """(split, left): a split that starts `left` lower and whose extent `divisor` divides.

        The sum divided is `split + base`. Only the outermost digit of an iterator can be longer;
        `wrap` makes another digit an iterator of its own.
        """
        simplify = self.analyzer.simplify
        left: E.PrimExpr = integer(0, base.dtype)
        if not is_const_int(base, 0):
            left = simplify(floormod(base, divisor))
        if is_const_int(left, 0) and self.analyzer.can_prove_multiple(split.extent, divisor):
            return split, left
        mark, lower = split.source, split.lower_factor
        equal = self.analyzer.can_prove_equal
        if not equal(multiply(lower, split.extent), mark.extent) and wrap:
            mark, lower = self.fuser.wrapped(split), integer(1, lower.dtype)
            split = mark.whole
        elif not equal(multiply(lower, split.extent), mark.extent):
            raise NotAffine(f"an inner digit of extent {split.extent!r} is divided by {divisor!r}")
        step = multiply(divisor, lower)
        if not (self.allowed and isinstance(step, E.IntImm) and isinstance(left, E.IntImm)):
            raise NotAffine(f"{divisor!r} does not divide the extent {split.extent!r}")
        padded = self._padded_mark(mark, multiply(left, lower), step.value)
        extent = simplify(floordiv(padded.extent, lower))
        return IterSplit(padded, lower, extent), left

    def _padded_mark(self, mark: IterMark, left: E.PrimExpr, divisor: int) -> IterMark:
        if (inner := self.padded_mark(mark)) is not None:
            mark, left = inner.original, self.analyzer.simplify(add(inner.left, left))
        factor = self.factors[mark] = lcm(self.factors.get(mark, 1), divisor)
        step = integer(factor, mark.extent.dtype)
        length = add(add(mark.extent, left), integer(factor - 1, step.dtype))
        total = self.analyzer.simplify(multiply(floordiv(length, step), step))
        for padded in self.padded:
            if (
                padded.original is mark
                and same_expression(padded.left, left)
                and same_expression(padded.mark.extent, total)
            ):
                return padded.mark
        new_mark = IterMark(mark.whole.sum.with_constant(left), total)
        self.padded.append(PaddedMark(mark, left, new_mark))
        return new_mark
