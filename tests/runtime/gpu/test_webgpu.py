"""Programs on the GPU of this machine: numbers, what a call does, what is said where it cannot."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.codegen.gpu.languages import LANGUAGES
from mlcweb.runtime.build import reset_warnings
from mlcweb.runtime.gpu.storage import GpuStorage
from mlcweb.runtime.host import gpu
from mlcweb.runtime.host.gpu import GpuError, GpuLost, gpu_device
from mlcweb.script import from_source
from mlcweb.script import relax as R
from mlcweb.script import tir as T

pytestmark = pytest.mark.skipif(gpu_device() is None, reason="no GPU, or no package wgpu")


@T.prim_func
def twice_the_sum(a: T.handle, s: T.float32, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    C = T.alloc_buffer((n, 4), "float32")
    for k in range(3):
        for i in T.thread_binding(n, thread="blockIdx.x"):
            for j in T.thread_binding(4, thread="threadIdx.x"):
                C[i, j] = T.if_then_else(k == 0, A[i, j], C[i, j] + T.cast(k, "float32") * s)
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            B[i, j] = C[i, j] * T.float32(2)


@pytest.fixture
def dev():
    return mlcweb.webgpu()


@pytest.fixture
def device():
    found = gpu_device()
    assert found is not None
    return found


def threads(blocks=4, per_block=16, value="A[i, j] + T.float32(1)", dtype="float32"):
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer(({blocks}, {per_block}), "{dtype}"),
         B: T.Buffer(({blocks}, {per_block}), "{dtype}")):
    for i in T.thread_binding({blocks}, thread="blockIdx.x"):
        for j in T.thread_binding({per_block}, thread="threadIdx.x"):
            B[i, j] = {value}
"""
    )


def test_sizes_scalars_loops_of_the_host_and_memory_between_kernels(dev):
    f = mlcweb.build(twice_the_sum, target="webgpu")["twice_the_sum"]
    for rows in (1, 7, 300):
        x = np.random.default_rng(rows).random((rows, 4), "float32")
        a, b = mlcweb.nd.array(x, dev), mlcweb.nd.empty((rows, 4), device=dev)
        for s in (0.5, -2.0):
            f(a, s, b)
            np.testing.assert_allclose(b.numpy(), 2 * (x + 3 * s), rtol=1e-5)


def test_a_call_copies_no_array_and_compiles_nothing(dev, device, monkeypatch):
    lib = mlcweb.build(threads(), target="webgpu")
    x = np.arange(64, dtype="float32").reshape(4, 16)
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.array(np.zeros_like(x), dev)
    with monkeypatch.context() as patch:
        for name in ("read", "write", "create_pipeline"):
            patch.setattr(device, name, lambda *arguments: pytest.fail("the call waits or copies"))
        for _ in range(500):
            lib["main"](a, b)
            lib["main"](b, a)
    np.testing.assert_array_equal(a.numpy(), x + 1000)
    assert isinstance(a.storage, GpuStorage)
    assert dev.exist
    assert lib.get_source("webgpu") == lib.imported_modules[0].get_source("wgsl")
    assert lib.time_evaluator("main", dev, number=3, repeat=2)(a, b).mean > 0


def test_time_is_told_by_the_clock_of_the_gpu(dev, device, monkeypatch):
    if not getattr(device, "_tick", 0):
        pytest.skip("the GPU has no clock that is told")
    host = "mlcweb.runtime.host.wgpu_device.time_by_host"
    monkeypatch.setattr(host, lambda *arguments: pytest.fail("this machine's clock is asked"))
    lib = mlcweb.build(threads(), target="webgpu")
    x = np.zeros((4, 16), "float32")
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.array(x, dev)
    time = lib.time_evaluator("main", dev, number=20, repeat=2)(a, b)
    assert all(0 < seconds < 60 for seconds in time.results)
    assert (b.numpy() == 1).all()


