"""Occupancy by the tables of NVIDIA, and the estimate of registers."""

import pytest

from mlcweb.playground.gpu.hardware import (
    BOARDS,
    MULTIPROCESSORS,
    multiprocessor,
    peak_flops,
    tags,
)
from mlcweb.playground.gpu.occupancy import occupancy
from tests.playground.gpu.kernels import kernel


@pytest.mark.parametrize(
    ("arch", "threads", "shared", "registers", "blocks", "share", "limit"),
    [
        # The example of the best practices guide: 37 registers of a thread.
        ("sm_70", 128, 0, 37, 12, 0.75, "registers"),
        ("sm_70", 320, 0, 37, 4, 0.625, "registers"),
        ("sm_70", 1024, 0, 32, 2, 1.0, "warps"),
        ("sm_60", 256, 24 * 1024, 32, 2, 0.25, "shared memory"),
        ("sm_75", 32, 0, 16, 16, 0.5, "blocks"),
        # A kilobyte of each block is the system's.
        ("sm_80", 256, 20 * 1024, 32, 7, 0.875, "shared memory"),
        ("sm_86", 1024, 0, 32, 1, 32 / 48, "warps"),
        ("sm_60", 256, 49 * 1024, 32, 0, 0.0, "shared memory"),
        ("sm_30", 256, 0, 80, 0, 0.0, "registers"),
        ("sm_60", 1024, 0, 80, 0, 0.0, "registers"),
    ],
)
def test_blocks_at_a_time(
    arch: str, threads: int, shared: int, registers: int, blocks: int, share: float, limit: str
) -> None:
    result = occupancy(threads, shared, registers, MULTIPROCESSORS[arch])
    assert (result.blocks, result.share, result.limits[0].name) == (blocks, share, limit)


def test_every_tag_of_an_nvidia_gpu_has_its_limits() -> None:
    assert len(tags()) > 200
    assert all(multiprocessor(tag).warps >= 32 for tag in tags())
    assert BOARDS.keys() <= set(tags())


def test_peaks_are_those_of_the_data_sheets() -> None:
    peaks = {
        "nvidia/tesla-p100": 10.6,
        "nvidia/nvidia-v100": 15.7,
        "nvidia/nvidia-t4": 8.1,
        "nvidia/nvidia-a100": 19.5,
        "nvidia/nvidia-h100": 66.9,
        "nvidia/geforce-rtx-4090": 82.6,
    }
    for tag, teraflops in peaks.items():
        peak = peak_flops(tag)
        assert peak is not None and peak / 1e12 == pytest.approx(teraflops, abs=0.06)
    assert peak_flops("nvidia/quadro-k420") is None


def test_memory_of_a_thread_is_in_its_registers() -> None:
    plain = kernel("B[x] = A[x]")
    tile = kernel(
        "L = T.alloc_buffer((64,), scope='local')\n"
        "for i in range(64):\n    L[i] = A[x * 64 + i]\n"
        "for i in range(64):\n    B[x * 64 + i] = L[i]"
    )
    assert plain.registers == 16
    assert tile.registers - plain.registers >= 64
