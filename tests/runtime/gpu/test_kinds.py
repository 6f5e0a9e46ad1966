"""Devices of each kind: by a driver of their own, on WebGPU in their place, or simulated."""

import ctypes

import numpy as np
import pytest

import mlcweb
from mlcweb.runtime.build import reset_warnings
from mlcweb.runtime.gpu.storage import GpuStorage
from mlcweb.runtime.host import cuda_device, gpu
from mlcweb.runtime.host.gpu import GpuError, NoGpu, ShaderError, gpu_device, uniform_bytes
from mlcweb.runtime.host.nvrtc import compile_cuda
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.script import from_source
from tests.gpu import nvrtc
from tests.runtime.gpu.test_webgpu import threads, twice_the_sum

KINDS = ("cuda", "opencl", "metal", "vulkan", "webgpu")


WORDS = {"cuda": "__global__", "opencl": "__kernel", "metal": "kernel void", "webgpu": "@compute"}
"""A word that only one language has."""


@pytest.fixture
def hardware(monkeypatch):
    """What WebGPU reaches counts as a GPU, be it software."""
    if (device := gpu_device()) is not None:
        monkeypatch.setattr(device, "is_software", False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("hardware")
def test_a_program_runs_on_what_is_here(kind, capsys):
    """The kernels' source is the kind's own, and runs as what is here can run it."""
    reset_warnings()
    device, found = mlcweb.runtime.device(kind), gpu_device(kind)
    lib = mlcweb.build(twice_the_sum, target=kind)
    language = {"vulkan": "webgpu"}.get(kind, kind)
    assert WORDS[language] in lib.imported_modules[0].get_source()
    x = np.random.default_rng(1).random((7, 4), "float32")
    for s in (0.5, -2.0):
        a, b = mlcweb.nd.array(x, device), mlcweb.nd.empty((7, 4), device=device)
        lib["twice_the_sum"](a, s, b)
        np.testing.assert_allclose(b.numpy(), 2 * (x + 3 * s), rtol=1e-5)
    assert isinstance(a.storage, GpuStorage) == (found is not None)
    said = capsys.readouterr().err
    if found is None:
        assert said.count("on a simulated GPU (") == 1
    elif found.language == kind:
        assert not said
        assert device.exist
    else:
        assert said.count(f'target="{kind}": kernels run as WGSL on WebGPU (') == 1
        assert WORDS["webgpu"] in lib.get_source()
        assert not device.exist
    device.sync()
    assert lib.time_evaluator("twice_the_sum", device, number=2)(a, 1.0, b).mean > 0


def test_what_no_driver_reaches_is_simulated_with_all_reasons(capsys, monkeypatch):
    reset_warnings()
    for driver in ("cuda", "webgpu"):
        monkeypatch.setitem(gpu._devices, driver, NoGpu(f"no driver of {driver}"))
    device = mlcweb.cuda()
    x = np.arange(64, dtype="float32").reshape(4, 16)
    a, b = mlcweb.nd.array(x, device), mlcweb.nd.empty((4, 16), device=device)
    for _ in range(2):
        mlcweb.build(threads(), target="cuda")["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), x + 1)
    said = "on a simulated GPU (no driver of cuda; no driver of webgpu)"
    assert capsys.readouterr().err.count(said) == 1


@pytest.mark.parametrize("kind", ["cuda", "metal", "vulkan"])
@pytest.mark.skipif(gpu_device() is None, reason="no GPU, or no package wgpu")
def test_software_stands_in_for_no_other_kind(kind, capsys, monkeypatch):
    """Loops that are compiled for the processor are faster than a GPU that it plays."""
    reset_warnings()
    monkeypatch.setattr(gpu_device(), "is_software", True)
    monkeypatch.setitem(gpu._devices, "cuda", NoGpu("no driver of cuda"))
    device = mlcweb.runtime.device(kind)
    x = np.arange(64, dtype="float32").reshape(4, 16)
    a, b = mlcweb.nd.array(x, device), mlcweb.nd.empty((4, 16), device=device)
    mlcweb.build(threads(), target=kind)["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), x + 1)
    said = capsys.readouterr().err
    assert "on a simulated GPU (" in said
    assert f"WebGPU reaches {gpu_device().description}, which is this processor)" in said
    # Who asks for WebGPU gets what there is.
    on_webgpu = mlcweb.nd.array(x, mlcweb.webgpu())
    assert isinstance(on_webgpu.storage, GpuStorage)
    assert not isinstance(a.storage, GpuStorage)


@pytest.mark.skipif(gpu_device() is None, reason="no GPU, or no package wgpu")
@pytest.mark.usefixtures("hardware")
class TestInPlaceOfAnother:
    def test_what_webgpu_has_not_is_simulated(self, capsys):
        reset_warnings()
        device = mlcweb.metal()
        x = np.arange(64, dtype="int8").reshape(4, 16)
        a, b = mlcweb.nd.array(x, device), mlcweb.nd.empty((4, 16), "int8", device)
        func = threads(value="A[i, j] * T.int8(2)", dtype="int8")
        mlcweb.build(func, target="metal")["main"](a, b)
        np.testing.assert_array_equal(b.numpy(), x * 2)
        assert '"A" is int8, which webgpu has not' in capsys.readouterr().err

    def test_what_a_call_needs_beyond_its_limits_is_simulated(self, capsys):
        reset_warnings()
        device = mlcweb.metal()
        a = mlcweb.nd.array(np.zeros((4, 16), "float32"), device)
        lib = mlcweb.build(threads(), target="metal")
        lib["main"](a, a)
        assert (a.numpy() == 1).all()
        assert "the same array" in capsys.readouterr().err

    def test_kernels_of_a_function_are_one_valid_module(self):
        text = mlcweb.build(twice_the_sum, target="webgpu").imported_modules[0].get_source()
        assert text.count("@compute") == 2
        device = gpu_device()
        for entry in ("twice_the_sum_kernel", "twice_the_sum_kernel_1"):
            device.create_pipeline(text, entry)


@pytest.mark.skipif(gpu_device() is None, reason="no GPU, or no package wgpu")
def test_sizes_and_scalars_of_64_bits():
    from tests.codegen.gpu.test_wide_integers import SYMBOLIC

    device = mlcweb.webgpu()
    x = np.random.default_rng(2).random((5, 4), "float32")
    a, b = mlcweb.nd.array(x, device), mlcweb.nd.empty((5, 4), device=device)
    f = mlcweb.build(SYMBOLIC, target="webgpu")["main"]
    f(a, 100, b)
    np.testing.assert_allclose(b.numpy(), x[::-1] + (np.arange(5) * 100 // 3)[:, None], rtol=1e-6)
    before = b.numpy()
    with pytest.raises(gpu.GpuError, match="is int64 and may be 0 to 4000000000, beyond the 32"):
        f(a, 1_000_000_000, b)
    np.testing.assert_array_equal(b.numpy(), before)


def test_numbers_in_a_structure_are_aligned():
    assert uniform_bytes([]) == b""
    assert uniform_bytes([b"ab", b"cdef"]) == b"ab\0\0cdef" + bytes(8)


@pytest.mark.skipif(gpu_device("opencl") is None or gpu_device("opencl").language != "opencl",
                    reason="no OpenCL, or no package pyopencl")  # fmt: skip
class TestOpenCL:
    def test_types_that_webgpu_has_not(self):
        device = mlcweb.opencl()
        for dtype in ("float64", "int64", "uint8"):
            x = np.arange(64, dtype=dtype).reshape(4, 16)
            a, b = mlcweb.nd.array(x, device), mlcweb.nd.empty((4, 16), dtype, device)
            func = threads(value=f"A[i, j] * T.{dtype}(2)", dtype=dtype)
            mlcweb.build(func, target="opencl")["main"](a, b)
            np.testing.assert_array_equal(b.numpy(), x * 2)

    def test_divisions_by_zero_pass_on_it_and_nowhere_else(self):
        """Drivers for processors take the signal of such a division, on which engines count."""
        device = mlcweb.opencl()
        pair = [np.ones((4, 16), "int32"), np.zeros((4, 16), "int32")]
        func = threads(value="T.truncmod(A[i, j], B[i, j])", dtype="int32")
        a, b = (mlcweb.nd.array(x, device) for x in pair)
        mlcweb.build(func, target="opencl")["main"](a, b)
        assert b.numpy().shape == (4, 16)
        text = """
@T.prim_func
def main(A: T.Buffer((4, 16), "int32"), B: T.Buffer((4, 16), "int32")):
    for i, j in T.grid(4, 16):
        B[i, j] = T.truncmod(A[i, j], B[i, j])
"""
        lib = mlcweb.build(from_source(text), target="wasm")
        with pytest.raises(KernelTrap, match="divided an integer by zero"):
            lib["main"](*map(mlcweb.nd.array, pair))

    def test_what_the_compiler_refuses_has_its_line(self):
        with pytest.raises(ShaderError, match="nothing") as caught:
            gpu_device("opencl").create_pipeline("__kernel void f() {\n  nothing();\n}", "f")
        assert caught.value.line == 2

    def test_float16_is_refused_by_the_name_of_the_extension_that_is_missing(self, monkeypatch):
        monkeypatch.setattr(gpu_device("opencl"), "features", frozenset())
        func = threads(value="A[i, j] * T.float16(2)", dtype="float16")
        refusal = r'"A" is float16, which the GPU \(.*\) has not \(extension "cl_khr_fp16"\); keep'
        with pytest.raises(GpuError, match=refusal):
            mlcweb.build(func, target="opencl")

    def test_the_target_of_the_device_has_its_limits(self):
        device = gpu_device("opencl")
        target = mlcweb.target.Target.from_device("opencl")
        assert target.max_num_threads == device.limits["maxComputeInvocationsPerWorkgroup"]


@pytest.mark.skipif(nvrtc() is None, reason="no package cuda-python, or NVRTC is not installed")
def test_nvrtc_makes_code_and_names_the_line_of_an_error():
    source = mlcweb.build(threads(), "cuda -device=simulated").imported_modules[0].get_source()
    assert b".visible .entry main_kernel(" in compile_cuda(source, "compute_75")
    assert compile_cuda(source, "sm_90").startswith(b"\x7fELF")
    with pytest.raises(ShaderError, match="nothing") as caught:
        compile_cuda("__global__ void f() {\n  nothing();\n}", "compute_75")
    assert caught.value.line == 2


class Status(int):
    name = "CUDA_ERROR_UNKNOWN"


class Names:
    def __getattr__(self, name):
        return name


class MemoryOfThisMachine:
    """A driver by the names of CUDA's whose memory is this machine's, and which notes launches."""

    CUdevice_attribute = CUfunction_attribute = Names()

    def __init__(self, most_shared=232448):
        self.memory, self.launches, self.fails = {}, [], False
        self.attributes, self.most_shared = [], most_shared

    def cuDeviceGetName(self, length, device):
        return Status(0), b"A GPU\0\0"

    def cuDeviceGetAttribute(self, which, device):
        values = {
            "CAPABILITY_MAJOR": 9, "CAPABILITY_MINOR": 0, "GRID_DIM_X": 2**31 - 1,
            "MEMORY_PER_BLOCK": 49152, "BLOCK_OPTIN": self.most_shared,
        }  # fmt: skip
        return Status(0), next((v for k, v in values.items() if which.endswith(k)), 1024)

    def cuDeviceTotalMem(self, device):
        return Status(0), 1 << 30

    def cuMemAlloc(self, nbytes):
        if nbytes > 1 << 20:
            return (Status(2),)
        data = ctypes.create_string_buffer(nbytes)
        self.memory[ctypes.addressof(data)] = data
        return Status(0), ctypes.addressof(data)

    def cuMemFree(self, address):
        del self.memory[address]
        return (Status(0),)

    def cuMemcpyHtoD(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)
        return (Status(0),)

    cuMemcpyDtoH = cuMemcpyHtoD

    def cuFuncSetAttribute(self, *arguments):
        self.attributes.append(arguments)
        return (Status(0),)

    def cuLaunchKernel(self, function, *arguments):
        self.launches.append((function, arguments))
        return (Status(0),)

    def cuCtxSynchronize(self):
        return (Status(999 if self.fails else 0),)

    def __getattr__(self, name):
        return lambda *arguments: (Status(0), name)


def test_cuda_is_asked_for_dynamic_shared_memory(monkeypatch):
    driver = MemoryOfThisMachine()
    monkeypatch.setattr(cuda_device, "compile_cuda", lambda source, architecture: b"code")
    monkeypatch.setitem(gpu._devices, "cuda", cuda_device.CudaDevice(driver))
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for t in T.thread_binding(256, thread="threadIdx.x"):
        with T.block("B"):
            vt = T.axis.spatial(256, t)
            S = T.alloc_buffer((16384,), scope="shared.dyn")
            S[vt * 64] = A[vt]
            B[vt] = S[(255 - vt) * 64]
"""
    )
    dev = mlcweb.cuda()
    a, b = (mlcweb.nd.empty((256,), device=dev) for _ in range(2))
    f = mlcweb.build(func, target="cuda")["main"]
    for _ in range(3):
        f(a, b)
    nbytes = (255 * 64 + 1) * 4
    assert [arguments[6] for _, arguments in driver.launches] == [nbytes] * 3
    # The driver is told once that the function may have so much.
    assert [arguments[2] for arguments in driver.attributes] == [nbytes]
    # Of a GPU without so much, the kernel is refused before.
    driver = MemoryOfThisMachine(most_shared=49152)
    monkeypatch.setitem(gpu._devices, "cuda", cuda_device.CudaDevice(driver))
    with pytest.raises(gpu.GpuError, match=r"shares 65284 bytes .* has 49152"):
        mlcweb.build(func, target="cuda")["main"](a, b)


def test_what_cuda_is_given(monkeypatch):
    driver = MemoryOfThisMachine()
    monkeypatch.setattr(cuda_device, "compile_cuda", lambda source, architecture: b"code")
    device = cuda_device.CudaDevice(driver)
    assert (device.description, device.architecture) == ("A GPU", "sm_90")
    monkeypatch.setitem(gpu._devices, "cuda", device)
    dev = mlcweb.cuda()
    assert dev.exist
    x = np.arange(28, dtype="float32").reshape(7, 4)
    a, b = mlcweb.nd.array(x, dev), mlcweb.nd.empty((7, 4), device=dev)
    np.testing.assert_array_equal(a.numpy(), x)
    f = mlcweb.build(twice_the_sum, target="cuda")["twice_the_sum"]
    f(a, 0.5, b)
    assert len(driver.launches) == 4  # three of the loop of the host, then the last
    _, arguments = driver.launches[2]
    assert arguments[:8] == (7, 1, 1, 4, 1, 1, 0, 0)
    count = len(f.kernel.function.params) + 1
    pointers = (ctypes.c_uint64 * count).from_address(arguments[8])
    values = [ctypes.c_uint64.from_address(pointer).value for pointer in pointers[:2]]
    assert a.storage.buffer in values
    with pytest.raises(MemoryError, match="no 8000000 bytes left"):
        mlcweb.nd.empty((2_000_000,), device=dev)
    driver.fails = True
    with pytest.raises(gpu.GpuLost, match=r"The GPU failed \(CUDA_ERROR_UNKNOWN\)"):
        dev.sync()
    # The next one that is asked for is another.
    monkeypatch.setattr(cuda_device, "find_device", lambda: cuda_device.CudaDevice(driver))
    assert gpu_device("cuda") is not device
