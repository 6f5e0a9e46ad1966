"""Attention (Vaswani et al., "Attention Is All You Need", 2017)."""

from __future__ import annotations

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import attribute, te, topi
from mlcweb.relax.op.registry import ALWAYS, call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir.arithmetic import const
from mlcweb.tir.expr import PrimExpr

_LAYOUT = "(batch, length, heads, features)"


def _infer_attention(call: Call, context: Context) -> StructInfo:
    infos = infer.tensors(call, context)
    query, key, value = infos[:3]
    dtype = infer.common_dtype(call, infos)
    for index, info in enumerate(infos[:3]):
        infer.need_rank(call, index, info, 4, _LAYOUT)
    if query.values is None or key.values is None or value.values is None:
        return TensorStructInfo(None, dtype, ndim=4)
    batch, length, heads, features = query.values
    shapes = ", ".join(infer.described(call, i, info) for i, info in enumerate(infos))
    expected = (
        (key.values, (batch, key.values[1], heads, features)),
        (value.values, (batch, key.values[1], heads, value.values[3])),
    )
    for actual, required in expected:
        if any(map(dims.differ, actual, required)):
            raise infer.shape_error(call, f"{shapes} do not fit together as {_LAYOUT}")
    if len(infos) > 3 and infos[3].ndim != -1:
        bias = infos[3]
        infer.need_rank(call, 3, bias, 4, "(batch, heads, length, length of the keys)")
        if bias.values is not None:
            full = (batch, heads, length, key.values[1])
            for extent, required in zip(bias.values, full, strict=True):
                if getattr(extent, "value", None) != 1 and dims.differ(extent, required):
                    raise infer.shape_error(
                        call, f"{shapes}: the bias is broadcast to {dims.shape_text(full)}"
                    )
    return TensorStructInfo([batch, length, heads, value.values[3]], dtype)


def _legalize_attention(builder: BlockBuilder, call: Call) -> Expr:
    query, key, value, *bias = call.args
    scale = attribute(call, "scale")

    def attention(*tensors: te.Tensor) -> te.Tensor:
        return topi.nn.attention(
            *tensors,
            scale=None if scale is None else scale.value,
            causal_mask=attribute(call, "causal_mask"),
            window_size=attribute(call, "window_size"),
        )

    name = "attention_bias" if bias else "attention"
    return builder.call_te(attention, query, key, value, *bias, primfunc_name_hint=name)


@operator(
    "relax.nn.attention", "query", "key", "value",
    infer=_infer_attention, legalize=_legalize_attention, precision=ALWAYS,
)  # fmt: skip
def attention(
    query: ExprLike,
    key: ExprLike,
    value: ExprLike,
    bias: ExprLike | None = None,
    scale: float | PrimExpr | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Call:
    """softmax(query key^T scale + bias) value, for each head.

    Args:
        query: (batch, length, heads, features); key and value: (batch, length of the keys, …).
        bias: (batch, heads, length, length of the keys), broadcast.
        scale: 1 / sqrt(features) by default.
        causal_mask: "TopLeft" or "BottomRight": a query sees only the keys up to its own position,
            counted from the first or the last ones.
        window_size: with a mask, how many keys back a query sees.
    """
    if bias is not None:
        return attention_bias(query, key, value, bias, scale, causal_mask, window_size)
    attrs = {"scale": _scale(scale), "causal_mask": causal_mask, "window_size": window_size}
    return call(attention, query, key, value, **attrs)


@operator(
    "relax.nn.attention_bias", "query", "key", "value", "bias",
    infer=_infer_attention, legalize=_legalize_attention, precision=ALWAYS,
)  # fmt: skip
def attention_bias(
    query: ExprLike,
    key: ExprLike,
    value: ExprLike,
    bias: ExprLike | None = None,
    scale: float | PrimExpr | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Call:
    """`attention` with a bias."""
    if bias is None:
        return attention(query, key, value, None, scale, causal_mask, window_size)
    attrs = {"scale": _scale(scale), "causal_mask": causal_mask, "window_size": window_size}
    return call(attention_bias, query, key, value, bias, **attrs)


def _scale(scale: float | PrimExpr | None) -> PrimExpr | None:
    return const(float(scale), "float32") if isinstance(scale, (int, float)) else scale
