"""Tuning tasks: the call that all others come down to."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal

from mlcweb.meta_schedule.builder import Builder, LocalBuilder
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.measure_callback import MeasureCallback, listener_of
from mlcweb.meta_schedule.progress import Progress
from mlcweb.meta_schedule.runner import (
    BatchRunner,
    LocalRunner,
    OpenRunner,
    PyRunner,
    Runners,
)
from mlcweb.meta_schedule.task_scheduler import TaskScheduler, listening
from mlcweb.meta_schedule.tune_context import (
    ExtractedTask,
    SearchStrategyType,
    SpaceGeneratorType,
    TuneContext,
    extracted_tasks_to_tune_contexts,
)  # fmt: skip
from mlcweb.runtime.host.waiting import wait_for


@dataclass(frozen=True, slots=True)
class TuneConfig:
    """How a search goes, as the courses of 2022 write it.

    Attributes:
        max_trials_global: programs measured in all.
        num_trials_per_iter: programs in a round, at most.
        max_trials_per_task: programs measured of one task, at most.
        task_scheduler: its name.
        strategy: the name of the search strategy.
        search_strategy_config: options of the strategy.
        task_scheduler_config: options of the scheduler.
    """

    max_trials_global: int
    num_trials_per_iter: int
    max_trials_per_task: int | None = None
    task_scheduler: str = "gradient"
    strategy: str = "evolutionary"
    task_scheduler_config: dict[str, Any] = field(default_factory=dict)
    search_strategy_config: dict[str, Any] = field(default_factory=dict)
    logger_config: dict[str, Any] = field(default_factory=dict)
    adaptive_training: bool | None = None


def _config_of(
    strategy: str,
    num_trials_per_iter: int,
    num_trials_total: int | None = None,
    max_trials_per_task: int | None = None,
    max_trials_global: int | None = None,
    **options: Any,
) -> TuneConfig:
    total = num_trials_total or max_trials_global or max_trials_per_task or num_trials_per_iter
    return TuneConfig(
        total,
        num_trials_per_iter,
        max_trials_per_task,
        strategy=strategy,
        search_strategy_config=options,
    )


ReplayTraceConfig = partial(_config_of, "replay_trace")
ReplayFuncConfig = partial(_config_of, "replay_func")
EvolutionarySearchConfig = partial(_config_of, "evolutionary")
"""How programs chose the strategy before `TuneConfig`: programs in a round, programs in all (or of
a task and in all), and options of the strategy."""


def tune_tasks(
    *,
    tasks: Sequence[TuneContext],
    task_weights: Sequence[float],
    work_dir: str | Path | None,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: LocalBuilder | Builder | str = "local",
    runner: Runners | OpenRunner | PyRunner | str = "local",
    database: Database | str = "json",
    cost_model: CostModel | str = "numpy",
    measure_callbacks: Any = "default",
    task_scheduler: TaskScheduler | str = "gradient",
    module_equality: str = "structural",
    post_optimization: bool | None = False,
    early_stopping: int | None = None,
    max_seconds: float | None = None,
) -> Database:
    """Tune tasks, and wait for the end.

    Args:
        task_weights: how often the program of each task runs.
        work_dir: the folder of a database in files; None keeps the records in memory.
        max_trials_global: programs measured in all.
        max_trials_per_task: programs measured of one task, at most.
        num_trials_per_iter: programs in a round, at most.
        builder: "local", a `LocalBuilder`, or a `PyBuilder` for a `PyRunner`.
        runner: "local", a `LocalRunner`, a `DaskRunner` for many machines, a `PyRunner`, or a
            function that makes the `Runner` of a workload.
        database: "json", "memory" or a database.
        cost_model: "numpy", "xgb", "random" or a model.
        measure_callbacks: "default", or observers of the search: called with the scheduler and the
            number of a task after each of its trials, or a `MeasureCallback`.
        task_scheduler: "gradient", "round-robin" or a scheduler.
        early_stopping: trials without progress that end a task.
        max_seconds: seconds after which no trial begins.

    Returns:
        The database with all records.

    Raises:
        ValueError: there are no tasks.
    """
    if post_optimization:
        warnings.warn(
            "post_optimization: the best programs are timed once more, and not changed further",
            stacklevel=3,
        )
    scheduler = _made(task_scheduler, TaskScheduler.create)
    model = _made(cost_model, CostModel.create)
    records = _database(database, work_dir, module_equality)
    measuring = _runner(runner, builder)
    callbacks: Any = [] if measure_callbacks == "default" else measure_callbacks
    if callable(callbacks) or isinstance(callbacks, MeasureCallback):
        callbacks = [callbacks]
    try:
        with (
            Progress() as progress,
            listening(listener_of([progress, *callbacks], scheduler)),
        ):
            scheduler.begin(
                tasks,
                task_weights,
                early_stopping=early_stopping,
                max_trials_global=max_trials_global,
                max_trials_per_task=max_trials_per_task,
                num_trials_per_iter=num_trials_per_iter,
                open_runner=getattr(measuring, "open", measuring),
                database=records,
                cost_model=model,
            )
            wait_for(scheduler.run(max_seconds))
    finally:
        close = getattr(measuring, "close", None)
        if close is not None:
            close()
    return records


def tune_extracted(
    tasks: Sequence[ExtractedTask],
    work_dir: str | Path | None,
    max_trials_global: int,
    *,
    space: SpaceGeneratorType | None = "post-order-apply",
    special_space: Mapping[str, SpaceGeneratorType | None] | None = None,
    strategy: SearchStrategyType = "evolutionary",
    num_tuning_cores: Literal["physical", "logical"] | int = "physical",
    seed: int | None = None,
    **options: Any,
) -> Database:
    """Tune functions: what `tune_tir` and `tune_relax` come down to.

    Args:
        space, strategy, seed, special_space: see `extracted_tasks_to_tune_contexts`.
        num_tuning_cores: cores of the machine that is tuned for.
        options: of `tune_tasks`.
    """
    contexts, weights = extracted_tasks_to_tune_contexts(
        tasks, work_dir, space, strategy, num_tuning_cores, seed, special_space
    )
    return tune_tasks(
        tasks=contexts,
        task_weights=weights,
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        **options,
    )


def check_options(call: str, names: Iterable[str], *own: str) -> None:
    """Refuse options that neither `tune_extracted` nor `tune_tasks` has.

    Args:
        call: the function.
        names: the options that it was given.
        own: those that it has beside the others.

    Raises:
        TypeError: one is not known; names those that are.
    """
    both = (*signature(tune_extracted).parameters, *signature(tune_tasks).parameters)
    options = {*own, *both} - {"tasks", "task_weights", "options"}
    for name in names:
        if name not in options:
            listed = ", ".join(sorted(options))
            raise TypeError(f'{call} has no option "{name}"; there are {listed}')


def _made(kind: Any, create: Any) -> Any:
    return create(kind) if isinstance(kind, str) else kind


def _database(
    database: Database | str, work_dir: str | Path | None, module_equality: str
) -> Database:
    if isinstance(database, Database):
        return database
    if database == "json" and work_dir is not None:
        return Database.create("json", work_dir=work_dir, module_equality=module_equality)
    kind = "memory" if database == "json" else database
    return Database.create(kind, module_equality=module_equality)


def _runner(
    runner: Runners | OpenRunner | PyRunner | str, builder: LocalBuilder | Builder | str
) -> Runners | OpenRunner:
    if builder == "local":
        builder = LocalBuilder()
    if runner == "local":
        runner = LocalRunner(max_workers=getattr(builder, "max_workers", None))
    if isinstance(runner, str):
        raise ValueError(f'Unknown runner "{runner}"; there are "local" and LocalRunner(…)')
    if isinstance(runner, PyRunner) and isinstance(builder, Builder):
        if isinstance(runner, LocalRunner) and runner.is_default and builder.is_default:
            return runner
        return lambda _: BatchRunner(builder, runner)
    if isinstance(runner, PyRunner) or not isinstance(builder, LocalBuilder):
        raise ValueError(
            f'Unknown builder "{builder}"; there are "local", LocalBuilder(…), and a PyBuilder '
            "beside a PyRunner or LocalRunner"
        )
    return runner
