"""Engines whose programs are what searches find."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.bench import Bench
from benchmarks.engine import NotForThis
from benchmarks.kernels import WORKLOADS
from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.runner import LocalRunner
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.meta_schedule.tune import tune_tasks
from mlcweb.runtime.host.engine import available

TRIALS = 64


class SearchedEngine:
    """mlcweb with wasmtime, and of one program for each workload what searches for WebAssembly make
    of it in the default space. They all begin without records, one after another, each with one
    worker, so that they do not disturb themselves; a sample is the median over what they best.

    Args:
        program: the name of the program.
        seeds: how many searches.
        options: those of `tune_tasks`, and `strategy`.
    """

    only_best = False

    def __init__(self, name: str, title: str, program: str, seeds: int, **options: Any) -> None:
        if not available():
            raise NotForThis('wasmtime is not installed: pip install ".[native]"')
        self.name, self.title = name, title
        self._program, self._seeds, self._options = program, seeds, options
        self._bench = Bench({})
        self.peak = self._bench.peak
        self._found: dict[str, list[str]] = {}

    def prepare(self, name: str) -> None:
        """Search; what is best is built and checked as any other program."""
        workload_name, _, program = name.partition("/")
        if program != self._program or workload_name not in WORKLOADS:
            raise NotForThis(f"{name} is not searched for")
        workload = WORKLOADS[workload_name]
        self._found[name] = []
        for seed in range(1, self._seeds + 1):
            label = f"{name} {seed}"
            module = searched(workload.as_written(), seed, **self._options)
            self._bench.prepare_module(label, workload, module)
            self._found[name].append(label)

    def sample(self, name: str) -> float:
        """Seconds per call of what was best, measured in turn; the median."""
        return statistics.median(self._bench.sample(label) for label in self._found[name])

    def forget(self, name: str) -> None:
        """Free what was best."""
        for label in self._found.pop(name, []):
            self._bench.forget(label)


def searched(mod: IRModule, seed: int, strategy: str = "evolutionary", **options: Any) -> IRModule:
    """The best program that a search finds in the default space."""
    context = TuneContext(
        mod, target="wasm", space_generator=PostOrderApply(), search_strategy=strategy,
        rand_state=seed,
    )  # fmt: skip
    assert context.mod is not None
    settings = {"max_trials_global": TRIALS, "runner": LocalRunner(max_workers=1), **options}
    database = tune_tasks(tasks=[context], task_weights=[1.0], work_dir=None, **settings)
    best = database.query_schedule(context.mod, context.target, "main")
    return context.mod if best is None else best.mod
