"""The paged cache when it runs: several sequences, forks, windows and trees of tokens."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.llm.kv_cache import RopeMode
from mlcweb.relax_vm import ShapeTuple
from tests.llm.cache_model import (
    FEATURES,
    HEADS,
    KV_HEADS,
    CacheModel,
    attended,
    builtin,
    create,
    functions,
    rope,
)  # fmt: skip


@pytest.mark.parametrize(
    ("target", "mode"),
    [
        ("llvm", RopeMode.NONE), ("llvm", RopeMode.NORMAL), ("llvm", RopeMode.INLINE),
        ("wasm", RopeMode.INLINE), ("webgpu", RopeMode.NORMAL), ("opencl", RopeMode.INLINE),
    ],
)  # fmt: skip
def test_sequences_grow_fork_shrink_and_go(target, mode):
    model = CacheModel(target, mode)
    free = model.ask("get_num_available_pages")
    assert model.ask("empty")
    model.add(0, 1, 5)
    model.forward({0: 6})
    model.forward({1: 19, 5: 33})
    model.forward({0: 1, 5: 1, 1: 1})
    model.forward({5: 3, 0: 1})
    model.fork(5, 3)
    model.fork(5, 4, 20)
    model.check()
    model.forward({3: 2, 4: 1, 5: 5})  # each in a copy of the page that they share
    model.forward({3: 1, 4: 1, 5: 1})
    model.check()
    model.pop(5, 12)
    model.forward({5: 2, 3: 1})
    model.remove(3)
    model.forward({4: 1})
    model.check()
    model.state("clear")
    assert model.ask("get_num_available_pages") == free
    assert model.ask("empty")


@pytest.mark.parametrize(
    ("target", "mode"),
    [("llvm", RopeMode.NONE), ("llvm", RopeMode.INLINE), ("webgpu", RopeMode.INLINE)],
)
def test_windows_slide(target, mode):
    model = CacheModel(target, mode, windows=1)
    model.add(0, 1, 2)
    model.window(0, 12, 4)
    model.window(1, 30, 0)
    model.forward({0: 9, 1: 25, 2: 4})
    for step in range(40 if target == "llvm" else 6):
        model.forward({0: 1, 1: 1, 2: 1})
        if step % 13 == 0:
            model.check()
    model.forward({0: 7, 1: 40, 2: 3})
    model.forward({0: 1, 1: 1})
    model.check()
    # Of a window of 12 tokens and 4 that stay, no more than three pages are in use.
    assert len(model.cache.sequences[0].pages) <= 3
    with pytest.raises(ValueError, match="its first 4 stay"):
        model.state("popn", 0, 10)


@pytest.mark.parametrize("target", ["llvm", "webgpu"])
def test_trees_of_tokens(target):
    model = CacheModel(target)
    model.add(0, 1, 2)
    model.forward({0: 14, 1: 3, 2: 1})
    trees = {0: [-1, 0, 0, 1, 1, 2], 1: [-1, -1, 0]}
    model.forward({0: 6, 1: 3}, trees)
    with pytest.raises(ValueError, match="not decided"):
        model.state("begin_forward", ShapeTuple([0]), ShapeTuple([1]), None)
    trees[0] = [*trees[0], 4, 5]  # two more below
    trees[1] = [*trees[1], 2]
    model.forward({0: 2, 1: 1}, trees)
    model.check()
    model.commit(trees, {0: 6, 1: -1})
    model.check()
    model.forward({0: 1, 1: 1, 2: 1})
    model.check()


def test_threads_of_the_simulated_gpu_do_not_race():
    model = CacheModel("simulated")
    model.add(0, 1)
    model.forward({0: 3, 1: 2})
    model.fork(0, 2)
    model.forward({2: 1, 1: 1})
    trees = {1: [-1, 0, 0]}
    model.forward({1: 3}, trees)
    model.commit(trees, {1: 2})
    model.check()


@pytest.mark.parametrize("target", ["llvm", "webgpu"])
def test_attention_in_two_parts_is_merged(target):
    model = CacheModel(target)
    model.add(0, 1)
    model.forward({0: 18, 1: 2})
    rows, scale = {0: 3, 1: 5}, FEATURES**-0.5
    model.state("begin_forward", ShapeTuple(rows), ShapeTuple(rows.values()), None)
    q, k, v = (
        model.rng.standard_normal((8, heads, FEATURES)).astype("float32")
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    )
    parts = []
    for name, given in (("self_attention", (q, k, v)), ("cross_attention", (q,))):
        out = tvm.nd.empty((8, HEADS, FEATURES), "float32", model.device)
        lse = tvm.nd.empty((8, HEADS), "float32", model.device)
        arrays = [tvm.nd.array(x, model.device) for x in given]
        model.ask(name, 1, scale, *arrays, out, lse)
        parts += [out, lse]
    merged, lse = model.ask("merge_attn_output_inplace", *parts)
    assert merged is parts[0] and lse is parts[1]
    appended = tvm.nd.empty((8, HEADS, FEATURES), "float32", model.device)
    qkv = tvm.nd.array(np.concatenate([q, k, v], axis=1), model.device)
    model.ask("attention_with_fused_qkv", 1, scale, qkv, appended)
    arrays = [tvm.nd.array(x, model.device) for x in (q, k, v)]
    shared = tvm.nd.empty((8, HEADS, FEATURES), "float32", model.device)
    model.ask("attention_with_shared_kv", 1, scale, *arrays, shared)
    model.state("end_forward")
    start = 0
    for number, count in rows.items():
        own = slice(start, start + count)
        start += count
        before = model.keys[number].shape[1]
        values = np.concatenate([model.values[number][1], v[own]])
        mask = np.tri(count, len(values), before, bool)
        for result, new in (
            (merged, k[own]),  # not turned: queries and keys are taken as they are
            (shared, rope(k[own], np.arange(before, before + count))),
        ):
            keys = np.concatenate([model.keys[number][1], new])
            expected = attended(q[own], keys, values, mask)
            np.testing.assert_allclose(result.numpy()[own], expected, rtol=1e-4, atol=1e-5)


def test_what_has_no_meaning_is_refused():
    cache = create("llvm", tokens=32, batch=2)

    def state(name, *args):
        return builtin(f"kv_state_{name}", cache, *args)

    def begin(numbers, counts, parents=None):
        state("begin_forward", ShapeTuple(numbers), ShapeTuple(counts), parents)

    state("add_sequence", 0)
    state("add_sequence", 1)
    state("add_sequence", 2)
    for refused, args in (
        ('"9" cannot be found', ("remove_sequence", 9)),
        ('"0" is already', ("add_sequence", 0)),
        ("cannot be forked at 4", ("fork_sequence", 0, 7, 4)),
        ("cannot lose the last 1", ("popn", 0, 1)),
        ("call begin_forward first", ("end_forward",)),
    ):
        with pytest.raises(ValueError, match=refused):
            state(*args)
    for refused, args in (
        ("positive number", ([0], [0])),
        ("positive number", ([], [])),
        ("different sequences", ([0, 0], [1, 1])),
        ("made for 2 sequences", ([0, 1, 2], [1, 1, 1])),
        ("has a parent in a tree; 1", ([0], [2], ShapeTuple([-1]))),
        ("a token before it, or -1, not 1", ([0], [2], ShapeTuple([-1, 1]))),
        ("The KV cache is full", ([0], [64])),
    ):
        with pytest.raises(ValueError, match=refused):
            begin(*args)
    assert builtin("attention_kv_cache_get_total_sequence_length", cache) == 0
    begin([0, 1], [16, 30])
    with pytest.raises(ValueError, match="does not support sliding window"):
        builtin("attention_kv_cache_enable_sliding_window_for_seq", cache, 0, 4, 0)


def test_what_has_no_cache_is_refused():
    with pytest.raises(ValueError, match='"mla" has no cache'):
        create("llvm", kinds=(1, 1))
    with pytest.raises(ValueError, match='"mha_sliding" has no cache'):
        create("llvm", kinds=(0, 3))
    with pytest.raises(ValueError, match=r"RopeMode\.INLINE"):
        create("llvm", RopeMode.NORMAL, windows=1)
    cache = create("llvm", RopeMode.INLINE)
    builtin("kv_state_add_sequence", cache, 0)
    with pytest.raises(ValueError, match=r"RopeMode\.NORMAL"):
        builtin(
            "kv_state_begin_forward", cache, ShapeTuple([0]), ShapeTuple([2]), ShapeTuple([-1, 0])
        )
    assert functions("llvm")["merge"] is not None
