"""Tuning TensorIR programs, with TVM's calls of two generations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.search_strategy.search_strategy import SearchStrategy
from mlcweb.meta_schedule.space_generator import SpaceGenerator
from mlcweb.meta_schedule.task_scheduler import TaskScheduler
from mlcweb.meta_schedule.tune import TuneConfig, check_options, tune_extracted
from mlcweb.meta_schedule.tune_context import ExtractedTask, normalized
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule
from mlcweb.tir.function import PrimFunc, prim_funcs

_OF_SPACES = ("sch_rules", "postprocs", "mutator_probs")


def tune_tir(
    mod: IRModule | PrimFunc,
    target: Target | str,
    config: TuneConfig | str | Path | None = None,
    work_dir: str | Path | TuneConfig | None = None,
    max_trials_global: int | None = None,
    **options: Any,
) -> Database | Schedule | None:
    """Tune a program, or each function of a module.

    Args:
        mod: the program.
        target: what to build for.
        config: how the search goes, as the courses of 2022 write it. With it the best schedule is
            returned (None where nothing ran), without it the database.
        work_dir: the folder of the database; it may be the third argument, as it is today.
        max_trials_global: programs measured in all.
        options: `max_trials_per_task`, `num_trials_per_iter`, `builder`, `runner`, `database`,
            `cost_model`, `measure_callbacks`, `task_scheduler`, `early_stopping`: see
            `tune_tasks`. `space` (a generator, its name or a schedule function),
            `special_space` (spaces of functions by name; None leaves a function out), `strategy`,
            `seed`, `task_name`, `num_tuning_cores`, and `sch_rules`, `postprocs`, `mutator_probs`
            for the space.

    Raises:
        TypeError: an option is not known; names those that are.
        ValueError: there is nothing to tune, or an option has no such value.
    """
    if not isinstance(config, TuneConfig) and config is not None:
        config, work_dir = None, config
    if isinstance(config, TuneConfig):
        options = _of_config(config, options)
        max_trials_global = config.max_trials_global
    if max_trials_global is None:
        raise ValueError("tune_tir needs max_trials_global, or config=TuneConfig(…)")
    check_options("tune_tir", options, *_OF_SPACES, "task_name", "num_threads", "blocks")
    of_space = {key: options.pop(key) for key in _OF_SPACES if options.get(key) is not None}
    for key in (*_OF_SPACES, "blocks"):
        options.pop(key, None)
    cores = options.pop("num_tuning_cores", options.pop("num_threads", None)) or "physical"

    def with_options(space: Any) -> Any:
        if not of_space or space is None or isinstance(space, SpaceGenerator):
            return space
        return SpaceGenerator.create(space, **of_space)

    special = options.pop("special_space", None) or {}
    database = tune_extracted(
        _tasks(mod, target, options.pop("task_name", None)),
        work_dir if isinstance(work_dir, (str, Path)) else None,
        max_trials_global,
        space=with_options(options.pop("space", "post-order-apply")),
        special_space={name: with_options(space) for name, space in special.items()},
        num_tuning_cores=cores,
        **options,
    )
    return database if config is None else compile_tir(database, mod, target)


def compile_tir(
    database: Database, mod: IRModule | PrimFunc, target: Target | str
) -> Schedule | None:
    """The best schedule of a program that a database knows; None where there is none."""
    return database.query_schedule(normalized(mod), Target(target), workload_name="main")


def _of_config(config: TuneConfig, options: dict[str, Any]) -> dict[str, Any]:
    of_config: dict[str, Any] = {
        "num_trials_per_iter": config.num_trials_per_iter,
        "max_trials_per_task": config.max_trials_per_task,
        "strategy": SearchStrategy.create(config.strategy, **config.search_strategy_config),
        "task_scheduler": TaskScheduler.create(
            config.task_scheduler, **config.task_scheduler_config
        ),
    }
    return {**of_config, **options}


def _tasks(
    mod: IRModule | PrimFunc, target: Target | str, task_name: str | None
) -> list[ExtractedTask]:
    """A task for each function; one alone may have a name of its own."""
    functions = {"main": mod} if isinstance(mod, PrimFunc) else prim_funcs(mod)
    if not functions:
        raise ValueError("The module has no TensorIR function to tune")
    is_one = len(functions) == 1
    tasks = []
    for name, func in functions.items():
        program = normalized(mod if is_one else func)
        ArgInfo.from_entry_func(program)  # an error where it cannot be run
        own_name = task_name if task_name and is_one else name
        tasks.append(ExtractedTask(own_name, program, Target(target), [program], 1))
    return tasks
