"""A search under way: its programs measured one after the other, within a budget, and recorded."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from mlcweb.meta_schedule.measure.artifact import build_artifact
from mlcweb.meta_schedule.measure.confirm import FINALISTS, confirm
from mlcweb.meta_schedule.measure.local_runner import LocalRunner
from mlcweb.meta_schedule.measure.measuring import Build, Measuring
from mlcweb.meta_schedule.measure.runner import Runner, RunnerClosed, Seconds
from mlcweb.meta_schedule.measure.trial_inputs import TrialInputs, random_inputs
from mlcweb.meta_schedule.trial import Trial
from mlcweb.meta_schedule.utils import gc_frozen
from mlcweb.playground.protocol.search import SearchSettings, StoredRecord
from mlcweb.playground.search import program as programs
from mlcweb.playground.search.earlier import Earlier, Remembering
from mlcweb.playground.search.kept import KeptTrial
from mlcweb.playground.search.program import Program
from mlcweb.playground.search.sources import TARGET, DefaultSpace, OwnFunction, Source
from mlcweb.playground.search.storage import Recorder
from mlcweb.runtime.host import clock
from mlcweb.schedule import Trace

LOST = "WorkerDied"
"""How the reason of a trial begins whose worker ended for no known cause."""


class Run:
    """A search of the page. First `begin`, then the `trials`.

    Attributes:
        rounds: the round of each trial, by its number; what a model predicted is comparable within
            one.
        recalled: the numbers of trials whose time comes from an earlier search.
    """

    def __init__(self, program: Program, settings: SearchSettings, earlier: Earlier) -> None:
        self.program = program
        self.settings = settings
        self.earlier = earlier
        self.rounds: dict[int, int] = {}
        self.recalled: set[int] = set()
        workload = random_inputs(program.scheduled, program.main)
        self.runner = open_runner(workload, settings.workers)
        self._build = _build_for(self.runner, program.main)
        self.recorder = Recorder(program.scheduled, TARGET)
        self._finalists: list[Trial] = []
        self._repeats: dict[int, list[Trial]] = {}
        self._unfinished: set[int] = set()
        self._begun = 0.0
        self._idle = 0.0

    async def begin(self) -> Seconds:
        """Run and time the program as it stands; what it computes is what trials must compute."""
        made: Any = self._build(self.program.scheduled)
        return await self.runner.begin(await made if inspect.isawaitable(made) else made)

    async def trials(self) -> AsyncIterator[Trial]:
        """The best of earlier searches; then each trial as soon as it is done; then the best of
        them all again, with confirmed times. Where `close` is called meanwhile, no more come.

        The budget's seconds count but for those in which nobody waits for a trial, so that a search
        that pauses spends none.
        """
        own = self.settings.strategy == "function"
        first = [] if own else self.earlier.best(self.program.scheduled, FINALISTS)
        for trial in first:
            self.recalled.add(trial.index)
            self._rank(trial)
            yield trial
        source = self._source(len(first))
        runner = Remembering(self._build, self.runner, self.earlier.seconds if own else {})
        measuring = Measuring(runner.build, runner)
        self._begun = clock()
        with gc_frozen(), suppress(RunnerClosed):
            number = 0
            while not self._is_over() and (samples := source.round()) is not None:
                done: list[Trial] = []
                measured: Any = measuring.measure(self._noted(samples))
                async with aclosing(measured):
                    async for trial in measured:
                        if own and runner.knows(trial.module):
                            self.recalled.add(trial.index)
                        self.rounds[trial.index] = number
                        self._rank(trial)
                        done.append(self._light(trial))
                        left = clock()
                        yield trial
                        self._idle += clock() - left
                        if self._is_over():
                            break
                source.learn(done)
                number += 1
            repeats = [each for group in self._repeats.values() for each in group]
            async for trial in confirm(
                [*self._finalists, *repeats], build=self._build, runner=self.runner
            ):
                yield trial

    def record(self, trial: Trial, kept: KeptTrial) -> StoredRecord | None:
        """Keep a trial for later searches; what the page stores of it. None where there is nothing
        to keep: the schedule was not finished, its time comes from there, or its worker was lost,
        which tells nothing of it.

        Args:
            kept: the trial with its own steps.
        """
        if trial.index in self._unfinished:
            return None
        if trial.index in self.recalled and not trial.confirmed:
            return None
        if (trial.reason or "").startswith(LOST):
            return None
        record = self.recorder.record(trial, kept)
        self.earlier.database.commit_tuning_record(record)
        return self.recorder.stored(record, kept)

    def close(self) -> None:
        """End the workers, and so the trials."""
        self.runner.close()

    def _source(self, first: int) -> Source:
        asked = self.settings
        if asked.strategy == "function":
            assert asked.schedule_function is not None
            function = programs.named(asked.schedule_function)
            return OwnFunction(self.program.scheduled, function, asked.seed, asked.trials)
        return DefaultSpace(
            self.program.scheduled,
            asked.strategy,
            seed=asked.seed,
            trials=asked.trials,
            first=first,
            database=self.earlier.database,
            tried=self.earlier.seconds,
        )

    def _noted(self, samples: Iterator[Trial]) -> Iterator[Trial]:
        """The same; those whose schedule function failed are noted."""
        for trial in samples:
            if trial.reason is not None:
                self._unfinished.add(trial.index)
            yield trial

    def _is_over(self) -> bool:
        limit = self.settings.seconds
        return limit is not None and clock() - self._begun - self._idle >= limit

    def _rank(self, trial: Trial) -> None:
        """Keep the best few, and what took over their times; the rest is let go of."""
        if trial.state == "failed":
            return
        if trial.same_as is not None:
            self._repeats.setdefault(trial.same_as, []).append(self._light(trial))
            return
        best = sorted([*self._finalists, trial], key=lambda each: (each.seconds, each.index))
        self._finalists = best[:FINALISTS]

    def _light(self, trial: Trial) -> Trial:
        """A trial without its steps and its program: thousands of them take little room."""
        return replace(trial, trace=Trace([], {}), module=self.program.scheduled)


def open_runner(workload: TrialInputs, workers: int | None) -> Runner:
    """Workers of this page or machine for one program."""
    return LocalRunner(max_workers=workers).open(workload)


def _build_for(runner: Runner, function: str) -> Build:
    """Programs are compiled by the runner's workers where it can do that."""
    in_workers = getattr(runner, "build", None)
    if in_workers is not None:
        return lambda module: in_workers(module, function, TARGET)
    return partial(build_artifact, function=function, target=TARGET)
