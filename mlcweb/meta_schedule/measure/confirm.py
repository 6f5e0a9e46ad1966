"""The verdict of a search: the best few programs measured again, in turn and with nothing beside.

During a search programs are timed beside each other and beside the compiler. Putting their times
right for the pace of the machine leaves some percent of error, which is more than the best differ
by; so they go into the last rounds, and only what they take there decides. Measuring them in turn
spreads what changes with time (the clock rate, other programs) over all of them alike.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from mlcweb.meta_schedule.measure.artifact import Artifact
from mlcweb.meta_schedule.measure.measuring import Build
from mlcweb.meta_schedule.measure.runner import Runner, RunnerClosed
from mlcweb.meta_schedule.trial import Trial

FINALISTS = 8
ROUNDS = 2


async def confirm(
    trials: Sequence[Trial], *, build: Build, runner: Runner, finalists: int = FINALISTS
) -> AsyncIterator[Trial]:
    """The best trials again with the times of the last rounds, and after each those that had taken
    over its times. A trial that fails this time is left as it was.

    Raises:
        RunnerClosed: the runner was closed before all rounds were done.
    """
    codes = [(trial, await _built(build, trial)) for trial in _shortlist(trials, finalists)]
    seconds: dict[int, list[float]] = {trial.index: [] for trial, _ in codes}
    failed: set[int] = set()
    for _ in range(ROUNDS):
        for trial, code in codes:
            if trial.index in failed:
                continue
            try:
                seconds[trial.index] += await runner.run(code)
            except RunnerClosed:
                raise
            except Exception:
                failed.add(trial.index)
    for trial, _ in codes:
        if trial.index not in failed:
            run_secs = tuple(seconds[trial.index])
            for each in (trial, *(t for t in trials if t.same_as == trial.index)):
                yield replace(each, run_secs=run_secs, confirmed=True)


async def _built(build: Build, trial: Trial) -> Artifact:
    made = build(trial.module)
    return await made if inspect.isawaitable(made) else made


def _shortlist(trials: Sequence[Trial], finalists: int) -> list[Trial]:
    measured = [trial for trial in trials if trial.state == "measured"]
    return sorted(measured, key=lambda trial: (trial.seconds, trial.index))[:finalists]
