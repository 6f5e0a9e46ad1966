"""Addresses in a memory that only grows: blocks are handed out, taken back, and used again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from mlcweb.codegen.wasm.module import MAXIMUM_PAGES, PAGE_BYTES
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.storage import ALIGNMENT

if TYPE_CHECKING:
    import numpy as np

STAGGER = 17 * ALIGNMENT
"""Bytes left free behind a large block. Arrays whose sizes are powers of two would all begin at the
same place of a page otherwise, and a processor takes a load for one that has to wait for a store
before it where their addresses agree in the last 12 bits: kernels were seen to take up to 2.5 times
as long. The number of lines is odd, so that 64 arrays begin at 64 places."""
LARGE = 8192
"""Bytes of a large block."""
FIRST_ADDRESS = 4096
"""Nothing lies below, so that a null pointer, and what is a little beside it, hits no array."""


class OutOfMemory(TVMError, MemoryError):
    """The memory of WebAssembly is full."""


class Arena:
    """The blocks of one WebAssembly memory. `grow(pages)` makes that memory so many pages longer
    and raises a MemoryError where it cannot.

    Threads may share an arena. Taking a block back needs no lock, since the garbage collector may
    do it at any time, in the middle of `allocate`, too.
    """

    def __init__(self, grow: Callable[[int], None]) -> None:
        self._grow = grow
        self._free: dict[int, list[int]] = {}
        self._lock = Lock()
        self.pages = 1
        self.end = FIRST_ADDRESS

    def take(self, nbytes: int) -> tuple[int, list[int]]:
        """The address of a block of at least so many bytes, its content undefined; and the list to
        which it is to be appended when nobody needs the block any more.

        Raises:
            OutOfMemory: the memory cannot grow so far.
        """
        room = rounded(nbytes)
        blocks = self._free.get(room)
        if blocks is None:
            blocks = self._free.setdefault(room, [])
        try:
            return blocks.pop(), blocks
        except IndexError:
            with self._lock:
                return self._extend(room), blocks

    def _extend(self, room: int) -> int:
        address = self.end
        if room >= LARGE:
            room += STAGGER
        needed = -(-(address + room) // PAGE_BYTES)
        if needed > self.pages and not self._extended(needed):
            raise OutOfMemory(
                f"The memory of WebAssembly is full: {_megabytes(address)} are taken, and "
                f"{_megabytes(room)} more were asked for"
            )
        self.end = address + room
        return address

    def _extended(self, needed: int) -> bool:
        """Whether the memory could be made `needed` pages long."""
        # Some more than is needed, so that many small arrays do not grow it again and again.
        for pages in (max(needed, self.pages * 5 // 4), needed):
            if pages <= MAXIMUM_PAGES:
                try:
                    self._grow(pages - self.pages)
                except MemoryError:
                    continue
                self.pages = pages
                return True
        return False


class ArenaStorage:
    """Memory of an array in the memory of a host, which is `memory`: a `Storage`. `address` counts
    from the start of that memory; it goes to the list `free`, where there is one, when nobody holds
    the storage."""

    __slots__ = ("__weakref__", "_free", "address", "memory", "nbytes", "whole")

    def __init__(
        self,
        memory: Any,
        address: int,
        nbytes: int,
        whole: ArenaStorage | None = None,
        free: list[int] | None = None,
    ) -> None:
        self.memory = memory
        self.address = address
        self.nbytes = nbytes
        self.whole = whole
        self._free = free

    def __del__(self) -> None:
        if self._free is not None:
            self._free.append(self.address)

    @property
    def visible(self) -> bool:
        return self.memory.visible

    def view(self) -> np.ndarray[Any, Any]:
        return self.memory.view(self.address, self.nbytes)

    def read(self) -> np.ndarray[Any, Any]:
        return self.memory.read(self.address, self.nbytes)

    def write(self, data: np.ndarray[Any, Any]) -> None:
        self.memory.write(self.address, data)

    def part(self, nbytes: int) -> Self:
        return type(self)(self.memory, self.address, nbytes, self)


@lru_cache(maxsize=1024)
def rounded(nbytes: int) -> int:
    """The size of the block for so many bytes: one of four sizes between powers of two, so that
    freed blocks fit other arrays, too."""
    units = max(1, -(-nbytes // ALIGNMENT))
    step = 1 << max(0, units.bit_length() - 3)
    return -(-units // step) * step * ALIGNMENT


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 2**20:.1f} MB"
