"""The rules for machines with threads: what they make is right, and written in CUDA."""

from types import SimpleNamespace

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import meta_schedule as ms
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.postproc import RewriteUnboundBlock, VerifyGPUCode
from mlcweb.meta_schedule.schedule_rule import AutoBind, CrossThreadReduction
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.gpu import compile_cuda
from tests.meta_schedule.schedule_rule.small import PROGRAMS, SUMS_IN_PRODUCT, check, module
from tests.meta_schedule.space_generator import cases

TARGET = "nvidia/tesla-p100"


def told(part, mod, target=TARGET):
    """A rule or post-processor that knows its task."""
    part._initialize_with_tune_context(SimpleNamespace(mod=mod, target=Target(target)))
    return part


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_space_holds_is_right(name):
    made = PostOrderApply()
    mod = module(name)
    made._initialize_with_tune_context(
        SimpleNamespace(mod=mod, target=Target(TARGET), rand_state=5)
    )
    for sch in made.generate_design_space(mod):
        sch.enter_postproc()
        accepted = all(each.apply(sch) for each in made.postprocs or ())
        check(name, sch.mod, targets=("wasm",))
        if accepted:
            text = tvm.build(sch.mod, target=TARGET).imported_modules[0].get_source()
            assert text.count("__launch_bounds__") >= 1
            assert compile_cuda(text) == ""


def test_more_iterations_than_threads_are_taken_in_turns():
    sch = Schedule(cases.module("bmm_relu"))
    told(AutoBind(max_threadblocks=8, thread_extents=[32]), sch.mod).apply(sch, sch.get_block("C"))
    blocks, threads, rest = (sch.get(loop) for loop in sch.get_loops("C"))
    assert blocks.thread_binding.thread_tag == "blockIdx.x"
    assert [int(loop.extent) for loop in (blocks, threads, rest)] == [8, 1024, 32]


def test_one_result_gets_a_block_of_threads():
    sch = Schedule(module("sum"))
    told(AutoBind(), sch.mod).apply(sch, sch.get_block("B"))
    axes = [sch.get(loop).thread_binding for loop in sch.get_loops("B")[:2]]
    assert [axis.thread_tag for axis in axes] == ["blockIdx.x", "threadIdx.x"]


def test_what_is_left_is_bound():
    mod = module("columns")
    sch = Schedule(mod)
    assert told(RewriteUnboundBlock(), mod).apply(sch)
    assert '24, thread="threadIdx.x"' in sch.mod.script()


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({}, True),
        ({"max_threads_per_block": 64}, False),
        ({"max_shared_memory_per_block": 65536 + 2048}, True),
        ({"max_shared_memory_per_block": 65536 + 2047}, False),
    ],
)
def test_programs_beyond_the_limits_of_a_device_are_refused(limits, fits):
    sch = Schedule(cases.module("matmul"))
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(k, [None, 4])
    i, threads = sch.split(i, [None, 128])
    sch.reorder(i, outer, threads, j, inner)
    # Four columns of A, and all of B.
    for n, loop in enumerate((outer, i)):
        sch.compute_at(sch.cache_read("C", n, "shared"), loop)
    sch.bind(i, "blockIdx.x")
    sch.bind(threads, "threadIdx.x")
    target = {"kind": "cuda", "max_threads_per_block": 1024, **limits}
    assert told(VerifyGPUCode(), sch.mod, target).apply(sch) is fits


def test_targets_without_limits_have_no_common_reductions():
    sch = Schedule(module("columns"))
    rule = told(CrossThreadReduction([4, 8]), sch.mod, "llvm")
    assert rule.apply(sch, sch.get_block("B")) == [sch]


def test_a_sum_is_not_computed_in_each_step_of_another_one():
    """The mean has an axis of one element, where the sum of squares is reduced."""
    variance = """
@T.prim_func
def main(A: T.Buffer((4, 8, 2), "float32"), B: T.Buffer((4, 2), "float32")):
    total = T.alloc_buffer((4, 1, 2))
    for i, one, j, k in T.grid(4, 1, 2, 8):
        with T.block("total"):
            vi, vo, vj, vk = T.axis.remap("SSSR", [i, one, j, k])
            with T.init():
                total[vi, vo, vj] = T.float32(0)
            total[vi, vo, vj] = total[vi, vo, vj] + A[vi, vk, vj]
    for i, j, k in T.grid(4, 2, 8):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + T.pow(A[vi, vk, vj] - total[vi, 0, vj] / 8.0, 2.0)
"""
    array = np.random.default_rng(3).random((4, 8, 2), dtype="float32")
    for sch in designs(variance):
        result = tvm.nd.empty((4, 2))
        tvm.build(sch.mod, "wasm")["main"](tvm.nd.array(array), result)
        np.testing.assert_allclose(result.numpy(), array.var(1) * 8, 1e-4)


def test_a_sum_that_a_tiled_block_reads_has_threads_of_its_own():
    """How many threads the tiles have is no factor of one split."""
    a, b = np.random.default_rng(3).random((2, 16, 16), dtype="float32")
    spaces = designs(SUMS_IN_PRODUCT)
    assert len(spaces) == 2  # the sum by threads together, or by each for itself
    for sch in spaces:
        c = tvm.nd.empty((16, 16))
        tvm.build(sch.mod, "wasm")["main"](tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_allclose(c.numpy(), a * a.sum(1, keepdims=True) @ b, 1e-4)


def designs(source):
    """The design space of a program, after its postprocessors."""
    mod = IRModule.from_expr(from_source(source))
    space = PostOrderApply()
    space._initialize_with_tune_context(
        SimpleNamespace(mod=mod, target=Target(TARGET), rand_state=5)
    )
    schedules = space.generate_design_space(mod)
    for sch in schedules:
        sch.enter_postproc()
        for each in space.postprocs or ():
            each.apply(sch)
    return schedules


def test_tuning_for_a_gpu_that_is_not_here(tmp_path):
    mod = module("columns")
    database = ms.tune_tir(
        mod, TARGET, str(tmp_path), max_trials_global=4, num_trials_per_iter=4,
        runner=ms.runner.LocalRunner(timeout_sec=100),
    )  # fmt: skip
    sch = ms.tir_integration.compile_tir(database, mod, TARGET)
    check("columns", sch.mod, targets=("wasm",))
    assert "threadIdx.x" in tvm.build(sch.mod, TARGET).imported_modules[0].get_source()
