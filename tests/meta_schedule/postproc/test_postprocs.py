"""Each post-processor alone."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.postproc import (
    DisallowDynamicLoop,
    Postproc,
    RewriteLayout,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
    RewriteTensorize,
    VectorizeInnermost,
    VerifyRegisters,
    VerifyVectorized,
)
from mlcweb.runtime import Target
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from mlcweb.tir.stmt import ForKind
from tests.meta_schedule.schedule_rule.small import SUMS_IN_PRODUCT, check, module

DYNAMIC = """
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
"""


def for_wasm(postproc):
    postproc.target = Target("wasm")
    return postproc


def loops(sch, name):
    found = [sch.get(loop) for loop in sch.get_loops(sch.get_block(name))]
    return [(loop.kind, loop.extent.value) for loop in found]


def noted(name, **notes):
    sch = Schedule(module(name))
    for key, value in notes.items():
        sch.annotate(sch.get_block("root"), f"meta_schedule.{key}", value)
    return sch


def test_disallow_dynamic_loop():
    assert DisallowDynamicLoop().apply(Schedule(module("matmul")))
    assert not DisallowDynamicLoop().apply(Schedule(IRModule({"main": from_source(DYNAMIC)})))


def test_rewrite_reduction_block():
    sch = Schedule(module("softmax"))
    assert RewriteReductionBlock().apply(sch)
    names = [place.block.name_hint for place in sch.state.index.blocks.values()]
    assert {"largest_init", "largest_update", "total_init", "total_update"} <= set(names)
    check("softmax", sch.mod)


def test_a_sum_that_a_loop_repeats_is_decomposed_inside_of_it():
    sch = Schedule(from_source(SUMS_IN_PRODUCT))
    sch.compute_at("S", sch.get_loops("C")[2], preserve_unit_loops=True)
    assert RewriteReductionBlock().apply(sch)
    assert [str(sch.get(loop).extent) for loop in sch.get_loops("S_init")] == [
        "16",
        "16",
        "16",
        "1",
    ]
    a, b = np.random.default_rng(2).random((2, 16, 16), dtype="float32")
    c = tvm.nd.empty((16, 16))
    tvm.build(sch.mod, "wasm")["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a * a.sum(1, keepdims=True) @ b, 1e-5)


def test_loops_become_parallel_and_vectors():
    sch = noted("matmul_relu", parallel=4, vectorize=8, unroll_explicit=16)
    assert RewriteParallelVectorizeUnroll().apply(sch)
    assert loops(sch, "C") == [(ForKind.PARALLEL, 24), (ForKind.VECTORIZED, 8)]
    assert loops(sch, "Y")[0] == (ForKind.PARALLEL, 24)
    outermost = sch.get(sch.get_loops(sch.get_block("Y"))[0])
    assert outermost.annotations["pragma_auto_unroll_max_step"] == 16
    assert outermost.annotations["pragma_unroll_explicit"] == 1
    assert not sch.get(sch.get_block("root")).annotations
    check("matmul_relu", sch.mod)


def test_nothing_without_notes():
    sch = noted("matmul_relu")
    before = sch.mod
    assert RewriteParallelVectorizeUnroll().apply(sch)
    assert sch.mod is before


@pytest.mark.parametrize(("lanes", "made"), [(4, 4), (16, 4)])
def test_vectorize_innermost(lanes, made):
    """Rows of ten elements are fused for vectors to divide them."""
    sch = noted("chain", lanes=lanes)
    assert for_wasm(VectorizeInnermost()).apply(sch)
    assert loops(sch, "C") == [(ForKind.SERIAL, 60 // made), (ForKind.VECTORIZED, made)]
    check("chain", sch.mod)


def test_vectorize_innermost_leaves_reductions():
    sch = Schedule(module("matmul"))
    before = sch.mod
    assert for_wasm(VectorizeInnermost()).apply(sch)
    assert sch.mod is before


def test_verify_vectorized():
    sch = Schedule(module("chain"))
    assert not VerifyVectorized().apply(sch)
    assert for_wasm(VectorizeInnermost()).apply(sch)
    assert VerifyVectorized().apply(sch)


@pytest.mark.parametrize(("rows", "fits"), [(3, True), (4, False)])
def test_verify_registers(rows, fits):
    sch = Schedule(module("matmul"))
    block = sch.get_block("C")
    sch.annotate(block, "meta_schedule.tiling_structure", "SSRRS")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(i, [None, rows])
    sch.reorder(outer, k, inner, j)
    sch.unroll(inner)
    sch.vectorize(j)
    assert for_wasm(VerifyRegisters()).apply(sch) is fits


def test_rewrite_tensorize_refuses_what_does_not_match():
    sch = Schedule(module("matmul"))
    sch.annotate(sch.get_block("C"), "meta_schedule.auto_tensorize", "no such intrinsic")
    assert not RewriteTensorize().apply(sch)
    assert RewriteTensorize().apply(Schedule(module("matmul")))


def test_defaults_by_name():
    assert [type(each).__name__ for each in Postproc.create("llvm")] == [
        "DisallowDynamicLoop", "RewriteParallelVectorizeUnroll", "RewriteReductionBlock",
        "RewriteLayout",
    ]  # fmt: skip


WEIGHTS = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), W: T.Buffer((16, 16), "float32"),
         C: T.Buffer((16, 16), "float32")):
    T.func_attr({"layout_free_buffers": [1], "tir.noalias": True})
    for i0, j, k0, i1, k1 in T.grid(4, 16, 4, 4, 4):
        with T.block("C"):
            vi = T.axis.spatial(16, i0 * 4 + i1)
            vj = T.axis.spatial(16, j)
            vk = T.axis.reduce(16, k0 * 4 + k1)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vj, vk]
"""


def test_weights_are_laid_out_as_they_are_read():
    sch = Schedule(IRModule({"main": from_source(WEIGHTS)}))
    sch.enter_postproc()
    assert RewriteLayout().apply(sch)
    # As TVM does: the copy is marked, and has the digits of k that the loops split.
    text = sch.mod.script()
    assert "W_global = T.alloc_buffer((16, 4, 4))" in text
    assert "W_global[v0, v1 // 4, v1 % 4] = W[v0, v1]" in text
    assert 'T.block_attr({"meta_schedule.layout_rewrite_preproc": True})' in text
    assert "A[vi, vk] * W_global[vj, vk // 4, vk % 4]" in text


def test_a_copy_of_weights_takes_their_layout():
    sch = Schedule(IRModule({"main": from_source(WEIGHTS)}))
    sch.cache_read(sch.get_block("C"), 1, "local")
    sch.enter_postproc()
    assert RewriteLayout().apply(sch)
    text = sch.mod.script()
    assert "W_local[v0, v1 // 4, v1 % 4] = W_global[v0, v1 // 4, v1 % 4]" in text
    assert "A[vi, vk] * W_local[vj, vk // 4, vk % 4]" in text


def test_functions_that_free_no_layout_stay():
    sch = Schedule(module("matmul"))
    before = sch.mod
    assert RewriteLayout().apply(sch)
    assert sch.mod is before
