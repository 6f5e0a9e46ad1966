"""A scale and a shift for every channel."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.topi import shapes, tags


def _scale_shift(layout: str, names: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    operator = f"scale_shift_{layout.lower()}"
    place = layout.index("C")

    def build(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
        shapes.need_rank(operator, Input, 4, layout)
        return compute(
            Input.shape,
            lambda *index: Input(*index) * Scale(index[place]) + Shift(index[place]),
            "ScaleShift",
            tag=tags.BROADCAST,
            varargs_names=list(names),
        )

    build.__name__ = build.__qualname__ = operator
    build.__doc__ = f"An image {layout}, each channel times a scale plus a shift, tensors (c,)."
    return build


scale_shift_nchw, scale_shift_nhwc = _scale_shift("NCHW", "bcij"), _scale_shift("NHWC", "bijc")
