"""Callbacks of a search: told of each measurement, with TVM's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.meta_schedule.builder import BuilderResult
from mlcweb.meta_schedule.events import Confirmed, Event, Trial
from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.meta_schedule.task_scheduler import Listener, TaskScheduler
from mlcweb.schedule import Schedule

Observer = Callable[[TaskScheduler, "int | None"], Any]


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


def listener_of(
    callbacks: Sequence[MeasureCallback | Observer], scheduler: TaskScheduler
) -> Listener:
    """Tells callbacks of the measurements of a scheduler. What is no `MeasureCallback` is an
    observer: called with the scheduler and the number of the task after each trial, and with None
    at the beginning and the end."""
    own = [each for each in callbacks if not isinstance(each, _DoneBySearch)]

    def tell(source: TaskScheduler, number: int | None, event: Event | None) -> None:
        trial = event.trial if isinstance(event, Confirmed) else event
        if source is not scheduler or not (number is None or isinstance(trial, Trial)):
            return
        for callback in own:
            if not isinstance(callback, MeasureCallback):
                callback(source, number)
            elif number is not None and isinstance(trial, Trial):
                callback.apply(source, number, *_measurement(source, number, trial))

    return tell


def _measurement(
    scheduler: TaskScheduler, number: int, trial: Trial
) -> tuple[list[MeasureCandidate], list[BuilderResult], list[RunnerResult]]:
    context = scheduler.tasks[number].context
    assert context.mod is not None
    sch = Schedule(context.mod)
    trial.trace.apply_to_schedule(sch)
    return (
        [MeasureCandidate(sch, getattr(context.search_strategy, "args_info", ()))],
        [BuilderResult(None, trial.reason)],
        [RunnerResult(trial.run_secs or None, trial.reason)],
    )
