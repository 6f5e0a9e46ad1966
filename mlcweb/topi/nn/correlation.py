"""Correlation of two images (Dosovitskiy et al., "FlowNet: Learning Optical Flow with
Convolutional Networks", 2015)."""

from __future__ import annotations

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.nn.window import paddings
from mlcweb.topi.shapes import Padding


def correlation_nchw(
    data1: Tensor,
    data2: Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Padding,
    is_multiply: bool,
) -> Tensor:
    """How alike patches of two images (n, c, h, w) are, a channel of the result per displacement.

    Args:
        kernel_size: the odd width of a patch.
        max_displacement: how far a patch of the second image is from that of the first, at most.
        stride1, stride2: steps between patches of the first image, and between displacements.
        is_multiply: the mean of products; else of absolute differences.
    """
    for image in (data1, data2):
        shapes.need_rank("correlation_nchw", image, 4, "NCHW")
    batch, channels, height, width = data1.shape
    low, high = paddings("correlation_nchw", padding, [height, width])
    first, second = (pad(x, [0, 0, *low], [0, 0, *high]) for x in (data1, data2))
    border = max_displacement + (kernel_size - 1) // 2
    reach = max_displacement // stride2
    count = 2 * reach + 1
    image = [(first.shape[2 + i] - (2 * border - stride1 + 1)) // stride1 for i in range(2)]
    rc = reduce_axis((0, channels), "rc")
    ry, rx = (reduce_axis((0, kernel_size), name) for name in ("ry", "rx"))

    def element(n: PrimExpr, q: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        y = i * stride1 + max_displacement + ry.var
        x = j * stride1 + max_displacement + rx.var
        down = (q // count - reach) * stride2
        right = (q % count - reach) * stride2
        one, other = first(n, rc.var, y, x), second(n, rc.var, y + down, x + right)
        value = one * other if is_multiply else intrinsics.absolute(one - other)
        return reducers.sum(value, [rc, ry, rx])

    total = compute(
        [batch, count * count, *image], element, tag="correlation_nchw",
        varargs_names=["n", "q", "i", "j"],
    )  # fmt: skip
    return total / arithmetic.cast(data1.dtype, channels * (kernel_size * kernel_size))
