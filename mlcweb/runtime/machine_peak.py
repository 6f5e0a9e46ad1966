"""What this machine's WebAssembly can do at best: arithmetic on registers, and moving memory.

The two roofs of a roofline chart (S. Williams, A. Waterman, D. Patterson: "Roofline: an insightful
visual performance model for multicore architectures", CACM 52(4), 2009), measured by kernels of our
own in the loop that times every other kernel. All is for one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import Function
from mlcweb.runtime.benchmark import measure
from mlcweb.runtime.host.engine import Instance, engine
from mlcweb.runtime.probe_kernels import COUNT_DOWN, instance_of

CHAINS = 12
"""Sums side by side, enough to hide how long one multiplication and addition takes, and few enough
for the registers of every machine."""
UNROLLED = 2
"""Rounds over all sums in one iteration of the loop."""

LANES = {"float32": 4, "float64": 2}
"""Numbers in one vector."""

VECTOR_BYTES = 16
VECTORS_AT_ONCE = 8
"""Vectors that one iteration of the copying loop moves."""

MEMORY_BYTES = 32 << 20
"""Length of an array that is longer than caches are."""
CACHE_BYTES = 8 << 10
"""Length of an array of which two lie in the innermost cache."""


@dataclass(frozen=True, slots=True)
class MachinePeak:
    """What one thread reaches, for numbers of one type.

    `flops` are operations a second of vector multiplications and additions on registers;
    `fused_flops` the same for relaxed (fused) multiply-adds, None where the engine has none.
    `memory_bandwidth` are bytes a second, read and written together, of copying arrays longer than
    the caches; `cache_bandwidth` of arrays in the innermost cache.
    """

    dtype: str
    flops: float
    fused_flops: float | None
    memory_bandwidth: float
    cache_bandwidth: float

    def __str__(self) -> str:
        fused = f", fused {self.fused_flops / 1e9:.1f}" if self.fused_flops else ""
        return (
            f"{self.dtype}, one thread: {self.flops / 1e9:.1f} GFLOPS{fused}; "
            f"memory {self.memory_bandwidth / 1e9:.1f} GB/s, cache "
            f"{self.cache_bandwidth / 1e9:.1f} GB/s"
        )


@lru_cache
def machine_peak(dtype: str = "float32") -> MachinePeak:
    """The peak of this process or page, measured when first asked for (about a second).

    `dtype` is "float32" or "float64". A TVMError tells where no WebAssembly engine is.
    """
    memory, cache = _bandwidths()
    host = engine()
    fused = _flops(dtype, True) if host.relaxed_simd else None
    return MachinePeak(dtype, _flops(dtype, False), fused, memory, cache)


def measured_again(peak: MachinePeak) -> MachinePeak:
    """A peak whose arithmetic is measured anew, as the better of both: something else may have
    kept the machine busy before."""
    fused = peak.fused_flops and max(peak.fused_flops, _flops(peak.dtype, True))
    return replace(peak, flops=max(peak.flops, _flops(peak.dtype, False)), fused_flops=fused)


def _flops(dtype: str, fused: bool) -> float:
    run = multiply_add_timer(dtype, fused)
    return operations_an_iteration(dtype) / measure(run, number=1000, repeat=5, min_repeat_ms=5).min


def multiply_add_timer(dtype: str, fused: bool) -> Callable[[int], float]:
    """A function that takes the time, in seconds, of so many iterations of vector multiplications
    and additions on registers. `fused` needs an engine with relaxed multiply-adds."""
    run = instance_of(_multiply_adds(dtype, fused)).timer("peak", ["i32", "i32"])
    room = engine().allocate(VECTOR_BYTES * CHAINS)
    return lambda number: run(number, room.address)


def operations_an_iteration(dtype: str) -> int:
    """Multiplications and additions of numbers in one iteration of `multiply_add_timer`."""
    return 2 * LANES[dtype] * CHAINS * UNROLLED


@lru_cache(maxsize=1)
def _bandwidths() -> tuple[float, float]:
    instance = instance_of(_copies())
    return _bandwidth(instance, MEMORY_BYTES), _bandwidth(instance, CACHE_BYTES)


def _bandwidth(instance: Instance, nbytes: int) -> float:
    source, target = (engine().allocate(nbytes) for _ in range(2))
    run = instance.timer("copy", ["i32"] * 4)
    # Pages that were never written are all one page, which is always in the cache.
    instance.function("copy", ["i32"] * 4)(1, target.address, source.address, nbytes)
    seconds = measure(
        lambda n: run(n, source.address, target.address, nbytes),
        number=1,
        repeat=5,
        min_repeat_ms=5,
    ).min
    return 2 * nbytes / seconds


def _multiply_adds(dtype: str, fused: bool) -> Function:
    """peak(number, result): `number` iterations of sums on registers, stored at the end."""
    number = f"{dtype[0]}{dtype[-2:]}"
    shape = f"{number}x{LANES[dtype]}"
    builder = FunctionBuilder("peak", [("number", "i32"), ("result", "i32")])
    sums = [builder.local("v128") for _ in range(CHAINS)]
    builder.local("v128", "factor")
    builder.code(f"{number}.const 0.5  {shape}.splat  local.set factor")
    multiply, add = ("", "relaxed_madd") if fused else (f"{shape}.mul", "add")
    with builder.loop("again"):
        for total in sums * UNROLLED:
            # Each step needs the one before: no compiler can leave one out.
            builder.code(f"local.get {total}  local.get factor  {multiply}")
            builder.code(f"local.get factor  {shape}.{add}  local.set {total}")
        builder.code(f"{COUNT_DOWN}  br_if again")
    for position, total in enumerate(sums):
        builder.code(f"local.get result  local.get {total}  v128.store {VECTOR_BYTES * position}")
    return builder.build()


def _copies() -> Function:
    """copy(number, source, target, nbytes): copies an array `number` times."""
    parameters = [(name, "i32") for name in ("number", "source", "target", "nbytes")]
    builder = FunctionBuilder("copy", parameters)
    for name in ("read", "write", "end"):
        builder.local("i32", name)
    step = VECTOR_BYTES * VECTORS_AT_ONCE
    with builder.loop("once_more"):
        builder.code("local.get source  local.tee read  local.get nbytes  i32.add  local.set end")
        builder.code("local.get target  local.set write")
        with builder.loop("further"):
            for offset in range(0, step, VECTOR_BYTES):
                builder.code(f"local.get write  local.get read  v128.load {offset}")
                builder.code(f"v128.store {offset}")
            for pointer in ("write", "read"):
                builder.code(f"local.get {pointer}  i32.const {step}  i32.add  local.set {pointer}")
            builder.code("local.get read  local.get end  i32.ne  br_if further")
        builder.code(f"{COUNT_DOWN}  br_if once_more")
    return builder.build()
