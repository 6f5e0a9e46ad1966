"""Occupancy by the tables of NVIDIA, and the estimate of registers."""

import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from mlcweb.codegen.gpu import BLOCK_SHARED
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


BY_NVIDIA = """
#include <limits.h>
#include <stdio.h>
#include "cuda_occupancy.h"

int main(void) {
  int major, minor, threads, registers, warps, file;
  size_t own, shared, block_shared, reserved;
  while (scanf("%d %d %d %d %zu %d %d %zu %zu %zu", &major, &minor, &threads, &registers, &own,
               &warps, &file, &shared, &block_shared, &reserved) == 10) {
    struct cudaOccDeviceProp device = {
        major, minor, 1024, warps * 32, file, file, 32, 49152, shared, 1, block_shared, reserved};
    struct cudaOccFuncAttributes kernel = {
        .maxThreadsPerBlock = INT_MAX, .numRegs = registers, .numBlockBarriers = 1,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, .maxDynamicSharedSizeBytes = own};
    struct cudaOccDeviceState state = {CACHE_PREFER_SHARED, SHAREDMEM_CARVEOUT_MAX_SHARED};
    struct cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, own))
      return 1;
    printf("%d\\n", result.activeBlocksPerMultiprocessor);
  }
}
"""


def test_blocks_at_a_time_are_those_of_nvidias_own_calculation(tmp_path: Path) -> None:
    runtime = pytest.importorskip("nvidia.cu13")
    headers = Path(runtime.__path__[0]) / "include"
    compiler = shutil.which("cc")
    if compiler is None or not (headers / "cuda_occupancy.h").is_file():
        pytest.skip("no C compiler, or no headers of CUDA")
    (tmp_path / "main.c").write_text(BY_NVIDIA)
    subprocess.run([compiler, "-w", "-I", headers, "main.c"], cwd=tmp_path, check=True)
    random = Random(3)
    questions: list[str] = []
    expected: list[int] = []
    for arch, sm in MULTIPROCESSORS.items():
        major, minor = int(arch[3:-1]), int(arch[-1])
        for _ in range(100 if major > 2 else 0):  # NVIDIA's begins with Kepler.
            threads, registers = random.randint(1, 1024), random.randint(16, sm.thread_registers)
            shared = random.choice([0, random.randint(0, sm.block_shared)])
            kernel = (major, minor, threads, registers, shared)
            limits = (sm.warps, sm.registers, sm.shared, sm.block_shared, sm.reserved)
            questions.append(" ".join(map(str, kernel + limits)))
            expected.append(occupancy(threads, shared, registers, sm).blocks)
    text = "\n".join(questions)
    asked = subprocess.run(
        ["./a.out"], cwd=tmp_path, input=text, capture_output=True, text=True, check=True
    )
    assert [*map(int, asked.stdout.split())] == expected


# "CUDA Programming Guide", appendix "Compute Capabilities": blocks, warps, and KiB of shared memory
# of a multiprocessor and of a block.
GUIDE = {
    "sm_75": (16, 32, 64, 64),
    "sm_80": (32, 64, 164, 163),
    "sm_86": (16, 48, 100, 99),
    "sm_87": (16, 48, 164, 163),
    "sm_89": (24, 48, 100, 99),
    "sm_90": (32, 64, 228, 227),
    "sm_100": (32, 64, 228, 227),
    "sm_110": (24, 48, 228, 227),
    "sm_120": (24, 48, 100, 99),
}


@pytest.mark.parametrize("arch", GUIDE)
def test_limits_are_those_of_the_programming_guide(arch: str) -> None:
    sm = MULTIPROCESSORS[arch]
    assert (sm.blocks, sm.warps, sm.shared >> 10, sm.block_shared >> 10) == GUIDE[arch]
    assert (sm.registers, sm.thread_registers) == (65536, 255)


def test_every_tag_of_an_nvidia_gpu_has_its_limits() -> None:
    assert len(tags()) > 200
    assert all(multiprocessor(tag).warps >= 32 for tag in tags())
    assert BOARDS.keys() <= set(tags())


def test_peaks_are_those_of_the_data_sheets() -> None:
    peaks = {
        "nvidia/tesla-k40": 5.04,
        "nvidia/tesla-p100": 10.6,
        "nvidia/nvidia-v100": 15.7,
        "nvidia/nvidia-t4": 8.1,
        "nvidia/nvidia-a100": 19.5,
        "nvidia/nvidia-h100": 66.9,
        "nvidia/geforce-rtx-4090": 82.6,
        "nvidia/tesla-p4": 5.44,
        "nvidia/tesla-p40": 11.8,
        "nvidia/nvidia-a10": 31.2,
        "nvidia/nvidia-a30": 10.3,
        "nvidia/nvidia-a40": 37.4,
        "nvidia/rtx-a6000": 38.7,
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


def test_a_block_has_as_much_shared_memory_as_kernels_are_checked_against() -> None:
    more = {name: sm.block_shared >> 10 for name, sm in MULTIPROCESSORS.items()}
    assert BLOCK_SHARED == {name: most for name, most in more.items() if most > 48}
