"""What runs or checks source of kernels where there is no GPU: NVRTC, an OpenCL, a WebGPU.

Each is optional: `runners()` has those that this machine has.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from mlcweb.codegen.gpu.kernels import DeviceKernel, kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES
from mlcweb.codegen.gpu.printer import write_kernels
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
        run_on(runner, func, [*(np.ascontiguousarray(x).copy() for x in inputs), out])
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


@cache
def webgpu() -> Runner | None:
    """A WebGPU device; None where there is none."""
    try:
        import wgpu

        device = wgpu.gpu.request_adapter_sync().request_device_sync()
    except Exception:
        return None

    def run(kernels: Sequence[DeviceKernel], arrays: Sequence[Sequence[Any]]) -> None:
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
        every = {id(array): array for group in arrays for array in group}
        buffers = {k: device.create_buffer_with_data(data=a, usage=usage) for k, a in every.items()}
        for kernel, group in zip(kernels, arrays, strict=True):
            code = write_kernels([kernel], LANGUAGES["webgpu"])
            module = device.create_shader_module(code=code)
            pipeline = device.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": kernel.name}
            )
            entries = [
                {
                    "binding": n,
                    "resource": {"buffer": buffers[id(a)], "offset": 0, "size": a.nbytes},
                }
                for n, a in enumerate(group)
            ]
            layout = pipeline.get_bind_group_layout(0)
            encoder = device.create_command_encoder()
            compute = encoder.begin_compute_pass()
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, device.create_bind_group(layout=layout, entries=entries))
            compute.dispatch_workgroups(*grid(kernel))
            compute.end()
            device.queue.submit([encoder.finish()])
        for key, array in every.items():
            data = device.queue.read_buffer(buffers[key])
            array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)

    return run


def runners() -> dict[str, Runner]:
    """What can run kernels here, by the kind of target."""
    there = {"opencl": opencl(), "webgpu": webgpu()}
    return {kind: runner for kind, runner in there.items() if runner is not None}
