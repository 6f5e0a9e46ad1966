"""Programs for GPUs in the page of a browser with an adapter: they run on WebGPU."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserType, expect

from e2e import chromium
from e2e.playground import Playground, without_promise_integration

MATMUL = """\
import numpy as np
import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class MatmulModule:
    @T.prim_func
    def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
             C: T.Buffer((128, 128), "float32")) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]


def cooperative_fetch(sch, block, loop, threads):
    sch.compute_at(block, loop)
    fused = sch.fuse(*sch.get_loops(block)[-2:])
    _, x, vector = sch.split(fused, [None, threads, 4])
    sch.vectorize(vector)
    sch.bind(x, "threadIdx.x")


def on_shared_memory(mod, tile=8, block_tile=64, k_tile=8):
    sch = tvm.tir.Schedule(mod)
    block = sch.get_block("C")
    cache = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, block_tile // tile, tile])
    j0, j1, j2 = sch.split(j, [None, block_tile // tile, tile])
    k0, k1 = sch.split(k, [None, k_tile])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(cache, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    threads = sch.fuse(i1, j1)
    sch.bind(threads, "threadIdx.x")
    for operand in (0, 1):
        shared = sch.cache_read(block, operand, "shared")
        cooperative_fetch(sch, shared, k0, (block_tile // tile) ** 2)
    sch.decompose_reduction(block, k0)
    return sch.mod


dev = tvm.webgpu()
a, b = np.random.rand(2, 128, 128).astype("float32")
A, B, C = (tvm.nd.array(x, dev) for x in (a, b, np.zeros_like(a)))
lib = tvm.build(on_shared_memory(MatmulModule), target="webgpu")
lib["main"](A, B, C)
print("on a GPU:", dev.exist)
print("right:", np.allclose(C.numpy(), a @ b, rtol=1e-4))
"""

TIMES = """
for _ in range(20):
    lib["main"](A, B, C)
print("still right:", np.allclose(C.numpy(), a @ b, rtol=1e-4))
print("takes time:", lib.time_evaluator("main", dev, number=1)(A, B, C).mean > 0)
"""

MAXIMUM = """

@T.prim_func
def largest(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128,), "float32")):
    for i in T.thread_binding(128, thread="threadIdx.x"):
        for k in range(128):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.min_value("float32")
                B[vi] = T.max(B[vi], A[vi, vk])


B = tvm.nd.empty((128,), device=dev)
tvm.build(largest, target="webgpu")(A, B)
print("largest:", np.array_equal(B.numpy(), a.max(1)))
"""

ERRORS = """
import mlcweb.runtime.host.gpu as gpu


def attempt(use):
    try:
        use()
    except tvm.TVMError as error:
        print(type(error).__name__, error)


@T.prim_func
def threads(A: T.Buffer((70000, 2), "float32"), B: T.Buffer((70000, 2), "float32")):
    for i in T.thread_binding(70000, thread="blockIdx.x"):
        for j in T.thread_binding(2, thread="threadIdx.x"):
            B[i, j] = A[i, j] + T.float32(1)


large = [tvm.nd.empty((70000, 2), device=dev) for _ in range(2)]
attempt(lambda: tvm.build(threads, target="webgpu")["threads"](*large))
attempt(lambda: gpu.gpu_device().create_pipeline("fn f() {\\n  nothing();\\n}", "f"))
"""

CUDA = """
cuda = tvm.cuda()
arrays = [tvm.nd.array(x, cuda) for x in (a, b, np.zeros_like(a))]
for _ in range(2):
    in_cuda = tvm.build(on_shared_memory(MatmulModule), target="cuda")
    in_cuda["main"](*arrays)
source = in_cuda.imported_modules[0].get_source()
print("source in CUDA:", 'extern "C" __global__' in source and "__shared__ float" in source)
print("as NumPy:", np.allclose(arrays[2].numpy(), a @ b, rtol=1e-4))
"""


TUNING = """\
import numpy as np
import tvm
from tvm import meta_schedule as ms
from tvm.script import tir as T

from mlcweb.runtime.host import gpu


@tvm.script.ir_module
class Rows:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32,), "float32")) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, k in T.grid(32, 32):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vk]


def space(sch):
    i, k = sch.get_loops("B")
    block, thread = sch.split(i, sch.sample_perfect_tile(i, 2, 32))
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")


devices, reasons = [], []


class Watch(ms.MeasureCallback):
    def apply(self, scheduler, task_id, candidates, builds, results):
        if gpu.gpu_device() not in devices:
            devices.append(gpu.gpu_device())
        reasons.extend(result.error_msg for result in results if result.error_msg)
        if LOSE and len(devices) == 1 and len(database) == 2:
            create = devices[0].create_bindings

            def lose(*arguments):
                devices[0]._gpu.device.destroy()
                return create(*arguments)

            devices[0].create_bindings = lose


