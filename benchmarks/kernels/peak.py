"""The peak of an engine: multiplications and additions of vectors on registers alone."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import Export, Import, Memory, Module
from mlcweb.runtime import nd
from mlcweb.runtime.host.engine import engine

CHAINS = 12
"""Sums made side by side: enough to hide the latency of an addition, few enough for registers."""
ROUNDS = 4
"""Operations on each sum between two jumps."""
ITERATIONS = 250_000
"""Some milliseconds for each measurement."""


def peak_timers() -> list[Callable[[], float]]:
    """Functions that measure the engine's GFLOPS: plain, and fused where the engine has that."""
    return [_timer(fused) for fused in ((False, True) if engine().relaxed_simd else (False,))]


def _timer(fused: bool) -> Callable[[], float]:
    host = engine()
    run = host.instantiate(_code(fused, host.shared)).timer("peak", ["i32", "i32"])
    room = nd.empty((4 * CHAINS,))
    flops = 8 * CHAINS * ROUNDS * ITERATIONS
    return lambda: flops / run(ITERATIONS, host.address_of(room) or 0) / 1e9


def _code(fused: bool, shared: bool) -> bytes:
    builder = FunctionBuilder("peak", [("number", "i32"), ("result", "i32")])
    sums = [builder.local("v128") for _ in range(CHAINS)]
    factor = builder.local("v128")
    builder.emit("f32.const", 0.5)
    builder.emit("f32x4.splat")
    builder.emit("local.set", factor)
    with builder.loop() as again:
        for total in sums * ROUNDS:
            builder.emit("local.get", total)
            builder.emit("local.get", factor)
            if fused:
                builder.emit("local.get", factor)
                builder.emit("f32x4.relaxed_madd")
            else:
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
        imports=(Import("env", "memory", Memory(1, 65536, shared)),),
        exports=(Export("peak", "function", "peak"),),
    )
    return encode(module).code
