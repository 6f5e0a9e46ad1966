"""A scale and a shift for every channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags


def _scale_shift(layout: str, names: Sequence[str]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    operator = f"scale_shift_{layout.lower()}"
    channel = [place for place, letter in enumerate(layout) if letter in "Cc"]

    def build(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
        shapes.need_rank(operator, Input, len(layout), layout)

        def element(*index: PrimExpr) -> PrimExpr:
            at = [index[place] for place in channel]
            return Input(*index) * Scale(*at) + Shift(*at)

        return compute(
            Input.shape,
            element,
            "ScaleShift",
            tag=tags.BROADCAST,
            varargs_names=list(names),
        )

    build.__name__ = build.__qualname__ = operator
    build.__doc__ = f"An image {layout}, each channel times a scale plus a shift."
    return build


scale_shift_nchw, scale_shift_nhwc = _scale_shift("NCHW", "bcij"), _scale_shift("NHWC", "bijc")
scale_shift_nchwc = _scale_shift("NCHWc", ["b", "cc", "i", "j", "cb"])
