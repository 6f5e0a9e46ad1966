"""What a GPU's limits mean for targets and for kernels, in sentences, before anything is sent to
it."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.codegen.gpu import check_limits
from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.gpu import GpuDevice, GpuError, target_attributes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer

_FLOAT16 = {"webgpu": 'feature "shader-f16"', "opencl": 'extension "cl_khr_fp16"'}
"""What languages ask of a GPU for numbers of float16; CUDA asks nothing."""


def check_kernel(kernel: DeviceKernel, device: GpuDevice) -> None:
    """A GpuError where a GPU lacks what a kernel needs: what is known before it is called."""
    try:
        dynamic = device.limits.get("maxDynamicSharedMemory")
        check_limits(kernel, device.description, target_attributes(device), dynamic)
    except TVMError as error:
        raise GpuError(error.message, error.span) from None
    buffers: Sequence[Buffer] = (*kernel.buffers, *kernel.shared)
    half = next((buffer for buffer in buffers if buffer.dtype == "float16"), None)
    if half is not None and "shader-f16" not in device.features:
        raise GpuError(
            f'"{half.name}" is float16, which the GPU ({device.description}) has not '
            f"({_FLOAT16[device.language]}); keep it in float32"
        )
    most = device.limits["maxStorageBuffersPerShaderStage"]
    if len(kernel.buffers) > most:
        raise GpuError(
            f'"{kernel.name}" works on {len(kernel.buffers)} arrays, and a kernel on the GPU '
            f"({device.description}) on {most} at most; split it into several"
        )
    for axis, threads in zip("XYZ", kernel.block_size(), strict=True):
        most = device.limits[f"maxComputeWorkgroupSize{axis}"]
        if threads > most:
            raise GpuError(
                f'"{kernel.name}" has {threads} threads along threadIdx.{axis.lower()}, and the '
                f"GPU ({device.description}) has {most} at most; split the loop, and bind its "
                "parts to two axes"
            )
    grid = [kernel.extent(f"blockIdx.{axis}") for axis in "xyz"]
    check_grid(kernel, [one.value if isinstance(one, E.IntImm) else 1 for one in grid], device)


def check_grid(kernel: DeviceKernel, grid: Sequence[int], device: GpuDevice) -> None:
    """A GpuError where a launch has more blocks than a GPU counts."""
    every = device.limits["maxComputeWorkgroupsPerDimension"]
    for axis, blocks in zip("xyz", grid, strict=True):
        # CUDA counts farther along x.
        most = device.limits.get(f"maxComputeWorkgroups{axis.upper()}", every)
        if blocks > most:
            raise GpuError(
                f'"{kernel.name}" is launched in {blocks} blocks along blockIdx.{axis}, and the '
                f"GPU ({device.description}) has {most} at most; split the loop, and bind its "
                f'outer part to "blockIdx.{"y" if axis == "x" else "x"}"'
            )
