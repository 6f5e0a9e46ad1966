"""Activation functions, softmax, dropout."""

from __future__ import annotations

from typing import Any

from mlcweb.relax import dims
from mlcweb.relax.expr import Call
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.op.unary import clip, unary
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo

relu = unary("nn.relu")
gelu, gelu_tanh, silu, selu = (
    unary(f"nn.{name}", infer.elementwise_float) for name in ("gelu", "gelu_tanh", "silu", "selu")
)

_LEAKYRELU = register("relax.nn.leakyrelu", ("data",), infer.same_float)
_SOFTPLUS = register("relax.nn.softplus", ("data",), infer.same_float)


def relu6(data: Any) -> Call:
    """min(max(data, 0), 6), as a call of `clip`."""
    return clip(data, 0, 6)


def leakyrelu(data: Any, alpha: float = 0.01) -> Call:
    """data where it is positive, alpha data elsewhere."""
    return call(_LEAKYRELU, data, alpha=alpha)


def softplus(data: Any, beta: float = 1.0, threshold: float = 20.0) -> Call:
    """log(1 + exp(beta data)) / beta; data itself where beta data is above the threshold."""
    return call(_SOFTPLUS, data, beta=beta, threshold=threshold)


def _infer_along_axis(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    infer.need_float(call, 0, info)
    if info.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)
    return info


_SOFTMAX = register("relax.nn.softmax", ("data",), _infer_along_axis)
_LOG_SOFTMAX = register("relax.nn.log_softmax", ("data",), _infer_along_axis)


def softmax(data: Any, axis: int = -1) -> Call:
    """exp(data) / sum(exp(data)) along an axis."""
    return call(_SOFTMAX, data, axis=int(axis))


def log_softmax(data: Any, axis: int = -1) -> Call:
    """The logarithm of `softmax`."""
    return call(_LOG_SOFTMAX, data, axis=int(axis))


def _infer_prelu(call: Call, context: Any) -> StructInfo:
    info = _infer_along_axis(call, context)
    data, alpha = infer.tensors(call, context)
    infer.common_dtype(call, [data, alpha])
    infer.need_rank(call, 1, alpha, 1, "a slope for each position along axis")
    if data.values is not None and alpha.values is not None:
        axis = infer.attribute(call, "axis") % data.ndim
        if dims.differ(data.values[axis], alpha.values[0]):
            both = f"{infer.described(call, 0, data)} and {infer.described(call, 1, alpha)}"
            raise infer.shape_error(call, f"{both} do not fit on axis {axis}")
    return info


_PRELU = register("relax.nn.prelu", ("data", "alpha"), _infer_prelu)


def prelu(data: Any, alpha: Any, axis: int = 1) -> Call:
    """data where it is positive, alpha data elsewhere, with one alpha per position on `axis`."""
    return call(_PRELU, data, alpha, axis=int(axis))


def _infer_dropout(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    return TupleStructInfo([info, info])


_DROPOUT = register("relax.nn.dropout", ("data",), _infer_dropout)


def dropout(data: Any, rate: float = 0.5) -> Call:
    """A tuple of the data and a mask. Where a model is run, as here, nothing is dropped."""
    return call(_DROPOUT, data, rate=rate)
