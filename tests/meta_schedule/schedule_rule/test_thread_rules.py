"""The rules for machines with threads: what they make is right, and written in CUDA."""

from types import SimpleNamespace

import pytest

import mlcweb as tvm
from mlcweb import meta_schedule as ms
from mlcweb.meta_schedule.postproc import RewriteUnboundBlock, VerifyGPUCode
from mlcweb.meta_schedule.schedule_rule import AutoBind, CrossThreadReduction
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.tir import Schedule
from tests.gpu import compile_cuda, nvrtc
from tests.meta_schedule.schedule_rule.small import PROGRAMS, check, module
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
            if nvrtc() is not None:
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


def test_tuning_for_a_gpu_that_is_not_here(tmp_path):
    mod = module("columns")
    database = ms.tune_tir(
        mod, TARGET, str(tmp_path), max_trials_global=4, num_trials_per_iter=4,
        runner=ms.runner.LocalRunner(timeout_sec=100),
    )  # fmt: skip
    sch = ms.tir_integration.compile_tir(database, mod, TARGET)
    check("columns", sch.mod, targets=("wasm",))
    assert "threadIdx.x" in tvm.build(sch.mod, TARGET).imported_modules[0].get_source()
