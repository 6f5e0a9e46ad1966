"""Operators that combine the elements along axes."""

from __future__ import annotations

import math
from collections.abc import Callable

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.onnx.arguments import axis_of, reduced_axes
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.tir import dtype as dtypes


def _square(x: Expr) -> Expr:
    return x * x


def _same(x: Expr) -> Expr:
    return x


_REDUCTIONS: dict[str, tuple[Callable[..., Expr], Callable[..., Expr], Callable[..., Expr]]] = {
    "ReduceSum": (_same, op.sum, _same),
    "ReduceMean": (_same, op.mean, _same),
    "ReduceMax": (_same, op.max, _same),
    "ReduceMin": (_same, op.min, _same),
    "ReduceProd": (_same, op.prod, _same),
    "ReduceL1": (op.abs, op.sum, _same),
    "ReduceL2": (_square, op.sum, op.sqrt),
    "ReduceSumSquare": (_square, op.sum, _same),
    "ReduceLogSum": (_same, op.sum, op.log),
}
"""What is done to the elements, how they are combined, and what is done to the result."""


@converter(*_REDUCTIONS, "ReduceLogSumExp")
def _reduce(node: Node) -> Expr:
    x = node.tensor(0)
    axes, keepdims = reduced_axes(node, node.ndim(0))
    boolean = node.dtype(0) == "bool"  # ReduceMax and ReduceMin: any and all
    if boolean:
        x = op.astype(x, "uint8")
    if any(extent == 0 for extent in node.shape(0) if isinstance(extent, int)):
        return _of_nothing(node, axes, keepdims)
    if node.op_type == "ReduceLogSumExp":
        return _log_sum_exp(node, x, axes, keepdims)
    before, combine, after = _REDUCTIONS[node.op_type]
    x = before(x)
    if axes and combine in (op.max, op.min) and dtypes.is_float(node.dtype(0)):
        x = extremum(node, x, axes, keepdims, "max" if combine is op.max else "min")
    elif axes:
        x = combine(x, axes, keepdims)
    result = after(x)
    return op.astype(result, "bool") if boolean else result


def extremum(node: Node, x: Expr, axes: list[int], keepdims: bool, name: str) -> Expr:
    """The "max" or "min" of floats over axes, which is infinite where all are: `op.max` begins at
    the least finite number."""
    from mlcweb import te
    from mlcweb.tir import arithmetic
    from mlcweb.topi.reduction import reduced

    combine = arithmetic.maximum if name == "max" else arithmetic.minimum
    start = -math.inf if name == "max" else math.inf
    reducer = te.comm_reducer(combine, lambda dtype: arithmetic.const(start, dtype), name)

    def over_axes(data: te.Tensor) -> te.Tensor:
        return reduced(data, axes, keepdims, reducer, name)

    return node.builder.emit_te(over_axes, x, primfunc_name_hint=name)


def _of_nothing(node: Node, axes: list[int], keepdims: bool) -> Expr:
    """A reduction over an extent of 0 gives the neutral element."""
    shape = node.shape(0)
    result_shape = [1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes]
    dtype, kind = node.dtype(0), node.op_type.removeprefix("Reduce")
    value: int | float = 1 if kind == "Prod" else -math.inf if kind.startswith("LogSum") else 0
    if kind in ("Max", "Min"):
        if dtypes.is_float(dtype):
            value = -math.inf if kind == "Max" else math.inf
        elif dtype == "bool":
            value = kind == "Min"
        else:
            value = dtypes.min_value(dtype) if kind == "Max" else dtypes.max_value(dtype)
    if kind == "Mean":
        value = math.nan
    return op.full(result_shape, node.const(value, dtype), dtype)


def _log_sum_exp(node: Node, x: Expr, axes: list[int], keepdims: bool) -> Expr:
    """The greatest element is taken out, so that no exponential overflows."""
    most = node.emit(op.max(x, axes, keepdims=True))
    total = op.log(op.sum(op.exp(x - most), axes, keepdims=True))
    result = node.emit(total + most)
    return result if keepdims else op.squeeze(result, axes)


@converter("ArgMax", "ArgMin")
def _position(node: Node) -> Expr:
    from mlcweb import topi

    axis = axis_of(node, 0, node.ndim(0))
    keepdims = bool(node.attrs.get("keepdims", 1))
    most = node.op_type == "ArgMax"
    if node.attrs.get("select_last_index", 0):
        find = topi.argmax if most else topi.argmin
        place = node.builder.emit_te(
            find, node.tensor(0), axis=axis, keepdims=keepdims, select_last_index=True
        )
    else:
        place = node.emit((op.argmax if most else op.argmin)(node.tensor(0), axis, keepdims))
    return place if node.info_of(place).dtype == "int64" else op.astype(place, "int64")


@converter("CumSum", "CumProd")
def _cumulative(node: Node) -> Expr:
    x = node.tensor(0)
    axis = int(node.number(1, "axis")) % node.ndim(0)
    build = op.cumsum if node.op_type == "CumSum" else op.cumprod
    exclusive = bool(node.attrs.get("exclusive", 0))
    if not node.attrs.get("reverse", 0):
        return build(x, axis, exclusive=exclusive)
    return op.flip(build(op.flip(x, axis), axis, exclusive=exclusive), axis)
