"""The paged cache of keys and values as an object of models.

    cache = TIRPagedKVCache(attn_kind="mha", max_batch_size=..., ..., target=target)
    output = cache.attention_with_fused_qkv(layer_id, qkv, num_heads, head_dim**-0.5)

A model makes it in a method of its own, and takes it as `nn.spec.Object(PagedKVCache)` in others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from mlcweb.llm import pages
from mlcweb.llm.attention import (
    attention_decode,
    attention_prefill,
    attention_prefill_ragged,
    tree_attn,
    tree_attn_with_paged_kv_cache,
)
from mlcweb.llm.position_embedding import llama_rope_with_position_map
from mlcweb.llm.threads import one_thread_each
from mlcweb.relax import expr as E
from mlcweb.relax import op as R
from mlcweb.relax.frontend.nn.tensor import Object, Tensor, builder
from mlcweb.relax.struct_info import ObjectStructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.tir.function import PrimFunc

if TYPE_CHECKING:
    from mlcweb.runtime.target import Target

_CACHE = "vm.builtin.attention_kv_cache_"


class AttnKind(IntEnum):
    """How the heads of a layer share keys: each group has its own, all share compressed ones, or as
    the first within a window."""

    MHA = 0
    MLA = 1
    MHA_SLIDING = 3


class RopeMode(IntEnum):
    """When queries and keys are turned by their positions: never, when keys are appended, or
    whenever they are read."""

    NONE = 0
    NORMAL = 1
    INLINE = 2


class PagedKVCache(Object):
    """A cache of the keys and values of all tokens of several sequences."""

    extern_mods: Sequence[object] = ()

    def attention_with_fused_qkv(
        self, layer_id: int, qkv: Tensor, num_qo_heads: int, sm_scale: float
    ) -> Tensor:
        """Turn, append and attend: (batch, tokens, q + 2 kv heads, features) gives the result of
        attention, (batch, tokens, q heads, features)."""
        b, s, heads, d = qkv.shape
        rows = qkv.reshape(b * s, heads, d)
        result = self._computed(
            "attention_with_fused_qkv", [layer_id, sm_scale, rows], [(b * s, num_qo_heads, d)],
            qkv.dtype,
        )  # fmt: skip
        return result[0].reshape(b, s, num_qo_heads, d)

    def self_attention(
        self, layer_id: int, q: Tensor, k: Tensor, v: Tensor, sm_scale: float
    ) -> tuple[Tensor, Tensor]:
        """Attention among the new tokens alone; and its `lse`."""
        b, s, heads, _ = q.shape
        d_v = v.shape[3]
        rows = [x.reshape(b * s, x.shape[2], x.shape[3]) for x in (q, k, v)]
        output, lse = self._computed(
            "self_attention", [layer_id, sm_scale, *rows], [(b * s, heads, d_v), (b * s, heads)],
            q.dtype,
        )  # fmt: skip
        return output.reshape(b, s, heads, d_v), lse.reshape(b, s, heads)

    def cross_attention(
        self, layer_id: int, q: Tensor, v_head_dim: int, sm_scale: float
    ) -> tuple[Tensor, Tensor]:
        """Attention to the tokens before; and its `lse`."""
        b, s, heads, d = q.shape
        output, lse = self._computed(
            "cross_attention", [layer_id, sm_scale, q.reshape(b * s, heads, d)],
            [(b * s, heads, v_head_dim), (b * s, heads)], q.dtype,
        )  # fmt: skip
        return output.reshape(b, s, heads, v_head_dim), lse.reshape(b, s, heads)

    def attention_with_shared_kv(
        self, source_layer_id: int, q: Tensor, current_k: Tensor, current_v: Tensor,
        sm_scale: float,
    ) -> Tensor:  # fmt: skip
        """Attention to keys that another layer, which ran before, has appended."""
        b, s, heads, _ = q.shape
        d_v = current_v.shape[3]
        rows = [x.reshape(b * s, x.shape[2], x.shape[3]) for x in (q, current_k, current_v)]
        (output,) = self._computed(
            "attention_with_shared_kv", [source_layer_id, sm_scale, *rows],
            [(b * s, heads, d_v)], q.dtype,
        )  # fmt: skip
        return output.reshape(b, s, heads, d_v)

    def append_mla_kv(self, layer_id: int, kv: Tensor) -> NoReturn:
        """Refused: keys that all heads share compressed have no cache here."""
        raise ValueError('Attention of "mla" has no cache here; append by attention_with_fused_qkv')

    def merge_attn_output_inplace(
        self, o_self_attn: Tensor, lse_self_attn: Tensor, o_cross_attn: Tensor,
        lse_cross_attn: Tensor,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The result of attention to two sets of keys; the first two are overwritten by it."""
        b, s, heads, d = o_self_attn.shape
        outputs = [x.reshape(b * s, heads, d) for x in (o_self_attn, o_cross_attn)]
        sums = [x.reshape(b * s, heads) for x in (lse_self_attn, lse_cross_attn)]
        infos = [outputs[0].struct_info, sums[0].struct_info]
        merged = builder().emit(
            R.call_pure_packed(
                f"{_CACHE}merge_attn_output_inplace", self._expr, outputs[0]._expr, sums[0]._expr,
                outputs[1]._expr, sums[1]._expr, sinfo_args=[TupleStructInfo(infos)],
            )
        )  # fmt: skip
        output, lse = (Tensor(_expr=builder().emit(E.TupleGetItem(merged, i))) for i in (0, 1))
        return output.reshape(b, s, heads, d), lse.reshape(b, s, heads)

    def get_query_positions(self, total_length: Any) -> Tensor:
        """The positions of the new tokens in their sequences."""
        call = R.call_pure_packed(
            f"{_CACHE}get_query_positions", self._expr,
            sinfo_args=[TensorStructInfo((total_length,), "int32")],
        )  # fmt: skip
        return Tensor(_expr=builder().emit(call))

    def _computed(
        self, name: str, args: Sequence[Any], shapes: Sequence[Sequence[Any]], dtype: str
    ) -> list[Tensor]:
        """What a function of the cache writes: the result, and sums in float32."""
        values = [arg._expr if isinstance(arg, Tensor) else E.PrimValue(arg) for arg in args]
        infos = [
            TensorStructInfo(shape, "float32" if index else dtype)
            for index, shape in enumerate(shapes)
        ]
        out = infos if len(infos) > 1 else infos[0]
        call = builder().emit(R.call_dps_packed(f"{_CACHE}{name}", [self._expr, *values], out))
        if len(infos) == 1:
            return [Tensor(_expr=call)]
        fields = range(len(infos))
        return [Tensor(_expr=builder().emit(E.TupleGetItem(call, index))) for index in fields]


