"""Spaces of GPUs that copy asynchronously: programs of their pipelines are right, and compile."""

from types import SimpleNamespace

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.target import Target
from mlcweb.schedule import Trace
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.gpu import compile_cuda
from tests.meta_schedule.space_generator.cases import bmm_relu, conv2d, matmul

TARGET = "nvidia/nvidia-a100"


def convolved(a, b):
    windows = np.lib.stride_tricks.sliding_window_view(a, b.shape[2:], (2, 3))
    return np.einsum("ncyxpq,fcpq->nfyx", windows, b)


def pipelines(module, seeds):
    """The first accepted program of each pipelined sketch."""
    space = PostOrderApply()
    task = SimpleNamespace(mod=module, target=Target(TARGET), rand_state=5)
    space._initialize_with_tune_context(task)
    for sketch in space.generate_design_space(module):
        if "software_pipeline_async_stages" not in str(sketch.trace):
            continue
        for seed in range(1, seeds + 1):
            sch = Schedule(module, seed=seed)
            Trace(sketch.trace.insts, {}).apply_to_schedule(sch, remove_postproc=False)
            sch.enter_postproc()
            if all(each.apply(sch) for each in space.postprocs or ()):
                yield sch.mod
                break


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (matmul(32), np.matmul),
        (bmm_relu(2, 16), lambda a, b: np.maximum(a @ b, 0)),
        (conv2d(channels=8, filters=8, size=8), convolved),
    ],
)
def test_pipelines_are_right_and_compile(source, expected):
    func = from_source(source)
    module = IRModule({"main": func})
    arrays = [
        np.random.default_rng(n).integers(-4, 5, [int(x) for x in buffer.shape]).astype("float32")
        for n, buffer in enumerate(func.parameter_buffers)
    ]
    expected = expected(*arrays[:2])
    mods = list(pipelines(module, 40))
    assert len(mods) == 2
    for mod in mods:
        with tvm.transform.PassContext(config={"tir.use_async_copy": True}):
            library = tvm.build(mod, target=TARGET)
            simulated = tvm.build(mod, target="simulated")
        text = library.imported_modules[0].get_source()
        assert "cp_async_wait_<" in text
        assert compile_cuda(text, "compute_80") == ""
        inputs = map(tvm.nd.array, arrays[:2])
        result = tvm.nd.array(np.full_like(arrays[2], 77))
        simulated["main"](*inputs, result)
        np.testing.assert_array_equal(result.numpy(), expected)
