"""Pools over windows, and over whole images."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.common import AVERAGE_POOLS, MAX_POOLS, ceil_padding
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.relax.frontend.onnx.operators.elementwise import number
from mlcweb.relax.frontend.onnx.operators.windows import window

_POOLS = {"MaxPool": MAX_POOLS, "AveragePool": AVERAGE_POOLS}


def _windows(node: Node, kind: str) -> tuple[Callable[..., Expr], bool]:
    """What pools a tensor over the windows of a node, and whether it is to round extents up."""
    kernel = node.attrs["kernel_shape"]
    rank = len(kernel)
    build = _POOLS[kind].get(rank)
    if build is None:
        raise node.unsupported(f"{rank} spatial axes; there are 1 to 3")
    moved = window(node, kernel)
    ceil_mode = bool(node.attrs.get("ceil_mode", 0))
    if ceil_mode:
        moved["padding"], ceil_mode = ceil_padding(node.shape(0)[2:], kernel, **moved)
    return partial(build, pool_size=kernel, **moved), ceil_mode


@converter("MaxPool", "AveragePool")
def _pool(node: Node) -> Expr:
    build, ceil_mode = _windows(node, node.op_type)
    if len([name for name in node.outputs if name]) > 1:
        raise node.unsupported("the output Indices")
    counts_padding = bool(node.attrs.get("count_include_pad", 0))
    return build(node.tensor(0), ceil_mode=ceil_mode, count_include_pad=counts_padding)


@converter("LpPool")
def _lp_pool(node: Node) -> Expr:
    """The p-norm of windows, from the mean of powers; padding counts as zeros."""
    build, ceil_mode = _windows(node, "AveragePool")
    if ceil_mode:
        raise node.unsupported("ceil_mode=1 with symbolic extents")
    p = node.attrs.get("p", 2)
    powers = op.abs(node.tensor(0)) ** number(node, p)
    mean = build(node.emit(powers), count_include_pad=True)
    total = node.emit(mean) * number(node, math.prod(node.attrs["kernel_shape"]))
    return total ** number(node, 1 / p)


@converter("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(node: Node) -> Expr:
    x, axes = node.tensor(0), list(range(2, node.ndim(0)))
    if node.op_type == "GlobalMaxPool":
        return op.max(x, axes, keepdims=True)
    if node.op_type == "GlobalAveragePool":
        return op.mean(x, axes, keepdims=True)
    p = node.attrs.get("p", 2)
    powers = op.abs(x) ** number(node, p)
    return op.sum(powers, axes, keepdims=True) ** number(node, 1 / p)