class TIRPagedKVCache(PagedKVCache):
    """A cache whose functions are of TensorIR, for a target."""

    def __init__(
        self, attn_kind: str | list[str], max_batch_size: Any, max_total_seq_len: Any,
        prefill_chunk_size: Any, page_size: Any, support_sliding_window: Any,
        layer_partition: E.ShapeExpr, num_hidden_layers: int, num_attention_heads: int,
        num_key_value_heads: int, qk_head_dim: int, v_head_dim: int,
        mla_original_qk_head_dim: int, mla_original_v_head_dim: int, rope_mode: RopeMode,
        rope_scale: float, rope_theta: float, rope_scaling: Mapping[str, Any] | None,
        rope_ext_factors: E.RelaxExpr, rotary_dim: int, enable_disaggregation: bool, dtype: str,
        target: Target, name: str = "paged_kv_cache", *, layer_sliding_window_size: int = 1024,
    ) -> None:  # fmt: skip
        kinds = attn_kind if isinstance(attn_kind, list) else [attn_kind] * num_hidden_layers
        other = sorted(set(kinds) - {"mha"})
        if other or qk_head_dim != v_head_dim:
            what = f'"{other[0]}"' if other else "values of another size than keys"
            raise ValueError(
                f'Attention of {what} has no cache here; layers of "mha" have (of whatever number '
                "of heads)"
            )
        scaling = _with_theta(rope_scaling or {}, rope_theta)
        heads = (num_key_value_heads, num_attention_heads, qk_head_dim, dtype)
        add, d, kv_heads = builder().add_func, qk_head_dim, num_key_value_heads

        def attention(function: PrimFunc, symbol: str) -> E.Tuple:
            return E.Tuple([E.StringImm("tirx"), add(function, f"tir_attention_{symbol}")])

        rope = llama_rope_with_position_map(
            rope_theta, rope_scale, d, num_attention_heads, kv_heads, dtype, scaling, rotary_dim
        )
        sizes = [
            max_batch_size, max_total_seq_len, prefill_chunk_size, page_size,
            support_sliding_window, layer_sliding_window_size,
        ]  # fmt: skip
        args: list[Any] = [
            E.ShapeExpr(sizes), layer_partition,
            *map(E.PrimValue, (num_attention_heads, kv_heads, qk_head_dim, v_head_dim)),
            E.ShapeExpr([int(AttnKind.MHA)] * num_hidden_layers),
            *map(E.PrimValue, (int(enable_disaggregation), int(rope_mode))),
            *map(E.PrimValue, (float(rope_scale), float(rope_theta))),
            rope_ext_factors, R.zeros((), dtype),
            add(pages.append(kv_heads, d, dtype, target=target), "kv_cache_transpose_append"),
            E.Tuple([]),
            attention(
                attention_prefill_ragged(
                    kv_heads, num_attention_heads, d, d, dtype, scaling, target
                ),
                "prefill_ragged",
            ),
            attention(attention_prefill(*heads, False, scaling, target), "prefill"),
            attention(attention_decode(*heads, False, scaling, target), "decode"),
            attention(attention_prefill(*heads, True, scaling, target), "prefill_sliding_window"),
            attention(attention_decode(*heads, True, scaling, target), "decode_sliding_window"),
            attention(
                tree_attn_with_paged_kv_cache(*heads, scaling, target),
                "prefill_with_tree_mask_with_paged_kv_cache",
            ),
            attention(tree_attn(*heads, scaling, target), "prefill_with_tree_mask"),
            E.Tuple([]),
            E.Tuple([add(pages.merge_state_inplace(dtype, target), "tir_attention_merge_state")]),
            add(one_thread_each(rope, target), "tir_split_rotary"),
            add(
                pages.copy_single_page(kv_heads, page_size, d, dtype, target),
                "kv_cache_copy_single_page",
            ),
            add(
                pages.debug_get(num_hidden_layers, kv_heads, d, dtype, target),
                "kv_cache_debug_get_kv",
            ),
            add(pages.compact_copy(kv_heads, d, dtype, target), "kv_cache_compact_kv_copy"),
        ]  # fmt: skip
        call = R.call_pure_packed(
            "vm.builtin.paged_attention_kv_cache_create", *args, sinfo_args=[ObjectStructInfo()]
        )
        super().__init__(_expr=call, _name=name)


