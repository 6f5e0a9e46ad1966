"""Models for devices with threads: functions without threads get a default schedule."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import dlight, relax, te, topi
from mlcweb.relax import BlockBuilder, TensorStructInfo, Var, op
from tests.meta_schedule.schedule_rule.small import PROGRAMS, check, module


def default_gpu_schedule(mod, max_threads):
    with tvm.target.Target({"kind": "cuda", "max_threads_per_block": max_threads}):
        return dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(mod)


def model():
    builder = BlockBuilder()
    x = Var("x", TensorStructInfo((4, 16), "float32"))
    w = Var("w", TensorStructInfo((16, 8), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            hidden = builder.emit(op.nn.relu(op.matmul(x, w)))
            result = builder.emit_output(op.nn.softmax(op.add(hidden, op.sum(hidden)), axis=-1))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("target", ["cuda", "nvidia/tesla-p100", "opencl"])
def test_a_model_runs_on_a_device_with_threads(target):
    generator = np.random.default_rng(0)
    x = generator.standard_normal((4, 16)).astype("float32")
    w = generator.standard_normal((16, 8)).astype("float32")
    results = []
    for kind in ("llvm", target):
        name = kind if kind in ("llvm", "opencl") else "cuda"
        device = tvm.device("cpu" if name == "llvm" else name)
        executable = relax.build(model(), target=kind)
        arrays = [tvm.nd.array(part, device) for part in (x, w)]
        results.append(relax.VirtualMachine(executable, device)["main"](*arrays).numpy())
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_default_schedules_keep_what_programs_compute(name):
    scheduled = default_gpu_schedule(module(name), 64)
    check(name, scheduled, targets=("wasm",))
    text = tvm.build(scheduled, target="cuda").imported_modules[0].get_source()
    assert text.count("__global__") == scheduled.script().count("blockIdx.x")


def test_a_thread_takes_several_iterations_where_a_grid_counts_too_few():
    n = te.var("n")
    a = te.placeholder((n, 7), "float32", "a")
    func = te.create_prim_func([a, topi.exp(a)])
    with tvm.target.Target("webgpu"):
        scheduled = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(tvm.IRModule({"main": func}))
    assert '256, thread="blockIdx.x"' in scheduled.script()
    result = tvm.nd.array(np.zeros((300, 7), "float32"))
    values = np.linspace(-1, 1, 2100, dtype="float32").reshape(300, 7)
    tvm.build(scheduled, target="wasm")["main"](tvm.nd.array(values), result)
    np.testing.assert_allclose(result.numpy(), np.exp(values), rtol=1e-6)


def test_threads_that_are_bound_stay_as_they_are():
    bound = default_gpu_schedule(module("columns"), 24)
    assert '24, thread="threadIdx.x"' in bound.script()
    assert default_gpu_schedule(bound, 8)["main"] is bound["main"]
