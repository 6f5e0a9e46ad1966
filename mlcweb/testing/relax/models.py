"""Models of one layer: a product of matrices, and attention."""

from __future__ import annotations

from typing import Any

from mlcweb import relax
from mlcweb.ir.module import IRModule
from mlcweb.relax import op as operators


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
    """`x · y`, and what follows it: a bias, an activation, and `x` that is added (or else)."""
    x, y = _var("x", x_shape, in_dtype), _var("y", y_shape, in_dtype)
    out_dtype = out_dtype or in_dtype
    params = [x, y]
    builder = relax.BlockBuilder()
    with builder.function("main"):
        with builder.dataflow():
            right: Any = y
            if transposed_y:
                axes = [*range(len(y_shape) - 2), len(y_shape) - 1, len(y_shape) - 2]
                right = builder.emit(operators.permute_dims(y, axes))
            result = builder.emit(operators.matmul(x, right, out_dtype))
            if bias_shape is not None:
                params.append(_var("bias", bias_shape, out_dtype))
                result = builder.emit(operators.add(result, params[-1]))
            if activation is not None:
                result = builder.emit(activation(result))
            if residual_bin_op is not None:
                result = builder.emit(residual_bin_op(result, x))
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
                operators.nn.attention(
                    params[0], params[1], params[2], bias, qk_scale, causal_mask, window_size
                )
            )
        builder.emit_func_output(result)
    return builder.get()


def get_relax_stacked_attention_module(
    qkv: Any,
    b: int,
    s: int,
    n: int,
    h: int,
    h_v: int,
    op: str,
    bias: Any = None,
    qk_scale: Any = None,
    single_shape: bool = False,
    layout: str = "BS3NH",
    causal_mask: str | None = None,
) -> IRModule:
    """Attention of a query, a key and a value that are parts of one array.

    `qkv` and `bias` have the shape and type that the parameters are to have. In layout "BS3NH" the
    array has the shape (b, s, 2 * n * h + n * h_v), in "SBN3H" (s, b, n, 3 * h). `op` ("split" or
    "strided_slice") says how it is taken apart; with `single_shape` all parts have one shape.

    Raises: NotImplementedError: there is no such `op`.
    """
    if layout not in ("BS3NH", "SBN3H"):
        raise AssertionError(f'The layout is "BS3NH" or "SBN3H", not "{layout}"')
    if op not in ("split", "strided_slice"):
        raise NotImplementedError(f'The parts are taken by "split" or "strided_slice", not "{op}"')
    batch_first = layout == "BS3NH"
    axis, ends = (2, [n * h, 2 * n * h]) if batch_first else (3, [h, 2 * h])
    packed = _var("qkv", qkv.shape, str(qkv.dtype))
    params = [packed]
    if bias is not None:
        params.append(_var("bias", bias.shape, str(qkv.dtype)))

    def swapped(value: Any) -> Any:
        return operators.permute_dims(value, [1, 0, 2, 3])

    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            if op == "split":
                whole = builder.emit(operators.split(packed, ends, axis))
                parts: list[Any] = [whole[index] for index in range(3)]
            else:
                bounds = zip([0, *ends], [*ends, qkv.shape[axis]], strict=True)
                parts = [
                    operators.strided_slice(packed, [axis], [low], [high], [1])
                    for low, high in bounds
                ]
            if batch_first:
                widths = (h, h, h if single_shape else h_v)
                parts = [
                    operators.reshape(part, [b, s, n, width])
                    for part, width in zip(parts, widths, strict=True)
                ]
            else:
                parts = list(map(swapped, parts))
            q, k, v = parts
            with_bias = params[1] if bias is not None else None
            result: Any = operators.nn.attention(q, k, v, with_bias, qk_scale, causal_mask)
            if not batch_first:
                result = swapped(builder.emit(result))
            result = builder.emit_output(result)
        builder.emit_func_output(result)
    return builder.get()


def _var(name: str, shape: Any, dtype: str) -> relax.Var:
    return relax.Var(name, relax.TensorStructInfo(list(shape), dtype))
