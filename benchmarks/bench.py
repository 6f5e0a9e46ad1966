"""Programs of ours built, checked and timed where this runs: in Pyodide or natively."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.engine import NotForThis
from benchmarks.kernels import WORKLOADS
from benchmarks.kernels.auto_scheduled import auto_scheduled
from benchmarks.kernels.matmul import by_schedule_mm
from benchmarks.kernels.peak import peak_timers
from benchmarks.kernels.workload import Workload
from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.ir.transform import PassContext
from mlcweb.runtime import Module, build, cpu, nd
from mlcweb.runtime.host import clock

MIN_BATCH_MS = 8
CALLS = 2000
"""Calls from Python in one measurement of what a call costs."""

BUILDS = {
    "build/schedule_mm": lambda: by_schedule_mm(128, 16),
    "build/auto_scheduled": auto_scheduled,
}
CALL = "call/add"


class Bench:
    """Everything is known by the name ``workload/program``. Times are in seconds. `config` are
    options for `build`, which makes programs for `target`."""

    def __init__(self, config: Mapping[str, Any], target: str = "wasm") -> None:
        self._config = config
        self._target = target
        self._peak_timers = peak_timers()
        self._timers: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self._to_build: dict[str, IRModule] = {}

    def prepare(self, name: str) -> None:
        """Build a program anew.

        Raises:
            AssertionError: it computes something wrong.
            NotForThis: there is no such program.
        """
        if name in BUILDS:
            self._to_build[name] = BUILDS[name]()
            return
        workload_name, _, program = name.partition("/")
        if name == CALL:
            workload_name, program = "add", "best"
        if workload_name not in WORKLOADS:
            raise NotForThis(f"no program {name}")
        workload = WORKLOADS[workload_name]
        if program not in workload.programs:
            raise NotForThis(f"no program {name}")
        self.prepare_module(name, workload, workload.programs[program]())

    def prepare_module(self, name: str, workload: Workload, mod: IRModule) -> None:
        """Build a program of a workload, to be known by a name.

        Raises:
            AssertionError: it computes something wrong.
        """
        if workload.model:
            self._prepare_model(name, workload, mod)
            return
        inputs, expected = workload.arguments()
        module = self._build(mod)
        arrays = [nd.array(array) for array in [*inputs, expected * float("nan")]]
        function = module["main"]
        function(*arrays)
        workload.check(arrays[-1].numpy(), expected)
        if name == CALL:
            self._timers[name] = lambda: _time_calls(function, arrays)
            return
        self._numbers[name] = 1

        def sample() -> float:
            evaluator = module.time_evaluator("main", cpu(), self._numbers[name], 1)
            seconds = evaluator(*arrays).median
            self._numbers[name] = max(1, round(MIN_BATCH_MS * 1e-3 / seconds))
            return seconds

        sample()
        self._timers[name] = sample

    def _prepare_model(self, name: str, workload: Workload, mod: IRModule) -> None:
        inputs, expected = workload.arguments()
        arrays = [nd.array(array) for array in inputs]
        with PassContext(config=self._config):
            vm = relax.VirtualMachine(relax.build(mod, target=self._target), cpu())
        workload.check(vm["main"](*arrays).numpy(), expected)
        evaluator = vm.time_evaluator("main", cpu(), number=1, repeat=1, min_repeat_ms=MIN_BATCH_MS)
        self._timers[name] = lambda: evaluator(*arrays).median

    def sample(self, name: str) -> float:
        """Seconds per call, or per build, measured once more."""
        if name in self._to_build:
            start = clock()
            self._build(self._to_build[name])
            return clock() - start
        return self._timers[name]()

    def _build(self, module: IRModule) -> Module:
        return build(module, target=self._target, config=self._config)

    def peak(self) -> float:
        """GFLOPS of vectors in registers, in the better way; measured three times."""
        return statistics.median(max(timer() for timer in self._peak_timers) for _ in range(3))

    def forget(self, name: str) -> None:
        """Free a program and its arrays."""
        for table in (self._timers, self._numbers, self._to_build):
            table.pop(name, None)


def _time_calls(function: Any, arrays: list[Any]) -> float:
    a, b, c = arrays
    calls = range(CALLS)
    start = clock()
    for _ in calls:
        function(a, b, c)
    return (clock() - start) / CALLS
