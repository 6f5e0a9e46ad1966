"""Software pipelines: what the pass makes of annotated loops, as TVM 0.27 does, what it refuses,
and that the loops compute what they did before, on all targets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.analysis.verify import VerifyEachPass
from mlcweb.codegen.simulated.simulation import PendingCopy
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import rewrite_nodes, walk
from mlcweb.lower.pipeline import lower, record_lowering
from mlcweb.lower.pipeline_annotations import PipelineError
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import stmt as S
from tests.lower.random_pipelines import random_pipeline, reference

CASES = json.loads((Path(__file__).parent / "software_pipelines.json").read_text())
"""Programs, and what TVM 0.27 makes of them by InjectSoftwarePipeline and StmtSimplify."""


def injected(func):
    return tvm.tir.transform.InjectSoftwarePipeline()(tvm.IRModule({"main": func}))["main"]


def bare(func):
    """A function without what its blocks declare: TVM widens regions of versions to all of them."""
    func = tvm.tir.transform.StmtSimplify()(tvm.IRModule({"main": func}))["main"]
    strip = {"reads": (), "writes": (), "annotations": {}}
    return func.with_body(rewrite_nodes(func.body, S.Block, lambda block: replace(block, **strip)))


def case(name):
    return ("\n".join(CASES[name][key]) for key in ("program", "answer"))


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"inter_async"}))
def test_the_pass_gives_tvms_answer(name):
    program, answer = case(name)
    # Here no loop has fewer than no iterations.
    answer = re.sub(r"range\((k - \d)\)", r"range(T.max(\1, 0))", answer)
    made = injected(from_source(program))
    tvm.ir.assert_structural_equal(bare(made), bare(from_source(answer)))


def test_copies_are_grouped_alike_in_all_parts():
    """TVM commits two copies of an iteration together in the prologue, and one by one in the body,
    where it counts as if they had always been so: its reader waits for too little."""
    program, answer = case("inter_async")
    inputs = [np.arange(n, 256 + n, dtype="float32").reshape(16, 16) for n in range(3)]
    arrays = [tvm.nd.array(each) for each in inputs]
    tvm.build(from_source(program), target="simulated")(*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), inputs[0] + inputs[1])
    with pytest.raises(PendingCopy, match="has not waited"):
        tvm.build(from_source(answer), target="simulated")(*arrays)


def two_stages(stage=(0, 1), order=(0, 1), extent=16, extra="", own=True):
    """D = A * 2 + 1 by way of S, which the loop allocates if it is its own."""
    allocate = 'S = T.alloc_buffer((16, 1), "float32", scope="shared")'
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((16, {extent}), "float32"), D: T.Buffer((16, {extent}), "float32")):
    {"" if own else allocate}
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial({extent}, annotations={{
            "software_pipeline_stage": {list(stage)},
            "software_pipeline_order": {list(order)}, {extra}
        }}):
            with T.block("compute"):
                T.reads(A[tx, i])
                T.writes(D[tx, i])
                {allocate if own else ""}
                with T.block("load"):
                    T.reads(A[tx, i])
                    T.writes(S[tx, 0])
                    S[tx, 0] = A[tx, i] * T.float32(2)
                with T.block("store"):
                    T.reads(S[tx, 0])
                    T.writes(D[tx, i])
                    D[tx, i] = S[tx, 0] + T.float32(1)
"""
    )


def versions(func):
    """The extents of the buffers that a function allocates, by name."""
    return {
        buffer.name: [int(extent) for extent in buffer.shape]
        for block in walk(func.body)
        if isinstance(block, S.Block)
        for buffer in block.alloc_buffers
    }


@pytest.mark.parametrize(
    ("stage", "order", "extent", "shape"),
    [
        ([0, 0], [0, 1], 16, [16, 1]),
        ([0, 1], [0, 1], 16, [2, 16, 1]),
        ([0, 1], [1, 0], 16, [16, 1]),  # the old value is used before the new one is stored
        ([0, 1], [0, 1], 1, [16, 1]),  # there is no other iteration
        ([1, 3], [1, 0], 16, [3, 16, 1]),
    ],
)
def test_a_buffer_has_as_many_versions_as_iterations_use_it_at_once(stage, order, extent, shape):
    assert versions(injected(two_stages(stage, order, extent)))["S"] == shape


