"""Tuning TensorIR programs, with TVM's calls of two generations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.search_strategy.search_strategy import SearchStrategy
from mlcweb.meta_schedule.space_generator import SpaceGenerator
from mlcweb.meta_schedule.task_scheduler import TaskScheduler
from mlcweb.meta_schedule.tune import TuneConfig, check_options, tune_tasks_async
from mlcweb.meta_schedule.tune_context import (
    SpaceGeneratorType,
    TuneContext,
    copy_for_task,
    normalized,
)
from mlcweb.runtime.host.waiting import wait_for
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule
from mlcweb.tir.function import PrimFunc

_OF_SPACES = ("sch_rules", "postprocs", "mutator_probs")

_OWN = ("space", "special_space", "strategy", "seed", "task_name", "num_tuning_cores")


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
            `tune_tasks_async`. `space` (a generator, its name or a schedule function),
            `special_space` (spaces of functions by name; None leaves a function out), `strategy`,
            `seed`, `task_name`, `num_tuning_cores`, and `sch_rules`, `postprocs`, `mutator_probs`
            for the space.

    Raises:
        TypeError: an option is not known; names those that are.
        ValueError: there is nothing to tune, or an option has no such value.
    """
    return wait_for(tune_tir_async(mod, target, config, work_dir, max_trials_global, **options))


async def tune_tir_async(
    mod: IRModule | PrimFunc,
    target: Target | str,
    config: TuneConfig | str | Path | None = None,
    work_dir: str | Path | TuneConfig | None = None,
    max_trials_global: int | None = None,
    **options: Any,
) -> Database | Schedule | None:
    """`tune_tir` to be awaited: in a page whose browser cannot let Python wait."""
    if not isinstance(config, TuneConfig) and config is not None:
        config, work_dir = None, config
    if isinstance(config, TuneConfig):
        options = _of_config(config, options)
        max_trials_global = config.max_trials_global
    if max_trials_global is None:
        raise ValueError("tune_tir needs max_trials_global, or config=TuneConfig(…)")
    check_options("tune_tir", options, (*_OWN, *_OF_SPACES, "num_threads", "blocks"))
    tasks = _tasks(mod, target, options)
    database = await tune_tasks_async(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
        work_dir=work_dir if isinstance(work_dir, (str, Path)) else None,
        max_trials_global=max_trials_global,
        **options,
    )
    if config is None:
        return database
    return compile_tir(database, mod, target)


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
    mod: IRModule | PrimFunc, target: Target | str, options: dict[str, Any]
) -> list[TuneContext]:
    """One task for each function; takes its options out of those of the search."""
    space: SpaceGeneratorType | None = options.pop("space", "post-order-apply")
    special: Mapping[str, SpaceGeneratorType | None] = options.pop("special_space", None) or {}
    strategy: Any = options.pop("strategy", "evolutionary")
    seed = options.pop("seed", None)
    name = options.pop("task_name", None)
    cores = options.pop("num_tuning_cores", options.pop("num_threads", None)) or "physical"
    of_space = {key: options.pop(key) for key in _OF_SPACES if options.get(key) is not None}
    for key in (*_OF_SPACES, "blocks"):
        options.pop(key, None)
    programs = _programs(mod)
    tasks = []
    for number, (function, module) in enumerate(programs):
        chosen = special.get(function, space)
        if chosen is None:
            continue
        if not isinstance(chosen, SpaceGenerator):
            chosen = SpaceGenerator.create(chosen, **of_space)
        tasks.append(
            TuneContext(
                module,
                target=target,
                space_generator=copy_for_task(chosen),
                search_strategy=copy_for_task(strategy),
                task_name=name if name and len(programs) == 1 else function,
                rand_state=-1 if seed is None else seed + number,
                num_threads=cores,
            )
        )
    return tasks


def _programs(mod: IRModule | PrimFunc) -> list[tuple[str, IRModule]]:
    if isinstance(mod, PrimFunc):
        return [("main", normalized(mod))]
    functions = [(v.name_hint, f) for v, f in mod.functions.items() if isinstance(f, PrimFunc)]
    if not functions:
        raise ValueError("The module has no TensorIR function to tune")
    if len(functions) == 1:
        return [(functions[0][0], normalized(mod))]
    return [(name, normalized(func)) for name, func in functions]
