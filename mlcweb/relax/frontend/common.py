"""What importers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import IRModule
from mlcweb.relax import op
from mlcweb.relax.expr import Expr, Function
from mlcweb.tir.expr import IntImm, PrimExpr

if TYPE_CHECKING:
    from mlcweb.runtime.ndarray import NDArray

Extent: TypeAlias = "int | PrimExpr"
"""An extent of a tensor: a number, or an expression where it is symbolic."""

CONVOLUTIONS = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
TRANSPOSED = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose, 3: op.nn.conv3d_transpose}
MAX_POOLS = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
AVERAGE_POOLS = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}
"""By the number of spatial axes."""


def as_extents(values: Sequence[PrimExpr]) -> list[Extent]:
    """Extents, the known ones as numbers."""
    return [value.value if isinstance(value, IntImm) else value for value in values]


def per_channel(value: Expr, ndim: int) -> Expr:
    """A vector (c,) to be broadcast against (n, c, …)."""
    return op.reshape(value, [1, -1, *[1] * (ndim - 2)]) if ndim > 2 else value


def with_bias(value: Expr, bias: Expr | None, ndim: int) -> Expr:
    """A product (n, c, …) with a bias (c,), where there is one."""
    return value if bias is None else value + per_channel(bias, ndim)


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[NDArray]]]:
    """A module without the weights that its functions carry in the attribute "params", and the
    weights by function, as NDArrays in the order of the parameters that they are for."""
    array = provided(__name__, "array")
    detached, params = mod.copy(), {}
    for var, func in mod.functions.items():
        if isinstance(func, Function) and "params" in func.attrs:
            params[var.name_hint] = [array(data.numpy()) for data in func.attrs["params"]]
            detached.update_func(var, func.without_attr("params"))
    return detached, params


def ceil_padding(
    shape: Sequence[Extent],
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[list[int], bool]:
    """The padding of a pool that rounds its extents up, and whether the operator is to round up.

    PyTorch and ONNX leave out a window that would begin in the padding behind; the operators of
    Relax do not, so such padding is cut off here. `padding`: before all axes, then behind.
    """
    result, rank, round_up = list(padding), len(kernel), False
    for axis, (extent, window, stride, step) in enumerate(
        zip(shape, kernel, strides, dilation, strict=True)
    ):
        if not isinstance(extent, int):
            round_up = True
            continue
        before, behind = padding[axis], padding[rank + axis]
        whole = extent + before + behind - step * (window - 1) - 1
        rest = whole % stride
        last = (-(-whole // stride)) * stride
        if last < extent + before:
            round_up = round_up or rest > 0
        else:
            result[rank + axis] -= min(rest, behind)
    return result, round_up
