"""What the multiprocessors of NVIDIA's GPUs hold, and what some boards reach: published facts.

Compared with their sources: limits from 7.5 on with NVIDIA's "CUDA Programming Guide", appendix
"Compute Capabilities"; units of allocation, partitions and blocks with `cuda_occupancy.h` of CUDA
12.6; the boards A100 (the one with 40 GB), H100 (SXM), V100, T4, A30 and RTX 4090 with NVIDIA's
data sheets. With what reviewers print of NVIDIA's specifications: all of P100, GTX 1070 and 1080,
A40 and RTX A6000; multiprocessors and clocks of GTX 1080 Ti and RTX 2070, 2080 and 2080 Ti;
multiprocessors and bandwidth of RTX 3080. What came before 7.5, and the other boards, are from
general knowledge and were not compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlcweb.runtime.target_tags import TAGS


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one multiprocessor holds at a time, and how it shares it out.

    Attributes:
        warps, blocks, registers, shared: At most; shared memory in bytes.
        block_shared: Shared memory of one block, at most.
        thread_registers: At most.
        register_unit: Registers are given to a warp in multiples of this.
        shared_unit: Shared memory is given to a block in multiples of this.
        reserved: Bytes of shared memory that the system takes for each block.
        cores: Multiply-adds of float32 in a cycle.
        partitions: parts of a multiprocessor, each with registers for warps of its own.
    """

    warps: int
    blocks: int
    registers: int
    shared: int
    block_shared: int
    thread_registers: int
    register_unit: int
    shared_unit: int
    reserved: int
    cores: int
    partitions: int


def _sm(
    warps: int,
    blocks: int,
    shared: int,
    block_shared: int,
    cores: int,
    registers: int = 64,
    thread_registers: int = 255,
    units: tuple[int, int] = (256, 256),
    reserved: int = 0,
    partitions: int = 4,
) -> Multiprocessor:
    """Memory in units of 1024."""
    sizes = (registers << 10, shared << 10, block_shared << 10)
    return Multiprocessor(
        warps, blocks, *sizes, thread_registers, *units, reserved, cores, partitions
    )


_NEW = {"units": (256, 128), "reserved": 1024}

MULTIPROCESSORS = {
    "sm_20": _sm(48, 8, 48, 48, 32, 32, 63, (64, 128), partitions=2),
    "sm_21": _sm(48, 8, 48, 48, 48, 32, 63, (64, 128), partitions=2),
    "sm_30": _sm(64, 16, 48, 48, 192, thread_registers=63),
    "sm_35": _sm(64, 16, 48, 48, 192),
    "sm_37": _sm(64, 16, 112, 48, 192, 128),
    "sm_50": _sm(64, 32, 64, 48, 128),
    "sm_52": _sm(64, 32, 96, 48, 128),
    "sm_53": _sm(64, 32, 64, 48, 128),
    "sm_60": _sm(64, 32, 64, 48, 64, partitions=2),
    "sm_61": _sm(64, 32, 96, 48, 128),
    "sm_62": _sm(64, 32, 64, 48, 128),
    "sm_70": _sm(64, 32, 96, 96, 64),
    "sm_72": _sm(64, 32, 96, 96, 64),
    "sm_75": _sm(32, 16, 64, 64, 64),
    "sm_80": _sm(64, 32, 164, 163, 64, **_NEW),
    "sm_86": _sm(48, 16, 100, 99, 128, **_NEW),
    "sm_87": _sm(48, 16, 164, 163, 128, **_NEW),
    "sm_89": _sm(48, 24, 100, 99, 128, **_NEW),
    "sm_90": _sm(64, 32, 228, 227, 128, **_NEW),
    "sm_100": _sm(64, 32, 228, 227, 128, **_NEW),
    "sm_110": _sm(48, 24, 228, 227, 128, **_NEW),
    "sm_120": _sm(48, 24, 100, 99, 128, **_NEW),
}
"""By compute capability."""


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU as it is sold: multiprocessors, boost clock in MHz, and bandwidth in GB/s."""

    multiprocessors: int
    clock: int
    bandwidth: int


BOARDS = {
    "nvidia/tesla-k40": Board(15, 875, 288),
    "nvidia/geforce-gtx-1060": Board(10, 1708, 192),
    "nvidia/geforce-gtx-1070": Board(15, 1683, 256),
    "nvidia/geforce-gtx-1080": Board(20, 1733, 320),
    "nvidia/geforce-gtx-1080-ti": Board(28, 1582, 484),
    "nvidia/tesla-p4": Board(20, 1063, 192),
    "nvidia/tesla-p40": Board(30, 1531, 346),
    "nvidia/tesla-p100": Board(56, 1480, 732),
    "nvidia/nvidia-v100": Board(80, 1530, 900),
    "nvidia/nvidia-t4": Board(40, 1590, 320),
    "nvidia/nvidia-titan-rtx": Board(72, 1770, 672),
    "nvidia/geforce-rtx-2060": Board(30, 1680, 336),
    "nvidia/geforce-rtx-2070": Board(36, 1620, 448),
    "nvidia/geforce-rtx-2080": Board(46, 1710, 448),
    "nvidia/geforce-rtx-2080-ti": Board(68, 1545, 616),
    "nvidia/nvidia-a10": Board(72, 1695, 600),
    "nvidia/nvidia-a30": Board(56, 1440, 933),
    "nvidia/nvidia-a40": Board(84, 1740, 696),
    "nvidia/nvidia-a100": Board(108, 1410, 1555),
    "nvidia/rtx-a6000": Board(84, 1800, 768),
    "nvidia/geforce-rtx-3060": Board(28, 1777, 360),
    "nvidia/geforce-rtx-3070": Board(46, 1725, 448),
    "nvidia/geforce-rtx-3080": Board(68, 1710, 760),
    "nvidia/geforce-rtx-3090": Board(82, 1695, 936),
    "nvidia/geforce-rtx-4090": Board(128, 2520, 1008),
    "nvidia/geforce-rtx-5060-ti": Board(36, 2572, 448),
    "nvidia/nvidia-h100": Board(132, 1980, 3350),
}
"""By the tag of the target."""

DEFAULT_TAG = "nvidia/tesla-p100"


def peak_flops(tag: str) -> float | None:
    """Operations on float32 a second, a multiply-add counted as two; None where not known."""
    board = BOARDS.get(tag)
    if board is None:
        return None
    return 2.0 * board.multiprocessors * multiprocessor(tag).cores * board.clock * 1e6


def multiprocessor(tag: str) -> Multiprocessor:
    """The multiprocessor of a tag of an NVIDIA GPU."""
    arch = re.sub(r"[a-z]$", "", TAGS[tag]["arch"])
    return MULTIPROCESSORS[arch]


def tags() -> list[str]:
    """The tags whose limits are known; those whose peak is known, too, first."""
    cuda_tags = [tag for tag, attrs in TAGS.items() if attrs["kind"] == "cuda"]
    return [*BOARDS, *(tag for tag in cuda_tags if tag not in BOARDS)]
