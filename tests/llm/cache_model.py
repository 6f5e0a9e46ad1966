"""A paged cache beside the same in NumPy, which checks whatever the cache computes."""

from functools import cache

import numpy as np

import mlcweb as tvm
from mlcweb.llm import attention, pages
from mlcweb.llm.kv_cache import RopeMode
from mlcweb.llm.position_embedding import llama_rope_with_position_map
from mlcweb.llm.threads import one_thread_each
from mlcweb.relax_vm import ShapeTuple

LAYERS, HEADS, KV_HEADS, FEATURES, PAGE_SIZE = 2, 4, 2, 8, 16
THETA = 10000.0


def builtin(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


def device_of(target):
    on_host = target in ("llvm", "wasm", "simulated")
    return tvm.cpu() if on_host else tvm.device(target)


@cache
def functions(target):
    """The compiled functions of a cache."""
    dtype, chosen = "float32", tvm.target.Target("cuda" if target == "simulated" else target)
    heads = (KV_HEADS, HEADS, FEATURES, dtype)
    rope = llama_rope_with_position_map(THETA, 1.0, FEATURES, HEADS, KV_HEADS, dtype, {})
    all_functions = {
        "append": pages.append(KV_HEADS, FEATURES, dtype, target=chosen),
        "ragged": attention.attention_prefill_ragged(*heads[:3], FEATURES, dtype, {}, chosen),
        "prefill": attention.attention_prefill(*heads, False, {}, chosen),
        "decode": attention.attention_decode(*heads, False, {}, chosen),
        "prefill_window": attention.attention_prefill(*heads, True, {}, chosen),
        "decode_window": attention.attention_decode(*heads, True, {}, chosen),
        "tree": attention.tree_attn_with_paged_kv_cache(*heads, {}, chosen),
        "merge": pages.merge_state_inplace(dtype, chosen),
        "rope": one_thread_each(rope, chosen),
        "copy": pages.copy_single_page(KV_HEADS, PAGE_SIZE, FEATURES, dtype, chosen),
        "get": pages.debug_get(LAYERS, KV_HEADS, FEATURES, dtype, chosen),
        "compact": pages.compact_copy(KV_HEADS, FEATURES, dtype, chosen),
    }
    named = {name: f.with_attr("global_symbol", name) for name, f in all_functions.items()}
    library = tvm.build(tvm.IRModule(named), target)
    return {name: library[name] for name in named}


def create(target, mode=RopeMode.NORMAL, windows=0, batch=8, tokens=256, kinds=(0, 0), **changes):
    f = {**functions(target), **changes}

    def tir(name):
        return ("tirx", f[name])

    return builtin(
        "paged_attention_kv_cache_create",
        ShapeTuple([batch, tokens, 64, PAGE_SIZE, windows, 1024]), ShapeTuple([0, LAYERS]), HEADS,
        KV_HEADS, FEATURES, FEATURES, ShapeTuple(kinds), 0, int(mode), 1.0, THETA, 0,
        tvm.nd.empty((), "float32", device_of(target)), f["append"], (), tir("ragged"),
        tir("prefill"), tir("decode"), tir("prefill_window"), tir("decode_window"), tir("tree"),
        (), (), (f["merge"],), f["rope"], f["copy"], f["get"], f["compact"],
    )  # fmt: skip


def rope(x, positions):
    half = FEATURES // 2
    angle = np.outer(positions, THETA ** (-np.arange(half) / half))
    angle = np.concatenate([angle, angle], axis=1)[:, None]
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * np.cos(angle) + turned * np.sin(angle)


def attended(q, k, v, mask):
    k, v = (np.repeat(x, HEADS // KV_HEADS, axis=1) for x in (k, v))
    scores = np.where(mask, np.einsum("qhd,khd->hqk", q, k) * FEATURES**-0.5, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", powers / powers.sum(-1, keepdims=True), v)


class CacheModel:
    """Sequences by number, each with its keys (layer, token, head, feature) and values."""

    def __init__(self, target, mode=RopeMode.NORMAL, windows=0):
        self.device, self.mode = device_of(target), mode
        self.cache = create(target, mode, windows)
        self.keys, self.values, self.windows = {}, {}, {}
        self.rng = np.random.default_rng(0)

    def state(self, name, *args):
        builtin(f"kv_state_{name}", self.cache, *args)

    def ask(self, name, *args):
        return builtin(f"attention_kv_cache_{name}", self.cache, *args)

    def add(self, *numbers):
        for number in numbers:
            self.state("add_sequence", number)
            self.keys[number] = np.zeros((LAYERS, 0, KV_HEADS, FEATURES), "float32")
            self.values[number] = self.keys[number]

    def fork(self, parent, child, position=-1):
        self.state("fork_sequence", parent, child, position)
        length = self.keys[parent].shape[1] if position == -1 else position
        self.keys[child] = self.keys[parent][:, :length]
        self.values[child] = self.values[parent][:, :length]

    def pop(self, number, count):
        self.state("popn", number, count)
        self.keys[number] = self.keys[number][:, :-count]
        self.values[number] = self.values[number][:, :-count]

    def remove(self, number):
        self.state("remove_sequence", number)
        del self.keys[number], self.values[number]

    def window(self, number, size, sinks):
        self.ask("enable_sliding_window_for_seq", number, size, sinks)
        self.windows[number] = size, sinks

    def forward(self, batch, trees=None):
        """New tokens for sequences, `{number: count}`; `trees` have all tokens of trees."""
        counts, parents = list(batch.values()), None
        if trees is not None:
            new = [
                parent
                for number, count in batch.items()
                for parent in trees[number][len(trees[number]) - count :]
            ]
            parents = ShapeTuple(new)
        self.state("begin_forward", ShapeTuple(batch), ShapeTuple(counts), parents)
        positions, queries, tokens = [], [], []
        for number, count in batch.items():
            q, k, v = (
                self.rng.standard_normal((LAYERS, count, heads, FEATURES)).astype("float32")
                for heads in (HEADS, KV_HEADS, KV_HEADS)
            )
            tokens.append(np.concatenate([q, k, v], axis=2))
            start = self.keys[number].shape[1]
            where = np.arange(start, start + count)
            if trees is not None:
                depths = _depths(trees[number])
                where = start - (len(depths) - count) + np.array(depths[len(depths) - count :])
            if self.mode == RopeMode.NORMAL:
                k = np.stack([rope(layer, where) for layer in k]).astype("float32")
            if self.mode != RopeMode.NONE:
                q = np.stack([rope(layer, where) for layer in q])
            self.keys[number] = np.concatenate([self.keys[number], k], axis=1)
            self.values[number] = np.concatenate([self.values[number], v], axis=1)
            positions += where.tolist()
            queries.append(q)
        assert self.ask("get_query_positions").numpy().tolist() == positions
        fused = np.concatenate(tokens, axis=1)
        for layer in range(LAYERS):
            out = tvm.nd.empty((sum(counts), HEADS, FEATURES), "float32", self.device)
            qkv = tvm.nd.array(fused[layer], self.device)
            self.ask("attention_with_fused_qkv", layer, FEATURES**-0.5, qkv, out)
            expected = [
                self._expected(number, layer, q[layer], trees)
                for number, q in zip(batch, queries, strict=True)
            ]
            np.testing.assert_allclose(out.numpy(), np.concatenate(expected), rtol=1e-4, atol=1e-5)
        self.state("end_forward")
        for number in batch:
            self._slide(number)

    def _expected(self, number, layer, q, trees):
        k, v = self.keys[number][layer], self.values[number][layer]
        if self.mode == RopeMode.INLINE:
            k = rope(k, np.arange(len(k)))
        mask = np.tri(len(q), len(k), len(k) - len(q), bool)
        if trees is not None:
            size = len(trees[number])
            mask[:, len(k) - size :] = _ancestors(trees[number])[size - len(q) :]
        return attended(q, k, v, mask)

    def _slide(self, number):
        size, sinks = self.windows.get(number, (1 << 30, 0))
        length = self.keys[number].shape[1]
        if length > size:
            kept = [*range(sinks), *range(length - size + sinks, length)]
            self.keys[number] = self.keys[number][:, kept]
            self.values[number] = self.values[number][:, kept]

    def commit(self, trees, leaves):
        self.ask(
            "commit_accepted_token_tree_nodes", ShapeTuple(leaves), ShapeTuple(leaves.values())
        )
        for number, leaf in leaves.items():
            path = [] if leaf == -1 else np.flatnonzero(_ancestors(trees[number])[leaf]).tolist()
            start = self.keys[number].shape[1] - len(trees[number])
            kept = [*range(start), *(start + node for node in path)]
            self.keys[number] = self.keys[number][:, kept]
            self.values[number] = self.values[number][:, kept]

    def check(self):
        """All keys and values are there."""
        for number, keys in self.keys.items():
            shape = (LAYERS, keys.shape[1], KV_HEADS, FEATURES)
            k, v = (tvm.nd.empty(shape, "float32", self.device) for _ in range(2))
            self.ask("debug_get_kv", number, 0, shape[1], k, v)
            np.testing.assert_allclose(k.numpy(), keys, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(v.numpy(), self.values[number])
            assert self.ask("get_sequence_length", number) == shape[1]
        total = sum(keys.shape[1] for keys in self.keys.values())
        assert self.ask("get_total_sequence_length") == total


def _depths(parents):
    depths = []
    for parent in parents:
        depths.append(0 if parent == -1 else depths[parent] + 1)
    return depths


def _ancestors(parents):
    """Which tokens of a tree each one sees."""
    mask = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent != -1:
            mask[node] |= mask[parent]
    return mask
