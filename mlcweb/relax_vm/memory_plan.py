"""Which tensors of a function share memory: those that are not needed at the same time.

A linear scan in the order of execution. A tensor takes the smallest piece that is free and large
enough, else the largest one that is free, which grows, else a new one. Results of a function are
not planned: each call makes new ones, so that no call overwrites what another has returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlcweb.relax_vm.instructions import Alloc, FunctionPlan, Register
from mlcweb.relax_vm.lifetimes import Lifetime, lifetimes
from mlcweb.relax_vm.sizes import known_sizes
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import Var as PrimVar

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The pieces of memory of a function, and what is in them.

    `pieces` are their sizes in bytes; `place` tells the piece of an intermediate tensor by its
    register, and `tensors` its own size. `results` are the sizes of the tensors that the function
    may return, `dynamic` counts those whose size is known only when it runs.
    """

    pieces: tuple[int, ...]
    place: Mapping[Register, int]
    tensors: Mapping[Register, int]
    results: tuple[int, ...]
    dynamic: int

    @property
    def bytes_before(self) -> int:
        """The memory that all tensors would take, each by itself."""
        return sum(self.tensors.values()) + sum(self.results)

    @property
    def bytes_after(self) -> int:
        """The memory that the function takes at most."""
        return sum(self.pieces) + sum(self.results)


def plan_memory(
    plan: FunctionPlan,
    sizes: Mapping[PrimVar, int],
    keeps_arguments: Callable[[str], bool],
    reuse: bool = True,
) -> MemoryPlan:
    """The pieces for a function whose symbolic extents have the values `sizes`. Without `reuse`
    each tensor has a piece of its own."""
    scan = _Scan(reuse)
    results: list[int] = []
    dynamic = 0
    for lifetime in lifetimes(plan, keeps_arguments):
        nbytes = tensor_bytes(lifetime.alloc, sizes)
        if nbytes is None:
            dynamic += 1
        elif lifetime.end is None:
            results.append(nbytes)
        else:
            scan.place_tensor(lifetime, lifetime.end, nbytes)
    pieces = tuple(scan.pieces)
    return MemoryPlan(pieces, scan.place, scan.tensors, tuple(results), dynamic)


def tensor_bytes(alloc: Alloc, sizes: Mapping[PrimVar, int]) -> int | None:
    """The size of a tensor; None where its extents are not known yet."""
    shape = known_sizes(alloc.shape, sizes)
    return None if shape is None else math.prod(shape) * dtypes.size_in_bytes(alloc.dtype)


class _Scan:
    def __init__(self, reuse: bool) -> None:
        self.reuse = reuse
        self.pieces: list[int] = []
        self.place: dict[Register, int] = {}
        self.tensors: dict[Register, int] = {}
        self._needed_until: list[int] = []

    def place_tensor(self, lifetime: Lifetime, end: int, nbytes: int) -> None:
        room = -(-nbytes // ALIGNMENT) * ALIGNMENT
        free = [
            piece
            for piece, until in enumerate(self._needed_until)
            if self.reuse and until < lifetime.start
        ]
        piece = self._chosen(free, room)
        self.pieces[piece] = max(self.pieces[piece], room)
        self._needed_until[piece] = end
        self.place[lifetime.alloc.dst] = piece
        self.tensors[lifetime.alloc.dst] = nbytes

    def _chosen(self, free: Sequence[int], room: int) -> int:
        enough = [piece for piece in free if self.pieces[piece] >= room]
        if enough:
            return min(enough, key=self.pieces.__getitem__)
        if free:
            return max(free, key=self.pieces.__getitem__)
        self.pieces.append(0)
        self._needed_until.append(0)
        return len(self.pieces) - 1
