"""A search as a builder, a runner and callbacks of a program's own see it: rounds of candidates,
each built, run and handed to the callbacks, and nothing measured beside them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, RunnerResult

if TYPE_CHECKING:
    from mlcweb.meta_schedule.builder import Builder, BuilderResult
    from mlcweb.meta_schedule.cost_model.cost_model import CostModel
    from mlcweb.meta_schedule.database.database import Database
    from mlcweb.meta_schedule.runner import PyRunner, RunnerFuture
    from mlcweb.meta_schedule.tune_context import TuneContext


class Task:
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
        measure_candidates, builder_results, runner_futures: those of the round that is built and
            run as a whole; None between rounds, and where candidates are measured as they come.
    """

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
        self.measure_candidates: list[MeasureCandidate] | None = None
        self.builder_results: list[BuilderResult] | None = None
        self.runner_futures: list[RunnerFuture | None] | None = None

    @property
    def is_terminated(self) -> bool:
        return self.terminated


class PlainTask(Task):
    """A task whose rounds are built and run as a whole."""

    def begin(
        self, trials: int, per_round: int, database: Database, model: CostModel | None
    ) -> None:
        """Prepare its search of at most `trials` candidates."""
        self.context.pre_tuning(trials, per_round, None, database, model)

    def start_round(self, builder: Builder, runner: PyRunner) -> int:
        """Propose candidates, build them and begin to run them; how many there are. A task without
        candidates has ended."""
        from mlcweb.meta_schedule.builder import BuilderInput
        from mlcweb.meta_schedule.runner import RunnerInput

        candidates = self.context.generate_measure_candidates()
        if candidates is None:
            self.end()
            return 0
        target = self.context.target
        assert target is not None
        built = builder.build([BuilderInput(c.sch.mod, target) for c in candidates])
        whole = [n for n, result in enumerate(built) if result.error_msg is None]
        kind = target.kind.name
        inputs = [
            RunnerInput(str(built[n].artifact_path), kind, candidates[n].args_info) for n in whole
        ]
        futures: list[RunnerFuture | None] = [None] * len(candidates)
        for number, future in zip(whole, runner.run(inputs), strict=True):
            futures[number] = future
        self.runner_futures = futures
        self.measure_candidates = list(candidates)
        self.builder_results = list(built)
        return len(candidates)

    def join(self, tell: Callable[[PlainTask, list[RunnerResult]], None]) -> list[RunnerResult]:
        """The results of the round that is run, after the callbacks and the strategy have heard of
        them."""
        if self.runner_futures is None:
            return []
        assert self.measure_candidates is not None and self.builder_results is not None
        results = [
            RunnerResult(None, built.error_msg) if future is None else future.result()
            for future, built in zip(self.runner_futures, self.builder_results, strict=True)
        ]
        for result in results:
            self.trials += 1
            if result.error_msg is None and result.run_secs:
                self.best = min(self.best, statistics.fmean(map(float, result.run_secs)))
            else:
                self.failed += 1
                self.failure = result.error_msg
        self.round_bests.append(self.best)
        tell(self, results)
        self.context.notify_runner_results(self.measure_candidates, results)
        self.measure_candidates = self.builder_results = self.runner_futures = None
        return results

    def end(self) -> None:
        """No more candidates."""
        if not self.terminated:
            self.terminated = True
            self.context.post_tuning()


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
