"""Callbacks of a search: told of each measurement, with TVM's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlcweb.meta_schedule.builder import BuilderResult
from mlcweb.meta_schedule.database.tuning_record import FAILED_SECONDS, TuningRecord
from mlcweb.meta_schedule.events import Confirmed, Event, Trial
from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.meta_schedule.task_scheduler import Listener, TaskScheduler
from mlcweb.meta_schedule.utils import remove_build_dir
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
    """What `tune_tasks` does by itself, and `TaskScheduler.tune` only where it is asked to."""


class AddToDatabase(_DoneBySearch):
    """Keeps records, also of what failed."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        context = task_scheduler.tasks[task_id].context
        database = task_scheduler.database
        assert context.mod is not None
        workload = database.commit_workload(context.mod)
        for candidate, result in zip(measure_candidates, runner_results, strict=True):
            seconds = result.run_secs if result.error_msg is None else None
            database.commit_tuning_record(
                TuningRecord(
                    candidate.sch.trace, workload, seconds or (FAILED_SECONDS,), context.target,
                    candidate.args_info,
                )
            )  # fmt: skip


class RemoveBuildArtifact(_DoneBySearch):
    """Removes what was built, with its folder."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        for result in builder_results:
            if result.artifact_path is not None and Path(result.artifact_path).is_file():
                remove_build_dir(result.artifact_path)


class UpdateCostModel(_DoneBySearch):
    """Teaches the cost model."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        model = task_scheduler.cost_model
        if model is not None:
            context = task_scheduler.tasks[task_id].context
            model.update(context, measure_candidates, runner_results)


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
