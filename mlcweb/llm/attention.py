"""Attention to the keys and values of a cache, as functions of TensorIR.

For every token that asks and every head, one pass over the keys: the running maximum of the scores,
the sum of their powers of two, and the weighted values so far, all of which are scaled whenever the
maximum grows. So scores need no memory. Beside the result there is `lse`, the logarithm (of base
two) of the sum, by which results of several sets of keys are merged.

Tokens of several sequences lie one after the other; those of sequence b are `indptr[b]` to
`indptr[b + 1]`. A cache lies in pages; `page_values[page_indptr[b] : page_indptr[b + 1]]` are those
of a sequence.
"""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mlcweb.llm.rope_frequency import rotated
from mlcweb.llm.threads import one_thread_each
from mlcweb.script import tir as T
from mlcweb.tir.function import PrimFunc

if TYPE_CHECKING:
    from mlcweb.runtime.target import Target

LEAST = -5e4
"""Less than any score, and the `lse` of no keys."""

LOG2_E = math.log2(math.e)


@T.macro
def _attend(output, lse, row, head, query, at, count, place, key, value, visible, scale, d_qk, d_v):
    """`count` keys; `place(j)` are two indices by which `key` and `value` find the key j, and
    `visible(j)` is whether the row sees it. `at` has room for the indices."""
    asked = T.alloc_buffer((d_qk,), "float32", scope="local")
    weighted = T.alloc_buffer((d_v,), "float32", scope="local")
    score = T.alloc_buffer((1,), "float32", scope="local")
    maximum = T.alloc_buffer((1,), "float32", scope="local")
    total = T.alloc_buffer((1,), "float32", scope="local")
    rescale = T.alloc_buffer((1,), "float32", scope="local")
    maximum[0] = T.float32(LEAST)
    total[0] = T.float32(1)
    for f in range(d_v):
        weighted[f] = T.float32(0)
    for f in range(d_qk):
        asked[f] = T.Cast("float32", query(f))
    for j in range(count):
        if visible(j):
            at[0] = place(j)[0]
            at[1] = place(j)[1]
            score[0] = T.float32(0)
            for f in range(d_qk):
                score[0] = score[0] + asked[f] * T.Cast("float32", key(j, f))
            score[0] = score[0] * (scale * T.float32(LOG2_E))
            rescale[0] = T.exp2(maximum[0] - T.max(maximum[0], score[0]))
            maximum[0] = T.max(maximum[0], score[0])
            score[0] = T.exp2(score[0] - maximum[0])
            total[0] = total[0] * rescale[0] + score[0]
            for f in range(d_v):
                weighted[f] = weighted[f] * rescale[0] + score[0] * T.Cast("float32", value(f))
    for f in range(d_v):
        output[row, head, f] = T.Cast(output.dtype, weighted[f] / total[0])
    lse[row, head] = maximum[0] + T.log2(total[0])


@T.macro
def _find_sequence(sequence, indptr, batch_size, row):
    """The sequence that a row of tokens belongs to."""
    sequence[0] = 0
    for b in range(batch_size):
        if indptr[b + 1] <= row:
            sequence[0] = b + 1


class Rope:
    """Features that are turned while attention reads them, where `mode` says so."""

    def __init__(
        self, mode: Any, scale: Any, theta: Any, features: int, scaling: Mapping[str, Any],
        dtype: str,
    ) -> None:  # fmt: skip
        self.mode, self.scale, self.theta = mode, scale, theta
        self.features, self.scaling, self.dtype = features, scaling, dtype

    def turned(self, element: Callable[[Any], Any], position: Any, feature: Any) -> Any:
        """A feature of a token at a position; `element(feature)` is it before."""
        angle = T.Cast("float32", position) * self.scale
        value = rotated(element, angle, feature, self.features, self.theta, self.scaling, "float32")
        return T.if_then_else(self.mode == 1, T.Cast(self.dtype, value), element(feature))

    def query(self, q: Any, row: Any, head: Any, position: Any) -> Callable[[Any], Any]:
        return lambda f: self.turned(lambda g: q[row, head, g], position, f)