database = ms.database.MemoryDatabase()
ms.tune_tir(
    Rows, target="webgpu", max_trials_global=5, num_trials_per_iter=5, work_dir="tuned",
    space=ms.space_generator.ScheduleFn(space), database=database, seed=1, strategy="replay-trace",
    measure_callbacks=[Watch()])
print("devices:", len(devices), "failed:", len(reasons), *reasons)
print("measured:", len(database) >= 4)
a = np.random.rand(32, 32).astype("float32")
tuned = ms.tir_integration.compile_tir(database, Rows, "webgpu")
A, B = (tvm.nd.array(x, tvm.webgpu()) for x in (a, a[0]))
tvm.build(tuned.mod, target="webgpu")["main"](A, B)
print("tuned is right:", np.allclose(B.numpy(), a.sum(1), rtol=1e-4))
"""


@pytest.fixture(scope="session")
def browser(browser_type: BrowserType) -> Iterator[Browser]:
    """One with a GPU."""
    browser = browser_type.launch(executable_path=chromium.find(), args=chromium.WITH_SOFTWARE_GPU)
    yield browser
    browser.close()


@pytest.mark.parametrize("isolated", [True, False])
def test_a_matmul_on_shared_memory_runs_on_webgpu(used_playground, isolated):
    playground: Playground = used_playground(isolated=isolated)
    playground.run_to_end(MATMUL + TIMES + MAXIMUM)
    console = playground["console"]
    expect(console).to_contain_text("on a GPU: True")
    expect(console).to_contain_text("right: True")
    expect(console).to_contain_text("still right: True")
    expect(console).to_contain_text("takes time: True")
    expect(console).to_contain_text("largest: True")
    expect(console).not_to_contain_text("simulated")


def test_errors_of_webgpu_are_sentences(used_playground):
    playground: Playground = used_playground()
    playground.run_to_end(MATMUL + ERRORS)
    console = playground["console"]
    expect(console).to_contain_text('GpuError "threads_kernel" is launched in 70000 blocks')
    expect(console).to_contain_text("ShaderError")


def test_cuda_runs_on_webgpu_which_is_said_once(used_playground):
    playground: Playground = used_playground()
    playground.run_to_end(MATMUL + CUDA)
    console = playground["console"]
    expect(console).to_contain_text("source in CUDA: True")
    expect(console).to_contain_text("as NumPy: True")
    assert console.inner_text().count('target="cuda": kernels run as WGSL on WebGPU (') == 1
    expect(console).not_to_contain_text("simulated")


@pytest.mark.parametrize(
    ("lose", "said"), [("False", "devices: 1 failed: 0"), ("True", "devices: 2 failed: 1")]
)
def test_a_search_measures_on_webgpu_and_goes_on_when_the_device_is_lost(
    used_playground, lose, said
):
    playground: Playground = used_playground()
    playground.run_to_end(TUNING.replace("LOSE", lose))
    console = playground["console"]
    expect(console).to_contain_text(said)
    expect(console).to_contain_text("measured: True")
    expect(console).to_contain_text("tuned is right: True")
    expect(console).not_to_contain_text("simulated")


def test_without_promise_integration_another_worker_has_the_gpu(open_playground):
    playground: Playground = open_playground(prepare=without_promise_integration)
    playground.run_to_end(MATMUL + TIMES + MAXIMUM + ERRORS)
    console = playground["console"]
    expect(console).to_contain_text("on a GPU: True")
    expect(console).to_contain_text("right: True")
    expect(console).to_contain_text("still right: True")
    expect(console).to_contain_text("takes time: True")
    expect(console).to_contain_text("largest: True")
    expect(console).to_contain_text('GpuError "threads_kernel" is launched in 70000 blocks')
    expect(console).to_contain_text("ShaderError")
    expect(console).not_to_contain_text("simulated")

    # A search measures there, too.
    playground.run_to_end(TUNING.replace("LOSE", "False"))
    expect(console).to_contain_text("devices: 1 failed: 0")
    expect(console).to_contain_text("tuned is right: True")


def test_without_promise_integration_and_shared_memory_it_is_simulated(open_playground):
    """The reason, and what it takes, are said once."""
    playground: Playground = open_playground(isolated=False, prepare=without_promise_integration)
    playground.run_to_end(MATMUL + '\ntvm.build(on_shared_memory(MatmulModule), "webgpu")')
    console = playground["console"]
    expect(console).to_contain_text("on a GPU: False")
    expect(console).to_contain_text("right: True")
    said = "on a simulated GPU (this browser cannot suspend Python while a GPU works; it takes "
    assert console.inner_text().count(said) == 1
