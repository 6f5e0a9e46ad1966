"""Position embeddings of language models: RoPE, which turns pairs of features by an angle that
grows with the position. rope_frequency.py has the angles."""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.llm.rope_frequency import (
    rope_freq_default,
    rope_freq_gptj,
    rope_freq_llama3,
    rope_freq_llama4,
    rope_freq_longrope,
    rope_freq_yarn,
    rotated,
    switch_rope_freq_func,
    yarn_find_correction_dim,
    yarn_find_correction_range,
)
from mlcweb.relax.frontend.nn import Tensor, op
from mlcweb.script import tir as T
from mlcweb.tir.function import PrimFunc

__all__ = [
    "llama4_rope_with_position_map", "llama_rope", "llama_rope_with_position_map",
    "rope_freq_default", "rope_freq_gptj", "rope_freq_llama3", "rope_freq_llama4",
    "rope_freq_longrope", "rope_freq_yarn", "switch_rope_freq_func", "yarn_find_correction_dim",
    "yarn_find_correction_range",
]  # fmt: skip

_OPAQUE = 8
"""The kind of operator that fusion leaves alone."""


def llama_rope(
    qkv: Tensor, total_seq_len: Any, theta: float, scale: float, num_q_heads: int,
    num_kv_heads: int, rope_scaling: Mapping[str, Any], rotary_dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Queries and keys, turned, and values of a tensor (batch, tokens, q + 2 kv heads, features)
    whose tokens are the last ones of `total_seq_len`: three tensors."""
    batch, tokens, heads, features = qkv.shape
    if not isinstance(features, int):
        raise ValueError(f"The features of a head are a number, not {features}")
    turned, dtype = rotary_dim or features, qkv.dtype
    if heads != num_q_heads + 2 * num_kv_heads:
        raise ValueError(f"qkv has {heads} heads, not {num_q_heads} + 2 x {num_kv_heads}")

    def rope(x: Any, b: Any, s: Any, h: Any, d: Any, offset: Any) -> Any:
        position = T.Cast(dtype, s + offset) * T.Cast(dtype, T.float32(scale))
        return rotated(lambda f: x[b, s, h, f], position, d, turned, theta, rope_scaling, dtype)

    @T.prim_func(private=True)
    def fused_rope(
        var_qkv: T.handle, var_q: T.handle, var_k: T.handle, var_v: T.handle, total: T.int64
    ):
        T.func_attr({"op_pattern": _OPAQUE, "tir.noalias": True})
        batch_size = T.int64()
        seq_len = T.int64()
        qkv = T.match_buffer(var_qkv, (batch_size, seq_len, heads, features), dtype)
        q = T.match_buffer(var_q, (batch_size, seq_len, num_q_heads, features), dtype)
        k = T.match_buffer(var_k, (batch_size, seq_len, num_kv_heads, features), dtype)
        v = T.match_buffer(var_v, (batch_size, seq_len, num_kv_heads, features), dtype)
        for iters in T.grid(batch_size, seq_len, heads, features):
            with T.block("llama_fused_rope"):
                b, s, h, d = T.axis.remap("SSSS", iters)
                if h < num_q_heads:
                    q[b, s, h, d] = T.if_then_else(
                        d < turned, rope(qkv, b, s, h, d, total - seq_len), qkv[b, s, h, d]
                    )
                elif h < num_q_heads + num_kv_heads:
                    k[b, s, h - num_q_heads, d] = T.if_then_else(
                        d < turned, rope(qkv, b, s, h, d, total - seq_len), qkv[b, s, h, d]
                    )
                else:
                    v[b, s, h - (num_q_heads + num_kv_heads), d] = qkv[b, s, h, d]

    shapes = [(batch, tokens, n, features) for n in (num_q_heads, num_kv_heads, num_kv_heads)]
    out = [Tensor.placeholder(shape, dtype) for shape in shapes]
    return op.tensor_ir_op(fused_rope, "llama_rope", [qkv, total_seq_len], out)


def llama_rope_with_position_map(
    theta: float, scale: float, head_dim: int, num_q_heads: int, num_kv_heads: int, dtype: str,
    rope_scaling: Mapping[str, Any], rotary_dim: int | None = None,
) -> PrimFunc:  # fmt: skip
    """The function that splits (tokens, q + 2 kv heads, features) into q, k and v, and turns q and
    k by the position of each token. Its last parameter says whether; of "longrope" it has the
    factors of long texts, and of short ones after them."""
    return _with_positions(
        theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, rope_scaling, rotary_dim, None
    )


def llama4_rope_with_position_map(
    theta: float, scale: float, head_dim: int, num_q_heads: int, num_kv_heads: int, dtype: str,
    rope_scaling: Mapping[str, Any], rotary_dim: int | None = None,
) -> PrimFunc:  # fmt: skip
    """The same of Llama 4, whose pairs of features lie side by side."""
    return _with_positions(
        theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, rope_scaling, rotary_dim, True
    )


def _with_positions(
    theta: float, scale: float, features: int, num_q_heads: int, num_kv_heads: int, dtype: str,
    rope_scaling: Mapping[str, Any], rotary_dim: int | None, neighbours: bool | None,
) -> PrimFunc:  # fmt: skip
    heads, turned = num_q_heads + 2 * num_kv_heads, rotary_dim or features
    after_q = num_q_heads + num_kv_heads

    def rope(
        x: Any, s: Any, h: Any, d: Any, position: Any, applies: Any, **factors: Any
    ) -> Any:  # fmt: skip
        value = rotated(
            lambda f: x[s, h, f], T.Cast("float32", position) * T.float32(scale), d, turned, theta,
            rope_scaling, "float32", neighbours=neighbours, **factors,
        )  # fmt: skip
        return T.if_then_else(applies, T.Cast(dtype, value), x[s, h, d])

    @T.prim_func
    def fused_rope(
        var_qkv: T.handle, var_position_map: T.handle, var_q: T.handle, var_k: T.handle,
        var_v: T.handle, apply_rope: T.int64,
    ):  # fmt: skip
        T.func_attr({"op_pattern": _OPAQUE, "tir.noalias": True})
        seq_len = T.int32()
        qkv = T.match_buffer(var_qkv, (seq_len, heads, features), dtype)
        position_map = T.match_buffer(var_position_map, (seq_len,), "int32")
        q = T.match_buffer(var_q, (seq_len, num_q_heads, features), dtype)
        k = T.match_buffer(var_k, (seq_len, num_kv_heads, features), dtype)
        v = T.match_buffer(var_v, (seq_len, num_kv_heads, features), dtype)
        for iters in T.grid(seq_len, heads, features):
            with T.block("llama_fused_rope"):
                s, h, d = T.axis.remap("SSS", iters)
                if h < num_q_heads:
                    q[s, h, d] = rope(qkv, s, h, d, position_map[s], apply_rope > 0 and d < turned)
                elif h < after_q:
                    k[s, h - num_q_heads, d] = rope(
                        qkv, s, h, d, position_map[s], apply_rope > 0 and d < turned
                    )
                else:
                    v[s, h - after_q, d] = qkv[s, h, d]

    if rope_scaling.get("rope_type") != "longrope":
        return fused_rope
    trained = rope_scaling["original_max_position_embeddings"]

    def factor(factors: Any, seq_len: Any) -> Any:
        start = T.if_then_else(seq_len > trained, 0, turned // 2)
        return lambda pair: factors[start + pair]

    @T.prim_func
    def fused_rope_longrope_scaling(
        var_qkv: T.handle, var_position_map: T.handle, var_q: T.handle, var_k: T.handle,
        var_v: T.handle, ext_factors: T.Buffer((turned,), "float32"),
    ):  # fmt: skip
        T.func_attr({"op_pattern": _OPAQUE, "tir.noalias": True})
        seq_len = T.int32()
        qkv = T.match_buffer(var_qkv, (seq_len, heads, features), dtype)
        position_map = T.match_buffer(var_position_map, (seq_len,), "int32")
        q = T.match_buffer(var_q, (seq_len, num_q_heads, features), dtype)
        k = T.match_buffer(var_k, (seq_len, num_kv_heads, features), dtype)
        v = T.match_buffer(var_v, (seq_len, num_kv_heads, features), dtype)
        for iters in T.grid(seq_len, heads, features):
            with T.block("llama_fused_rope"):
                s, h, d = T.axis.remap("SSS", iters)
                if h < num_q_heads:
                    q[s, h, d] = rope(
                        qkv, s, h, d, position_map[s], d < turned,
                        ext_factors=factor(ext_factors, seq_len),
                    )  # fmt: skip
                elif h < after_q:
                    k[s, h - num_q_heads, d] = rope(
                        qkv, s, h, d, position_map[s], d < turned,
                        ext_factors=factor(ext_factors, seq_len),
                    )  # fmt: skip
                else:
                    v[s, h - after_q, d] = qkv[s, h, d]

    return fused_rope_longrope_scaling
