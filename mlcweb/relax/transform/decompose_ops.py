"""DecomposeOpsForInference and DecomposeOpsForTraining: norms as arithmetic."""

from __future__ import annotations

from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.op.elementwise import sqrt
from mlcweb.relax.op.infer import op_of
from mlcweb.relax.op.manipulate import expand_dims
from mlcweb.relax.op.statistical import mean, variance
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.transform.call_rules import Rewriting, rewriting_pass, tensor


def DecomposeOpsForInference(func_name: str | None = None) -> Pass:
    """Compute `batch_norm` by the means and variances that it is given; in one function, or in
    all."""
    return rewriting_pass("DecomposeOpsForInference", _for_inference, func_name)


def DecomposeOpsForTraining(func_name: str | None = None) -> Pass:
    """Compute `batch_norm` by the means and variances of the batch, and the moving ones anew;
    `layer_norm` as arithmetic; in one function, or in all."""
    return rewriting_pass("DecomposeOpsForTraining", _for_training, func_name)


def _for_inference(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    if op_of(call).name != "relax.nn.batch_norm":
        return None
    data, gamma, beta, moving_mean, moving_var = call.args
    return _batch_norm(call, data, gamma, beta, moving_mean, moving_var)


def _for_training(call: E.Call, rewriting: Rewriting) -> E.Expr | None:
    if op_of(call).name == "relax.nn.layer_norm":
        return _layer_norm(call)
    if op_of(call).name != "relax.nn.batch_norm" or call.attrs is None:
        return None
    data, gamma, beta, moving_mean, moving_var = call.args
    info, emit = tensor(data), rewriting.builder_.emit
    if info is None:
        return None
    axes = [axis for axis in range(info.ndim) if axis != call.attrs["axis"] % info.ndim]
    own_mean, own_var = emit(mean(data, axes)), emit(variance(data, axes))
    whole = _batch_norm(call, data, gamma, beta, own_mean, own_var)
    if whole is None:
        return None
    result = emit(E.TupleGetItem(emit(whole), 0))
    rate = float(call.attrs["momentum"])

    def moved(old: E.RelaxExpr, new: E.Expr) -> E.Expr:
        assert isinstance(old, E.Expr) and isinstance(old.struct_info, TensorStructInfo)
        dtype = old.struct_info.dtype
        kept = E.const(1 - rate, dtype) * old
        return kept + E.const(rate, dtype) * new

    return E.Tuple((result, moved(moving_mean, own_mean), moved(moving_var, own_var)))


def _batch_norm(
    call: E.Call,
    data: E.RelaxExpr,
    gamma: E.RelaxExpr,
    beta: E.RelaxExpr,
    average: E.RelaxExpr,
    spread: E.RelaxExpr,
) -> E.Expr | None:
    info, attrs = tensor(data), call.attrs
    if info is None or attrs is None:
        return None
    axes = [axis for axis in range(info.ndim) if axis != attrs["axis"] % info.ndim]
    epsilon = E.const(float(attrs["epsilon"]), info.dtype)
    centred = data - expand_dims(average, axes)
    result = centred / sqrt(expand_dims(spread, axes) + epsilon)
    if attrs["scale"]:
        result = result * expand_dims(gamma, axes)
    if attrs["center"]:
        result = result + expand_dims(beta, axes)
    return E.Tuple((result, average, spread))


def _layer_norm(call: E.Call) -> E.Expr | None:
    data, gamma, beta = call.args
    info, attrs = tensor(data), call.attrs
    if info is None or attrs is None:
        return None
    axes = list(attrs["axes"])
    epsilon = E.const(float(attrs["epsilon"]), info.dtype)
    centred = data - mean(data, axes, keepdims=True)
    result = centred / sqrt(variance(data, axes, keepdims=True) + epsilon)
    if attrs["scale"]:
        result = result * gamma
    return result + beta if attrs["center"] else result
