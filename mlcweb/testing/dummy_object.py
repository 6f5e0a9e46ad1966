"""`tvm.meta_schedule.testing.dummy_object`: parts of a search that neither build nor measure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mlcweb.meta_schedule.builder import BuilderInput, BuilderResult, PyBuilder
from mlcweb.meta_schedule.mutator import PyMutator
from mlcweb.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerInput, RunnerResult
from mlcweb.schedule import Trace


class DummyBuilder(PyBuilder):
    """Says of each program that it was built."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        return [BuilderResult("test_path", None) for _ in build_inputs]


class DummyRunnerFuture(PyRunnerFuture):
    """A measurement that is done, with a few random times in seconds."""

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        times = tuple(random.uniform(5, 30) for _ in range(random.randint(1, 10)))
        return RunnerResult(times, None)


class DummyRunner(PyRunner):
    """Gives each program random times."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[Any]:
        return [DummyRunnerFuture() for _ in runner_inputs]


class DummyMutator(PyMutator):
    """Leaves all decisions open."""

    def apply(self, trace: Trace, rng: Any = None) -> Trace | None:
        return Trace(trace.insts, {})

    def clone(self) -> DummyMutator:
        return DummyMutator()
