"""How fast compiled matrix products are natively, against the machine's own peak, in one run.

    python benchmarks/native_matmul.py [--size 128] [--repeats 15]

Prints GFLOPS (median of the repeats), the share of the peak, and the milliseconds that lowering,
selecting and encoding take. The peak is that of a loop of multiplications and additions on
registers alone, in the same engine, measured anew between the programs, since machines vary.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.kernel import compile_functions
from mlcweb.codegen.wasm.module import Export, Import, Memory, Module
from mlcweb.ir import IRModule
from mlcweb.runtime.host.wasm_target import WasmKernel, build
from mlcweb.runtime.host.wasmtime_host import wasmtime_host
from mlcweb.script import from_source
from mlcweb.tir import Schedule

MATMUL = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((SIZE, SIZE), "float32"), B: T.Buffer((SIZE, SIZE), "float32"),
             C: T.Buffer((SIZE, SIZE), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(SIZE, SIZE, SIZE):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
CHAINS = 12
"""Sums that the peak loop runs side by side: enough to hide the latency of an addition."""
CALLS_OF_PEAK = 1_000_000


def matmul(size: int) -> IRModule:
    """The untransformed program."""
    module = from_source(MATMUL.replace("SIZE", str(size)))
    assert isinstance(module, IRModule)
    return module


def schedule_mm(size: int, jfactor: int) -> IRModule:
    """The course's schedule: the columns in blocks of `jfactor`, inside of the reduction."""
    sch = Schedule(matmul(size))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, [None, jfactor])
    sch.reorder(i, outer, k, inner)
    sch.decompose_reduction(block, k)
    return sch.mod


def tiled(size: int, rows: int, columns: int) -> IRModule:
    """A tile of `rows` x `columns` sums in registers."""
    sch = Schedule(matmul(size))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    result = sch.cache_write(block, 0, "local")
    i_outer, i_inner = sch.split(i, [None, rows])
    j_outer, j_inner = sch.split(j, [None, columns])
    sch.reorder(j_outer, i_outer, k, i_inner, j_inner)
    sch.reverse_compute_at(result, i_outer)
    sch.unroll(i_inner)
    sch.vectorize(j_inner)
    sch.decompose_reduction(block, k)
    return sch.mod


def peak_timer() -> Callable[[], float]:
    """A function that measures the GFLOPS of multiplications and additions on registers."""
    builder = FunctionBuilder("peak", [("number", "i32"), ("result", "i32")])
    sums = [builder.local("v128") for _ in range(CHAINS)]
    factor = builder.local("v128")
    builder.emit("f32.const", 0.5)
    builder.emit("f32x4.splat")
    builder.emit("local.set", factor)
    with builder.loop() as again:
        for total in sums:
            builder.emit("local.get", total)
            builder.emit("local.get", factor)
            builder.emit("f32x4.mul")
            builder.emit("local.get", factor)
            builder.emit("f32x4.add")
            builder.emit("local.set", total)
        builder.emit("local.get", 0)
        builder.emit("i32.const", 1)
        builder.emit("i32.sub")
        builder.emit("local.tee", 0)
        builder.jump_if(again)
    for position, total in enumerate(sums):
        builder.emit("local.get", 1)
        builder.emit("local.get", total)
        builder.emit("v128.store", 16 * position)
    module = Module(
        functions=(builder.build(),),
        imports=(Import("env", "memory", Memory(1, 65536, True)),),
        exports=(Export("peak", "function", "peak"),),
    )
    host = wasmtime_host()
    run = host.instantiate(encode(module).code).timer("peak", ["i32", "i32"])
    room = host.allocate(16 * CHAINS)
    return lambda: 8 * CHAINS * CALLS_OF_PEAK / run(CALLS_OF_PEAK, room.address) / 1e9


def build_milliseconds(module: IRModule) -> float:
    """How long lowering, selecting and encoding take, at best of ten times."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        encode(compile_functions({"main": module["main"]}, shared=True).module)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    size = options.size
    programs = {
        "untransformed": matmul(size),
        "schedule_mm jfactor 16": schedule_mm(size, 16),
        "schedule_mm jfactor 32": schedule_mm(size, 32),
        "tile 4x8": tiled(size, 4, 8),
        "tile 2x16": tiled(size, 2, 16),
        "tile 4x16": tiled(size, 4, 16),
    }
    random = np.random.default_rng(0)
    host = wasmtime_host()
    a, b, c = (
        host.allocate(4 * size * size).view().view("float32").reshape(size, size) for _ in range(3)
    )
    a[...], b[...] = random.random((2, size, size), "float32")
    measure_peak = peak_timer()
    number = max(1, 20 * 128**3 // size**3)
    print(f"{'':26}{'GFLOPS':>8}{'peak':>8}{'share':>8}{'build':>10}")
    for name, module in programs.items():
        kernel = build({"main": module["main"]}, lambda name: print)["main"]
        assert isinstance(kernel, WasmKernel)
        kernel.run(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4)
        rates, peaks = [], []
        for _ in range(options.repeats):
            peaks.append(measure_peak())
            rates.append(2 * size**3 * number / kernel.time_batch(number, a, b, c) / 1e9)
        rate, peak = statistics.median(rates), statistics.median(peaks)
        spent = build_milliseconds(module)
        print(f"{name:26}{rate:8.1f}{peak:8.1f}{rate / peak:8.0%}{spent:8.1f}ms")


if __name__ == "__main__":
    main()
