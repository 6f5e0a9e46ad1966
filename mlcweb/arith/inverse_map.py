"""Inverses of affine index maps: which iterators have given indices.

A map is detected as sums of splits of iterators (`mlcweb.arith.iter_map`) and then run backwards:
a sum gives each of its digits the part that belongs to it, a digit gives its iterator its share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum
from mlcweb.arith.iter_map import BIJECTIVE, detect_iter_map
from mlcweb.arith.linear import LinearForm
from mlcweb.tir.arithmetic import floordiv, floormod, is_const_int
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var


class InverseMap:
    """The inverse of a bijective affine map from iterators to indices."""

    def __init__(self, sums: Sequence[IterSum], domains: Mapping[Var, Range]) -> None:
        self.sums = sums
        self.domains = domains

    @property
    def has_unit_scale(self) -> bool:
        """Whether neighbouring iterations have neighbouring indices, so that each index in reach
        belongs to an iteration."""
        return all(
            is_const_int(scale, 1) or (len(s.terms) == 1 and is_const_int(scale, -1))
            for s in self.sums
            for scale in s.terms.values()
        )

    def __call__(self, indices: Sequence[PrimExpr]) -> dict[Var, PrimExpr]:
        """The iterators whose indices are `indices`, as expressions. An iterator of one iteration
        that no index uses is left out."""
        values: dict[IterMark, PrimExpr] = {}
        inverse: dict[Var, PrimExpr] = {}
        for value, index in reversed(list(zip(self.sums, indices, strict=True))):
            self._into_sum(value, index, values)
        for mark in self._marks_outermost_first():
            value = values[mark]
            if isinstance(mark.source, LinearForm):
                self._into_sum(mark.source, value, values)
            else:
                variable, low = self._iterator(mark.source)
                inverse[variable] = value + low
        return inverse

    def _into_sum(self, total: IterSum, value: PrimExpr, values: dict[IterMark, PrimExpr]) -> None:
        value = value - total.constant
        outermost = next(iter(total.terms), None)
        for split, scale in reversed(total.items()):
            if len(total.terms) == 1 and is_const_int(scale, -1):
                scale, value = -scale, -value
            digit = floordiv(value, scale)
            if split is not outermost:
                digit = floormod(digit, split.extent)
            share = digit * split.lower_factor
            partial = values.get(split.source)
            values[split.source] = share if partial is None else partial + share

    def _marks_outermost_first(self) -> list[IterMark]:
        """Each iterator once, after every fused iterator that it is a part of."""
        order: list[IterMark] = []

        def visit(split: IterSplit) -> None:
            mark = split.source
            if any(mark is visited for visited in order):
                return
            if isinstance(mark.source, LinearForm):
                for inner in mark.source.terms:
                    visit(inner)
            order.append(mark)

        for value in self.sums:
            for split in value.terms:
                visit(split)
        return list(reversed(order))

    def _iterator(self, source: PrimExpr) -> tuple[Var, PrimExpr]:
        variable = source if isinstance(source, Var) else getattr(source, "a", None)
        assert isinstance(variable, Var), "iterators are variables, or variables less their minimum"
        return variable, self.domains[variable].min


def inverse_map(indices: Sequence[PrimExpr], domains: Mapping[Var, Range]) -> InverseMap | None:
    """The inverse of the map from the iterators `domains` to `indices`; None where the map is not
    affine or does not give each iteration indices of its own.

    Example: `B[vi * 4 + vj]` with vj in [0, 4) has the inverse vi = x // 4, vj = x % 4.
    """
    result = detect_iter_map(indices, domains, True, BIJECTIVE, simplify_trivial_iterators=False)
    if result.indices is None or result.padded:
        return None
    return InverseMap(result.indices, domains)


def unit_iterators(domains: Mapping[Var, Range]) -> dict[Var, PrimExpr]:
    """The iterators that have one value, with that value."""
    return {var: d.min for var, d in domains.items() if is_const_int(d.extent, 1)}


def placeholders(count: int, dtype: str) -> list[Var]:
    """Variables that stand for indices."""
    return [Var(f"index_{n}", dtype) for n in range(count)]


__all__ = ["InverseMap", "inverse_map", "placeholders", "unit_iterators"]