class FlashInferPagedKVCache(PagedKVCache):
    """Refused: FlashInfer is a library for GPUs of NVIDIA."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "FlashInfer is a library of other hardware, which cannot be called from here; "
            "TIRPagedKVCache has functions of TensorIR"
        )


def _with_theta(scaling: Mapping[str, Any], theta: float) -> Mapping[str, Any]:
    """YaRN asks how frequencies fall, which follows from their base."""
    if scaling.get("rope_type") != "yarn" or "inv_theta_log_scale" in scaling:
        return scaling
    return {**scaling, "inv_theta_log_scale": 1 / (2 * math.log(theta))}


# The functions under TVM's names. Those of processors and of GPUs differ in the target alone.


def _attention_prefill(
    h_kv: int, h_q: int, d: int, dtype: str, sliding_window: bool,
    rope_scaling: Mapping[str, Any], target: Target | None = None, page_size: int = 16,
    sliding_window_size: int = 1024,
) -> PrimFunc:  # fmt: skip
    return attention_prefill(h_kv, h_q, d, dtype, sliding_window, rope_scaling, target, page_size)


def _attention_prefill_cpu(
    h_kv: int, h_q: int, d: int, dtype: str, sliding_window: bool,
    rope_scaling: Mapping[str, Any], page_size: int = 16, sliding_window_size: int = 1024,
) -> PrimFunc:  # fmt: skip
    return attention_prefill(h_kv, h_q, d, dtype, sliding_window, rope_scaling, None, page_size)


def _attention_decode_cpu(
    num_kv_heads: int, num_qo_heads: int, head_dim: int, qkv_dtype: str, sliding_window: bool,
    rope_scaling: Mapping[str, Any], page_size: int = 16,
) -> PrimFunc:  # fmt: skip
    return attention_decode(
        num_kv_heads, num_qo_heads, head_dim, qkv_dtype, sliding_window, rope_scaling, None,
        page_size,
    )  # fmt: skip


def _merge_state_inplace(
    num_heads: int, head_dim: int, v_dtype: str, target: Target,
    global_symbol: str | None = None,
) -> PrimFunc:  # fmt: skip
    return pages.merge_state_inplace(v_dtype, target, global_symbol)


_attention_decode = attention_decode
_attention_prefill_ragged = attention_prefill_ragged
_attention_prefill_ragged_cpu = attention_prefill_ragged
_merge_state_inplace_cpu = pages.merge_state_inplace
_kv_cache_transpose_append = pages.append
_kv_cache_debug_get_kv = pages.debug_get
_copy_single_page = _copy_single_page_cpu = pages.copy_single_page
_compact_kv_copy = pages.compact_copy
_compact_kv_copy_cpu = partial(pages.compact_copy, target=None)
tree_attn_cpu = tree_attn
tree_attn_with_paged_kv_cache_cpu = tree_attn_with_paged_kv_cache
