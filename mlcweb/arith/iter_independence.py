"""Whether indices are independent: no digit of an iterator may occur in two of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.iter_arithmetic import NotAffine, add, multiply, subtract
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum, mark_to_expr
from mlcweb.arith.iter_padding import PaddedMark, Padding
from mlcweb.arith.linear import LinearForm
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import constant_value, is_const_int
from mlcweb.tir.folding import floordiv, integer


class IndependenceCheck:
    """Raises NotAffine where indices depend on each other; where they have to be `bijective`, also
    where a digit or an iterator is left out."""

    def __init__(self, analyzer: Analyzer, padding: Padding, bijective: bool) -> None:
        self.analyzer = analyzer
        self.padding = padding
        self.bijective = bijective

    def check(self, sums: Sequence[IterSum], iterators: Iterable[IterMark]) -> None:
        """Check the digits that occur in `sums` of `iterators` and of what is fused from them."""
        splits_of: dict[IterMark, list[IterSplit]] = {}
        pending = list(sums)
        while pending:
            for split in pending.pop().terms:
                siblings = splits_of.setdefault(split.source, [])
                siblings.append(split)
                if len(siblings) == 1 and isinstance(split.source.source, LinearForm):
                    pending.append(split.source.source)
        for mark, splits in splits_of.items():
            self._check_digits(mark, splits)
        if self.bijective:
            for mark in iterators:
                if mark not in splits_of and not is_const_int(mark.extent, 1):
                    raise NotAffine(f"the iterator {self._text(mark)} is not used")

    def _check_digits(self, mark: IterMark, splits: list[IterSplit]) -> None:
        padded = self.padding.padded_mark(mark)
        if padded is None and len(splits) == 1 and splits[0].is_whole:
            return
        remaining = list(splits)
        covered: E.PrimExpr = integer(1, mark.extent.dtype)
        while remaining:
            split = remaining.pop(self._next_digit(remaining, covered))
            covered = multiply(split.lower_factor, split.extent)
            if not isinstance(covered, E.IntImm):
                covered = self.analyzer.simplify(covered)
        if padded is not None:
            self._check_padded(splits, padded, covered)
        if self.analyzer.can_prove_equal(covered, mark.extent):
            return
        if self.bijective or not self.analyzer.can_prove_multiple(mark.extent, covered):
            raise NotAffine(f"only a part of the iterator {self._text(mark)} is used")

    def _next_digit(self, remaining: list[IterSplit], covered: E.PrimExpr) -> int:
        """The digit that continues what is covered; the next one, where digits may be left out."""
        for position, split in enumerate(remaining):
            if self.analyzer.can_prove_equal(split.lower_factor, covered):
                return position
        if not self.bijective:
            above = [
                position
                for position, split in enumerate(remaining)
                if self.analyzer.can_prove_multiple(split.lower_factor, covered)
            ]
            if above:
                return min(above, key=lambda n: constant_value(remaining[n].lower_factor) or 0)
        raise NotAffine(
            f"digits of the iterator {self._text(remaining[0].source)} overlap or leave gaps"
        )

    def _check_padded(
        self, splits: list[IterSplit], padded: PaddedMark, covered: E.PrimExpr
    ) -> None:
        """The digits of a padded iterator reach all their values where what was padded has as many
        as they cover; a digit by itself does where it is long enough to begin and end in each."""
        split, original = splits[0], padded.original
        if self.analyzer.can_prove(covered <= original.extent):
            return
        last = subtract(add(padded.left, original.extent), integer(1, original.extent.dtype))
        lowest = floordiv(padded.left, split.lower_factor)
        reached = subtract(floordiv(last, split.lower_factor), lowest)
        if len(splits) > 1 or not self.analyzer.can_prove(split.extent <= reached + 1):
            raise NotAffine(f"the iterator {self._text(original)} does not fill its padded extent")

    def _text(self, mark: IterMark) -> str:
        return repr(mark_to_expr(mark, self.analyzer))
