"""Activation functions, softmax, dropout."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer, layout
from mlcweb.relax.op.elementwise import clip, unary
from mlcweb.relax.op.layout import Decision, Layout
from mlcweb.relax.op.legalize import by, te, topi
from mlcweb.relax.op.registry import FOLLOW, builder, call, may_write_in_place, operator, whole
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo
from mlcweb.tir.arithmetic import is_const_int

relu = unary("nn.relu")
gelu, gelu_tanh, silu, selu = (
    unary(f"nn.{name}", infer.elementwise_float) for name in ("gelu", "gelu_tanh", "silu", "selu")
)
may_write_in_place(relu, silu)


@builder("relax.nn.relu6")
def relu6(data: ExprLike) -> Call:
    """min(max(data, 0), 6), as a call of `clip`."""
    return clip(data, 0, 6)


@operator(
    "relax.nn.leakyrelu", "data", infer=infer.same_float, legalize=by("nn.leaky_relu", "alpha")
)
def leakyrelu(data: ExprLike, alpha: float = 0.01) -> Call:
    """data where it is positive, alpha data elsewhere."""
    return call(leakyrelu, data, alpha=alpha)


@operator(
    "relax.nn.softplus", "data",
    infer=infer.same_float, legalize=by("nn.softplus", "beta", "threshold"),
)  # fmt: skip
def softplus(data: ExprLike, beta: float = 1.0, threshold: float = 20.0) -> Call:
    """log(1 + exp(beta data)) / beta; data itself where beta data is above the threshold."""
    return call(softplus, data, beta=beta, threshold=threshold)


def _infer_along_axis(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    infer.need_float(call, 0, info)
    if info.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)
    return info


@operator(
    "relax.nn.softmax", "data",
    infer=_infer_along_axis, legalize=by("nn.softmax", "axis"), layout=layout.along_axis,
)  # fmt: skip
def softmax(data: ExprLike, axis: int = -1) -> Call:
    """exp(data) / sum(exp(data)) along an axis."""
    return call(softmax, data, axis=whole(axis))


@operator(
    "relax.nn.log_softmax", "data", infer=_infer_along_axis, legalize=by("nn.log_softmax", "axis")
)
def log_softmax(data: ExprLike, axis: int = -1) -> Call:
    """The logarithm of `softmax`."""
    return call(log_softmax, data, axis=whole(axis))


def _infer_prelu(call: Call, context: Context) -> StructInfo:
    info = _infer_along_axis(call, context)
    data, alpha = infer.tensors(call, context)
    infer.common_dtype(call, [data, alpha])
    infer.need_rank(call, 1, alpha, 1, "a slope for each position along axis, or one for all")
    if data.values is not None and alpha.values is not None:
        axis = infer.attribute(call, "axis") % data.ndim
        (slopes,) = alpha.values
        if not is_const_int(slopes, 1) and dims.differ(data.values[axis], slopes):
            both = f"{infer.described(call, 0, data)} and {infer.described(call, 1, alpha)}"
            raise infer.shape_error(call, f"{both} do not fit on axis {axis}")
    return info


@operator(
    "relax.nn.prelu", "data", "alpha",
    infer=_infer_prelu, legalize=by("nn.prelu", "axis"), layout=layout.along_axis,
)  # fmt: skip
def prelu(data: ExprLike, alpha: ExprLike, axis: int = 1) -> Call:
    """data where it is positive, alpha data elsewhere, with one alpha per position on `axis`, or
    one for all."""
    return call(prelu, data, alpha, axis=whole(axis))


def _infer_dropout(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    return TupleStructInfo([info, info])


def _layout_dropout(call: Call, layouts: Sequence[Layout]) -> Decision:
    return Decision([layouts[0]], [layouts[0], layouts[0]])


def _dropout(x: te.Tensor) -> list[te.Tensor]:
    return [topi.identity(x), topi.full_like(x, 1.0)]


@operator(
    "relax.nn.dropout", "data",
    infer=_infer_dropout, legalize=by(_dropout, hint="dropout"), layout=_layout_dropout,
    precision=FOLLOW,
)  # fmt: skip
def dropout(data: ExprLike, rate: float = 0.5) -> Call:
    """A tuple of the data and a mask. Where a model is run, as here, nothing is dropped."""
    return call(dropout, data, rate=rate)
