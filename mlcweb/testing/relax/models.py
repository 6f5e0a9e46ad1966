"""Models of one layer: a product of matrices, and attention."""

from __future__ import annotations

from typing import Any

from mlcweb import relax
from mlcweb.ir.module import IRModule
from mlcweb.relax import op


def get_relax_matmul_module(
    x_shape: Any,
    y_shape: Any,
    in_dtype: str,
    out_dtype: str | None = None,
    transposed_y: bool = False,
    bias_shape: Any = None,
    activation: Any = None,
    residual_bin_op: Any = None,
    residual_activation: Any = None,
) -> IRModule:
    """`x · y`, and what follows it: a bias, an activation, a residual that is added (or else)."""
    x, y = _var("x", x_shape, in_dtype), _var("y", y_shape, in_dtype)
    out_dtype = out_dtype or in_dtype
    params = [x, y]
    builder = relax.BlockBuilder()
    with builder.function("main"):
        with builder.dataflow():
            right: Any = y
            if transposed_y:
                axes = [*range(len(y_shape) - 2), len(y_shape) - 1, len(y_shape) - 2]
                right = builder.emit(op.permute_dims(y, axes))
            result = builder.emit(op.matmul(x, right, out_dtype))
            if bias_shape is not None:
                params.append(_var("bias", bias_shape, out_dtype))
                result = builder.emit(op.add(result, params[-1]))
            if activation is not None:
                result = builder.emit(activation(result))
            if residual_bin_op is not None:
                info: Any = result.struct_info
                params.append(_var("residual", info.values, out_dtype))
                result = builder.emit(residual_bin_op(result, params[-1]))
                if residual_activation is not None:
                    result = builder.emit(residual_activation(result))
            result = builder.emit_output(result)
        builder.emit_func_output(result, params)
    return builder.get()


def get_relax_attention_module(
    q_shape: Any,
    k_shape: Any,
    v_shape: Any,
    *,
    dtype: str,
    bias_shape: Any = None,
    qk_scale: Any = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> IRModule:
    """Attention of a query, a key and a value; with a bias where it has a shape."""
    names = {"q": q_shape, "k": k_shape, "v": v_shape}
    params = [_var(name, shape, dtype) for name, shape in names.items()]
    bias = None
    if bias_shape is not None:
        bias = _var("bias", bias_shape, dtype)
        params.append(bias)
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(
                op.nn.attention(
                    params[0], params[1], params[2], bias, qk_scale, causal_mask, window_size
                )
            )
        builder.emit_func_output(result)
    return builder.get()


def _var(name: str, shape: Any, dtype: str) -> relax.Var:
    return relax.Var(name, relax.TensorStructInfo(list(shape), dtype))
