"""Random search: sample schedules, have them measured, keep the record; nothing learns.

Sampling and compiling go on while earlier programs are measured. The search knows nothing of how
that is done: a `Runner` may be worker processes, light workers of a page, or a test's stand-in.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from mlcweb.ir import IRModule, structural_equal, structural_hash
from mlcweb.meta_schedule.artifact import Artifact
from mlcweb.meta_schedule.runner import Runner, RunnerClosed, Seconds
from mlcweb.meta_schedule.trial import Trial
from mlcweb.tir.schedule import Schedule
from mlcweb.tir.schedule.errors import ScheduleError

ScheduleFunction = Callable[[Schedule], Any]
"""Transforms the schedule that it is given. What it returns is used if it is a schedule."""

Build = Callable[[IRModule], Artifact]


@dataclass(slots=True)
class _Measurement:
    """A program on its way through the runner, and the first trial that arrived at it."""

    index: int
    seconds: asyncio.Task[Seconds]


@dataclass(slots=True)
class _Known:
    """Programs that were met before: a search sees few of them many times."""

    programs: dict[int, list[tuple[IRModule, _Measurement]]] = field(default_factory=dict)
    codes: dict[Artifact, _Measurement] = field(default_factory=dict)

    def of_program(self, module: IRModule, begin: Callable[[], _Measurement]) -> _Measurement:
        """The measurement of a program: of the one that was met before, or what `begin` begins."""
        same_hash = self.programs.setdefault(structural_hash(module), [])
        for known, measurement in same_hash:
            if structural_equal(known, module):
                return measurement
        same_hash.append((module, begin()))
        return same_hash[-1][1]


async def random_search(
    module: IRModule,
    schedule_function: ScheduleFunction,
    *,
    build: Build,
    runner: Runner,
    seed: int = 0,
    limit: int | None = None,
) -> AsyncIterator[Trial]:
    """Trials, each as soon as it is done; `Trial.index` tells the order in which they were sampled.
    They end after `limit` trials.

    Args:
        module: the program to schedule.
        schedule_function: applied to a schedule of `module` with a seed of its own in each trial.
        build: makes code from a scheduled module.
        runner: called once per distinct code. Every exception of `build`, and every one of the
            runner but `RunnerClosed`, makes a failed trial with the exception as its reason.
        seed: the same seed samples the same schedules.

    Raises:
        RunnerClosed: the runner was closed. What was done by then has been yielded.
    """
    known = _Known()
    under_way: dict[int, tuple[Trial, _Measurement]] = {}
    samples = _samples(module, schedule_function, seed, limit)
    # So many that a worker that comes free finds the next program ready.
    most = 2 * runner.workers
    try:
        while True:
            for trial in _finished(under_way):
                yield trial
            trial = next(samples, None) if len(under_way) < most else None
            if trial is not None:
                if trial.reason is None:
                    under_way[trial.index] = (trial, _begin(trial, known, build, runner))
                # Lets the program travel to its worker, and answers of others arrive.
                await asyncio.sleep(0)
                if trial.reason is not None:
                    yield trial
            elif under_way:
                tasks = {seen.seconds for _, seen in under_way.values()}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                return
    finally:
        for _, seen in under_way.values():
            _forget(seen.seconds)


def reason_of(error: BaseException) -> str:
    """An error as a table has room for it."""
    # A ScheduleError's text holds the whole program; its reason alone is short.
    text = error.reason if isinstance(error, ScheduleError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _samples(
    module: IRModule, function: ScheduleFunction, seed: int, limit: int | None
) -> Iterator[Trial]:
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


def _begin(trial: Trial, known: _Known, build: Build, runner: Runner) -> _Measurement:
    """Measure the trial's program, or find the measurement of its like."""
    begin_new = partial(_begin_new, trial, known, build, runner)
    return known.of_program(trial.module, begin_new)


def _begin_new(trial: Trial, known: _Known, build: Build, runner: Runner) -> _Measurement:
    try:
        artifact = build(trial.module)
    except Exception as error:
        return _Measurement(trial.index, asyncio.ensure_future(_failed(error)))
    if artifact not in known.codes:
        seconds = asyncio.ensure_future(runner.run(artifact))
        known.codes[artifact] = _Measurement(trial.index, seconds)
    return known.codes[artifact]


async def _failed(error: Exception) -> Seconds:
    raise error


def _finished(under_way: dict[int, tuple[Trial, _Measurement]]) -> Iterator[Trial]:
    """Takes out what is done. That the runner is closed is raised after all else."""
    closed: RunnerClosed | None = None
    for index in [i for i, (_, seen) in under_way.items() if seen.seconds.done()]:
        trial, seen = under_way.pop(index)
        same_as = None if seen.index == index else seen.index
        try:
            yield replace(trial, run_secs=seen.seconds.result(), same_as=same_as)
        except RunnerClosed as error:
            closed = error
        except Exception as error:
            yield replace(trial, reason=reason_of(error), same_as=same_as)
    if closed is not None:
        raise closed


def _forget(seconds: asyncio.Task[Seconds]) -> None:
    """Nobody asks for this result any more, nor for its failure."""
    if not seconds.cancel() and not seconds.cancelled():
        seconds.exception()
