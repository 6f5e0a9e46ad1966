"""The verdict of a search: the best few programs measured again, in turn and with nothing beside.

During a search programs are timed beside each other and beside the compiler. Calibrating their
times leaves some percent of error, which is more than the best differ by; so they go into the last
rounds, and only what they take there decides. Measuring them in turn spreads what changes with time
(the clock rate, other programs) over all of them alike.
"""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator
from dataclasses import replace

from mlcweb.meta_schedule.events import Trial
from mlcweb.meta_schedule.measure.runner import Runner, RunnerClosed

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
