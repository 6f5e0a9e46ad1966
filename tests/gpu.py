"""What runs or checks source of kernels where there is no GPU: NVRTC, an OpenCL, a WebGPU.

Each is optional: `runners()` has those that this machine has.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache, partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

import mlcweb
from mlcweb.codegen.gpu.kernels import DeviceKernel, kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES
from mlcweb.codegen.gpu.printer import write_kernels
from mlcweb.runtime.host.gpu import gpu_device
from mlcweb.tir import PrimFunc
from mlcweb.tir.buffer import Buffer

Runner = Callable[[Sequence[DeviceKernel], Sequence[Sequence[Any]]], None]
"""Runs kernels on arrays, which it changes in place."""


def assert_kernels_give(func: PrimFunc, inputs: Sequence[Any], expected: Any) -> None:
    """The kernels compile as CUDA, and compute what they should on each device that is here."""
    kernels = kernels_of(func, "main")[1]
    for kind in ("cuda", "metal", "opencl", "webgpu"):
        assert write_kernels(kernels, LANGUAGES[kind])
    if nvrtc() is not None:
        assert compile_cuda(write_kernels(kernels, LANGUAGES["cuda"])) == ""
    for kind, runner in runners().items():
        out = np.full(expected.shape, -7, expected.dtype)
        runner(func, [*(np.ascontiguousarray(x).copy() for x in inputs), out])
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5, err_msg=kind)


def run_on(runner: Runner, func: PrimFunc, arrays: Sequence[Any]) -> None:
    """Run a function whose kernels follow each other, and take its parameters only."""
    lowered, kernels = kernels_of(func, "main")
    parameters = zip(lowered.parameter_buffers, arrays, strict=True)
    by_data = {buffer.data: array for buffer, array in parameters}

    def memory(buffer: Buffer) -> Any:
        if buffer.data not in by_data:
            by_data[buffer.data] = np.zeros([int(extent) for extent in buffer.shape], buffer.dtype)
        return by_data[buffer.data]

    runner(kernels, [[memory(buffer) for buffer in kernel.buffers] for kernel in kernels])


def grid(kernel: DeviceKernel) -> list[int]:
    """The blocks of a launch along x, y and z."""
    return [kernel.extent(f"blockIdx.{axis}").value for axis in "xyz"]


def _installed(pattern: str) -> list[Path]:
    """Files of NVIDIA's packages, then of a CUDA toolkit."""
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations or () if package else ()
    return [
        file
        for folder in (*folders, *glob("/usr/local/cuda*"))
        for file in Path(folder).rglob(pattern)
    ]


@cache
def nvrtc() -> Any:
    """NVIDIA's compiler, which needs no GPU; None where it is not installed."""
    for file in _installed("libnvrtc.so*"):
        return ctypes.CDLL(str(file))
    return None


@cache
def cuda_headers() -> list[str]:
    """The folders of the headers of float16 and of tensor cores; none where these are missing."""
    folders = [file.parent for file in _installed("mma.h") if file.parent.name == "include"]
    return [str(folder) for folder in (folders[0], folders[0] / "cccl")] if folders else []


def compile_cuda(source: str, architecture: str = "compute_75") -> str:
    """What NVRTC says of a source; "" where it compiles, or needs headers that are not here."""
    if "#include" in source and not cuda_headers():
        return ""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    flags = [f"--gpu-architecture={architecture}", *(f"-I{path}" for path in cuda_headers())]
    options = (ctypes.c_char_p * len(flags))(*map(str.encode, flags))
    failed = library.nvrtcCompileProgram(program, len(flags), options)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if failed else ""


@cache
def opencl() -> Runner | None:
    """An OpenCL device; None where there is none."""
    try:
        import pyopencl as cl

        context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    except Exception:
        return None
    queue = cl.CommandQueue(context)

    def run(kernels: Sequence[DeviceKernel], arrays: Sequence[Sequence[Any]]) -> None:
        program = cl.Program(context, write_kernels([*kernels], LANGUAGES["opencl"])).build()
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        every = {id(array): array for group in arrays for array in group}
        buffers = {key: cl.Buffer(context, flags, hostbuf=array) for key, array in every.items()}
        for kernel, group in zip(kernels, arrays, strict=True):
            block = kernel.block_size()
            items = [blocks * threads for blocks, threads in zip(grid(kernel), block, strict=True)]
            call = getattr(program, kernel.name)
            call(queue, items, list(block), *(buffers[id(array)] for array in group))
        for key, array in every.items():
            cl.enqueue_copy(queue, array, buffers[key])
        queue.finish()

    return run


def run_on_webgpu(func: PrimFunc, arrays: Sequence[Any]) -> None:
    """Run a function on the GPU that is there, as programs do."""
    dev = mlcweb.webgpu()
    on_gpu = [mlcweb.nd.array(array, dev) for array in arrays]
    mlcweb.build(func, target="webgpu")(*on_gpu)
    for array, result in zip(arrays, on_gpu, strict=True):
        array[...] = result.numpy()


def runners() -> dict[str, Callable[[PrimFunc, Sequence[Any]], None]]:
    """What can run functions here, by the kind of target."""
    there: dict[str, Callable[[PrimFunc, Sequence[Any]], None]] = {}
    if (runner := opencl()) is not None:
        there["opencl"] = partial(run_on, runner)
    if gpu_device() is not None:
        there["webgpu"] = run_on_webgpu
    return there
