"""Callbacks of a search: told of each measurement, with TVM's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mlcweb.meta_schedule.measure.user_runner import BuilderResult
from mlcweb.meta_schedule.strategy.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.meta_schedule.watching import watching
from mlcweb.schedule import Schedule

if TYPE_CHECKING:
    from mlcweb.meta_schedule.task_scheduler import TaskScheduler
    from mlcweb.meta_schedule.trial import Trial


class MeasureCallback:
    """Subclasses define `apply`."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Called with what has been measured; here after each program."""
        raise NotImplementedError(f"{type(self).__name__}.apply")

    @staticmethod
    def create(kind: str = "default") -> list[MeasureCallback]:
        """The callbacks "default": those that keep records and teach the cost model."""
        if kind != "default":
            raise ValueError(f'Unknown measure callbacks "{kind}"; there is "default"')
        return [AddToDatabase(), RemoveBuildArtifact(), UpdateCostModel()]


PyMeasureCallback = MeasureCallback
"""What callbacks of a program's own are subclasses of, in TVM."""


class _DoneBySearch(MeasureCallback):
    def apply(self, *arguments: Any, **named: Any) -> None:
        """Nothing: each search does it."""


class AddToDatabase(_DoneBySearch):
    """Keeps records; each search does."""


class RemoveBuildArtifact(_DoneBySearch):
    """Removes what was built; each search does."""


class UpdateCostModel(_DoneBySearch):
    """Teaches the cost model; each search does."""


def calling(callbacks: Sequence[MeasureCallback], scheduler: TaskScheduler) -> ExitStack:
    """While active, the callbacks are told of the measurements of a scheduler."""

    def tell(source: TaskScheduler, number: int | None, trial: Trial | None) -> None:
        if source is not scheduler or number is None or trial is None:
            return
        context = source.tasks[number].context
        assert context.mod is not None
        sch = Schedule(context.mod)
        trial.trace.apply_to_schedule(sch)
        failed = trial.reason
        for callback in callbacks:
            callback.apply(
                source,
                number,
                [MeasureCandidate(sch, getattr(context.search_strategy, "args_info", ()))],
                [BuilderResult(None, failed)],
                [RunnerResult(trial.run_secs or None, failed)],
            )

    stack = ExitStack()
    if any(not isinstance(callback, _DoneBySearch) for callback in callbacks):
        stack.enter_context(watching(tell))
    return stack
