"""Dilation of images, as in mathematical morphology: the greatest sum of a pixel and a weight."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.window import Window
from mlcweb.topi.shapes import Numbers, Padding

_LOOPS = {"N": "nn", "C": "ff", "H": "yy", "W": "xx"}


def _dilation(layout: str) -> Callable[..., Tensor]:
    weights = layout.replace("N", "")
    operator = f"dilation2d_{layout.lower()}"

    def build(
        input: Tensor,
        filter: Tensor,
        stride: Numbers,
        padding: Padding,
        dilations: Numbers,
        out_dtype: str | None = None,
    ) -> Tensor:
        shapes.need_rank(operator, input, 4, layout)
        shapes.need_rank(operator, filter, 3, weights)
        sizes = [filter.shape[weights.index(letter)] for letter in "HW"]
        window = Window(operator, input, layout, sizes, stride, padding, dilations, "pad_temp")
        dtype = out_dtype or input.dtype
        axes = [reduce_axis((0, size), name) for size, name in zip(sizes, ("ry", "rx"),
                strict=True)]  # fmt: skip

        def element(*index: PrimExpr) -> PrimExpr:
            place = dict(zip(layout, index, strict=True))
            inside = [axis.var for axis in axes]
            weight = {"C": place["C"], "H": inside[0], "W": inside[1]}
            pixel = arithmetic.cast(dtype, window.pixel(place, inside))
            added = arithmetic.cast(dtype, filter(*(weight[letter] for letter in weights)))
            return reducers.max(pixel + added, axes)

        outputs = dict(zip(layout, input.shape, strict=True))
        outputs["H"], outputs["W"] = window.output
        names = [_LOOPS[letter] for letter in layout]
        return compute([outputs[letter] for letter in layout], element, tag=operator,
                       varargs_names=names)  # fmt: skip

    build.__name__ = build.__qualname__ = operator
    build.__doc__ = f"The dilation of an image {layout} by weights {weights}, one set per channel."
    return build


dilation2d_nchw, dilation2d_nhwc = _dilation("NCHW"), _dilation("NHWC")
