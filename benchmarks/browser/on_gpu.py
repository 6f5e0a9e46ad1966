"""Our half of the benchmark on WebGPU, in the page or natively: programs of `ON_GPU`, called on
arrays that lie on the GPU."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

import mlcweb as tvm
from benchmarks.kernels.on_gpu import ON_GPU
from mlcweb.runtime.host import clock
from mlcweb.script import from_source

BATCH = 8e-3
WARM_UP = 0.3
"""Seconds, as for the other engines."""
DISPATCHES = 1000

NOTHING = """
@T.prim_func
def main(A: T.Buffer((1,), "float32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        A[t] = T.float32(1)
"""


class Prepared(NamedTuple):
    call: Any
    arrays: tuple[Any, ...]


class GpuBench:
    """Of several programs for a computation the fastest counts."""

    def __init__(self) -> None:
        self._prepared: dict[str, Prepared] = {}
        self._number: dict[str, int] = {}

    def prepare(self, name: str) -> str:
        """Builds, checks and warms up; the name of the program that is measured from now on."""
        workload = ON_GPU[name]
        inputs, expected = workload.arguments()
        dev = tvm.webgpu()
        assert dev.exist, "there is no GPU"
        times: dict[str, float] = {}
        programs: dict[str, Prepared] = {}
        for label, make in workload.programs.items():
            result = tvm.nd.array(np.zeros_like(expected), dev)
            arrays = (*(tvm.nd.array(array, dev) for array in inputs), result)
            programs[label] = Prepared(tvm.build(make(), target="webgpu")["main"], arrays)
            programs[label].call(*arrays)
            workload.check(result.numpy(), expected)
            times[label] = self._seconds(programs[label], 1)
        best = min(times, key=times.__getitem__)
        self._prepared[name], self._number[name] = programs[best], 1
        until = time.perf_counter() + WARM_UP
        while time.perf_counter() < until:
            self.sample(name)
        return best

    def sample(self, name: str) -> float:
        """Seconds for each of the calls of a batch."""
        seconds = self._seconds(self._prepared[name], self._number[name])
        self._number[name] = max(1, round(BATCH / max(seconds, 1e-6)))
        return seconds

    def forget(self, name: str) -> None:
        self._prepared.pop(name, None)

    def overhead(self) -> float:
        """Seconds for each of a thousand calls that have nothing to do."""
        func: Any = from_source(NOTHING)
        array = tvm.nd.array(np.zeros(1, "float32"), tvm.webgpu())
        nothing = Prepared(tvm.build(func, target="webgpu")["main"], (array,))
        self._seconds(nothing, DISPATCHES)
        return self._seconds(nothing, DISPATCHES)

    def _seconds(self, prepared: Prepared, number: int) -> float:
        dev = tvm.webgpu()
        dev.sync()
        start = clock()
        for _ in range(number):
            prepared.call(*prepared.arrays)
        dev.sync()
        return (clock() - start) / number