def test_a_double_buffer_has_two_versions_where_one_would_do():
    func = two_stages(order=(1, 0))
    sch = tvm.tir.Schedule(func)
    sch.annotate(sch.get_block("load"), "double_buffer_scope", 0)
    assert versions(injected(sch.mod["main"]))["S"] == [2, 16, 1]
    sch.unannotate(sch.get_block("load"), "double_buffer_scope")
    sch.annotate(sch.get_block("load"), "double_buffer_scope", 1)
    with pytest.raises(ValueError, match='"load" is 1, and the block writes 1 buffers'):
        injected(sch.mod["main"])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (two_stages(stage=[0]), r"has 1 numbers, \[0\], and the body has 2 statements"),
        (two_stages(order=[0, 1, 2]), "Give one number for each"),
        (two_stages(order=[1, 1]), r"permutation of \[0, 1\]"),
        (two_stages(order=[0, 2]), r"permutation of \[0, 1\]"),
        (two_stages(stage=[-1, 0]), "a list of integers from 0 on"),
        (two_stages(stage=[1, 0]), 'statement 1 reads elements of "S" in the same iteration'),
        (two_stages(stage=[0, 0], order=[1, 0]), "a later stage, or a later position"),
    ],
)
def test_annotations_that_do_not_fit_are_refused(program, reason):
    with pytest.raises(ValueError, match=reason) as raised:
        injected(program)
    assert isinstance(raised.value, PipelineError) and raised.value.span is not None
    with pytest.raises(PipelineError, match=reason):
        lower(program)


def test_a_buffer_that_the_loop_does_not_allocate_has_no_versions():
    func = two_stages(own=False)
    with pytest.raises(PipelineError, match=r'"S" in the next iteration .*, for versions'):
        injected(func)
    # Lowering allocates it in the loop, each iteration of which reads what it has written itself.
    assert "S = T.decl_buffer((32,)" in lower(func).script()


def test_both_annotations_are_needed():
    sch = tvm.tir.Schedule(two_stages())
    loop = sch.get_loops("compute")[1]
    sch.unannotate(loop, "software_pipeline_order")
    with pytest.raises(ValueError, match=r'"i" is a software pipeline without ".*order"'):
        injected(sch.mod["main"])


def test_a_pipeline_has_several_statements_in_a_serial_loop():
    @T.prim_func
    def one(A: T.Buffer((8,), "float32")):
        for i in T.serial(
            8, annotations={"software_pipeline_stage": [0], "software_pipeline_order": [0]}
        ):
            A[i] = A[i] + T.float32(1)

    with pytest.raises(ValueError, match="pipeline of one statement"):
        injected(one)
    text = two_stages().script().replace("T.serial(16,", "T.parallel(16,")
    with pytest.raises(ValueError, match="and parallel; pipeline a serial loop"):
        injected(from_source(text))


