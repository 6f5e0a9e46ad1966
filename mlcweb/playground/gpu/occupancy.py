"""How many warps a multiprocessor holds at a time, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.playground.gpu.hardware import Multiprocessor
from mlcweb.playground.gpu.sites import Sites
from mlcweb.playground.protocol.gpu import LANES, GpuLimit
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Buffer, constant_shape


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What a multiprocessor holds of a kernel.

    Attributes:
        blocks: At a time; 0 where not even one fits.
        warps: Of these blocks.
        most: Warps that it could hold.
        limits: The tightest first.
    """

    blocks: int
    warps: int
    most: int
    limits: list[GpuLimit]

    @property
    def share(self) -> float:
        return self.warps / self.most


def occupancy(
    threads: int, shared_bytes: int, registers: int, hardware: Multiprocessor
) -> Occupancy:
    """Blocks at a time, of `threads` threads with so much shared memory and so many registers for
    each thread."""
    warps = -(-threads // LANES)
    for_warp = _rounded(registers * LANES, hardware.register_unit)
    parts = hardware.partitions
    in_registers = hardware.registers // for_warp // parts * parts // warps
    if registers > hardware.thread_registers:
        in_registers = 0
    limits = [
        GpuLimit("warps", hardware.warps // warps),
        GpuLimit("blocks", hardware.blocks),
        GpuLimit("registers", in_registers),
    ]
    if shared_bytes:
        taken = _rounded(shared_bytes + hardware.reserved, hardware.shared_unit)
        fits = shared_bytes <= hardware.block_shared
        limits.append(GpuLimit("shared memory", hardware.shared // taken if fits else 0))
    limits.sort(key=lambda limit: limit.blocks)
    blocks = limits[0].blocks
    return Occupancy(blocks, blocks * warps, hardware.warps, limits)


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def bytes_of(buffer: Buffer) -> int:
    """The memory of a buffer; none where its size is not constant."""
    return prod(constant_shape(buffer) or (0,)) * dtypes.size_in_bytes(buffer.dtype)


BASE_REGISTERS = 10
"""What a thread needs before it computes anything: its indices, a condition, an address."""


def estimated_registers(kernel: DeviceKernel, sites: Sites) -> int:
    """About how many registers a thread needs. A compiler decides it: it may keep more values to
    overlap loads, or fewer. Counted are memory of the thread, a pointer for each array, a counter
    for each loop, and what the largest statement loads."""
    own = sum(_own_bytes(buffer) for buffer in sites.own)
    loaded: dict[object, int] = {}
    for site in sites.sites:
        loaded[site.statement] = loaded.get(site.statement, 0) + -(-site.bytes // 4)
    pointers = 2 * len(kernel.buffers)
    loops = len({loop.var for loop in sites.loops if loop.extent > 1})
    needed = BASE_REGISTERS + -(-own // 4) + pointers + loops + max(loaded.values(), default=0)
    return min(255, _rounded(needed, 8))


def _own_bytes(buffer: Buffer) -> int:
    """Of the registers of one thread: a fragment of a matrix is spread over a warp."""
    return bytes_of(buffer) // (LANES if buffer.scope().startswith("wmma") else 1)
