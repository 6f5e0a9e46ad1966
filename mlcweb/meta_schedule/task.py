"""A task under way: its context, its measurements, and how far it has come."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.ir import DiagnosticError, TVMError, structural_hash
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.tuning_record import (
    FAILED_SECONDS,
    TuningRecord,
    Workload,
    trace_text,
)
from mlcweb.meta_schedule.measure.artifact import build_artifact
from mlcweb.meta_schedule.measure.confirm import FINALISTS, confirm
from mlcweb.meta_schedule.measure.measuring import Build, Measuring
from mlcweb.meta_schedule.measure.runner import Runner
from mlcweb.meta_schedule.strategy.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.meta_schedule.trial import Trial
from mlcweb.meta_schedule.tune_context import TuneContext
from mlcweb.runtime.host import clock

MIN_GAIN = 0.01
"""A program that is faster by less than this share is no progress."""

REPLAYED = 64
"""So many records that came without the hash of their program are replayed to find it."""


@dataclass(slots=True)
class Task:
    """A task under way.

    Attributes:
        weight: how often its program runs in the whole model.
        flops: operations of its program; 0 where they cannot be counted.
        trials: how many were measured, or failed.
        history: the best seconds after each round.
        best: seconds of the fastest program, of earlier searches as well.
        baseline: seconds of the program as it stands.
        last_gain: the number of the trial that was the last progress.
    """

    context: TuneContext
    weight: float
    runner: Runner
    database: Database
    build: Build
    flops: float = 0.0
    trials: int = 0
    failed: int = 0
    best: float = float("inf")
    baseline: float | None = None
    last_gain: int = 0
    terminated: bool = False
    history: list[float] = field(default_factory=list)
    _known_best: float = float("inf")
    _workload: Workload | None = None
    _measuring: Measuring | None = None
    _finalists: list[tuple[float, int, Trial]] = field(default_factory=list)
    _repeats: dict[int, list[Trial]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.context.task_name

    @property
    def gflops(self) -> float | None:
        """The speed of the best program, in 1e9 operations a second."""
        if not self.flops or self.best == float("inf"):
            return None
        return self.flops / self.best / 1e9

    async def begin(self) -> None:
        """Run and time the program as it stands, the first time that it is called; what it computes
        is what all others must."""
        if self._measuring is not None:
            return
        mod = self.context.mod
        assert mod is not None
        try:
            self.flops = estimate_flops(mod)
        except DiagnosticError:
            self.flops = 0.0
        artifact: Any = self.build(mod)
        if hasattr(artifact, "__await__"):
            artifact = await artifact
        self.baseline = statistics.median(await self.runner.begin(artifact))
        self._measuring = Measuring(self.build, self.runner)
        self._workload = self.database.commit_workload(mod)
        self._resume(self._workload)

    def _resume(self, workload: Workload) -> None:
        """Go on where earlier searches with this database ended."""
        known = self.database.get_records_of(workload)
        if not known:
            return
        best = self.database.get_top_k(workload, 1)
        self.best = self._known_best = best[0].seconds if best else float("inf")
        strategy = self.context.search_strategy
        assert strategy is not None
        strategy.seen.update(_programs(known))
        # The same seed would draw what is known already.
        strategy.rng.seed(f"{self.context.rand_state} after {len(known)}")

    async def round(self, end: float = float("inf")) -> AsyncIterator[Trial]:
        """Measure the next round of the strategy: trials as they come. Records are written as they
        come, too, in the order of their proposal, so that nothing is lost where the search ends.

        Args:
            end: when to begin no more trials, by the clock of this host.

        Raises:
            RunnerClosed: the runner was closed. What was done by then has been yielded.
        """
        await self.begin()
        strategy = self.context.search_strategy
        assert strategy is not None and self._measuring is not None
        proposed = strategy.propose()
        if proposed is None:
            self.terminated = True
            return
        candidates: dict[int, MeasureCandidate] = {}
        done: dict[int, Trial] = {}
        written = self.trials
        try:
            async for trial in self._measuring.measure(self._samples(proposed, candidates, end)):
                done[trial.index] = trial
                self._count(trial)
                yield trial
                while written in done:
                    self._record(done[written], candidates[written].shash)
                    written += 1
        finally:
            finished = sorted(done)
            for index in finished:
                if index >= written:
                    self._record(done[index], candidates[index].shash)
            strategy.notify_runner_results(
                [candidates[index] for index in finished],
                [RunnerResult(done[i].run_secs or None, done[i].reason) for i in finished],
            )
            self.history.append(self.best)

    async def confirm(self) -> AsyncIterator[Trial]:
        """Measure the best few again, in turn; these times decide."""
        finalists = [trial for _, _, trial in self._finalists]
        if finalists:
            self.best = self._known_best
        repeats = [trial for group in self._repeats.values() for trial in group]
        async for trial in confirm([*finalists, *repeats], build=self.build, runner=self.runner):
            self.best = min(self.best, trial.seconds or float("inf"))
            self._record(trial, structural_hash(trial.module))
            yield trial

    def _samples(
        self,
        proposed: Iterator[MeasureCandidate],
        candidates: dict[int, MeasureCandidate],
        end: float,
    ) -> Iterator[Trial]:
        strategy = self.context.search_strategy
        assert strategy is not None and self._workload is not None
        index = self.trials
        for candidate in proposed:
            if clock() >= end:
                return
            sch = candidate.sch
            if self.database.find_record(self._workload, trace_text(sch.trace)) is not None:
                # An earlier search, or another at the same time, has measured it.
                strategy.proposed -= 1
                continue
            candidates[index] = candidate
            yield Trial(index, 0, sch.trace, sch.mod, predicted=candidate.predicted)
            index += 1

    def _count(self, trial: Trial) -> None:
        self.trials += 1
        self.failed += trial.state == "failed"
        seconds = trial.seconds
        if seconds is None:
            return
        if seconds < self.best * (1 - MIN_GAIN):
            self.last_gain = self.trials
        self.best = min(self.best, seconds)
        if trial.same_as is not None:
            # What becomes of its like becomes of it; its own program is not needed for that.
            if any(-index == trial.same_as for _, index, _ in self._finalists):
                self._repeats.setdefault(trial.same_as, []).append(trial)
            return
        heapq.heappush(self._finalists, (-seconds, -trial.index, trial))
        if len(self._finalists) > FINALISTS:
            _, index, _ = heapq.heappop(self._finalists)
            self._repeats.pop(-index, None)

    def _record(self, trial: Trial, program: int) -> None:
        workload, strategy = self._workload, self.context.search_strategy
        assert workload is not None and strategy is not None
        self.database.commit_tuning_record(
            TuningRecord(
                trial.trace,
                workload,
                trial.run_secs or (FAILED_SECONDS,),
                self.context.target,
                strategy.args_info,
                program,
            )
        )


def _programs(records: Iterable[TuningRecord]) -> Iterator[int]:
    """The hashes of the programs of records. Of those that do not say it, the fastest are replayed,
    which takes about as long as making a program."""
    silent = []
    for record in records:
        if record.program is not None:
            yield record.program
        else:
            silent.append(record)
    for record in heapq.nsmallest(REPLAYED, silent, key=lambda record: record.seconds):
        try:
            yield structural_hash(record.schedule().mod)
        except (TVMError, ValueError, IndexError, TypeError):
            continue  # a record of another version, or one that no longer fits


def build_for(context: TuneContext, runner: Runner) -> Build:
    """How the programs of a task are compiled: by the runner's workers where it can."""
    target = str(context.target or "llvm")
    in_workers = getattr(runner, "build", None)
    if in_workers is not None:
        return partial(_in_workers, in_workers, target)
    return partial(build_artifact, function="main", target=target)


def _in_workers(build: Any, target: str, module: Any) -> Any:
    return build(module, "main", target)
