"""Having programs built and measured, several at once and none of them twice; and the best of them
again, which is the verdict of a search.

During a search programs are timed beside each other and beside the compiler. Calibrating their
times leaves some percent of error, which is more than the best differ by; so they go into the last
rounds, in turn and with nothing beside, and only what they take there decides. Measuring them in
turn spreads what changes with time (the clock rate, other programs) over all of them alike.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from mlcweb.ir import IRModule, structural_hash
from mlcweb.meta_schedule.events import Trial
from mlcweb.meta_schedule.measure.artifact import Artifact, KernelCode
from mlcweb.meta_schedule.measure.runner import NotMeasured, Runner, RunnerClosed, Seconds
from mlcweb.schedule.errors import ScheduleError

FAILED_EARLIER = "it failed in an earlier search"


@dataclass(slots=True)
class _Measurement:
    """A program on its way through the runner, and the first trial that arrived at its code. Of one
    that is done only the outcome is kept: an exception would keep all that led to it."""

    index: int
    task: asyncio.Task[Seconds] | None = None
    seconds: Seconds = ()
    reason: str | None = None
    recalled: bool = False
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
    """Measures programs. Equal programs and equal code are measured once, unless `every` is set.

    Args:
        runner: builds and measures. Every exception of it but `RunnerClosed` makes a failed trial
            with the exception as its reason.
        target: what to build for.
        outcomes: seconds of programs that need no measuring, by structural hash; empty for those
            that failed.
        every: whether programs are measured however often they come.
    """

    def __init__(
        self,
        runner: Runner,
        target: str,
        outcomes: Mapping[int, Seconds] = MappingProxyType({}),
        every: bool = False,
    ) -> None:
        self.runner = runner
        self.target = target
        self.every = every
        self._outcomes = outcomes
        self._programs: dict[int, _Measurement] = {}
        self._codes: dict[Any, _Measurement] = {}

    async def measure(self, samples: Iterator[Trial]) -> AsyncIterator[Trial]:
        """Trials as they are done. Sampling and compiling go on while earlier programs are
        measured. A sample that has a reason already is passed on.

        Raises:
            RunnerClosed: the runner was closed. What was done by then has been yielded.
        """
        under_way: dict[int, Trial] = {}
        # Enough that a worker that comes free has the next program ready.
        room = 2 * self.runner.workers
        while True:
            for trial in self._finished(under_way):
                yield trial
            trial = next(samples, None) if len(under_way) < room else None
            if trial is not None:
                if trial.reason is None:
                    under_way[trial.index] = self._begin(trial)
                # Lets the program travel to its worker, and answers of others arrive.
                await asyncio.sleep(0)
                if trial.reason is not None:
                    yield trial
            elif under_way:
                waited_for = (self._programs[self._key(each)].task for each in under_way.values())
                tasks = {task for task in waited_for if task is not None}
                if tasks:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                return

    def _begin(self, trial: Trial) -> Trial:
        """Begin a trial's measurement, unless its like was met before; the trial with its hash."""
        shash = structural_hash(trial.module) if trial.shash is None else trial.shash
        trial = replace(trial, shash=shash)
        key = self._key(trial)
        if key not in self._programs:
            own = self._programs[key] = _Measurement(trial.index)
            if not self.every and shash in self._outcomes:
                own.recalled = True
                own.seconds = self._outcomes[shash]
                own.reason = None if own.seconds else FAILED_EARLIER
            else:
                own.task = _begun(self._built_and_measured(key, trial.module))
        return trial

    def _key(self, trial: Trial) -> int:
        """Under which a trial's program is measured."""
        return trial.index if self.every else trial.shash or 0

    async def _built_and_measured(self, key: int, module: IRModule) -> Seconds:
        artifact = await self.runner.build(module, self.target)
        own = first = self._programs[key]
        if not self.every:
            first = self._programs[key] = self._codes.setdefault(_code(artifact), own)
        # Whose code was met before is done when that is.
        return await self.runner.measure(artifact) if first is own else ()

    def _finished(self, under_way: dict[int, Trial]) -> Iterator[Trial]:
        """Takes out what is done. That the runner is closed is raised after all else."""
        closed: RunnerClosed | None = None
        done = [i for i, each in under_way.items() if self._programs[self._key(each)].is_done()]
        for index in done:
            trial = under_way.pop(index)
            seen = self._programs[self._key(trial)]
            if seen.closed is not None:
                closed = seen.closed
                continue
            yield replace(
                trial,
                run_secs=seen.seconds,
                reason=seen.reason,
                same_as=None if seen.index == index else seen.index,
                recalled=seen.recalled,
            )
        if closed is not None:
            raise closed


def reason_of(error: BaseException) -> str:
    """An error as a table has room for it."""
    if isinstance(error, NotMeasured):
        return str(error)
    # A ScheduleError's text holds the whole program; its reason alone is short.
    text = error.reason if isinstance(error, ScheduleError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _code(artifact: Artifact) -> Any:
    """Equal for equal code, and small."""
    if isinstance(artifact, KernelCode):
        return hashlib.blake2b(artifact.code, digest_size=16).digest(), artifact.layouts
    return artifact.target, artifact.function, structural_hash(artifact.module), artifact.layouts


def _begun(work: Coroutine[Any, Any, Seconds]) -> asyncio.Task[Seconds]:
    """A task whose failure is of no interest where nobody waits for it any more."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


FINALISTS = 8
ROUNDS = 2


class Finalists:
    """The best few trials, and those that share their times.

    Args:
        count: how many.
    """

    def __init__(self, count: int = FINALISTS) -> None:
        self.count = count
        self._heap: list[tuple[float, int, Trial]] = []
        self._sharing: dict[int, list[Trial]] = {}

    def add(self, trial: Trial) -> None:
        """Keep a trial if it is among the best, or shares the time of one that is."""
        if trial.seconds is None:
            return
        if trial.same_as is not None:
            # It may come before the one whose time it shares.
            if len(self._heap) < self.count or trial.seconds <= -self._heap[0][0]:
                self._sharing.setdefault(trial.same_as, []).append(trial)
            return
        heapq.heappush(self._heap, (-trial.seconds, -trial.index, trial))
        if len(self._heap) > self.count:
            _, index, _ = heapq.heappop(self._heap)
            self._sharing.pop(-index, None)

    def __len__(self) -> int:
        return len(self._heap)

    async def confirm(self, runner: Runner, target: str) -> AsyncIterator[Trial]:
        """The best trials again with the times of the last rounds, and after each those that share
        them. A trial that fails this time is left as it was.

        Raises:
            RunnerClosed: the runner was closed before all rounds were done.
        """
        best = [trial for _, _, trial in sorted(self._heap, key=lambda each: (-each[0], -each[1]))]
        codes = [(trial, await runner.build(trial.module, target)) for trial in best]
        seconds: dict[int, list[float]] = {trial.index: [] for trial in best}
        failed: set[int] = set()
        for _ in range(ROUNDS):
            for trial, code in codes:
                if trial.index in failed:
                    continue
                try:
                    seconds[trial.index] += await runner.measure(code)
                except RunnerClosed:
                    raise
                except Exception:
                    failed.add(trial.index)
        for trial in best:
            if trial.index not in failed:
                run_secs = tuple(seconds[trial.index])
                for each in (trial, *self._sharing.get(trial.index, ())):
                    yield replace(each, run_secs=run_secs, confirmed=True)
