"""Padding by what the tensor itself holds, as a tensor expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcweb.tir.expr import PrimExpr

if TYPE_CHECKING:
    from mlcweb import te


def by_index(x: te.Tensor, before: list[int], behind: list[int], mode: str) -> te.Tensor:
    """`x` with `before` and `behind` elements more (or fewer) on each axis: those at the "edge",
    those mirrored at it ("reflect"), or those of the other side ("wrap")."""
    from mlcweb import te, tir

    shape = [n + low + high for n, low, high in zip(x.shape, before, behind, strict=True)]

    def place(i: PrimExpr, extent: PrimExpr, low: int) -> PrimExpr:
        i = i - low
        if mode == "edge":
            return tir.max(tir.min(i, extent - 1), 0)
        if mode == "wrap":
            return tir.floormod(i, extent)
        period = tir.max(2 * (extent - 1), 1)
        i = tir.floormod(i, period)
        return tir.min(i, period - i)

    def element(*index: PrimExpr) -> PrimExpr:
        return x(*(place(i, n, low) for i, n, low in zip(index, x.shape, before, strict=True)))

    return te.compute(shape, element, name=f"pad_{mode}")
