"""Random search over what a function does to a schedule; nothing learns."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.measure.measuring import Build, Measuring, reason_of
from mlcweb.meta_schedule.measure.runner import Runner
from mlcweb.meta_schedule.trial import Trial
from mlcweb.schedule import Schedule

ScheduleFunction = Callable[[Schedule], Any]
"""Transforms the schedule that it is given. What it returns is used if it is a schedule."""


def random_search(
    module: IRModule,
    schedule_function: ScheduleFunction,
    *,
    build: Build,
    runner: Runner,
    seed: int = 0,
    limit: int | None = None,
) -> AsyncIterator[Trial]:
    """Trials, each as soon as it is done; `Trial.index` tells the order in which they were sampled.
    They end after `limit` trials. See `Measuring` for `build`, `runner` and what is raised.

    Args:
        module: the program to schedule.
        schedule_function: applied to a schedule of `module` with a seed of its own in each trial.
        seed: the same seed samples the same schedules.
    """
    drawn = samples(module, schedule_function, seed, limit)
    return Measuring(build, runner).measure(drawn)


def samples(
    module: IRModule, function: ScheduleFunction, seed: int, limit: int | None
) -> Iterator[Trial]:
    """The schedules of `random_search` as trials that were not measured yet; one whose function
    failed has the reason."""
    seeds = random.Random(seed)
    for index in count() if limit is None else range(limit):
        trial_seed = seeds.randrange(1, 2**31 - 1)
        schedule = Schedule(module, seed=trial_seed)
        reason = None
        try:
            result = function(schedule)
            if isinstance(result, Schedule):
                schedule = result
        except Exception as error:
            reason = reason_of(error)
        yield Trial(index, trial_seed, schedule.trace.copy(), schedule.mod, reason=reason)
