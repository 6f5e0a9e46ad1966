"""Fusing the splits of a sum into one iterator, and what the predicate says of fused iterators."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import (
    add, const, is_const_int, maximum, minimum, multiply, negate, subtract,
)  # fmt: skip


class NotAffine(Exception):
    """An index that is no iterator map; the message says why."""


@dataclass(eq=False, slots=True)
class FusedSum:
    """A sum that has been made an iterator: its splits laid flat, the iterator, and its offset."""

    flat: tuple[IterSplit, ...]
    mark: IterMark
    offset: E.PrimExpr
    constrained: bool


class Fuser:
    """Makes iterators of sums, one for each different sum, under the constraints given."""

    def __init__(self, analyzer: Analyzer, overlap_allowed: bool) -> None:
        self.analyzer = analyzer
        self.overlap_allowed = overlap_allowed
        self.fused: list[FusedSum] = []

    def constrain(self, value: IterSum, lower: E.PrimExpr | None, upper: E.PrimExpr | None) -> None:
        """From now on lower <= value < upper holds; either end may be open."""
        if not value.args:
            return
        flat, args, extent, scale = self._match(value.args)
        if not is_const_int(scale, 1):
            raise NotAffine(f"the predicate bounds a multiple of {scale!r}")
        simplify = self.analyzer.simplify
        low: E.PrimExpr = const(0, extent.dtype)
        high = extent
        if lower is not None:
            low = simplify(maximum(subtract(lower, value.base), low))
        if upper is not None:
            high = simplify(minimum(subtract(upper, value.base), high))
        source = IterSum(args, negate(low))
        mark = IterMark(source, simplify(subtract(high, low)))
        self.fused = [known for known in self.fused if not self._same_splits(known.flat, flat)]
        self.fused.append(FusedSum(flat, mark, low, constrained=True))

    def fuse(self, value: IterSum) -> IterSum:
        """The value as one split of one iterator, plus a base."""
        args = value.args
        if not args or (len(args) == 1 and not self._constraint_of(args[0])):
            return value
        flat, ordered, extent, scale = self._match(args)
        known = self._find(flat)
        if known is None:
            mark = IterMark(IterSum(ordered, const(0, extent.dtype)), extent)
            known = FusedSum(flat, mark, const(0, extent.dtype), constrained=False)
            self.fused.append(known)
        split = IterSplit.whole(known.mark).with_scale(scale)
        base = add(value.base, multiply(known.offset, scale))
        return IterSum((split,), base)

    def _find(self, flat: tuple[IterSplit, ...]) -> FusedSum | None:
        for known in self.fused:
            if self._same_splits(known.flat, flat):
                return known
        return None

    def _same_splits(self, a: tuple[IterSplit, ...], b: tuple[IterSplit, ...]) -> bool:
        return len(a) == len(b) and all(
            self.same_digit(x, y) and self.analyzer.can_prove_equal(x.scale, y.scale)
            for x, y in zip(a, b, strict=True)
        )

    def same_digit(self, a: IterSplit, b: IterSplit) -> bool:
        """Whether two splits differ in nothing but the scale."""
        return (
            a.source is b.source
            and same_expression(a.lower_factor, b.lower_factor)
            and same_expression(a.extent, b.extent)
        )

    def _constraint_of(self, split: IterSplit) -> FusedSum | None:
        """The largest constrained sum in which the split is the innermost part."""
        best = None
        for known in self.fused:
            if known.constrained and self.same_digit(known.flat[-1], split):
                if best is None or len(known.flat) > len(best.flat):
                    best = known
        return best

    def _match(
        self, splits: tuple[IterSplit, ...]
    ) -> tuple[tuple[IterSplit, ...], tuple[IterSplit, ...], E.PrimExpr, E.PrimExpr]:
        """Order splits so that each scale is what the splits inside cover.

        Returns the splits laid flat, outermost first, in units of the least scale; the same with
        constrained groups as one split each; the extent of the whole; the least scale.
        """
        analyzer = self.analyzer
        remaining = list(splits)
        position = self._innermost(remaining)
        unit = remaining[position].scale
        expected = unit
        flat: list[IterSplit] = []
        groups: list[IterSplit] = []
        while remaining:
            if flat:
                position = self._next(remaining, expected)
            split = remaining[position]
            scale = split.scale
            group = self._constraint_of(split)
            taken = self._take_group(group, remaining, scale) if group else None
            if group is not None and taken is not None:
                remaining = [s for s in remaining if not any(s is t for t in taken)]
                flat.extend(reversed([self._in_units(s, unit) for s in taken]))
                groups.append(self._in_units(IterSplit.whole(group.mark).with_scale(scale), unit))
                extent = group.mark.extent
            else:
                del remaining[position]
                made = self._in_units(split, unit)
                flat.append(made)
                groups.append(made)
                extent = split.extent
            covered = multiply(extent, scale)
            if not analyzer.can_prove_equal(expected, scale):
                # The inner part is longer than this scale: the images overlap.
                covered = add(subtract(covered, scale), expected)
            expected = _simplified(covered, analyzer)
        extent = self._quotient(expected, unit)
        return tuple(reversed(flat)), tuple(reversed(groups)), extent, unit

    def _in_units(self, split: IterSplit, unit: E.PrimExpr) -> IterSplit:
        return (
            split if is_const_int(unit, 1) else split.with_scale(self._quotient(split.scale, unit))
        )

    def _quotient(self, a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
        if is_const_int(b, 1):
            return a
        return _simplified(a // b, self.analyzer)

    def _take_group(
        self, group: FusedSum, remaining: list[IterSplit], scale: E.PrimExpr
    ) -> list[IterSplit] | None:
        """The splits that make the constrained sum times `scale`, outermost first."""
        taken = []
        for part in group.flat:
            wanted = multiply(part.scale, scale)
            for split in remaining:
                if self.same_digit(part, split) and self.analyzer.can_prove_equal(
                    split.scale, wanted
                ):
                    taken.append(split)
                    break
            else:
                return None
        return taken

    def _innermost(self, splits: list[IterSplit]) -> int:
        """The split of least constant scale (a unit extent first, then the last); without a
        constant scale, that with the fewest factors."""
        best = -1
        best_key: tuple[int, int, int] | None = None
        for position in range(len(splits) - 1, -1, -1):
            scale = splits[position].scale
            constant = isinstance(scale, E.IntImm)
            size = scale.value if isinstance(scale, E.IntImm) else len(list(_factors(scale)))
            key = (0 if constant else 1, size, 0 if is_const_int(splits[position].extent, 1) else 1)
            if best_key is None or key < best_key:
                best, best_key = position, key
        return best

    def _next(self, splits: list[IterSplit], expected: E.PrimExpr) -> int:
        found = -1
        for position in range(len(splits) - 1, -1, -1):
            if self.analyzer.can_prove_equal(splits[position].scale, expected):
                if is_const_int(splits[position].extent, 1):
                    return position
                if found < 0:
                    found = position
        if found < 0 and self.overlap_allowed:
            found = self._largest_scale_below(splits, expected)
        if found < 0:
            raise NotAffine(
                f"no iterator steps by {expected!r}, which is what the inner iterators cover"
            )
        return found

    def _largest_scale_below(self, splits: list[IterSplit], expected: E.PrimExpr) -> int:
        best = -1
        for position in range(len(splits) - 1, -1, -1):
            scale = splits[position].scale
            if self.analyzer.can_prove(scale < expected):
                if best < 0 or self.analyzer.can_prove(splits[best].scale < scale):
                    best = position
        return best


def _factors(expression: E.PrimExpr) -> list[E.PrimExpr]:
    from mlcweb.arith.rules_integer import factors

    return list(factors(expression))


def _simplified(expression: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr:
    return expression if isinstance(expression, E.IntImm) else analyzer.simplify(expression)
