"""Having programs built and measured, several at once, and none of them twice.

It knows nothing of how that is done: a `Runner` may be worker processes, light workers of a page,
or a test's stand-in.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mlcweb.ir import IRModule, structural_hash
from mlcweb.meta_schedule.measure.artifact import Artifact, WasmArtifact
from mlcweb.meta_schedule.measure.runner import Runner, RunnerClosed, Seconds
from mlcweb.meta_schedule.trial import Trial
from mlcweb.schedule.errors import ScheduleError

Build = Callable[[IRModule], Artifact | Awaitable[Artifact]]


@dataclass(slots=True)
class _Measurement:
    """A program on its way through the runner, and the first trial that arrived at its code. Of one
    that is done only the outcome is kept: an exception would keep all that led to it."""

    index: int
    task: asyncio.Task[Seconds] | None = None
    seconds: Seconds = ()
    reason: str | None = None
    closed: RunnerClosed | None = None

    def is_done(self) -> bool:
        """Whether the outcome is there."""
        if self.task is None:
            return True
        if not self.task.done():
            return False
        try:
            self.seconds = self.task.result()
        except RunnerClosed as error:
            self.closed = error
        except Exception as error:
            self.reason = reason_of(error)
        self.task = None
        return True


class Measuring:
    """Measures programs. Equal programs and equal code are measured once.

    Args:
        build: makes code from a scheduled module.
        runner: called once per distinct code. Every exception of `build`, and every one of the
            runner but `RunnerClosed`, makes a failed trial with the exception as its reason.
    """

    def __init__(self, build: Build, runner: Runner) -> None:
        self.build = build
        self.runner = runner
        self._programs: dict[int, _Measurement] = {}
        self._codes: dict[Any, _Measurement] = {}

    async def measure(self, samples: Iterator[Trial]) -> AsyncIterator[Trial]:
        """Trials as they are done; `Trial.index` tells the order in which they were sampled.

        Sampling and compiling go on while earlier programs are measured.

        Raises:
            RunnerClosed: the runner was closed. What was done by then has been yielded.
        """
        under_way: dict[int, tuple[Trial, int]] = {}
        # So many that a worker that comes free finds the next program ready.
        most = 2 * self.runner.workers
        while True:
            for trial in self._finished(under_way):
                yield trial
            trial = next(samples, None) if len(under_way) < most else None
            if trial is not None:
                if trial.reason is None:
                    under_way[trial.index] = (trial, self._begin(trial))
                # Lets the program travel to its worker, and answers of others arrive.
                await asyncio.sleep(0)
                if trial.reason is not None:
                    yield trial
            elif under_way:
                waited_for = (self._programs[shash].task for _, shash in under_way.values())
                tasks = {task for task in waited_for if task is not None}
                if tasks:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                return

    def _begin(self, trial: Trial) -> int:
        """Begin the trial's measurement, unless its like was met before; the program's hash."""
        shash = structural_hash(trial.module)
        if shash not in self._programs:
            own = self._programs[shash] = _Measurement(trial.index)
            try:
                artifact = self.build(trial.module)
                if inspect.isawaitable(artifact):
                    own.task = _begun(self._built_and_run(shash, artifact))
                elif self._is_new(shash, artifact):
                    own.task = _begun(self.runner.run(artifact))
            except Exception as error:
                own.reason = reason_of(error)
        return shash

    async def _built_and_run(self, shash: int, building: Awaitable[Artifact]) -> Seconds:
        artifact = await building
        if self._is_new(shash, artifact):
            return await self.runner.run(artifact)
        known = self._programs[shash]
        while not known.is_done():
            assert known.task is not None
            await asyncio.wait([known.task])
        return known.seconds

    def _is_new(self, shash: int, artifact: Artifact) -> bool:
        """Whether this code was never met; the measurement of the first is the program's."""
        own = self._programs[shash]
        known = self._programs[shash] = self._codes.setdefault(_key(artifact), own)
        return known is own

    def _finished(self, under_way: dict[int, tuple[Trial, int]]) -> Iterator[Trial]:
        """Takes out what is done. That the runner is closed is raised after all else."""
        closed: RunnerClosed | None = None
        done = [i for i, (_, shash) in under_way.items() if self._programs[shash].is_done()]
        for index in done:
            trial, shash = under_way.pop(index)
            seen = self._programs[shash]
            if seen.closed is not None:
                closed = seen.closed
                continue
            same_as = None if seen.index == index else seen.index
            yield replace(trial, run_secs=seen.seconds, reason=seen.reason, same_as=same_as)
        if closed is not None:
            raise closed


def reason_of(error: BaseException) -> str:
    """An error as a table has room for it."""
    # A ScheduleError's text holds the whole program; its reason alone is short.
    text = error.reason if isinstance(error, ScheduleError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _key(artifact: Artifact) -> Any:
    """Equal for equal code, and small."""
    if isinstance(artifact, WasmArtifact):
        return hashlib.blake2b(artifact.code, digest_size=16).digest()
    return artifact.target, artifact.function, structural_hash(artifact.module)


def _begun(work: Coroutine[Any, Any, Seconds]) -> asyncio.Task[Seconds]:
    """A task whose failure is of no interest where nobody waits for it any more."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