class Pages:
    """The keys of a sequence `b` in pages. Of a window, `info` has a row each for how much of the
    last page is used, where the window begins, and how many first tokens stay."""

    def __init__(
        self, pages: Any, indptr: Any, page_values: Any, info: Any, b: Any, size: int, window: bool
    ) -> None:
        self.pages, self.indptr, self.page_values, self.info = pages, indptr, page_values, info
        self.b, self.size, self.window = b, size, window

    def count(self) -> Any:
        b, info = self.b, self.info
        pages = self.indptr[b + 1] - self.indptr[b]
        last = info[0, b] - info[1, b] + info[2, b] if self.window else info[b]
        return T.if_then_else(pages > 0, (pages - 1) * self.size + last, 0)

    def place(self, j: Any) -> tuple[Any, Any]:
        """The page and the slot of the key j."""
        slot = j
        if self.window:
            sinks = self.info[2, self.b]
            slot = T.if_then_else(j < sinks, j, j - sinks + self.info[1, self.b])
        return self.page_values[self.indptr[self.b] + slot // self.size], slot % self.size

    def key(self, at: Any, head: Any, rope: Rope, offset: Any) -> Callable[[Any, Any], Any]:
        def element(feature: Any) -> Any:
            return self.pages[at[0], 0, head, at[1], feature]

        return lambda j, f: rope.turned(element, offset + j, f)

    def value(self, at: Any, head: Any) -> Callable[[Any], Any]:
        return lambda f: self.pages[at[0], 1, head, at[1], f]


class Ragged:
    """The keys of a sequence `b` among those of all sequences, one after the other."""

    def __init__(self, k: Any, v: Any, indptr: Any, b: Any) -> None:
        self.k, self.v, self.indptr, self.b = k, v, indptr, b

    def count(self) -> Any:
        return self.indptr[self.b + 1] - self.indptr[self.b]

    def place(self, j: Any) -> tuple[Any, Any]:
        return self.indptr[self.b] + j, 0

    def key(
        self, at: Any, head: Any, rope: Rope, position: Callable[[Any], Any]
    ) -> Callable[[Any, Any], Any]:
        def element(feature: Any) -> Any:
            return self.k[at[0], head, feature]

        return lambda j, f: rope.turned(element, position(j), f)

    def value(self, at: Any, head: Any) -> Callable[[Any], Any]:
        return lambda f: self.v[at[0], head, f]


def _after(offset: Any) -> Callable[[Any], Any]:
    """The position of the key j, where those of the first is given."""
    return lambda j: offset + j


def _same(positions: Any, at: Any) -> Callable[[Any], Any]:
    """The position of the key at hand, where keys are of the tokens that ask."""
    return lambda j: positions[at[0]]


def _up_to(causal: Any, row: Any, keys: Any, rows: Any) -> Callable[[Any], Any]:
    """Which keys the last `rows` tokens see, of which this is one: all, or none after itself."""
    return lambda j: T.if_then_else(causal > 0, j < keys - rows + row + 1, True)


def _in_tree(
    indptr: Any, order: Any, b: Any, row: Any, keys: Any, rows: Any
) -> Callable[[Any], Any]:
    """The keys before a tree of tokens, and of the tree the token itself and what it descends
    from. `order` has for each token of the tree when a walk comes to it, and when it leaves what is
    below."""

    def sees(j: Any) -> Any:
        start = indptr[b]
        size = indptr[b + 1] - start
        asking = order[start + row + size - rows, 0]
        node = start + T.max(j - (keys - size), 0)
        below = T.And(asking >= order[node, 0], asking < order[node, 1])
        return T.Or(j < keys - size, below)

    return sees


def attention_prefill(
    h_kv: int, h_q: int, d: int, dtype: str, sliding_window: bool,
    rope_scaling: Mapping[str, Any], target: Target | None = None, page_size: int = 16,
) -> PrimFunc:  # fmt: skip
    """Of several tokens of each sequence to the keys in its pages."""
    group = h_q // h_kv

    @T.prim_func
    def batch_prefill_paged_kv(
        var_q: T.handle, var_q_indptr: T.handle, var_pages: T.handle, var_page_indptr: T.handle,
        var_page_values: T.handle, var_length_info: T.handle, var_k_rope_pos_offset: T.handle,
        var_q_rope_position: T.handle, var_output: T.handle, var_lse: T.handle, causal: T.int32,
        rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32,
    ):  # fmt: skip
        T.func_attr({"tir.noalias": True})
        total_len, batch_size, num_pages, used = T.int32(), T.int32(), T.int32(), T.int32()
        q = T.match_buffer(var_q, (total_len, h_q, d), dtype)
        q_indptr = T.match_buffer(var_q_indptr, (batch_size + 1,), "int32")
        pages = T.match_buffer(var_pages, (num_pages, 2, h_kv, page_size, d), dtype)
        page_indptr = T.match_buffer(var_page_indptr, (batch_size + 1,), "int32")
        page_values = T.match_buffer(var_page_values, (used,), "int32")
        info = T.match_buffer(var_length_info, lengths(batch_size, sliding_window), "int32")
        k_offset = T.match_buffer(var_k_rope_pos_offset, (batch_size,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (total_len,), "int32")
        output = T.match_buffer(var_output, (total_len, h_q, d), dtype)
        lse = T.match_buffer(var_lse, (total_len, h_q), "float32")
        for row, head in T.grid(total_len, h_q):
            with T.block("attention"):
                vr, vh = T.axis.remap("SS", [row, head])
                T.reads(
                    q[vr, vh, 0:d], q_position[vr], q_indptr[0 : batch_size + 1],
                    pages[0:num_pages, 0:2, vh // group, 0:page_size, 0:d],
                    page_indptr[0 : batch_size + 1], page_values[0:used], whole(info),
                    k_offset[0:batch_size],
                )  # fmt: skip
                T.writes(output[vr, vh, 0:d], lse[vr, vh])
                b = T.alloc_buffer((1,), "int32", scope="local")
                at = T.alloc_buffer((2,), "int32", scope="local")
                keys = T.meta_var(
                    Pages(pages, page_indptr, page_values, info, b[0], page_size, sliding_window)
                )
                rope = T.meta_var(Rope(rotary_mode, rope_scale, rope_theta, d, rope_scaling, dtype))
                _find_sequence(b, q_indptr, batch_size, vr)
                _attend(
                    output, lse, vr, vh, rope.query(q, vr, vh, q_position[vr]), at, keys.count(),
                    keys.place, keys.key(at, vh // group, rope, k_offset[b[0]]),
                    keys.value(at, vh // group),
                    _up_to(
                        causal, vr - q_indptr[b[0]], keys.count(),
                        q_indptr[b[0] + 1] - q_indptr[b[0]],
                    ),
                    sm_scale, d, d,
                )  # fmt: skip

    return _named(one_thread_each(batch_prefill_paged_kv, target), sliding_window)


def attention_decode(
    h_kv: int, h_q: int, d: int, dtype: str, sliding_window: bool,
    rope_scaling: Mapping[str, Any], target: Target | None = None, page_size: int = 16,
) -> PrimFunc:  # fmt: skip
    """Of one token of each sequence to the keys in its pages."""
    group = h_q // h_kv

    @T.prim_func
    def batch_decode_paged_kv(
        var_q: T.handle, var_pages: T.handle, var_page_indptr: T.handle,
        var_page_values: T.handle, var_length_info: T.handle, var_k_rope_pos_offset: T.handle,
        var_q_rope_position: T.handle, var_output: T.handle, var_lse: T.handle,
        rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32,
    ):  # fmt: skip
        T.func_attr({"tir.noalias": True})
        batch_size, num_pages, used = T.int32(), T.int32(), T.int32()
        q = T.match_buffer(var_q, (batch_size, h_q, d), dtype)
        pages = T.match_buffer(var_pages, (num_pages, 2, h_kv, page_size, d), dtype)
        page_indptr = T.match_buffer(var_page_indptr, (batch_size + 1,), "int32")
        page_values = T.match_buffer(var_page_values, (used,), "int32")
        info = T.match_buffer(var_length_info, lengths(batch_size, sliding_window), "int32")
        k_offset = T.match_buffer(var_k_rope_pos_offset, (batch_size,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (batch_size,), "int32")
        output = T.match_buffer(var_output, (batch_size, h_q, d), dtype)
        lse = T.match_buffer(var_lse, (batch_size, h_q), "float32")
        for row, head in T.grid(batch_size, h_q):
            with T.block("attention"):
                vr, vh = T.axis.remap("SS", [row, head])
                T.reads(
                    q[vr, vh, 0:d], q_position[vr], k_offset[vr], whole(info),
                    pages[0:num_pages, 0:2, vh // group, 0:page_size, 0:d],
                    page_indptr[vr : vr + 2], page_values[0:used],
                )  # fmt: skip
                T.writes(output[vr, vh, 0:d], lse[vr, vh])
                at = T.alloc_buffer((2,), "int32", scope="local")
                keys = T.meta_var(
                    Pages(pages, page_indptr, page_values, info, vr, page_size, sliding_window)
                )
                rope = T.meta_var(Rope(rotary_mode, rope_scale, rope_theta, d, rope_scaling, dtype))
                _attend(
                    output, lse, vr, vh, rope.query(q, vr, vh, q_position[vr]), at, keys.count(),
                    keys.place, keys.key(at, vh // group, rope, k_offset[vr]),
                    keys.value(at, vh // group), _all, sm_scale, d, d,
                )  # fmt: skip

    return _named(one_thread_each(batch_decode_paged_kv, target), sliding_window)


def attention_prefill_ragged(
    h_kv: int, h_q: int, d_qk: int, d_v: int, dtype: str, rope_scaling: Mapping[str, Any],
    target: Target | None = None,
) -> PrimFunc:  # fmt: skip
    """Of the tokens of each sequence to keys that lie one after the other, in no pages."""
    group = h_q // h_kv

    @T.prim_func
    def batch_prefill_ragged_kv(
        var_q: T.handle, var_q_indptr: T.handle, var_k: T.handle, var_v: T.handle,
        var_kv_indptr: T.handle, var_q_rope_position: T.handle, var_k_rope_pos_offset: T.handle,
        var_output: T.handle, var_lse: T.handle, causal: T.int32, rotary_mode: T.int32,
        rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32,
    ):  # fmt: skip
        T.func_attr({"tir.noalias": True})
        total_len, kv_len, batch_size = T.int32(), T.int32(), T.int32()
        q = T.match_buffer(var_q, (total_len, h_q, d_qk), dtype)
        q_indptr = T.match_buffer(var_q_indptr, (batch_size + 1,), "int32")
        k = T.match_buffer(var_k, (kv_len, h_kv, d_qk), dtype)
        v = T.match_buffer(var_v, (kv_len, h_kv, d_v), dtype)
        kv_indptr = T.match_buffer(var_kv_indptr, (batch_size + 1,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (total_len,), "int32")
        k_offset = T.match_buffer(var_k_rope_pos_offset, (batch_size,), "int32")
        output = T.match_buffer(var_output, (total_len, h_q, d_v), dtype)
        lse = T.match_buffer(var_lse, (total_len, h_q), "float32")
        for row, head in T.grid(total_len, h_q):
            with T.block("attention"):
                vr, vh = T.axis.remap("SS", [row, head])
                T.reads(
                    q[vr, vh, 0:d_qk], q_position[vr], q_indptr[0 : batch_size + 1],
                    k[0:kv_len, vh // group, 0:d_qk], v[0:kv_len, vh // group, 0:d_v],
                    kv_indptr[0 : batch_size + 1], k_offset[0:batch_size],
                )  # fmt: skip
                T.writes(output[vr, vh, 0:d_v], lse[vr, vh])
                b = T.alloc_buffer((1,), "int32", scope="local")
                at = T.alloc_buffer((2,), "int32", scope="local")
                keys = T.meta_var(Ragged(k, v, kv_indptr, b[0]))
                rope = T.meta_var(
                    Rope(rotary_mode, rope_scale, rope_theta, d_qk, rope_scaling, dtype)
                )
                _find_sequence(b, q_indptr, batch_size, vr)
                _attend(
                    output, lse, vr, vh, rope.query(q, vr, vh, q_position[vr]), at, keys.count(),
                    keys.place, keys.key(at, vh // group, rope, _after(k_offset[b[0]])),
                    keys.value(at, vh // group),
                    _up_to(
                        causal, vr - q_indptr[b[0]], keys.count(),
                        q_indptr[b[0] + 1] - q_indptr[b[0]],
                    ),
                    sm_scale, d_qk, d_v,
                )  # fmt: skip

    return one_thread_each(batch_prefill_ragged_kv, target)


def tree_attn(
    h_kv: int, h_q: int, d: int, dtype: str, rope_scaling: Mapping[str, Any],
    target: Target | None = None,
) -> PrimFunc:  # fmt: skip
    """Of trees of tokens to themselves: each sees those that it descends from."""
    group = h_q // h_kv

    @T.prim_func
    def batch_tree_attn(
        var_q: T.handle, var_q_indptr: T.handle, var_k: T.handle, var_v: T.handle,
        var_kv_indptr: T.handle, var_q_rope_position: T.handle, var_mn_indptr: T.handle,
        var_mask: T.handle, var_output: T.handle, var_lse: T.handle, rotary_mode: T.int32,
        rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32,
    ):  # fmt: skip
        T.func_attr({"tir.noalias": True})
        total_len, kv_len, batch_size, nodes = T.int32(), T.int32(), T.int32(), T.int32()
        q = T.match_buffer(var_q, (total_len, h_q, d), dtype)
        q_indptr = T.match_buffer(var_q_indptr, (batch_size + 1,), "int32")
        k = T.match_buffer(var_k, (kv_len, h_kv, d), dtype)
        v = T.match_buffer(var_v, (kv_len, h_kv, d), dtype)
        kv_indptr = T.match_buffer(var_kv_indptr, (batch_size + 1,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (total_len,), "int32")
        tree_indptr = T.match_buffer(var_mn_indptr, (batch_size + 1,), "int32")
        order = T.match_buffer(var_mask, (nodes, 2), "int32")
        output = T.match_buffer(var_output, (total_len, h_q, d), dtype)
        lse = T.match_buffer(var_lse, (total_len, h_q), "float32")
        for row, head in T.grid(total_len, h_q):
            with T.block("attention"):
                vr, vh = T.axis.remap("SS", [row, head])
                T.reads(
                    q[vr, vh, 0:d], q_position[0:total_len], q_indptr[0 : batch_size + 1],
                    k[0:kv_len, vh // group, 0:d], v[0:kv_len, vh // group, 0:d],
                    kv_indptr[0 : batch_size + 1], tree_indptr[0 : batch_size + 1],
                    order[0:nodes, 0:2],
                )  # fmt: skip
                T.writes(output[vr, vh, 0:d], lse[vr, vh])
                b = T.alloc_buffer((1,), "int32", scope="local")
                at = T.alloc_buffer((2,), "int32", scope="local")
                keys = T.meta_var(Ragged(k, v, kv_indptr, b[0]))
                rope = T.meta_var(Rope(rotary_mode, rope_scale, rope_theta, d, rope_scaling, dtype))
                _find_sequence(b, q_indptr, batch_size, vr)
                _attend(
                    output, lse, vr, vh, rope.query(q, vr, vh, q_position[vr]), at, keys.count(),
                    keys.place, keys.key(at, vh // group, rope, _same(q_position, at)),
                    keys.value(at, vh // group),
                    _in_tree(
                        tree_indptr, order, b[0], vr - q_indptr[b[0]], keys.count(),
                        q_indptr[b[0] + 1] - q_indptr[b[0]],
                    ),
                    sm_scale, d, d,
                )  # fmt: skip

    return one_thread_each(batch_tree_attn, target)


def tree_attn_with_paged_kv_cache(
    h_kv: int, h_q: int, d: int, dtype: str, rope_scaling: Mapping[str, Any],
    target: Target | None = None, page_size: int = 16,
) -> PrimFunc:  # fmt: skip
    """Of the tokens of trees to the keys in their pages, the last of which are of the trees."""
    group = h_q // h_kv

    @T.prim_func
    def tree_attn_paged_kv(
        var_q: T.handle, var_q_indptr: T.handle, var_pages: T.handle, var_page_indptr: T.handle,
        var_page_values: T.handle, var_length_info: T.handle, var_k_rope_pos_offset: T.handle,
        var_q_rope_position: T.handle, var_output: T.handle, var_lse: T.handle,
        rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32,
        var_tree_indptr: T.handle, var_tree_order: T.handle,
    ):  # fmt: skip
        T.func_attr({"tir.noalias": True})
        total_len, batch_size, num_pages = T.int32(), T.int32(), T.int32()
        used, nodes = T.int32(), T.int32()
        q = T.match_buffer(var_q, (total_len, h_q, d), dtype)
        q_indptr = T.match_buffer(var_q_indptr, (batch_size + 1,), "int32")
        pages = T.match_buffer(var_pages, (num_pages, 2, h_kv, page_size, d), dtype)
        page_indptr = T.match_buffer(var_page_indptr, (batch_size + 1,), "int32")
        page_values = T.match_buffer(var_page_values, (used,), "int32")
        info = T.match_buffer(var_length_info, (batch_size,), "int32")
        k_offset = T.match_buffer(var_k_rope_pos_offset, (batch_size,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (total_len,), "int32")
        output = T.match_buffer(var_output, (total_len, h_q, d), dtype)
        lse = T.match_buffer(var_lse, (total_len, h_q), "float32")
        tree_indptr = T.match_buffer(var_tree_indptr, (batch_size + 1,), "int32")
        order = T.match_buffer(var_tree_order, (nodes, 2), "int32")
        for row, head in T.grid(total_len, h_q):
            with T.block("attention"):
                vr, vh = T.axis.remap("SS", [row, head])
                T.reads(
                    q[vr, vh, 0:d], q_position[vr], q_indptr[0 : batch_size + 1],
                    pages[0:num_pages, 0:2, vh // group, 0:page_size, 0:d],
                    page_indptr[0 : batch_size + 1], page_values[0:used], info[0:batch_size],
                    k_offset[0:batch_size], tree_indptr[0 : batch_size + 1], order[0:nodes, 0:2],
                )  # fmt: skip
                T.writes(output[vr, vh, 0:d], lse[vr, vh])
                b = T.alloc_buffer((1,), "int32", scope="local")
                at = T.alloc_buffer((2,), "int32", scope="local")
                keys = T.meta_var(
                    Pages(pages, page_indptr, page_values, info, b[0], page_size, False)
                )
                rope = T.meta_var(Rope(rotary_mode, rope_scale, rope_theta, d, rope_scaling, dtype))
                _find_sequence(b, q_indptr, batch_size, vr)
                _attend(
                    output, lse, vr, vh, rope.query(q, vr, vh, q_position[vr]), at, keys.count(),
                    keys.place, keys.key(at, vh // group, rope, k_offset[b[0]]),
                    keys.value(at, vh // group),
                    _in_tree(
                        tree_indptr, order, b[0], vr - q_indptr[b[0]], keys.count(),
                        q_indptr[b[0] + 1] - q_indptr[b[0]],
                    ),
                    sm_scale, d, d,
                )  # fmt: skip

    return one_thread_each(tree_attn_paged_kv, target)


def lengths(batch_size: Any, window: bool) -> tuple[Any, ...]:
    """The shape of what is said of the lengths of sequences."""
    return (3, batch_size) if window else (batch_size,)


def _named(func: PrimFunc, window: bool) -> PrimFunc:
    """Both forms of a function may be in one module."""
    name = func.attrs["global_symbol"]
    return func.with_attr("global_symbol", f"{name}_sliding_window") if window else func


def whole(buffer: Any) -> Any:
    """All of a buffer."""
    return buffer[tuple(slice(0, extent) for extent in buffer.shape)]


def _all(j: Any) -> bool:
    return True
