"""Devices: where arrays live and functions run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from mlcweb.ir.dialect import also_named
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.gpu import gpu_device

DEVICE_TYPES = {
    "cpu": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10,
    "ext_dev": 12, "webgpu": 15, "hexagon": 16,
}  # fmt: skip
"""DLPack's numbers of the device types that programs name."""

_ALIASES = {"llvm": "cpu", "c": "cpu", "numpy": "cpu", "interpreter": "cpu", "wasm": "cpu",
            "simulated": "cpu",
            "gpu": "cuda", "nvptx": "cuda"}  # fmt: skip


_WITH_ARRAYS = ("cpu", "cuda", "opencl", "vulkan", "metal", "webgpu")
"""The devices that there are, or that are simulated."""


class UnknownDeviceError(TVMError, ValueError):
    """No device has the name."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device: its type by name, and its number among the devices of that type."""

    type: str
    index: int = 0

    @property
    def device_type(self) -> int:
        return DEVICE_TYPES[self.type]

    def dlpack_device_type(self) -> int:
        """`device_type`, by its name since 2025."""
        return self.device_type

    @property
    def device_id(self) -> int:
        return self.index

    max_threads_per_block = warp_size = max_shared_memory_per_block = compute_version = None
    device_name = max_clock_rate = multi_processor_count = max_thread_dimensions = None
    api_version = driver_version = total_global_memory = available_global_memory = None
    l2_cache_size_bytes = texture_spatial_limit = None
    # What drivers of GPUs tell. As in TVM, a device that does not say has None.

    @property
    def exist(self) -> bool:
        """Whether this machine has the device. Where it has none of the type, arrays of it live on
        the GPU that WebGPU reaches, or in the memory of the processor."""
        if self.type in _WITH_ARRAYS and self.type != "cpu":
            gpu = gpu_device(self.type)
            return self.index == 0 and gpu is not None and gpu.language == self.type
        return self.type == "cpu" and self.index == 0

    def sync(self, stream: object = None) -> None:
        """Wait until the device is idle; the processor always is when Python runs."""
        if self.type in _WITH_ARRAYS and self.type != "cpu" and (gpu := gpu_device(self.type)):
            gpu.wait()

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}', index={self.index})"


@also_named(dev="device_type", dev_id="index")
def device(device_type: str | int | Device, index: int | None = None) -> Device:
    """A device by name: "cpu", "cpu:0", or a target's name such as "llvm"; or by DLPack's number
    of its type."""
    if isinstance(device_type, Device):
        return device_type
    if isinstance(device_type, int):
        names = {number: name for name, number in DEVICE_TYPES.items()}
        device_type = names.get(device_type, str(device_type))
    name, _, number = device_type.split()[0].partition(":")
    name = _ALIASES.get(name, name)
    if name not in DEVICE_TYPES:
        raise UnknownDeviceError(
            f'Unknown device "{device_type}"; there are {", ".join(DEVICE_TYPES)}'
        )
    return _device(name, int(number or index or 0))


@cache
def _device(name: str, index: int) -> Device:
    """One object for each device: functions compare their arguments' by identity first."""
    return Device(name, index)


def _of_type(name: str) -> Callable[..., Device]:
    def of_number(dev_id: int = 0) -> Device:
        return _device(name, dev_id)

    of_number.__name__ = of_number.__qualname__ = name
    of_number.__doc__ = f'The device "{name}" of a number.'
    return of_number


cpu, cuda, opencl, vulkan, metal, rocm, ext_dev, webgpu, hexagon = map(_of_type, DEVICE_TYPES)


def require(dev: Device) -> Device:
    """`dev`, or a TVMError where arrays cannot live on it here."""
    if dev.type not in _WITH_ARRAYS or dev.index:
        raise TVMError(f"There is no device {dev} here; arrays live on {cpu()}")
    return dev
