"""One search: `async for event in search(task, runner=…, history=…)`.

A strategy proposes schedules round by round, a runner builds and measures them, the strategy learns
from a round before it proposes the next, and the best are confirmed at last. A task scheduler
interleaves several searches, one round at a time. There is no other loop: `TaskScheduler.tune` runs
this one with a runner, and callbacks, of a program's own.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.dlight.default_rules import with_default_schedules
from mlcweb.ir import DiagnosticError, IRModule
from mlcweb.meta_schedule.builder import BuilderResult
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.database.tuning_record import NO_STEPS, trace_text
from mlcweb.meta_schedule.events import Begun, Confirmed, Ended, Event, Round, Started, Trial
from mlcweb.meta_schedule.history import History
from mlcweb.meta_schedule.measure.artifact import reference_target, warn_of_other_device
from mlcweb.meta_schedule.measure.measuring import FINALISTS, Finalists, Measuring
from mlcweb.meta_schedule.measure.runner import Runner, RunnerClosed, Seconds
from mlcweb.meta_schedule.runner import BatchRunner, RunnerFuture
from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.meta_schedule.space.defaults import in_parallel
from mlcweb.meta_schedule.tune_context import SearchStrategyType, SpaceGeneratorType, TuneContext
from mlcweb.meta_schedule.utils import gc_frozen
from mlcweb.runtime.build import say_once
from mlcweb.runtime.host import clock
from mlcweb.runtime.target import Target
from mlcweb.schedule import Trace
from mlcweb.tir.function import PrimFunc

MIN_GAIN = 0.01
"""A program that is faster by less than this share is no progress."""

PER_ROUND = 64
"""Programs in a round, at most."""


class Budget:
    """What one or several searches may spend, together.

    Attributes:
        trials: how many are left.
    """

    def __init__(self, trials: int | None = None, seconds: float | None = None) -> None:
        self.trials = sys.maxsize if trials is None else trials
        self._seconds = float("inf") if seconds is None else seconds
        self._end: float | None = None

    @property
    def is_spent(self) -> bool:
        """Whether no more trials may begin. Seconds count from when this is first asked."""
        if self._end is None:
            self._end = clock() + self._seconds
        return self.trials <= 0 or clock() >= self._end

    async def unhurried(self, events: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:
        """The same events. Seconds in which nobody waits for the next one are not spent."""
        async with aclosing(events):
            async for event in events:
                left = clock()
                yield event
                if self._end is not None:
                    self._end += clock() - left


Told = Callable[[Sequence[MeasureCandidate], Sequence[BuilderResult], Sequence[RunnerResult]], None]
"""Hears of a round: its candidates, and what became of each."""


class TaskRecord:
    """A task under way, with the attributes by which schedulers choose one.

    A `BatchRunner` gets the candidates of a round as a whole, and runs them while other tasks have
    their turn; other runners get them as they come, beside each other.

    Args:
        history: what is known already, and where records go.
        trials: programs measured, at most.
        per_round: programs in a round, at most.
        early_stopping: trials without progress that end it.
        recall: how many of the fastest records are trials as well, the first ones.
        tell: hears of each round of a `BatchRunner`. With it all candidates that the strategy
            generates are measured, and nothing else.

    Attributes:
        context, ctx: the task.
        weight, task_weight: how often its program runs in the whole model.
        trials: programs measured, and failed ones.
        failed: those that failed.
        failure: why the last of those did.
        best: seconds of the fastest program, of earlier searches as well; infinite before one ran.
        last_gain: the number of the trial that was the last progress.
        round_bests: `best` after each round.
        terminated, is_terminated: whether it measures no more.
        flops: operations of its program; 0 where they are not counted.
        workers: programs measured at one time.
        baseline: seconds of the program as it stands, infinite where nobody times it; None before
            its search has started.
        by_rounds: whether its runner is a `BatchRunner`.
        measure_candidates, builder_results, runner_futures: those of the round that runs as a
            whole; None where none does.
    """

    flops = 0.0
    baseline: float | None = None
    terminated = False
    trials = failed = last_gain = 0
    failure: str | None = None
    measure_candidates: Sequence[MeasureCandidate] | None = None
    builder_results: Sequence[BuilderResult] | None = None
    runner_futures: Sequence[RunnerFuture] | None = None

    def __init__(
        self,
        context: TuneContext,
        runner: Runner,
        history: History,
        *,
        weight: float = 1.0,
        trials: int | None = None,
        per_round: int = PER_ROUND,
        cost_model: CostModel | None = None,
        early_stopping: int | None = None,
        recall: int = 0,
        tell: Told | None = None,
    ) -> None:
        self.context = self.ctx = context
        self.weight = self.task_weight = weight
        self.runner = runner
        self.workers = runner.workers
        self.by_rounds = isinstance(runner, BatchRunner)
        self.history = history
        self.best = history.best
        self.round_bests: list[float] = []
        self._early_stopping = early_stopping
        self._recall = recall
        self._tell = tell
        self._next = 0
        self._candidates: dict[int, tuple[MeasureCandidate, str]] = {}
        self._finalists = Finalists(FINALISTS if tell is None else 0)
        limit = sys.maxsize if trials is None else trials
        context.pre_tuning(limit, per_round, None, history.database, cost_model)
        strategy = context._strategy()
        self.strategy = strategy
        if history.size and not strategy.repeats:
            strategy.seen.update(history.outcomes)
            # The same seed would draw what is known already.
            strategy.rng.seed(f"{context.rand_state} after {history.size}")

    @property
    def target(self) -> str:
        return str(self.context.target or "llvm")

    @property
    def is_terminated(self) -> bool:
        return self.terminated

    @property
    def name(self) -> str:
        return self.context.task_name

    @property
    def gflops(self) -> float | None:
        """The speed of the best program, in 1e9 operations a second."""
        if not self.flops or not 0 < self.best < float("inf"):
            return None
        return self.flops / self.best / 1e9

    def close(self) -> None:
        self.runner.close()

    def end(self) -> None:
        """No more candidates."""
        if not self.terminated:
            self.terminated = True
            self.context.post_tuning()

    async def events(self, budget: Budget) -> AsyncGenerator[Event, None]:
        """All events of the search. Where the runner is closed meanwhile, what was done by then
        comes, and the end."""
        try:
            yield await self._start()
            for trial in self.history.fastest(self._recall):
                self._next += 1
                self._finalists.add(trial)
                yield trial
            recalled = self.history.outcomes if self.strategy.repeats else {}
            measuring = Measuring(self.runner, self.target, recalled, self.by_rounds)
            async for trial in measuring.measure(self._default(budget)):
                trial = self._recorded(trial, NO_STEPS)
                self._count(trial)
                self.history.commit(trial)
                yield trial
            while (samples := self._propose(budget)) is not None:
                if self.by_rounds:
                    yield Begun(len(self.round_bests))
                    self.join()
                async with aclosing(self._round(measuring, samples)) as trials:
                    async for trial in trials:
                        yield trial
                yield Round(len(self.round_bests) - 1, self.best)
            self.end()
            if len(self._finalists):
                self.best = self.history.best
            async for trial in self._finalists.confirm(self.runner, self.target):
                self.best = min(self.best, trial.seconds or float("inf"))
                trial = self._recorded(trial, trace_text(trial.trace))
                self.history.commit(trial)
                yield Confirmed(trial)
        except RunnerClosed:
            pass
        finally:
            self.end()
        yield Ended(self.trials)

    async def _start(self) -> Started:
        """Run and time the program as it stands, or with its default schedule where that takes
        longer than a trial may; what it computes is what all others must."""
        mod = self.context.mod
        assert mod is not None
        if not self.by_rounds:
            warn_of_other_device(self.target)
        try:
            self.flops = estimate_flops(mod)
        except DiagnosticError:
            self.flops = 0.0
        target = reference_target(mod, self.target)
        try:
            baseline = await self._begin(mod, target)
        except TimeoutError as error:
            scheduled = with_default_schedules(mod, Target(target))
            if scheduled is mod:
                raise
            say_once(
                "default schedule as baseline",
                f"The program as it stands gives {error}. Schedules are compared with its default "
                "schedule instead, in results and in time",
            )
            baseline = await self._begin(scheduled, target)
        self.baseline = statistics.median(baseline)
        return Started(baseline, self.runner.workers, self.flops)

    async def _begin(self, mod: IRModule, target: str) -> Seconds:
        return await self.runner.begin(await self.runner.build(mod, target))

    def _default(self, budget: Budget) -> Iterator[Trial]:
        """The program with its default schedule, where builds give it one, on as many cores as
        other candidates. Its record has no steps: what is recorded so stays as builds schedule it.
        """
        mod = self.context.mod
        if not self.context.has_default or budget.is_spent or self.history.has(NO_STEPS):
            return
        assert mod is not None
        scheduled = with_default_schedules(mod, Target(self.target))
        if scheduled is mod:
            return
        if not in_parallel(self.context.target):
            from mlcweb.lower.transform import ConvertForLoopsToSerial  # which pages seldom need

            scheduled = ConvertForLoopsToSerial()(scheduled)
        budget.trials -= 1
        self._next += 1
        yield Trial(self._next - 1, 0, Trace(), scheduled)

    def _propose(self, budget: Budget) -> Iterator[Trial] | None:
        """The next round, which a `BatchRunner` has begun to run; None at the end."""
        idle = self.trials - self.last_gain
        if self._early_stopping is not None and self.round_bests and idle >= self._early_stopping:
            return None
        if self.terminated or budget.is_spent:
            return None
        strategy = self.strategy
        if self._tell is None:
            strategy.max_trials = min(strategy.max_trials, strategy.proposed + budget.trials)
            proposed = strategy.propose()
        else:
            proposed = strategy.generate_measure_candidates()
        if proposed is None:
            return None
        self._candidates.clear()
        samples = self._samples(iter(proposed), budget)
        return self._begun(list(samples)) if self.by_rounds else samples

    def _samples(self, proposed: Iterator[MeasureCandidate], budget: Budget) -> Iterator[Trial]:
        number = len(self.round_bests)
        while self._tell is not None or not budget.is_spent:
            candidate = next(proposed, None)
            if candidate is None:
                return
            sch = candidate.sch
            text = trace_text(sch.trace)
            if self._tell is None and not self.strategy.repeats and self.history.has(text):
                # An earlier search, or another at the same time, has measured it.
                self.strategy.proposed -= 1
                continue
            budget.trials -= 1
            index = self._next
            self._next += 1
            self._candidates[index] = candidate, text
            yield Trial(
                index, candidate.seed, sch.trace, sch.mod, reason=candidate.reason,
                predicted=candidate.predicted, round=number, shash=candidate.cached_hash,
            )  # fmt: skip

    def _begun(self, samples: Sequence[Trial]) -> Iterator[Trial]:
        """A round that its runner has begun to run."""
        assert isinstance(self.runner, BatchRunner)
        candidates = [self._candidates[each.index][0] for each in samples if each.reason is None]
        programs = [(each.sch.mod, each.args_info) for each in candidates]
        self.measure_candidates = candidates
        self.builder_results, self.runner_futures = self.runner.begin_round(programs, self.target)
        return iter(samples)

    def join(self) -> list[RunnerResult]:
        """The results of the round that runs, which is waited for; none where none does."""
        candidates, built = self.measure_candidates, self.builder_results
        if candidates is None or built is None or self.runner_futures is None:
            return []
        results = [future.result() for future in self.runner_futures]
        self.strategy.notify_runner_results(candidates, results)
        if self._tell is not None:
            self._tell(candidates, built, results)
        self.measure_candidates = self.builder_results = self.runner_futures = None
        return results

    async def _round(
        self, measuring: Measuring, samples: Iterator[Trial]
    ) -> AsyncGenerator[Trial, None]:
        """Measure a round: trials as they come. Records are written as they come, too, in the order
        of their proposal, so that nothing is lost where the search ends.

        Raises:
            RunnerClosed: the runner was closed. What was done by then has been yielded.
        """
        done: dict[int, Trial] = {}
        written = next(iter(self._candidates), self._next)
        try:
            async for measured in measuring.measure(samples):
                candidate, text = self._candidates[measured.index]
                trial = measured if candidate.reason else self._recorded(measured, text)
                done[trial.index] = trial
                self._count(trial)
                while written in done:
                    self.history.commit(done[written])
                    written += 1
                yield trial
        finally:
            finished = sorted(done)
            for index in finished:
                if index >= written:
                    self.history.commit(done[index])
            if not self.by_rounds:
                self.strategy.notify_runner_results(
                    [self._candidates[index][0] for index in finished],
                    [RunnerResult(done[i].run_secs or None, done[i].reason) for i in finished],
                )
            self.round_bests.append(self.best)

    def _recorded(self, trial: Trial, text: str) -> Trial:
        if self._tell is not None:
            return trial
        args_info = getattr(self.strategy, "args_info", ())
        return self.history.with_record(trial, text, self.context.target, args_info)

    def _count(self, trial: Trial) -> None:
        self.trials += 1
        if trial.state == "failed":
            self.failed += 1
            self.failure = trial.reason
        seconds = trial.seconds
        if seconds is None:
            return
        if seconds < self.best * (1 - MIN_GAIN):
            self.last_gain = self.trials
        self.best = min(self.best, seconds)
        self._finalists.add(trial)


def search(
    task: TuneContext | IRModule | PrimFunc,
    space: SpaceGeneratorType | None = "post-order-apply",
    strategy: SearchStrategyType = "evolutionary",
    *,
    runner: Runner,
    history: History,
    target: Target | str = "llvm",
    seed: int = 0,
    trials: int | None = None,
    seconds: float | None = None,
    cost_model: CostModel | str = "numpy",
    recall: int = 0,
) -> AsyncIterator[Event]:
    """Search for fast schedules of a program: a `Started`, a `Trial` for each schedule as soon as
    it is done, a `Round` after each round, a `Confirmed` for each of the best, and `Ended`.

    To end a search early, close the runner; events that are there by then still come.

    Args:
        task: the program, whatever its function is called, or a `TuneContext`, which has a space, a
            strategy, a target and a seed.
        space: the design spaces: a generator, its name or a schedule function; None for a strategy
            that needs none.
        strategy: a strategy or its name.
        runner: builds and measures.
        history: what is known already, and where records go.
        target: what to build for.
        seed: the same seed and the same measurements give the same search.
        trials: programs measured, at most; without end if None.
        seconds: after these no trial begins; time in which nobody waits for an event is free.
        cost_model: a model or its name.
        recall: how many of the fastest records are trials as well, the first ones.

    Raises:
        TVMError: the function takes something else than buffers of constant shape.
        ValueError: there is no design space.
    """
    if not isinstance(task, TuneContext):
        program, task = task, TuneContext(
            task, target=target, space_generator=space, search_strategy=strategy,
            rand_state=seed + 1,  # 0 means any to a schedule
        )  # fmt: skip
        if isinstance(program, IRModule):
            task.mod = program
    model = CostModel.create(cost_model) if isinstance(cost_model, str) else cost_model
    record = TaskRecord(task, runner, history, trials=trials, cost_model=model, recall=recall)
    return _frozen(Budget(trials, seconds), record)


async def _frozen(budget: Budget, record: TaskRecord) -> AsyncIterator[Event]:
    with gc_frozen():
        async for event in budget.unhurried(record.events(budget)):
            yield event
