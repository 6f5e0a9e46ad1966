"""The Python half of the page: our programs, NumPy's, and the data of the other engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from pyodide.ffi import to_js  # pyright: ignore[reportMissingImports]

from benchmarks.bench import Bench
from benchmarks.browser.on_gpu import GpuBench
from benchmarks.kernels import WORKLOADS
from benchmarks.kernels.on_gpu import ON_GPU
from benchmarks.kernels.workload import Workload
from mlcweb.runtime.host import clock

MIN_BATCH = 8e-3


class Page:
    """Methods are named by engine and method, for JavaScript. Names are ``workload/program``.
    `config` are options for `build`, as JSON."""

    def __init__(self, config: str) -> None:
        bench = Bench(json.loads(config))
        self._numpy: dict[str, Callable[[], float]] = {}
        self.page_prepare = bench.prepare
        self.page_sample = bench.sample
        self.page_forget = bench.forget
        self.page_peak = lambda _: bench.peak()
        gpu = GpuBench()
        self.webgpu_prepare = gpu.prepare
        self.webgpu_sample = gpu.sample
        self.webgpu_forget = gpu.forget
        self.webgpu_overhead = lambda _: gpu.overhead()

    def numpy_prepare(self, name: str) -> None:
        workload = WORKLOADS[name.partition("/")[0]]
        inputs, _ = workload.arguments()
        if workload.model:
            call = partial(workload.reference, *inputs)
        else:
            call = partial(np.matmul, *inputs, out=np.empty_like(inputs[0]))
        number = 1

        def sample() -> float:
            nonlocal number
            calls = range(number)
            start = clock()
            for _ in calls:
                call()
            seconds = (clock() - start) / number
            number = max(1, round(MIN_BATCH / max(seconds, 1e-6)))
            return seconds

        self._numpy[name] = sample

    def numpy_sample(self, name: str) -> float:
        return self._numpy[name]()

    def numpy_forget(self, name: str) -> None:
        del self._numpy[name]

    def peer_data(self, engine: str, name: str) -> Any:
        """The operator, and the inputs as [[Float32Array, shape], …]."""
        workload = _workload(engine, name)
        inputs, _ = workload.arguments()
        return to_js([workload.operator, [[array.reshape(-1), array.shape] for array in inputs]])

    def peer_check(self, engine: str, name: str, result: Any) -> None:
        """An AssertionError where another engine computes something else than NumPy."""
        workload = _workload(engine, name)
        _, expected = workload.arguments()
        computed = np.asarray(result.to_py())
        rounding = workload.tolerance
        as_ours = np.allclose(computed, expected.reshape(-1), rounding, rounding)
        if workload.operator == "conv2d" and not as_ours:
            batch, filters, rows, columns = expected.shape
            computed = computed.reshape(batch, rows, columns, filters).transpose(0, 3, 1, 2)
        workload.check(np.ascontiguousarray(computed), expected)


def _workload(engine: str, name: str) -> Workload:
    on_gpu = engine in ("tfjs-webgpu", "ort-webgpu", "jax")
    return (ON_GPU if on_gpu else WORKLOADS)[name.partition("/")[0]]
