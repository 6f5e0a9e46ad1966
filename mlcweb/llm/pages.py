"""What moves keys and values into the pages of a cache, within them and out of them, and what
merges the results of attention to two sets of keys, as functions of TensorIR."""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.llm.threads import Threads, one_thread_each
from mlcweb.script import tir as T
from mlcweb.tir.function import PrimFunc

if TYPE_CHECKING:
    from mlcweb.runtime.target import Target


def append(
    num_key_value_heads: int, head_dim: int, dtype: str, page_size: int = 16,
    target: Target | None = None,
) -> PrimFunc:  # fmt: skip
    """Write the keys and values of tokens into slots; no slot is -1."""
    heads, d, threads = num_key_value_heads, head_dim, Threads(target)

    @T.prim_func
    def tir_kv_cache_transpose_append(
        var_pages: T.handle, var_k_data: T.handle, var_v_data: T.handle, var_position_map: T.handle
    ):
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": True})
        tokens, num_pages = T.int64(), T.int64()
        pages = T.match_buffer(var_pages, (num_pages, 2, heads, page_size, d), dtype)
        k_data = T.match_buffer(var_k_data, (tokens, heads, d), dtype)
        v_data = T.match_buffer(var_v_data, (tokens, heads, d), dtype)
        slots = T.match_buffer(var_position_map, (tokens,), "int32")
        for block in threads.blocks(tokens * (heads * d)):
            for lane in threads.lanes():
                at = T.meta_var(block * threads.count + lane)
                token, h, f = T.meta_var((at // (heads * d), at // d % heads, at % d))
                if at < tokens * (heads * d):
                    if slots[token] != -1:
                        page, slot = T.meta_var(_slot(slots[token], page_size))
                        pages[page, 0, h, slot, f] = k_data[token, h, f]
                        pages[page, 1, h, slot, f] = v_data[token, h, f]

    return tir_kv_cache_transpose_append


def debug_get(
    num_hidden_layers: int, num_key_value_heads: int, head_dim: int, dtype: str,
    target: Target | None = None,
) -> PrimFunc:  # fmt: skip
    """Read the keys and values of a layer out of slots."""
    heads, d = num_key_value_heads, head_dim

    @T.prim_func
    def tir_kv_cache_debug_get_kv(
        var_pages: T.handle, var_position_map: T.handle, var_k_data: T.handle,
        var_v_data: T.handle, layer_id: T.int64,
    ):  # fmt: skip
        T.func_attr({"tir.noalias": True})
        tokens, page_size, num_pages = T.int64(), T.int64(), T.int64()
        pages = T.match_buffer(var_pages, (num_pages, 2, heads, page_size, d), dtype)
        slots = T.match_buffer(var_position_map, (tokens,), "int32")
        k_data = T.match_buffer(var_k_data, (num_hidden_layers, tokens, heads, d), dtype)
        v_data = T.match_buffer(var_v_data, (num_hidden_layers, tokens, heads, d), dtype)
        for token, h, f in T.grid(tokens, heads, d):
            with T.block("get"):
                vt, vh, vf = T.axis.remap("SSS", [token, h, f])
                T.reads(slots[vt], pages[0:num_pages, 0:2, vh, 0:page_size, vf])
                T.writes(k_data[layer_id, vt, vh, vf], v_data[layer_id, vt, vh, vf])
                page, slot = T.meta_var(_slot(slots[vt], page_size))
                k_data[layer_id, vt, vh, vf] = pages[page, 0, vh, slot, vf]
                v_data[layer_id, vt, vh, vf] = pages[page, 1, vh, slot, vf]

    return one_thread_each(tir_kv_cache_debug_get_kv, target)


def copy_single_page(
    num_heads: int, page_size: Any, head_dim: int, dtype: str, target: Target | None = None
) -> PrimFunc:
    """Copy the first slots of a page into another one."""
    heads, d, threads = num_heads, head_dim, Threads(target)

    @T.prim_func
    def copy_single_page(
        var_pages: T.handle, src_page_id: T.int64, tgt_page_id: T.int64, copy_length: T.int64
    ):
        T.func_attr({"tir.is_scheduled": True})
        num_pages, size = T.int64(), T.int64()
        pages = T.match_buffer(var_pages, (num_pages, 2, heads, size, d), dtype)
        for block in threads.blocks(copy_length * (heads * d)):
            for lane in threads.lanes():
                at = T.meta_var(block * threads.count + lane)
                slot, h, f = T.meta_var((at // (heads * d), at // d % heads, at % d))
                if at < copy_length * (heads * d):
                    pages[tgt_page_id, 0, h, slot, f] = pages[src_page_id, 0, h, slot, f]
                    pages[tgt_page_id, 1, h, slot, f] = pages[src_page_id, 1, h, slot, f]

    return copy_single_page


def compact_copy(
    num_heads: int, head_dim: int, dtype: str, target: Target | None = None, page_size: int = 16
) -> PrimFunc:
    """Copy slots of sequences to others, those of a sequence in order: (2, n) are where from and
    where to."""
    heads, d, threads = num_heads, head_dim, Threads(target)

    @T.prim_func
    def compact_kv_copy(
        var_pages: T.handle, var_copy_length_indptr: T.handle, var_copy_src_dst_pos: T.handle,
        batch_size: T.int32,
    ):  # fmt: skip
        T.func_attr({"tir.is_scheduled": True})
        num_pages, copies = T.int32(), T.int32()
        pages = T.match_buffer(var_pages, (num_pages, 2, heads, page_size, d), dtype)
        indptr = T.match_buffer(var_copy_length_indptr, (batch_size + 1,), "int32")
        slots = T.match_buffer(var_copy_src_dst_pos, (2, copies), "int32")
        for block in threads.blocks(batch_size * (heads * d)):
            for lane in threads.lanes():
                at = T.meta_var(block * threads.count + lane)
                b, h, f = T.meta_var((at // (heads * d), at // d % heads, at % d))
                if at < batch_size * (heads * d):
                    for i in range(indptr[b + 1] - indptr[b]):
                        old, old_slot = T.meta_var(_slot(slots[0, indptr[b] + i], page_size))
                        new, new_slot = T.meta_var(_slot(slots[1, indptr[b] + i], page_size))
                        pages[new, 0, h, new_slot, f] = pages[old, 0, h, old_slot, f]
                        pages[new, 1, h, new_slot, f] = pages[old, 1, h, old_slot, f]

    return compact_kv_copy


def merge_state_inplace(
    v_dtype: str, target: Target | None = None, global_symbol: str | None = None
) -> PrimFunc:
    """Merge results of attention to two sets of keys, and their `lse`, into the first ones."""

    threads = Threads(target)

    @T.prim_func
    def merge_state_inplace(v: T.handle, s: T.handle, v_other: T.handle, s_other: T.handle):
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": True})
        n, heads, d = T.int32(), T.int32(), T.int32()
        V = T.match_buffer(v, (n, heads, d), v_dtype)
        S = T.match_buffer(s, (n, heads), "float32")
        V_other = T.match_buffer(v_other, (n, heads, d), v_dtype)
        S_other = T.match_buffer(s_other, (n, heads), "float32")
        for block in threads.blocks(n * heads):
            for lane in threads.lanes():
                with T.block("merge"):
                    at = T.meta_var(block * threads.count + lane)
                    row, head = T.meta_var((at // heads, at % heads))
                    greatest = T.alloc_buffer((1,), "float32", scope="local")
                    weights = T.alloc_buffer((2,), "float32", scope="local")
                    total = T.alloc_buffer((1,), "float32", scope="local")
                    if at < n * heads:
                        greatest[0] = T.max(S[row, head], S_other[row, head])
                        weights[0] = T.exp2(S[row, head] - greatest[0])
                        weights[1] = T.exp2(S_other[row, head] - greatest[0])
                        total[0] = weights[0] + weights[1]
                        for f in range(d):
                            V[row, head, f] = T.Cast(
                                v_dtype,
                                T.Cast("float32", V[row, head, f]) * (weights[0] / total[0])
                                + T.Cast("float32", V_other[row, head, f])
                                * (weights[1] / total[0]),
                            )
                        S[row, head] = T.log2(total[0]) + greatest[0]

    if global_symbol is None:
        return merge_state_inplace
    return merge_state_inplace.with_attr("global_symbol", global_symbol)


def _slot(position: Any, page_size: Any) -> tuple[Any, Any]:
    """The page of a slot, and the slot within it."""
    return position // page_size, position % page_size
