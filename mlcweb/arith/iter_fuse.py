"""Fusing the splits of a sum into one iterator, and what the predicate says of fused iterators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.iter_arithmetic import NotAffine, add, multiply, subtract
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum, iter_sum
from mlcweb.arith.linear import LinearForm
from mlcweb.arith.rules_integer import factors
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.folding import integer, maximum, minimum

Scales = dict[IterSplit, E.PrimExpr]
"""Splits, outermost first, and what each is multiplied by."""


@dataclass(eq=False, slots=True)
class FusedSum:
    """A sum that has been made an iterator: its splits laid flat with their scales, the iterator,
    and its offset."""

    flat: Scales
    mark: IterMark
    offset: E.PrimExpr
    constrained: bool


@dataclass(eq=False, slots=True)
class Matched:
    """Splits with their scales in order, outermost first, in units of the least scale `unit`.

    `flat` are the splits themselves; in `groups` those that the predicate bounds together are one
    split. Their sum runs over [offset, offset + extent).
    """

    flat: Scales
    groups: Scales
    offset: E.PrimExpr
    extent: E.PrimExpr
    unit: E.PrimExpr


class Fuser:
    """Makes iterators of sums, one for each different sum, under the constraints given."""

    def __init__(self, analyzer: Analyzer, overlap_allowed: bool) -> None:
        self.analyzer = analyzer
        self.overlap_allowed = overlap_allowed
        self.fused: list[FusedSum] = []
        self.has_constraints = False
        self.fixed: list[tuple[E.PrimExpr, E.PrimExpr | None, E.PrimExpr | None]] = []
        self.shortened: list[IterMark] = []
        """Iterators of which the predicate leaves a part, perhaps none."""

    def constrain(self, value: IterSum, lower: E.PrimExpr | None, upper: E.PrimExpr | None) -> None:
        """From now on lower <= value < upper holds; either end may be open."""
        if not value.terms:
            self.fixed.append((value.constant, lower, upper))
            return
        matched = self._match(value.terms)
        self.has_constraints = True
        if not is_const_int(matched.unit, 1):
            raise NotAffine(f"the predicate bounds a multiple of {matched.unit!r}")
        simplify = self.analyzer.simplify
        low, high = matched.offset, simplify(add(matched.offset, matched.extent))
        if lower is not None:
            low = simplify(maximum(subtract(lower, value.constant), low))
        if upper is not None:
            high = simplify(minimum(subtract(upper, value.constant), high))
        extent = simplify(subtract(high, low))
        if isinstance(extent, E.IntImm) and extent.value <= 0:
            raise NotAffine("the predicate is never true")
        source = iter_sum(matched.groups, simplify(subtract(matched.offset, low)))
        self.fused = [old for old in self.fused if not self._same_splits(old.flat, matched.flat)]
        self.fused.append(FusedSum(matched.flat, IterMark(source, extent), low, constrained=True))

    def check_constraints(self) -> None:
        """NotAffine where of two bounded sums that share an iterator neither is a part of the
        other: an index is fused by one of them, and would take values that the other forbids."""
        bounded = [fused.flat.keys() for fused in self.fused if fused.constrained]
        for a, b in combinations(bounded, 2):
            if not (a.isdisjoint(b) or a <= b or b <= a):
                raise NotAffine("the predicate bounds two sums that share iterators")

    def fuse(self, value: IterSum) -> IterSum:
        """The value as one split of one iterator, plus a base."""
        splits = value.terms
        if not splits or (len(splits) == 1 and not self._constraint_of(next(iter(splits)))):
            return value
        matched = self._match(splits)
        source = iter_sum(matched.groups, integer(0, matched.extent.dtype))
        fused = self._fused(matched.flat, IterMark(source, matched.extent), matched.offset)
        shift = multiply(fused.offset, matched.unit)
        base = self.analyzer.simplify(add(value.constant, shift))
        return iter_sum({fused.mark.whole: matched.unit}, base)

    def uses_all_constraints(self, indices: Sequence[IterSum]) -> bool:
        """Whether each sum that the predicate bounds is a part of an index as a whole, or shares no
        iterator with any and has values in its bounds, or is known to be in its bounds."""
        proves = self.analyzer.can_prove
        for value, lower, upper in self.fixed:
            if not (lower is None or proves(value >= lower)):
                return False
            if not (upper is None or proves(value < upper)):
                return False
        used: set[IterMark] = set()
        sums = list(indices)
        while sums:
            marks = {split.source for split in sums.pop().terms} - used
            used |= marks
            sums.extend(mark.source for mark in marks if isinstance(mark.source, LinearForm))

        def has_values(mark: IterMark) -> bool:
            return isinstance(mark.extent, E.IntImm) or proves(mark.extent > 0)

        return all(mark in used or has_values(mark) for mark in self.shortened) and all(
            fused.mark in used
            or (used.isdisjoint(split.source for split in fused.flat) and has_values(fused.mark))
            for fused in self.fused
            if fused.constrained
        )

    def wrapped(self, split: IterSplit) -> IterMark:
        """A digit as an iterator of its own."""
        alone = split.sum
        return self._fused(alone.terms, IterMark(alone, split.extent), alone.constant).mark

    def _fused(self, flat: Scales, mark: IterMark, offset: E.PrimExpr) -> FusedSum:
        """What these splits have been fused to before; else `mark`, from now on."""
        for fused in self.fused:
            if self._same_splits(fused.flat, flat):
                return fused
        self.fused.append(FusedSum(flat, mark, offset, constrained=False))
        return self.fused[-1]

    def _same_splits(self, a: Scales, b: Scales) -> bool:
        return list(a) == list(b) and all(
            map(self.analyzer.can_prove_equal, a.values(), b.values())
        )

    def _constraint_of(self, split: IterSplit) -> FusedSum | None:
        """The largest constrained sum in which the split is the innermost part."""
        if not self.has_constraints:
            return None
        groups = [
            fused
            for fused in self.fused
            if fused.constrained and next(reversed(fused.flat)) == split
        ]
        return max(groups, key=lambda fused: len(fused.flat), default=None)

    def _match(self, splits: Scales) -> Matched:
        """Order splits so that each scale is what the splits inside cover."""
        remaining = dict(splits)
        split = _innermost(remaining)
        expected = unit = remaining[split]
        offset: E.PrimExpr = integer(0, unit.dtype)
        flat: list[tuple[IterSplit, E.PrimExpr]] = []
        groups: list[tuple[IterSplit, E.PrimExpr]] = []
        is_grouped = False
        while remaining:
            if flat:
                split = self._next(remaining, expected)
            group = self._constraint_of(split)
            scale = remaining[split] if group else remaining.pop(split)
            in_units = self._quotient(scale, unit)
            if group is None:
                flat.append((split, in_units))
            else:
                is_grouped = True
                for part in reversed(self._take_group(group, remaining, scale)):
                    flat.append((part, self._quotient(remaining.pop(part), unit)))
                split = group.mark.whole
                offset = self.analyzer.simplify(add(offset, multiply(group.offset, in_units)))
            groups.append((split, in_units))
            expected = self._covered(split.extent, scale, expected, unit)
        extent = self._quotient(expected, unit)
        parts = dict(reversed(flat))
        grouped = dict(reversed(groups)) if is_grouped else parts
        return Matched(parts, grouped, offset, extent, unit)

    def _covered(
        self, extent: E.PrimExpr, scale: E.PrimExpr, expected: E.PrimExpr, unit: E.PrimExpr
    ) -> E.PrimExpr:
        """How far the sum reaches with a split outside of what reaches `expected`."""
        covered = multiply(extent, scale)
        if not self.analyzer.can_prove_equal(expected, scale):
            # The inner part is longer than this scale: the images overlap.
            if not is_const_int(unit, 1):
                raise NotAffine(f"iterators scaled by {scale!r} and {unit!r} overlap")
            covered = add(subtract(covered, scale), expected)
        return self.analyzer.simplify(covered)

    def _quotient(self, a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
        if is_const_int(b, 1):
            return a
        return self.analyzer.simplify(a // b)

    def _take_group(self, group: FusedSum, remaining: Scales, scale: E.PrimExpr) -> Scales:
        """The splits that make the constrained sum times `scale`, outermost first."""
        taken = {part: multiply(unit, scale) for part, unit in group.flat.items()}
        for part, part_scale in taken.items():
            scaled = remaining.get(part)
            if scaled is None or not self.analyzer.can_prove_equal(scaled, part_scale):
                raise NotAffine("the predicate bounds iterators together that occur apart")
        return taken

    def _next(self, splits: Scales, expected: E.PrimExpr) -> IterSplit:
        """The split whose scale is `expected`, one of unit extent first; where images may overlap,
        else that of the largest smaller scale."""
        following: IterSplit | None = None
        for split, scale in reversed(splits.items()):
            if self.analyzer.can_prove_equal(scale, expected):
                if is_const_int(split.extent, 1):
                    return split
                following = following or split
        if following is None and self.overlap_allowed:
            following = self._largest_scale_below(splits, expected)
        if following is None:
            raise NotAffine(
                f"no iterator steps by {expected!r}, which is what the inner iterators cover"
            )
        return following

    def _largest_scale_below(self, splits: Scales, expected: E.PrimExpr) -> IterSplit | None:
        best: IterSplit | None = None
        for split, scale in reversed(splits.items()):
            if self.analyzer.can_prove(scale < expected):
                if best is None or self.analyzer.can_prove(splits[best] < scale):
                    best = split
        return best


def _innermost(splits: Scales) -> IterSplit:
    """The split of least constant scale (a unit extent first, then the last); without a constant
    scale, that with the fewest factors."""

    def order(item: tuple[IterSplit, E.PrimExpr]) -> tuple[bool, int, bool]:
        split, scale = item
        constant = isinstance(scale, E.IntImm)
        size = scale.value if isinstance(scale, E.IntImm) else len(list(factors(scale)))
        return not constant, size, not is_const_int(split.extent, 1)

    return min(reversed(splits.items()), key=order)[0]
