"""Calibrates measured times: a fixed kernel, timed beside what is measured, tells how fast the
machine is at that moment.

Now and then the same program takes half as long again, for seconds at a time: another program uses
the other half of the core, or the clock rate falls. What slows one kernel then slows others much
alike if they keep the same parts of the core busy, so the fixed work is the inner loop of a matrix
product in registers: loads, multiplications and additions. The chain of sums that finds the peak of
a machine would not do: it mostly waits for itself, and hardly notices that the core is shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import Function
from mlcweb.runtime.benchmark import long_enough
from mlcweb.runtime.host import clock_step
from mlcweb.runtime.host.engine import engine
from mlcweb.runtime.probe_kernels import COUNT_DOWN, instance_of, module_code

ROWS = 4
VECTORS = 3
STEPS = 8
"""An iteration makes these steps of the sums of these vectors in these rows."""

ITERATIONS = 8000
"""Of the fixed work: a quarter of a millisecond at 50 GFLOPS."""

VECTOR_BYTES = 16
LINES_BYTES = VECTOR_BYTES * STEPS * VECTORS
FACTORS_BYTES = 4 * ROWS * STEPS
DATA_BYTES = LINES_BYTES + FACTORS_BYTES + VECTOR_BYTES * ROWS * VECTORS
"""What the work needs of the memory: it writes zeros there, and reads them."""

MIN_BATCHES = 3
"""Batches that count, at least, of few."""

MAX_SLOWDOWN = 2.0
"""The fixed work counts as no slower than this many times its fastest: what takes longer was
interrupted, which the batches beside it need not have been."""

MIN_STEPS = 20
"""Steps of the clock that the work lasts, at least."""

ZERO_TIMES = 100
"""Times that the work may take no time by the clock before that is believed."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds per call of batches, and the seconds that the fixed work took before the first of
    them and after each, where it was timed."""

    seconds: tuple[float, ...]
    calibration: tuple[float, ...] = ()


class SpeedCalibration:
    """Scales measured times to the fastest speed of the machine seen so far."""

    def __init__(self) -> None:
        self.fastest = math.inf

    def corrected(self, timed: Timed) -> tuple[float, ...]:
        """What the batches in the quietest third of the time would have taken, at least
        `MIN_BATCHES` of them; without calibration, all batches as they are."""
        if not timed.calibration:
            return timed.seconds
        self.fastest = min(self.fastest, *timed.calibration)
        beside = [(before + after) / 2 for before, after in pairwise(timed.calibration)]
        batches = sorted(zip(beside, timed.seconds, strict=True))
        quietest = batches[: max(MIN_BATCHES, len(batches) // 3)]
        slowest = MAX_SLOWDOWN * self.fastest
        return tuple(seconds * self.fastest / min(work, slowest) for work, seconds in quietest)


@lru_cache(maxsize=1)
def calibration_timer() -> Callable[[], float]:
    """A function that does the fixed work and takes its time, in seconds.

    Raises:
        TVMError: there is no WebAssembly engine.
    """
    run = instance_of(_work()).timer("work", ["i32", "i32"])
    room = engine().allocate(DATA_BYTES)
    shortest = MIN_STEPS * clock_step()
    times = 1

    def calibrate() -> float:
        # How often cannot be settled once: where an interruption filled the time, too few would do.
        nonlocal times
        times, seconds = long_enough(
            lambda number: run(ITERATIONS * number, room.address), times, shortest, ZERO_TIMES
        )
        return seconds / times

    return calibrate


@lru_cache(maxsize=1)
def calibration_code() -> bytes:
    """The module of the fixed work: it imports a memory of its own, and exports
    work(iterations, address)."""
    return module_code(_work())


def _work() -> Function:
    builder = FunctionBuilder("work", [("number", "i32"), ("data", "i32")])
    sums = [[builder.local("v128") for _ in range(VECTORS)] for _ in range(ROWS)]
    line = [builder.local("v128") for _ in range(VECTORS)]
    builder.local("v128", "factor")
    for offset in range(0, DATA_BYTES, VECTOR_BYTES):
        builder.code("local.get data")
        builder.emit("v128.const", bytes(VECTOR_BYTES))
        builder.emit("v128.store", offset)
    with builder.loop("again"):
        for step in range(STEPS):
            for number, vector in enumerate(line):
                offset = VECTOR_BYTES * (step * VECTORS + number)
                builder.code(f"local.get data  v128.load {offset}  local.set {vector}")
            for number, row in enumerate(sums):
                offset = LINES_BYTES + 4 * (number * STEPS + step)
                builder.code(f"local.get data  v128.load32_splat {offset}  local.set factor")
                for total, vector in zip(row, line, strict=True):
                    builder.code(f"local.get {total}  local.get factor  local.get {vector}")
                    builder.code(f"f32x4.mul  f32x4.add  local.set {total}")
        builder.code(f"{COUNT_DOWN}  br_if again")
    for position, total in enumerate(total for row in sums for total in row):
        offset = LINES_BYTES + FACTORS_BYTES + VECTOR_BYTES * position
        builder.code(f"local.get data  local.get {total}  v128.store {offset}")
    return builder.build()