def matmul(stage, order, asynchronous=(), nested=False, local_stage=False, double=False):
    """A product of matrices by threads: copies of tiles, and what is computed with them."""

    @T.prim_func
    def main(
        A: T.Buffer((32, 64), "float32"),
        B: T.Buffer((64, 32), "float32"),
        C: T.Buffer((32, 32), "float32"),
    ):
        for i, j, k in T.grid(32, 32, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tvm.tir.Schedule(main)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    (i0, i1), (j0, j1), (k0, k1) = (sch.split(loop, [None, 8]) for loop in (i, j, k))
    sch.reorder(i0, j0, i1, j1, k0, k1)
    for loop, tag in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y")):
        sch.bind(loop, tag)
    sch.bind(j1, "threadIdx.x")
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), j1)
    for operand in (0, 1):
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, k0)
        rows, columns = sch.get_loops(copy)[-2:]
        sch.bind(rows, "threadIdx.y")
        sch.bind(columns, "threadIdx.x")
        sch.storage_align(copy, 0, axis=-2, factor=8, offset=1)
        if local_stage:
            sch.annotate(copy, "tir.manifest_shared_memory_local_stage", 1)
        if double:
            sch.annotate(copy, "double_buffer_scope", 0)
        if nested:
            sch.compute_at(sch.cache_read(block, operand, "local"), k1)
    sch.decompose_reduction(block, k0)
    if nested:
        sch.annotate(k1, "software_pipeline_stage", [0, 0, 1])
        sch.annotate(k1, "software_pipeline_order", [0, 1, 2])
    sch.annotate(k0, "software_pipeline_stage", stage)
    sch.annotate(k0, "software_pipeline_order", order)
    if asynchronous:
        sch.annotate(k0, "software_pipeline_async_stages", asynchronous)
    return sch.mod["main"]


MATMULS = {
    "two stages": ([0, 0, 1], [0, 1, 2]),
    "three stages": ([0, 1, 2], [0, 1, 2]),
    "copies last": ([0, 0, 1], [1, 2, 0]),
    "far": ([0, 0, 3], [0, 1, 2]),
    "asynchronous": ([0, 0, 3], [0, 2, 1], [0]),
    "two queues": ([0, 1, 2], [0, 1, 2], [0, 1]),
    "nested": ([0, 0, 1, 1, 1], [0, 1, 2, 3, 4], (), True),
    "nested, asynchronous": ([0, 0, 1, 2, 2], [0, 1, 3, 2, 4], [0], True),
    "through registers": ([0, 0, 0, 0, 1], [0, 3, 1, 4, 2], (), False, True),
    # As TVM's rules for tensor cores annotate.
    "all": ([0, 0, 0, 0, 0, 1, 1], [0, 3, 1, 4, 5, 2, 6], (), True, True, True),
}


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm", "simulated"])
@pytest.mark.parametrize("name", MATMULS)
def test_a_pipelined_product_of_matrices(name, target):
    func = matmul(*MATMULS[name])
    rng = np.random.default_rng(0)
    x, y = rng.random((32, 64), "float32"), rng.random((64, 32), "float32")
    arrays = [tvm.nd.array(part) for part in (x, y, np.zeros((32, 32), "float32"))]
    with tvm.transform.PassContext(instruments=[VerifyEachPass()]):
        tvm.build(func, target=target)(*arrays)
    np.testing.assert_allclose(arrays[2].numpy(), x @ y, rtol=1e-5)


def test_shared_memory_is_as_large_as_its_versions():
    func = record_lowering(matmul(*MATMULS["far"]))[2].after
    shapes = {
        part.buffer.name: [int(extent) for extent in part.buffer.shape]
        for part in S.statements_in(func.body)
        if isinstance(part, S.AllocBuffer)
    }
    assert shapes["A_shared"] == [4, 8, 8] and shapes["B_shared"] == [4, 8, 8]


@pytest.mark.parametrize("seed", range(40))
def test_random_pipelines_compute_what_their_loops_do(seed):
    check_random(seed, ("llvm", "wasm"))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(40, 140))
def test_many_random_pipelines(seed):
    check_random(seed, ("llvm", "wasm", "numpy"))


def check_random(seed, targets):
    """A pipeline that is not refused gives the numbers of its loop, serial and with threads."""
    for threads in (False, True):
        text, inputs = random_pipeline(seed, threads)
        func = from_source(text)
        try:
            pipelined = injected(func)
        except PipelineError:
            return
        expected = reference(seed, inputs)
        programs = [(target, func) for target in targets]
        programs += [("simulated", func)] if threads else [("interpreter", pipelined)]
        for target, program in programs:
            arrays = [tvm.nd.array(each.copy()) for each in inputs]
            tvm.build(program, target=target)(*arrays)
            for array, value in zip(arrays, expected, strict=True):
                np.testing.assert_array_equal(array.numpy(), value, err_msg=target)
