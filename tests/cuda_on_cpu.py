"""Kernels in CUDA C compiled by a C++ compiler, and run on threads of this machine: no GPU, but the
text is the one that a GPU runs, its barriers and what the lanes of a warp read of each other too.

The part of CUDA that kernels use is written in C++ here. A lane that reads one that is not there
ends the process, and so does a thread that leaves while others wait for it.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlcweb.codegen.gpu.kernels import kernels_of
from mlcweb.codegen.gpu.languages import DYNAMIC_SHARED, LANGUAGES
from mlcweb.codegen.gpu.printer import write_kernels
from mlcweb.lower.thread_axes import WARP_SIZE
from mlcweb.tir import PrimFunc
from tests.gpu import grid

COMPILER = shutil.which("g++")

MACHINE = """
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>
using std::max;
using std::min;

#define __global__
#define __device__
#define __launch_bounds__(threads)
#define __shared__ static
#define __restrict__

struct Index { int x, y, z; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

struct Warp {
  std::barrier<> all;
  int lanes;
  char values[32][8];
  const void* addresses[2][32];
  explicit Warp(int lanes) : all(lanes), lanes(lanes) {}
};

static thread_local Index threadIdx, blockIdx;
static thread_local int lane;
static thread_local Warp* warp;
static std::barrier<>* block;

static float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static void __syncthreads() { block->arrive_and_wait(); }

static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }

template <typename T> static T __shfl_sync(unsigned, T value, int other) {
  if (other >= warp->lanes) { std::fprintf(stderr, "no lane %d\\n", other); std::abort(); }
  std::memcpy(warp->values[lane], &value, sizeof value);
  warp->all.arrive_and_wait();
  std::memcpy(&value, warp->values[other], sizeof value);
  warp->all.arrive_and_wait();
  return value;
}

template <typename T> static T __shfl_up_sync(unsigned mask, T value, int distance) {
  return __shfl_sync(mask, value, lane < distance ? lane : lane - distance);
}
template <typename T> static T __shfl_down_sync(unsigned mask, T value, int distance) {
  return __shfl_sync(mask, value, lane + distance < 32 ? lane + distance : lane);
}
template <typename T> static T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return __shfl_sync(mask, value, lane ^ bits);
}

// The matrix instructions of PTX, as its manual says which lane has which element of a tile.

using half = _Float16;

template <int count, bool turns> static void ldmatrix(void* registers, const void* row) {
  warp->addresses[0][lane] = row;
  warp->all.arrive_and_wait();
  for (int n = 0; n < count; ++n)
    for (int h = 0; h < 2; ++h) {
      int place = lane % 4 * 2 + h, line = turns ? place : lane / 4;
      auto* from = (const short*)warp->addresses[0][n * 8 + line];
      ((short*)registers)[n * 2 + h] = from[turns ? lane / 4 : place];
    }
  warp->all.arrive_and_wait();
}

template <int k, typename A, typename C>
static void mma(void* c, const void* a, const void* b) {
  constexpr int word = 4 / sizeof(A);
  warp->addresses[0][lane] = a;
  warp->addresses[1][lane] = b;
  warp->all.arrive_and_wait();
  for (int n = 0; n < 4; ++n) {
    int row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
    C sum = ((C*)c)[n];
    for (int i = 0; i < k; ++i) {
      int part = i / word, other = part % 4;
      auto* left = (const A*)warp->addresses[0][row % 8 * 4 + other];
      auto* right = (const A*)warp->addresses[1][column * 4 + other];
      C x = left[(part / 4 * 2 + row / 8) * word + i % word];
      sum += x * C(right[part / 4 * word + i % word]);
    }
    ((C*)c)[n] = sum;
  }
  warp->all.arrive_and_wait();
}

#define ldmatrix_x4_ ldmatrix<4, false>
#define ldmatrix_x4_trans_ ldmatrix<4, true>
#define ldmatrix_x2_ ldmatrix<2, false>
#define mma_m16n8k8_f16_f16_f32_ mma<8, half, float>
#define mma_m16n8k16_f16_f16_f16_ mma<16, half, half>
#define mma_m16n8k16_f16_f16_f32_ mma<16, half, float>
#define mma_m16n8k32_s8_s8_s32_ mma<32, signed char, int>

template <typename... A, std::size_t... I>
static void call(void (*kernel)(A...), void** memory, std::index_sequence<I...>) {
  kernel(static_cast<A>(memory[I])...);
}

template <typename... A>
static void launch(void (*kernel)(A...), void** memory, const int* grid, const int* size) {
  int count = size[0] * size[1] * size[2];
  for (int z = 0; z < grid[2]; ++z)
    for (int y = 0; y < grid[1]; ++y)
      for (int x = 0; x < grid[0]; ++x) {
        std::barrier<> all(count);
        block = &all;
        std::vector<std::unique_ptr<Warp>> warps;
        for (int first = 0; first < count; first += 32)
          warps.push_back(std::make_unique<Warp>(min(32, count - first)));
        std::vector<std::thread> threads;
        for (int t = 0; t < count; ++t)
          threads.emplace_back([&, t] {
            threadIdx = {t % size[0], t / size[0] % size[1], t / size[0] / size[1]};
            blockIdx = {x, y, z};
            lane = t % 32;
            warp = warps[t / 32].get();
            call(kernel, memory, std::index_sequence_for<A...>());
          });
        for (auto& each : threads) each.join();
      }
}
"""

_ASSEMBLY = re.compile(
    r"__device__ inline void (?:ldmatrix|mma)_\w+\(.*?\n}\n|#include[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""Functions in assembly, for which there are others in C++, and what CUDA's headers have."""

_DYNAMIC = re.compile(r"extern __shared__ .*\[\];")
"""Shared memory whose size a launch tells."""

_DYNAMIC_HERE = f"alignas(128) static unsigned char {DYNAMIC_SHARED}[1 << 18];"


def run_cuda_on_cpu(func: PrimFunc, arrays: Sequence[Any]) -> str:
    """Run a function of parameters that are arrays on these, in place; its source."""
    lowered, kernels = kernels_of(func, "main", warp=WARP_SIZE, asynchronous=True)
    parameters = zip(lowered.parameter_buffers, arrays, strict=True)
    memory = {buffer.data: array for buffer, array in parameters}
    source = write_kernels(kernels, LANGUAGES["cuda"])
    entries = "".join(
        f'extern "C" void launch_{kernel.name}(void** memory, const int* grid, const int* size) '
        f"{{ launch({kernel.name}, memory, grid, size); }}\n"
        for kernel in kernels
    )
    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder) / "kernels.cc", Path(folder) / "kernels.so"
        here = _DYNAMIC.sub(_DYNAMIC_HERE, _ASSEMBLY.sub("", source))
        text.write_text(f"{MACHINE}\n{here}\n{entries}")
        assert COMPILER is not None
        flags = ["-std=c++20", "-O0", "-w", "-shared", "-fPIC", "-pthread"]
        subprocess.run([COMPILER, *flags, str(text), "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))
    for kernel in kernels:
        for buffer in kernel.buffers:
            if buffer.data not in memory:
                shape = [int(extent) for extent in buffer.shape]
                memory[buffer.data] = np.zeros(shape, buffer.dtype)
        addresses = [memory[buffer.data].ctypes.data for buffer in kernel.buffers]
        loaded[f"launch_{kernel.name}"](
            (ctypes.c_void_p * len(addresses))(*addresses),
            (ctypes.c_int * 3)(*grid(kernel)),
            (ctypes.c_int * 3)(*kernel.block_size()),
        )
    return source
