"""Fusing the splits of a sum into one iterator, and what the predicate says of fused iterators."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.iter_arithmetic import NotAffine, add, multiply, subtract
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum
from mlcweb.arith.rules_integer import factors
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.folding import integer, maximum, minimum


@dataclass(eq=False, slots=True)
class FusedSum:
    """A sum that has been made an iterator: its splits laid flat, the iterator, and its offset."""

    flat: tuple[IterSplit, ...]
    mark: IterMark
    offset: E.PrimExpr
    constrained: bool


@dataclass(eq=False, slots=True)
class Matched:
    """Splits in order, outermost first, in units of the least scale `unit`.

    `flat` are the splits themselves; in `groups` those that the predicate bounds together are one
    split. Their sum runs over [offset, offset + extent).
    """

    flat: tuple[IterSplit, ...]
    groups: tuple[IterSplit, ...]
    offset: E.PrimExpr
    extent: E.PrimExpr
    unit: E.PrimExpr


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
        found = self._match(value.args)
        if not is_const_int(found.unit, 1):
            raise NotAffine(f"the predicate bounds a multiple of {found.unit!r}")
        simplify = self.analyzer.simplify
        low, high = found.offset, simplify(add(found.offset, found.extent))
        if lower is not None:
            low = simplify(maximum(subtract(lower, value.base), low))
        if upper is not None:
            high = simplify(minimum(subtract(upper, value.base), high))
        extent = simplify(subtract(high, low))
        if isinstance(extent, E.IntImm) and extent.value <= 0:
            raise NotAffine("the predicate is never true")
        source = IterSum(found.groups, simplify(subtract(found.offset, low)))
        self.fused = [old for old in self.fused if not self._same_splits(old.flat, found.flat)]
        self.fused.append(FusedSum(found.flat, IterMark(source, extent), low, constrained=True))

    def fuse(self, value: IterSum) -> IterSum:
        """The value as one split of one iterator, plus a base."""
        args = value.args
        if not args or (len(args) == 1 and not self._constraint_of(args[0])):
            return value
        found = self._match(args)
        known = self._find(found.flat)
        if known is None:
            mark = IterMark(IterSum(found.groups, integer(0, found.extent.dtype)), found.extent)
            known = FusedSum(found.flat, mark, found.offset, constrained=False)
            self.fused.append(known)
        split = IterSplit.whole(known.mark).with_scale(found.unit)
        base = _simplified(add(value.base, multiply(known.offset, found.unit)), self.analyzer)
        return IterSum((split,), base)

    def wrapped(self, split: IterSplit) -> IterMark:
        """A digit as an iterator of its own."""
        known = self._find((split,))
        if known is None:
            zero = integer(0, split.extent.dtype)
            mark = IterMark(IterSum((split,), zero), split.extent)
            known = FusedSum((split,), mark, zero, constrained=False)
            self.fused.append(known)
        return known.mark

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
        groups = [
            known
            for known in self.fused
            if known.constrained and self.same_digit(known.flat[-1], split)
        ]
        return max(groups, key=lambda known: len(known.flat), default=None)

    def _match(self, splits: tuple[IterSplit, ...]) -> Matched:
        """Order splits so that each scale is what the splits inside cover."""
        remaining = list(splits)
        position = self._innermost(remaining)
        unit = remaining[position].scale
        offset: E.PrimExpr = integer(0, unit.dtype)
        expected = unit
        flat: list[IterSplit] = []
        groups: list[IterSplit] = []
        while remaining:
            if flat:
                position = self._next(remaining, expected)
            scale = remaining[position].scale
            group = self._constraint_of(remaining[position])
            if group is not None:
                taken = self._take_group(group, remaining, scale)
                remaining = [s for s in remaining if not any(s is t for t in taken)]
                split = IterSplit.whole(group.mark).with_scale(scale)
                in_units = self._quotient(scale, unit)
                offset = _simplified(add(offset, multiply(group.offset, in_units)), self.analyzer)
            else:
                split = remaining.pop(position)
                taken = [split]
            flat.extend(self._in_units(part, unit) for part in reversed(taken))
            groups.append(self._in_units(split, unit))
            expected = self._covered(split, expected, unit)
        extent = self._quotient(expected, unit)
        return Matched(tuple(reversed(flat)), tuple(reversed(groups)), offset, extent, unit)

    def _covered(self, split: IterSplit, expected: E.PrimExpr, unit: E.PrimExpr) -> E.PrimExpr:
        """How far the sum reaches with the split outside of what reaches `expected`."""
        covered = multiply(split.extent, split.scale)
        if not self.analyzer.can_prove_equal(expected, split.scale):
            # The inner part is longer than this scale: the images overlap.
            if not is_const_int(unit, 1):
                raise NotAffine(f"iterators scaled by {split.scale!r} and {unit!r} overlap")
            covered = add(subtract(covered, split.scale), expected)
        return _simplified(covered, self.analyzer)

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
    ) -> list[IterSplit]:
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
                raise NotAffine("the predicate bounds iterators together that occur apart")
        return taken

    def _innermost(self, splits: list[IterSplit]) -> int:
        """The split of least constant scale (a unit extent first, then the last); without a
        constant scale, that with the fewest factors."""
        best = -1
        best_key: tuple[int, int, int] | None = None
        for position in range(len(splits) - 1, -1, -1):
            scale = splits[position].scale
            constant = isinstance(scale, E.IntImm)
            size = scale.value if isinstance(scale, E.IntImm) else len(list(factors(scale)))
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


def _simplified(expression: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr:
    return expression if isinstance(expression, E.IntImm) else analyzer.simplify(expression)
