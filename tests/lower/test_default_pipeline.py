"""The passes of TVM's default pipeline, one after the other, over scheduled programs for GPUs:
each keeps what is computed."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, te, tir
from mlcweb.lower import transform as tt

PIPELINE = (
    tt.CanonicalizeLoop(), tt.LowerCrossThreadReduction(), tt.LowerInitBlock(),
    tt.PlanAndUpdateBufferAllocationLocation(), tt.ConvertBlocksToOpaque(), tt.LiftThreadBinding(),
    tt.ManifestSharedMemoryLocalStage(), tt.CompactBufferAllocation(), tt.LowerAutoCopy(),
    tt.UnifyThreadBinding(), tt.LowerMatchBuffer(), tt.Simplify(), tt.InjectPermutedLayout(),
    tt.AnnotateIrregularLoop(), tt.InjectSoftwarePipeline(), tt.TransformMmaBufferLayout(),
    tt.LowerOpaqueBlock(), tt.FlattenBuffer(), tt.BF16ComputeLegalize(), tt.NarrowDataType(32),
    tt.LoopPartition(), tt.VectorizeLoop(), tt.InjectVirtualThread(), tt.InjectDoubleBuffer(),
    tt.StorageRewrite(), tt.HoistIfThenElse(), tt.UnrollLoop(), tt.RenormalizeSplitPattern(),
    tt.Simplify(), tt.RemoveNoOp(), tt.RewriteUnsafeSelect(), tt.CommonSubexprElim(),
    tt.FP8ComputeLegalize(), tt.VerifyVTCMLimit(), tt.LowerVtcmAlloc(), tt.VerifyMemory(),
    tt.AnnotateEntryFunc(), tt.ThreadSync("shared"), tt.ThreadSync("shared.dyn"),
    tt.ThreadSync("warp"), tt.InferFragment(), tt.LowerThreadAllreduce(),
    tt.MergeSharedMemoryAllocations(),
)  # fmt: skip


def product_of_matrices(random: Random) -> tuple[tir.PrimFunc, list[tuple[int, ...]]]:
    """Through shared memory and registers, by threads and perhaps virtual ones."""
    rows, columns, depth = random.choice([8, 12]), random.choice([8, 16]), random.choice([6, 8])
    A = te.placeholder((rows, depth), name="A", dtype="int32")
    B = te.placeholder((depth, columns), name="B", dtype="int32")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((rows, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    sch = tir.Schedule(te.create_prim_func([A, B, C]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    virtual = random.choice([1, 2])
    bi, vi, ti, ri = sch.split(i, [None, virtual, 2, random.choice([1, 2])])
    bj, vj, tj, rj = sch.split(j, [None, virtual, 4, 1])
    outer, inner = sch.split(k, [None, random.choice([2, 3, 4])])
    sch.reorder(bi, bj, vi, vj, ti, tj, outer, inner, ri, rj)
    registers = sch.cache_write(block, 0, "local")
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((bi, bj, ti, tj), tags, strict=True):
        sch.bind(loop, tag)
    if virtual > 1:
        sch.bind(vi, "vthread.y")
        sch.bind(vj, "vthread.x")
    sch.reverse_compute_at(registers, tj)
    for operand in (0, 1):
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, outer)
        _, ty, tx = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 2, 4])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
        if random.random() < 0.5:
            sch.annotate(copy, "tir.manifest_shared_memory_local_stage", 1)
    if random.random() < 0.5:
        sch.unroll(inner)
    sch.decompose_reduction(block, outer)
    return sch.mod["main"], [(rows, depth), (depth, columns), (rows, columns)]


def sums_of_rows(random: Random) -> tuple[tir.PrimFunc, list[tuple[int, ...]]]:
    """By threads together, in shared memory or in their own; the next block uses the sums."""
    rows, columns = random.choice([1, 3]), random.choice([8, 13, 20])
    A = te.placeholder((rows, columns), name="A", dtype="int32")
    k = te.reduce_axis((0, columns), name="k")
    S = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="S")
    D = te.compute((rows,), lambda i: S[i] * 3, name="D")
    sch = tir.Schedule(te.create_prim_func([A, D]))
    block = sch.get_block("S")
    i, k = sch.get_loops(block)
    _, inner = sch.split(k, [None, random.choice([4, 8, 32])])
    sch.bind(inner, "threadIdx.x")
    sch.bind(i, "blockIdx.x")
    sch.set_scope(block, 0, random.choice(["shared", "local"]))
    sch.reverse_compute_at(sch.get_block("D"), i)
    return sch.mod["main"], [(rows, columns), (rows,)]


def result(mod: IRModule, arrays: list[np.ndarray]) -> Any:
    tensors = [tvm.nd.array(array) for array in arrays]
    tvm.build(mod, "interpreter")["main"](*tensors)
    return tensors[-1].numpy()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("program", [product_of_matrices, sums_of_rows])
def test_each_pass_keeps_the_result(program: Any, seed: int) -> None:
    func, shapes = program(Random(seed))
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-9, 9, shape).astype("int32") for shape in shapes]
    if program is product_of_matrices:
        expected = arrays[0] @ arrays[1]
    else:
        expected = arrays[0].sum(1) * 3
    mod = IRModule({"main": func.with_attr("target", tvm.target.Target("cuda"))})
    for run in PIPELINE:
        new = run(mod)
        if new["main"] is not mod["main"]:
            message = f"{run.info.name}\n{mod.script()}\n{new.script()}"
            np.testing.assert_array_equal(result(new, arrays), expected, err_msg=message)
        mod = new
    assert "T.block" not in mod.script()
    assert "tvm_thread_allreduce" not in mod.script()
