"""The padding of operators that move a window over an image: Conv and the pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.onnx.node import Node
from mlcweb.tir.expr import PrimExpr


class Window(TypedDict):
    """How a window moves, as our operators call it."""

    strides: list[int]
    padding: list[int]
    dilation: list[int]


def window(node: Node, kernel: Sequence[Extent]) -> Window:
    """How a window of the extents `kernel` moves."""
    ones = [1] * len(kernel)
    strides, dilation = node.attrs.get("strides", ones), node.attrs.get("dilations", ones)
    padding = _padding(node, kernel, strides, dilation)
    return {"strides": strides, "padding": padding, "dilation": dilation}


def _padding(
    node: Node, kernel: Sequence[Extent], strides: Sequence[int], dilation: Sequence[int]
) -> list[int]:
    """The widths before all spatial axes, then those behind, by `pads` or `auto_pad`."""
    rank = len(kernel)
    mode = node.attrs.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return list(node.attrs.get("pads", [0] * 2 * rank))
    if mode == "VALID":
        return [0] * 2 * rank
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.wrong(f'auto_pad is "{mode}"')
    image = node.static_shape(0, range(2, rank + 2))
    windows = [extent for extent in kernel if not isinstance(extent, PrimExpr)]
    if len(windows) < rank:
        raise node.unsupported(f'auto_pad="{mode}" for windows of symbolic extents')
    before, behind = [], []
    for extent, window, stride, step in zip(image, windows, strides, dilation, strict=True):
        outputs = -(-extent // stride)
        total = max((outputs - 1) * stride + (window - 1) * step + 1 - extent, 0)
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        behind.append(large if mode == "SAME_UPPER" else small)
    return before + behind
