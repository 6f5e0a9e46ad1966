"""The namespace `tvm.nd`: arrays and devices."""

from mlcweb.runtime.device import Device, cpu, cuda, device, metal, vulkan, webgpu
from mlcweb.runtime.ndarray import NDArray, array, empty, from_dlpack, gpu

__all__ = [
    "Device",
    "NDArray",
    "array",
    "cpu",
    "cuda",
    "device",
    "empty",
    "from_dlpack",
    "gpu",
    "metal",
    "vulkan",
    "webgpu",
]
