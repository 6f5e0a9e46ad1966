"""Channels as neighbouring pixels (Shi et al., "Real-Time Single Image and Video
Super-Resolution", 2016)."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes


def pixel_shuffle(data: Tensor, upscale_factor: int, name: str = "PixelShuffle") -> Tensor:
    """(…, c r², h, w) as (…, c, h r, w r), where r is `upscale_factor`."""
    factor = upscale_factor
    if data.ndim < 3 or not isinstance(factor, int) or factor < 1:
        raise DiagnosticError(
            f'pixel_shuffle: "{data.name}" {shapes.show(data.shape)} is (…, c, h, w), and a factor '
            f"is a positive int, not {factor}"
        )
    *outer, channels, high, wide = data.shape
    count = shapes.constant(channels)
    if count is not None and count % factor**2:
        raise DiagnosticError(
            f'pixel_shuffle: the {count} channels of "{data.name}" are not divided by {factor}²'
        )

    def element(*index: PrimExpr) -> PrimExpr:
        *front, c, i, j = index
        place = c * factor * factor + i % factor * factor + j % factor
        return data(*front, place, i // factor, j // factor)

    shape = [*outer, channels // (factor * factor), high * factor, wide * factor]
    return compute(shape, element, name)
