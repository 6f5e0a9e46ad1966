"""Memory of arrays on a GPU, which only its kernels reach in place."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.engine import allocate as allocate_here
from mlcweb.runtime.host.gpu import GpuDevice, GpuMemoryError, gpu_device
from mlcweb.runtime.storage import Allocator, Storage

if TYPE_CHECKING:
    import numpy as np


class _Addresses:
    """Hands out ranges of numbers that nothing else gets."""

    def __init__(self) -> None:
        self._next = 1
        self._lock = Lock()

    def take(self, nbytes: int) -> int:
        with self._lock:
            address, self._next = self._next, self._next + max(1, nbytes)
        return address


_addresses = _Addresses()


class GpuStorage:
    """A buffer of a GPU. The addresses of its bytes are numbers that no other piece of memory
    ever gets."""

    __slots__ = ("_whole", "address", "buffer", "memory", "nbytes")

    visible = False

    def __init__(
        self, device: GpuDevice, buffer: Any, nbytes: int, whole: GpuStorage | None = None
    ) -> None:
        self.memory = device
        self.buffer = buffer
        self.nbytes = nbytes
        self.address = _addresses.take(nbytes)
        self._whole = whole

    def __del__(self) -> None:
        if self._whole is None:
            self.memory.destroy_buffer(self.buffer)

    def view(self) -> np.ndarray[Any, Any]:
        """Not on a GPU: raises a TVMError."""
        raise TVMError(
            "Arrays on a GPU cannot be viewed in place; copy them out by .numpy() and in by "
            ".copyfrom(x)"
        )

    def read(self) -> np.ndarray[Any, Any]:
        return self.memory.read(self.buffer, self.nbytes)

    def write(self, data: np.ndarray[Any, Any]) -> None:
        self.memory.write(self.buffer, data)

    def part(self, nbytes: int) -> GpuStorage:
        return GpuStorage(self.memory, self.buffer, nbytes, self._whole or self)


def allocator(kind: str) -> Allocator:
    """What hands out memory of the GPU that devices of a kind are here, or of this machine where
    there is none. It raises a GpuMemoryError where the GPU has no room."""

    def allocate(nbytes: int) -> Storage:
        device = gpu_device(kind)
        return allocate_here(nbytes) if device is None else allocate_on(device, nbytes)

    return allocate


def allocate_on(device: GpuDevice, nbytes: int) -> GpuStorage:
    """Memory of a GPU; a GpuMemoryError where it has no room."""
    most = min(device.limits["maxBufferSize"], device.limits["maxStorageBufferBindingSize"])
    if nbytes > most:
        raise GpuMemoryError(
            f"The GPU ({device.description}) has {most} bytes for an array at most"
        )
    return GpuStorage(device, device.create_buffer(nbytes), nbytes)
