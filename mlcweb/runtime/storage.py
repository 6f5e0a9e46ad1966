"""Memory of arrays. An allocator hands out `Storage`; another allocator may keep arrays in the
memory of a device that Python cannot see into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


HOST_MEMORY, BORROWED = object(), object()
"""Memory of the Python process: taken for an array, or belonging to some other object."""


class Storage(Protocol):
    """A piece of memory."""

    @property
    def nbytes(self) -> int: ...

    @property
    def address(self) -> int:
        """Where the bytes start, in the address space that kernels use."""
        ...

    @property
    def memory(self) -> object:
        """What the bytes are a piece of. Pieces of one memory are apart from each other; only those
        of `BORROWED` may overlap anything."""
        ...

    @property
    def visible(self) -> bool:
        """Whether Python can reach the bytes in place."""
        ...

    def view(self) -> np.ndarray[Any, Any]:
        """The bytes themselves, as a uint8 array; a TVMError where Python cannot reach them."""
        ...

    def read(self) -> np.ndarray[Any, Any]:
        """A copy of the bytes, as a uint8 array."""
        ...

    def write(self, data: np.ndarray[Any, Any]) -> None:
        """Overwrite all bytes with those of a contiguous array of the same size."""
        ...

    def part(self, nbytes: int) -> Storage:
        """The first `nbytes` bytes, which keep the whole. Whoever takes several parts sees to it
        that they are not needed at the same time."""
        ...


class HostStorage:
    """Memory of the Python process."""

    __slots__ = ("_bytes", "memory")

    visible = True

    def __init__(self, data: np.ndarray[Any, Any], memory: object = HOST_MEMORY) -> None:
        self._bytes = data
        self.memory = memory

    @property
    def nbytes(self) -> int:
        return self._bytes.nbytes

    @property
    def address(self) -> int:
        return self._bytes.ctypes.data

    def view(self) -> np.ndarray[Any, Any]:
        return self._bytes

    def read(self) -> np.ndarray[Any, Any]:
        return self._bytes.copy()

    def write(self, data: np.ndarray[Any, Any]) -> None:
        self._bytes[...] = data.reshape(-1).view("uint8")

    def part(self, nbytes: int) -> HostStorage:
        return HostStorage(self._bytes[:nbytes], self.memory)


class StorageView:
    """Some bytes of another storage, from `start` on. It may overlap others."""

    __slots__ = ("nbytes", "start", "whole")

    memory = BORROWED

    def __init__(self, storage: Storage, start: int, nbytes: int) -> None:
        if isinstance(storage, StorageView):
            storage, start = storage.whole, storage.start + start
        self.whole, self.start, self.nbytes = storage, start, nbytes

    @property
    def address(self) -> int:
        return self.whole.address + self.start

    @property
    def visible(self) -> bool:
        return self.whole.visible

    def view(self) -> np.ndarray[Any, Any]:
        return self.whole.view()[self.start : self.start + self.nbytes]

    def read(self) -> np.ndarray[Any, Any]:
        if self.visible:
            return self.view().copy()
        return self.whole.read()[self.start : self.start + self.nbytes]

    def write(self, data: np.ndarray[Any, Any]) -> None:
        if self.visible:
            self.view()[...] = data.reshape(-1).view("uint8")
            return
        contents = self.whole.read()
        contents[self.start : self.start + self.nbytes] = data.reshape(-1).view("uint8")
        self.whole.write(contents)

    def part(self, nbytes: int) -> StorageView:
        return StorageView(self.whole, self.start, nbytes)


Allocator = Callable[[int], Storage]
"""Hands out memory of a number of bytes, its content undefined."""


def allocate_on_host(nbytes: int) -> HostStorage:
    """Fresh memory of the Python process, aligned, its content undefined."""
    import numpy as np

    room = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return HostStorage(room[start : start + nbytes])


_allocators: dict[str, Allocator] = {"cpu": allocate_on_host}


def register_allocator(device_type: str, allocator: Allocator) -> None:
    """Take the memory of new arrays on a type of device from `allocator`."""
    _allocators[device_type] = allocator


def allocate(nbytes: int, device_type: str) -> Storage:
    """Memory for an array on a device: the processor's, where that stands in for another."""
    return _allocators.get(device_type, _allocators["cpu"])(nbytes)
