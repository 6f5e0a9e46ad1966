"""The space of products on tensor cores: what it holds fits, is right, and compiles."""

from types import SimpleNamespace

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.schedule_rule import MultiLevelTilingTensorCore
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.schedule import Trace
from mlcweb.tensor_intrin.cuda import get_mma_intrin_group
from mlcweb.tir import Schedule
from tests.codegen.gpu.test_tensor_cores import product
from tests.gpu import compile_cuda

TARGET = "nvidia/nvidia-a100"
SIZE = 128


@pytest.fixture(scope="module")
def accepted():
    """The first programs that a space gives, of twelve drawn from each of its sketches."""
    module = IRModule({"main": product(SIZE, SIZE, SIZE).with_attr("global_symbol", "main")})
    space = PostOrderApply()
    task = SimpleNamespace(mod=module, target=Target(TARGET), rand_state=5)
    space._initialize_with_tune_context(task)
    drawn = []
    for sketch in space.generate_design_space(module):
        for seed in range(1, 13):
            sch = Schedule(module, seed=seed)
            Trace(sketch.trace.insts, {}).apply_to_schedule(sch, remove_postproc=False)
            sch.enter_postproc()
            if all(each.apply(sch) for each in space.postprocs or ()):
                drawn.append(sch.mod)
    return drawn


def test_programs_of_the_space_fit_a_block_of_threads(accepted):
    assert len(accepted) >= 8


def test_they_are_right_and_compile(accepted):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (2, SIZE, SIZE)).astype("float16")
    device = tvm.cuda()
    for module in accepted[::6]:
        library = tvm.build(module, target=TARGET)
        text = library.imported_modules[0].get_source()
        assert "nvcuda::wmma::mma_sync(" in text
        assert compile_cuda(text, "compute_80") == ""
        c = tvm.nd.array(np.full((SIZE, SIZE), -7, "float32"), device)
        library["main"](tvm.nd.array(a, device), tvm.nd.array(b, device), c)
        np.testing.assert_array_equal(c.numpy(), a.astype("float32") @ b.astype("float32"))


def test_pipelines_load_tiles_while_others_are_multiplied():
    size = 64
    module = IRModule({"main": product(size, size, size).with_attr("global_symbol", "main")})
    task = SimpleNamespace(mod=module, target=Target(TARGET), rand_state=5)
    space = PostOrderApply()
    space._initialize_with_tune_context(task)
    for rule in space.sch_rules or ():
        if isinstance(rule, MultiLevelTilingTensorCore):
            rule.use_software_pipeline = True
    pipelined = []
    for sketch in space.generate_design_space(module):
        if "software_pipeline" not in str(sketch.trace):
            continue
        # As TVM's rule writes them.
        text = str(sketch.trace)
        for key, value in (
            ("tirx.manifest_shared_memory_local_stage", 1), ("double_buffer_scope", 0),
            ("software_pipeline_stage", [0, 0, 1]), ("software_pipeline_order", [0, 1, 2]),
            ("software_pipeline_stage", [0, 0, 0, 0, 0, 1, 1]),
            ("software_pipeline_order", [0, 3, 1, 4, 5, 2, 6]),
        ):  # fmt: skip
            assert f'ann_key="{key}", ann_val={value})' in text
        for seed in range(1, 5):
            sch = Schedule(module, seed=seed)
            Trace(sketch.trace.insts, {}).apply_to_schedule(sch, remove_postproc=False)
            sch.enter_postproc()
            if all(each.apply(sch) for each in space.postprocs or ()):
                pipelined.append(sch.mod)
    assert pipelined
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (2, size, size)).astype("float16")
    device = tvm.cuda()
    for program in pipelined[:1]:
        library = tvm.build(program, target=TARGET)
        text = library.imported_modules[0].get_source()
        assert "nvcuda::wmma::mma_sync(" in text
        assert compile_cuda(text, "compute_80") == ""
        c = tvm.nd.array(np.full((size, size), -7, "float32"), device)
        library["main"](tvm.nd.array(a, device), tvm.nd.array(b, device), c)
        np.testing.assert_array_equal(c.numpy(), a.astype("float32") @ b.astype("float32"))


def test_tiles_are_those_of_wmma():
    group = get_mma_intrin_group("shared", "shared.dyn", "float16", "float32", False, False)
    rule = MultiLevelTilingTensorCore([group], structure="SSSRRSRS")
    sch = Schedule(product(SIZE, SIZE, SIZE))
    with pytest.raises(ValueError, match='"mma_f16f16f32" multiplies those of scope "warp"'):
        rule.apply(sch, sch.get_block("C"))
