"""Gradients of the depthwise convolution of images NHWC by filters HWOI."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes, tags
from mlcweb.topi.nn.conv_transpose import dilate
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.nn.window import numbers, paddings
from mlcweb.topi.shapes import Extent, Numbers, Padding


def depthwise_conv2d_backward_input_nhwc(
    Filter: Tensor, Out_grad: Tensor, oshape: Sequence[Extent], ishape: Sequence[Extent],
    stride: Numbers, padding: Padding,
) -> Tensor:  # fmt: skip
    """The gradient (n, h, w, c) of the image.

    Args:
        Filter: (kh, kw, c, multiplier).
        Out_grad: that of the result, `oshape` (n, oh, ow, c * multiplier).
        ishape: (n, h, w, c).
    """
    operator = "depthwise_conv2d_backward_input_nhwc"
    shapes.need_rank(operator, Filter, 4, "HWOI")
    shapes.need_rank(operator, Out_grad, 4, "NHWC")
    sizes, multiplier = Filter.shape[:2], Filter.shape[3]
    image = shapes.as_shape(list(ishape))
    steps = numbers(operator, "stride", stride, 2)
    low, _ = paddings(operator, padding, list(sizes))
    apart = dilate(Out_grad, [1, *steps, 1], name="dilated_out_grad")
    before = [size - (1 + a) for size, a in zip(sizes, low, strict=True)]
    after = [image[1 + i] + low[i] - apart.shape[1 + i] for i in range(2)]
    padded = pad(apart, [0, *before, 0], [0, *after, 0], name="padded_out_grad")
    dh, dw, dc = (
        reduce_axis((0, extent), name)
        for extent, name in zip((*sizes, multiplier), ("dh", "dw", "dc"), strict=True)
    )

    def element(b: PrimExpr, h: PrimExpr, w: PrimExpr, c: PrimExpr) -> PrimExpr:
        gradient = padded(b, h + dh.var, w + dw.var, c * multiplier + dc.var)
        weight = Filter(sizes[0] - 1 - dh.var, sizes[1] - 1 - dw.var, c, dc.var)
        return reducers.sum(gradient * weight, [dh, dw, dc])

    return compute(image, element, tag=tags.COMM_REDUCE, varargs_names=["b", "h", "w", "c"])


def depthwise_conv2d_backward_weight_nhwc(
    Input: Tensor, Out_grad: Tensor, oshape: Sequence[Extent], fshape: Sequence[Extent],
    stride: Numbers, padding: Padding,
) -> Tensor:  # fmt: skip
    """The gradient (kh, kw, c, multiplier) of the filters, of the shape `fshape`.

    Args:
        Input: (n, h, w, c).
        Out_grad: that of the result, `oshape` (n, oh, ow, c * multiplier).
    """
    operator = "depthwise_conv2d_backward_weight_nhwc"
    shapes.need_rank(operator, Input, 4, "NHWC")
    shapes.need_rank(operator, Out_grad, 4, "NHWC")
    filters = shapes.as_shape(list(fshape))
    steps = numbers(operator, "stride", stride, 2)
    low, high = paddings(operator, padding, list(filters[:2]))
    padded = pad(Input, [0, *low, 0], [0, *high, 0], name="padded_in")
    db, dh, dw = (
        reduce_axis((0, extent), name)
        for extent, name in zip(Out_grad.shape[:3], ("db", "dh", "dw"), strict=True)
    )

    def element(fh: PrimExpr, fw: PrimExpr, c: PrimExpr, m: PrimExpr) -> PrimExpr:
        gradient = Out_grad(db.var, dh.var, dw.var, c * filters[3] + m)
        pixel = padded(db.var, fh + dh.var * steps[0], fw + dw.var * steps[1], c)
        return reducers.sum(gradient * pixel, [db, dh, dw])

    return compute(filters, element, tag=tags.COMM_REDUCE, varargs_names=["fh", "fw", "c", "m"])