def test_names_that_wgsl_has_taken(dev):
    func = from_source(
        """
@T.prim_func
def main(filter: T.Buffer((4, 8), "float32"), target: T.Buffer((4, 8), "float32")):
    for loop in T.thread_binding(4, thread="blockIdx.x"):
        for pass_ in T.thread_binding(2, thread="threadIdx.x"):
            for patch in range(4):
                target[loop, pass_ * 4 + patch] = filter[loop, pass_ * 4 + patch] * T.float32(2)
"""
    )
    x = np.arange(32, dtype="float32").reshape(4, 8)
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.empty((4, 8), device=dev)
    mlcweb.build(func, target="webgpu")["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), 2 * x)


def test_arrays_of_sizes_that_are_no_multiple_of_four_bytes(dev):
    for values in (np.arange(3, dtype="uint8"), np.zeros((0, 2), "float32"), np.float16([1, 2, 3])):
        np.testing.assert_array_equal(mlcweb.nd.array(values, dev).numpy(), values)
    a = mlcweb.nd.array(np.arange(4.0), dev)
    a[1] = 7
    assert a.numpy().tolist() == [0, 7, 2, 3]
    assert a.copyto(mlcweb.cpu()).numpy().tolist() == [0, 7, 2, 3]


def test_a_model_on_the_gpu(dev):
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.softmax(R.add(y, x))
            R.output(z)
        return z

    vm = relax.VirtualMachine(relax.build(mlcweb.IRModule({"main": main}), target="webgpu"), dev)
    x, w = np.random.default_rng(0).random((2, 8, 8), "float32")
    y = x[:4] @ w + x[:4]
    result = vm["main"](mlcweb.nd.array(x[:4], dev), mlcweb.nd.array(w, dev))
    assert result.device == dev
    np.testing.assert_allclose(result.numpy(), np.exp(y) / np.exp(y).sum(1, keepdims=True), 1e-5)


def test_the_target_has_the_limits_of_the_gpu(device):
    limits = mlcweb.target.Target("webgpu").limits
    assert limits["max_threads_per_block"] == device.limits["maxComputeInvocationsPerWorkgroup"]
    assert mlcweb.target.Target.from_device("webgpu").max_num_threads == limits["max_num_threads"]
    assert mlcweb.target.Target("webgpu -max_num_threads=64").limits["max_num_threads"] == 64


def test_limits_are_named_before_anything_is_launched(dev, device, monkeypatch):
    most = device.limits["maxComputeInvocationsPerWorkgroup"]
    with pytest.raises(mlcweb.TVMError, match=f"{most + 1} threads in a block.*{most} at most"):
        mlcweb.build(threads(per_block=most + 1), target="webgpu")
    blocks = device.limits["maxComputeWorkgroupsPerDimension"] + 1
    arrays = [mlcweb.nd.empty((blocks, 1), device=dev) for _ in range(2)]
    with pytest.raises(GpuError, match=f"in {blocks} blocks along blockIdx.x.*blockIdx.y"):
        mlcweb.build(threads(blocks, 1), target="webgpu")["main"](*arrays)
    monkeypatch.setitem(device.limits, "maxStorageBuffersPerShaderStage", 1)
    with pytest.raises(GpuError, match=r"works on 2 arrays.*on 1 at most"):
        mlcweb.build(threads(), target="webgpu")
    monkeypatch.setitem(device.limits, "maxComputeWorkgroupSizeX", 8)
    monkeypatch.setitem(device.limits, "maxStorageBuffersPerShaderStage", 8)
    with pytest.raises(GpuError, match=r"16 threads along threadIdx.x"):
        mlcweb.build(threads(), target="webgpu")


def test_arrays_that_are_too_large(dev, device):
    most = min(device.limits["maxBufferSize"], device.limits["maxStorageBufferBindingSize"])
    with pytest.raises(MemoryError, match=f"shape .*{most} bytes for an array at most"):
        mlcweb.nd.empty((most // 4 + 1,), device=dev)


def test_float16_where_the_gpu_has_it_and_where_not(dev, device, monkeypatch):
    func = threads(value="A[i, j] * T.float16(2)", dtype="float16")
    x = np.arange(64, dtype="float16").reshape(4, 16)
    if "shader-f16" in device.features:
        a, b = mlcweb.nd.array(x, dev), mlcweb.nd.array(x, dev)
        mlcweb.build(func, target="webgpu")["main"](a, b)
        np.testing.assert_array_equal(b.numpy(), x * 2)
    monkeypatch.setattr(device, "features", frozenset())
    with pytest.raises(GpuError, match=r'"A" is float16, which the GPU .*keep it in float32'):
        mlcweb.build(func, target="webgpu")


@pytest.mark.parametrize("dtype", ["float64", "int64", "int8"])
def test_types_that_webgpu_has_not(dtype):
    with pytest.raises(mlcweb.TVMError, match=f'"A" is {dtype}, which webgpu has not'):
        mlcweb.build(threads(value="A[i, j]", dtype=dtype), target="webgpu")


def test_one_array_for_what_is_read_and_what_is_written(dev):
    a = mlcweb.nd.empty((4, 16), device=dev)
    with pytest.raises(GpuError, match=r'"A" and "B" are the same array.*pass a copy'):
        mlcweb.build(threads(), target="webgpu")["main"](a, a)


def test_what_the_compiler_refuses_has_its_line(monkeypatch):
    wgsl = LANGUAGES["webgpu"]
    forms = {**wgsl.forms, "exp": "no_such_function({})"}
    monkeypatch.setitem(LANGUAGES, "webgpu", replace(wgsl, forms=forms))
    with pytest.raises(GpuError, match=r"refuses a kernel: .*no_such_function") as caught:
        mlcweb.build(threads(value="T.exp(A[i, j])"), target="webgpu")
    assert caught.value.span.line == 7


def test_a_gpu_that_is_lost(dev, device):
    lib = mlcweb.build(threads(), target="webgpu")
    x = np.ones((4, 16), "float32")
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.array(x, dev)
    device.lost = "The GPU was unplugged."
    for use in (a.numpy, lambda: lib["main"](a, b), lambda: a.copyfrom(x)):
        with pytest.raises(GpuLost, match=r"The GPU was unplugged\."):
            use()
    # What is made after that lives on another device; the module is compiled for it.
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.array(x, dev)
    lib["main"](a, b)
    assert (b.numpy() == 2).all()


ENDLESS = """
import os, mlcweb, numpy as np
from mlcweb.runtime.host.gpu import GpuLost, gpu_device
from mlcweb.script import from_source
func = from_source('''
@T.prim_func
def main(A: T.Buffer((1,), "int32"), B: T.Buffer((65535, 64), "int32")):
    for i in T.thread_binding(65535, thread="blockIdx.x"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            while A[0] != 77:
                B[i, j] = B[i, j] + 1
''')
gpu_device()._patience = 0.3
dev = mlcweb.webgpu()
a, b = mlcweb.nd.array(np.zeros(1, "int32"), dev), mlcweb.nd.empty((65535, 64), "int32", dev)
mlcweb.build(func, target="webgpu")(a, b)
try:
    b.numpy()
except GpuLost as error:
    print(error, flush=True)
os._exit(0)  # the driver would wait for the program
"""


def test_a_program_without_end_is_given_up():
    """In a process of its own, since its driver goes on computing. Its blocks are many, as a
    driver that emulates a GPU ends each thread's loops by itself at some time."""
    run = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=300
    )
    assert "given up after 0.3 s without a result; a loop may have no end" in run.stdout
    assert run.returncode == 0


def test_the_simulated_gpu_on_request(dev, capsys):
    reset_warnings()
    lib = mlcweb.build(threads(), target="webgpu -device=simulated")
    x = np.arange(64, dtype="float32").reshape(4, 16)
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.empty((4, 16), device=dev)
    lib["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), x + 1)
    assert lib.time_evaluator("main", dev, number=1)(a, b).mean > 0
    assert capsys.readouterr().err.count("on a simulated GPU") == 1


def test_where_there_is_no_gpu_it_is_simulated(dev, capsys, monkeypatch):
    reset_warnings()
    monkeypatch.setitem(gpu._devices, "webgpu", gpu.NoGpu("this machine offers no GPU"))
    x = np.arange(64, dtype="float32").reshape(4, 16)
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.empty((4, 16), device=dev)
    for _ in range(2):
        mlcweb.build(threads(), target="webgpu")["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), x + 1)
    assert not dev.exist
    said = 'target="webgpu": kernels run thread by thread, on a simulated GPU (this machine offers'
    assert capsys.readouterr().err.count(said) == 1


def test_times_say_that_the_call_is_most_of_it():
    @T.prim_func
    def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            B[i] = A[i] + T.float32(1)

    dev = mlcweb.webgpu()
    a, b = (mlcweb.nd.array(np.zeros(8, "float32"), dev) for _ in range(2))
    time = mlcweb.build(add, target="webgpu").time_evaluator("add", dev, number=20)(a, b)
    assert time.call is not None and time.call > 0
    # A third of it, whatever the machine is busy with.
    shown = str(replace(time, results=(3 * time.call,)))
    assert shown.endswith(
        "About 33% of this is the call itself: on this GPU one takes "
        f"{time.call * 1e3:.3g} ms that has nothing to do"
    )
    long = str(replace(time, results=(50 * time.call,)))
    assert "call" not in long
    here = mlcweb.build(twice_the_sum, target="simulated").time_evaluator
    x = mlcweb.nd.array(np.zeros((2, 4), "float32"))
    assert (
        here("twice_the_sum", mlcweb.cpu(), number=1)(x, 1.0, x.copyto(mlcweb.cpu())).call is None
    )


def test_memory_that_goes_while_work_is_handed_over_is_freed_after_it(dev, device, monkeypatch):
    events = []

    class Memory:
        def destroy(self):
            events.append("freed")

    encode = device._encode

    def encode_and_collect(*arguments, **options):
        encode(*arguments, **options)
        device.destroy_buffer(Memory())
        events.append("written down")

    monkeypatch.setattr(device, "_encode", encode_and_collect)
    a = mlcweb.nd.array(np.ones((4, 16), "float32"), dev)
    b = mlcweb.nd.empty((4, 16), device=dev)
    mlcweb.build(threads(), target="webgpu")(a, b)
    np.testing.assert_array_equal(b.numpy(), 2)
    assert events == ["written down", "freed"]
