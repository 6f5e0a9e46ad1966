"""Tasks under way as task schedulers see them; and tasks whose rounds are built and run as a whole,
by a builder and a runner of a program's own that are asked for each candidate and nothing else."""

from __future__ import annotations

import asyncio
import statistics
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

from mlcweb.meta_schedule.events import Ended, Event, Round, Trial
from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, RunnerResult

if TYPE_CHECKING:
    from mlcweb.meta_schedule.builder import Builder, BuilderResult
    from mlcweb.meta_schedule.runner import PyRunner, RunnerFuture
    from mlcweb.meta_schedule.search import Budget
    from mlcweb.meta_schedule.tune_context import TuneContext


class Task(ABC):
    """A task under way, with the attributes by which schedulers choose one.

    Attributes:
        context, ctx: the task.
        weight, task_weight: how often its program runs in the whole model.
        trials: programs measured, and failed ones.
        failed: those that failed.
        failure: why the last of those did.
        best: seconds of the fastest program, of earlier searches as well; infinite before one ran.
        round_bests: `best` after each round.
        terminated, is_terminated: whether it measures no more.
        flops: operations of its program; 0 where they are not counted.
        workers: programs measured at one time.
        baseline: seconds of the program as it stands, infinite where nobody times it; None before
            its search has started.
        measure_candidates, builder_results, runner_futures: those of the round that is built and
            run as a whole; None between rounds, and where candidates are measured as they come.
    """

    workers = 1
    flops = 0.0
    baseline: float | None = None
    measure_candidates: Sequence[MeasureCandidate] | None = None
    builder_results: Sequence[BuilderResult] | None = None
    runner_futures: Sequence[RunnerFuture | None] | None = None

    def __init__(
        self, context: TuneContext, weight: float = 1.0, best: float = float("inf")
    ) -> None:
        self.context = self.ctx = context
        self.weight = self.task_weight = weight
        self.trials = 0
        self.failed = 0
        self.failure: str | None = None
        self.best = best
        self.round_bests: list[float] = []
        self.terminated = False

    @abstractmethod
    def events(self, budget: Budget) -> AsyncGenerator[Event, None]:
        """All events of its search."""

    @property
    def is_terminated(self) -> bool:
        return self.terminated

    @property
    def name(self) -> str:
        return self.context.task_name

    @property
    def gflops(self) -> float | None:
        """The speed of the best program, in 1e9 operations a second."""
        if not self.flops or not 0 < self.best < float("inf"):
            return None
        return self.flops / self.best / 1e9

    def join(self) -> list[RunnerResult]:
        """The results of the round that runs, which is waited for; none where none does."""
        return []

    def close(self) -> None:
        """Let go of what measures its programs, where that is its own."""
        return

    def end(self) -> None:
        """No more candidates."""
        if not self.terminated:
            self.terminated = True
            self.context.post_tuning()


Told = Callable[
    [Sequence[MeasureCandidate], Sequence["BuilderResult"], Sequence[RunnerResult]], None
]
"""Hears of a round: its candidates, and what became of each."""


class PlainTask(Task):
    """A task whose rounds are built and run as a whole.

    Args:
        tell: called with each round, before the strategy hears of it.
    """

    baseline = float("inf")

    def __init__(
        self, context: TuneContext, weight: float, builder: Builder, runner: PyRunner, tell: Told
    ) -> None:
        super().__init__(context, weight)
        self._builder, self._runner, self._tell = builder, runner, tell
        self._joined: list[Trial] = []

    async def events(self, budget: Budget) -> AsyncGenerator[Event, None]:
        """All events of its search. The `Round` says that one has begun to run: the next turn of
        the task waits for it, so that those of several tasks may run beside each other."""
        try:
            while True:
                self.join()
                for trial in self._joined:
                    yield trial
                self._joined.clear()
                # Lets an interrupt arrive: nothing else is awaited.
                await asyncio.sleep(0)
                if budget.is_spent:
                    break
                candidates = self.context.generate_measure_candidates()
                if candidates is None:
                    break
                self._start(candidates)
                budget.trials -= len(candidates)
                yield Round(len(self.round_bests), self.best)
        finally:
            self.end()
        yield Ended(self.trials)

    def _start(self, candidates: Sequence[MeasureCandidate]) -> None:
        """Build candidates, and begin to run what could be built."""
        from mlcweb.meta_schedule.builder import BuilderInput
        from mlcweb.meta_schedule.runner import RunnerInput

        target = self.context.target
        assert target is not None
        built = self._builder.build([BuilderInput(c.sch.mod, target) for c in candidates])
        inputs = [
            RunnerInput(str(result.artifact_path), target.kind.name, candidate.args_info)
            for candidate, result in zip(candidates, built, strict=True)
            if result.error_msg is None
        ]
        futures = iter(self._runner.run(inputs))
        self.runner_futures = [None if r.error_msg is not None else next(futures) for r in built]
        self.measure_candidates = list(candidates)
        self.builder_results = list(built)

    def join(self) -> list[RunnerResult]:
        candidates, built, futures = (
            self.measure_candidates, self.builder_results, self.runner_futures,
        )  # fmt: skip
        if candidates is None or built is None or futures is None:
            return []
        results = [
            RunnerResult(None, each.error_msg) if future is None else future.result()
            for future, each in zip(futures, built, strict=True)
        ]
        for candidate, result in zip(candidates, results, strict=True):
            reason = result.error_msg or (None if result.run_secs else "The runner gave no times")
            seconds = tuple(map(float, result.run_secs or ())) if reason is None else ()
            self._joined.append(
                Trial(
                    self.trials, candidate.seed, candidate.sch.trace, candidate.sch.mod, seconds,
                    reason, predicted=candidate.predicted, round=len(self.round_bests),
                )
            )  # fmt: skip
            self.trials += 1
            if reason is None:
                self.best = min(self.best, statistics.fmean(seconds))
            else:
                self.failed += 1
                self.failure = reason
        self.round_bests.append(self.best)
        self._tell(candidates, built, results)
        self.context.notify_runner_results(candidates, results)
        self.measure_candidates = self.builder_results = self.runner_futures = None
        return results


def weighted(
    tasks: Sequence[TuneContext], weights: Sequence[float]
) -> list[tuple[TuneContext, float]]:
    """The tasks of a search with their weights. ValueError where there are none, or not as many
    weights."""
    if not tasks:
        raise ValueError("There are no tasks to tune")
    if len(tasks) != len(weights):
        raise ValueError(f"There are {len(tasks)} tasks but {len(weights)} weights")
    return list(zip(tasks, weights, strict=True))
