"""What runs or checks source of kernels: NVRTC, which needs no GPU, an OpenCL, a WebGPU, a GPU of
NVIDIA.

Each is optional: `runners()` has those that this machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import mlcweb
from mlcweb.codegen.gpu.kernels import DeviceKernel, kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES
from mlcweb.codegen.gpu.printer import write_kernels
from mlcweb.runtime.host.gpu import ShaderError, gpu_device
from mlcweb.runtime.host.nvrtc import compile_cuda as compile_source
from mlcweb.runtime.host.nvrtc import headers
from mlcweb.runtime.host.opencl_device import division_handler
from mlcweb.tir import PrimFunc
from mlcweb.tir.buffer import Buffer

Runner = Callable[[Sequence[DeviceKernel], Sequence[Sequence[Any]]], None]
"""Runs kernels on arrays, which it changes in place."""


def assert_kernels_give(func: PrimFunc, inputs: Sequence[Any], expected: Any) -> None:
    """The kernels compile as CUDA, and compute what they should on each device that is here."""
    kernels = kernels_of(func, "main")[1]
    for kind in ("cuda", "metal", "opencl", "webgpu"):
        assert write_kernels(kernels, LANGUAGES[kind])
    in_warps = kernels_of(func, "main", warp=32)[1]
    assert write_kernels(in_warps, LANGUAGES["metal"])
    for each in (kernels, in_warps):
        assert compile_cuda(write_kernels(each, LANGUAGES["cuda"])) == ""
    for kind, runner in runners().items():
        out = np.full(expected.shape, 77, expected.dtype)
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


@cache
def nvrtc() -> Callable[[str, str], bytes] | None:
    """NVIDIA's compiler, which needs no GPU; None where it is not installed."""
    try:
        compile_source("__global__ void f() {}", "compute_75")
    except Exception:  # the package, or the library that it looks for, is missing
        return None
    return compile_source


def compile_cuda(source: str, architecture: str = "compute_75") -> str:
    """What NVRTC says of a source; "" where it compiles, and where NVRTC is not here, or a header
    that the source needs."""
    if nvrtc() is None or ("#include" in source and not headers()):
        return ""
    try:
        compile_source(source, architecture)
    except ShaderError as error:
        return f"line {error.line}: {error.message}"
    return ""


@cache
def opencl() -> Runner | None:
    """An OpenCL device; None where there is none."""
    try:
        import pyopencl as cl

        with division_handler().installed_within():
            context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    except Exception:
        return None
    queue = cl.CommandQueue(context)

    def run(kernels: Sequence[DeviceKernel], arrays: Sequence[Sequence[Any]]) -> None:
        program = cl.Program(context, write_kernels([*kernels], LANGUAGES["opencl"])).build()
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        every = {id(array): array for group in arrays for array in group}
        buffers = {key: cl.Buffer(context, flags, hostbuf=array) for key, array in every.items()}
        division_handler().enter()
        for kernel, group in zip(kernels, arrays, strict=True):
            block = kernel.block_size()
            items = [blocks * threads for blocks, threads in zip(grid(kernel), block, strict=True)]
            call = getattr(program, kernel.name)
            call(queue, items, list(block), *(buffers[id(array)] for array in group))
        for key, array in every.items():
            cl.enqueue_copy(queue, array, buffers[key])
        queue.finish()
        division_handler().leave()

    return run


def run_on_gpu(kind: str, func: PrimFunc, arrays: Sequence[Any]) -> None:
    """Run a function on the GPU that is there, as programs do."""
    dev = mlcweb.runtime.device(kind)
    on_gpu = [mlcweb.nd.array(array, dev) for array in arrays]
    mlcweb.build(func, target=kind)(*on_gpu)
    for array, result in zip(arrays, on_gpu, strict=True):
        array[...] = result.numpy()


def runners() -> dict[str, Callable[[PrimFunc, Sequence[Any]], None]]:
    """What can run functions here, by the kind of target."""
    there: dict[str, Callable[[PrimFunc, Sequence[Any]], None]] = {}
    if (runner := opencl()) is not None:
        there["opencl"] = partial(run_on, runner)
    for kind in ("webgpu", "cuda"):
        if (gpu := gpu_device(kind)) is not None and gpu.language == kind:
            there[kind] = partial(run_on_gpu, kind)
    return there
