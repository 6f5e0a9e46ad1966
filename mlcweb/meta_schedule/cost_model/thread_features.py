"""Numbers that tell how fast a program of threads may be on a GPU: what each warp moves, what a
block keeps, how many blocks fit beside each other.

They stand beside those of loops. Nothing is lowered for them either, so they are estimates: a warp
is taken at the start of all loops, and the memory of a block is what it touches of a buffer between
writing and reading it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from mlcweb.analysis.threads import is_own, is_shared
from mlcweb.ir import IRModule
from mlcweb.meta_schedule.cost_model import loop_features
from mlcweb.meta_schedule.cost_model.loop_nests import LANES, Access, Nest, nests_of
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.stmt import ForKind

if TYPE_CHECKING:
    import numpy as np

SECTOR = 32
"""Bytes that global memory moves at once."""

BANKS = 32
WORD = 4
"""Bytes that a bank of shared memory gives at once."""

THREADS = 2048
REGISTERS = 65536
SHARED = 65536
"""What a multiprocessor holds of threads, of registers and of bytes of shared memory: that of most
GPUs since 2016."""

BASE_REGISTERS = 10
"""What a thread needs beside its arrays."""

CYCLES = {"sector": 2.0, "pass": 1.0, "operation": 1 / 128}
"""How long a multiprocessor takes for each, about."""

_NAMES = (
    "blocks", "threads", "virtual threads", "work of a thread",
    "global requests", "global sectors", "global bytes", "sectors of a request",
    "shared requests", "shared passes", "passes of a request",
    "own accesses", "shared stores of a thread",
    "shared bytes of a block", "own bytes of a thread",
    "blocks at a time", "threads at a time", "rounds",
    "work of a sector", "work of a pass",
    "global cycles", "shared cycles", "arithmetic cycles", "most cycles",
)  # fmt: skip

NAMES = (*loop_features.NAMES, *(f"launch {name}" for name in _NAMES))
"""What each number means: those of `loop_features`, then those of the launch."""


def features(module: IRModule) -> np.ndarray:
    """The numbers of a program scheduled for a GPU: a float64 array of shape (len(NAMES),), as
    `NAMES` tells them apart; logarithms to base 2 of one more."""
    import numpy as np

    nests = nests_of(module)
    launch = _launch(nests) if nests else [0.0] * len(_NAMES)
    return np.concatenate([loop_features.features_of(nests), np.log2(1.0 + np.array(launch))])


def _launch(nests: Sequence[Nest]) -> list[float]:
    blocks = max(_extent(nest, "blockIdx") for nest in nests)
    threads = max(nest.threads for nest in nests)
    work = sum(nest.iterations * sum(nest.operations.values()) for nest in nests)
    global_requests = global_sectors = global_bytes = 0.0
    shared_requests = shared_passes = own_accesses = shared_stores = 0.0
    for nest in nests:
        warps_of_thread = -(-nest.threads // LANES) / nest.threads
        for access in nest.accesses:
            times, size = _issued(nest, access)
            requests = times * warps_of_thread
            places = {lane * access.item_bytes for lane in access.lanes}
            if is_own(access.buffer):
                own_accesses += times
            elif is_shared(access.buffer):
                shared_requests += requests
                shared_passes += requests * passes(places, size)
                if access.writes:
                    shared_stores += times / (blocks * threads)
            else:
                global_requests += requests
                global_sectors += requests * sectors(places, size)
                global_bytes += requests * len(places) * size
    shared_bytes, own_bytes = _kept_bytes(nests)
    registers = threads * (BASE_REGISTERS + own_bytes / WORD)
    # Half a block, where not even one fits: the slowest that can be.
    fits = min(THREADS // threads, SHARED // max(shared_bytes, 1), int(REGISTERS / registers))
    at_a_time = min(max(fits, 0.5), blocks)
    cycles = [
        global_sectors * CYCLES["sector"],
        shared_passes * CYCLES["pass"],
        work * CYCLES["operation"],
    ]
    return [
        blocks, threads, max(_extent(nest, "vthread") for nest in nests), work / (blocks * threads),
        global_requests, global_sectors, global_bytes, global_sectors / max(global_requests, 1.0),
        shared_requests, shared_passes, shared_passes / max(shared_requests, 1.0),
        own_accesses, shared_stores,
        shared_bytes, own_bytes,
        at_a_time, at_a_time * threads, blocks / at_a_time,
        work / max(global_sectors, 1.0), work / max(shared_passes, 1.0),
        *cycles, max(cycles),
    ]  # fmt: skip


def sectors(places: Iterable[int], size: int) -> int:
    """How many pieces of global memory a warp touches whose lanes are at these bytes, each for
    `size` bytes."""
    return len({(place + byte) // SECTOR for place in places for byte in (0, size - 1)})


def passes(places: Iterable[int], size: int) -> int:
    """How often the banks of shared memory are read for a warp: as often as the one that most
    words are in."""
    words = {word for place in places for word in range(place // WORD, -(-(place + size) // WORD))}
    return max(Counter(word % BANKS for word in words).values())


def _extent(nest: Nest, axis: str) -> int:
    return prod(loop.extent for loop in nest.loops if loop.axis.startswith(axis))


def _issued(nest: Nest, access: Access) -> tuple[float, int]:
    """How often all threads make an access, and of how many bytes: the innermost loops that leave
    it where it is find it in a register, vectors are one access."""
    times, size = float(nest.iterations), access.item_bytes
    for loop, stride, span in zip(
        reversed(nest.loops), reversed(access.strides), reversed(access.spans), strict=True
    ):
        if loop.axis:
            continue
        if any(span):
            if loop.kind != ForKind.VECTORIZED or stride != 1:
                break
            size *= loop.extent
        times /= loop.extent
    return times, size


def _kept_bytes(nests: Sequence[Nest]) -> tuple[int, int]:
    """Bytes of shared memory of a block, and of the own memory of a thread: what is touched of each
    buffer in the loops that are not around all of its accesses. Those over the threads that see one
    buffer are around none of them."""
    users: dict[Buffer, list[tuple[Nest, Access]]] = defaultdict(list)
    for nest in nests:
        for access in nest.accesses:
            users[access.buffer].append((nest, access))
    shared = own = 0
    for buffer, uses in users.items():
        if not (is_shared(buffer) or is_own(buffer)):
            continue
        seen_by = ("threadIdx", "vthread") if is_shared(buffer) else ("vthread",)
        around = set.intersection(*({loop.var for loop in nest.loops} for nest, _ in uses))
        size = 0
        for nest, access in uses:
            inside = [
                span
                for loop, span in zip(nest.loops, access.spans, strict=True)
                if loop.var not in around or loop.axis.startswith(seen_by)
            ]
            size = max(size, prod(access.box_of(inside)) * access.item_bytes)
        if is_shared(buffer):
            shared += size
        else:
            own += size
    return shared, own
