"""Attention (Vaswani et al., "Attention Is All You Need", 2017)."""

from __future__ import annotations

import math

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.softmax import softmax

MASKS = (None, "TopLeft", "BottomRight")


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    scale: float | PrimExpr | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Tensor:
    """softmax(query key^T scale + bias) value, for each head.

    Args:
        query: (batch, n, heads, d); key: (batch, m, heads, d); value: (batch, m, heads, e).
        bias: (batch, heads, n, m), broadcast.
        scale: 1 / sqrt(d) by default.
        causal_mask: "TopLeft": query i sees the keys up to i; "BottomRight": up to i + m - n.
        window_size: with a mask, a query sees only so many keys.

    Returns: (batch, n, heads, e).
    """
    for tensor in (query, key, value):
        shapes.need_rank("attention", tensor, 4, "(batch, length, heads, features)")
    if causal_mask not in MASKS:
        raise DiagnosticError(f'attention: a causal mask is "TopLeft" or "BottomRight", not '
                              f"{causal_mask!r}")  # fmt: skip
    batch, length, heads, features = query.shape
    keys = key.shape[1]
    dtype = query.dtype
    if scale is None:
        number = shapes.constant(features)
        root = intrinsics.unary_functions["sqrt"](arithmetic.cast(dtype, features))
        scale = arithmetic.const(1, dtype) / root if number is None else (
            1 / math.sqrt(number))  # fmt: skip
    factor = arithmetic.cast(dtype, scale)
    d = reduce_axis((0, features), "d")
    products = compute(
        (batch, heads, length, keys),
        lambda b, h, i, j: reducers.sum(query(b, i, h, d.var) * key(b, j, h, d.var), axis=d),
        "T_attention_products",
    )
    shift = 0 if causal_mask != "BottomRight" else keys - length

    def score(b: PrimExpr, h: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        result = products(b, h, i, j) * factor
        if bias is not None:
            place = shapes.broadcast_index(bias.shape, (b, h, i, j), products.shape)
            result = result + bias(*place)
        if causal_mask is None:
            return result
        last = i + shift
        seen = j <= last
        if window_size is not None:
            seen = arithmetic.logical_and(seen, j > last - window_size)
        return arithmetic.select(seen, result, intrinsics.min_value(dtype))

    weights = softmax(compute(products.shape, score, "T_attention_scores"), axis=3)
    k = reduce_axis((0, keys), "k")
    return compute(
        (batch, length, heads, value.shape[3]),
        lambda b, i, h, e: reducers.sum(weights(b, h, i, k.var) * value(b, k.var, h, e), axis=k),
        "T_attention",
    )
