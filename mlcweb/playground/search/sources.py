"""Where the schedules of a search come from: round by round, each round learning from the last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.cost_model import CostModel
from mlcweb.meta_schedule.database import Database
from mlcweb.meta_schedule.random_search import samples
from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult, SearchStrategy
from mlcweb.meta_schedule.trial import Trial
from mlcweb.meta_schedule.tune_context import TuneContext

TARGET = "llvm"
"""What programs are built for: the fastest code of this machine."""

WITHOUT_END = 1 << 30

ROUND = 64
"""Trials in a round at most: their programs are held until it is over."""


class Source(Protocol):
    """Gives schedules to measure, in rounds."""

    def round(self) -> Iterator[Trial] | None:
        """The next round, made while it is taken; None at the end of the search."""
        ...

    def learn(self, trials: Sequence[Trial]) -> None:
        """What became of the round. The trials may have let go of their programs."""
        ...


class OwnFunction:
    """Calls a function of the program with a new schedule for each trial; one round is all."""

    def __init__(
        self, program: IRModule, function: Callable[..., Any], seed: int, trials: int | None
    ) -> None:
        self._trials: Iterator[Trial] | None = samples(program, function, seed, trials)

    def round(self) -> Iterator[Trial] | None:
        found, self._trials = self._trials, None
        return found

    def learn(self, trials: Sequence[Trial]) -> None:
        """It does not."""


class DefaultSpace:
    """Lets a strategy search the space that rules make of a program.

    Args:
        program: a module of one function.
        strategy: the name of the strategy.
        first: the number of the first trial.
        database: the records of earlier searches; those of this one are to be added as they come.
        tried: the structural hashes of programs that are known, and not proposed again.
    """

    def __init__(
        self,
        program: IRModule,
        strategy: str,
        *,
        seed: int,
        trials: int | None,
        first: int,
        database: Database,
        tried: Collection[int],
    ) -> None:
        self._strategy = SearchStrategy.create(strategy)
        self._context = TuneContext(
            program,
            target=TARGET,
            space_generator="post-order-apply",
            search_strategy=self._strategy,
            rand_state=seed + 1,  # the seed 0 of a schedule means any
            num_threads=1,
        )
        most = WITHOUT_END if trials is None else trials
        self._context.pre_tuning(most, ROUND, None, database, CostModel.create("numpy"))
        self._strategy.seen.update(tried)
        self.args_info = self._strategy.args_info
        self._next = first
        self._candidates: dict[int, MeasureCandidate] = {}

    def round(self) -> Iterator[Trial] | None:
        self._candidates.clear()
        proposed = self._strategy.propose()
        return None if proposed is None else map(self._trial, proposed)

    def learn(self, trials: Sequence[Trial]) -> None:
        ordered = sorted(trials, key=lambda trial: trial.index)
        self._strategy.notify_runner_results(
            [self._candidates[trial.index] for trial in ordered],
            [RunnerResult(trial.run_secs or None, trial.reason) for trial in ordered],
        )

    def _trial(self, candidate: MeasureCandidate) -> Trial:
        index = self._next
        self._next += 1
        self._candidates[index] = candidate
        sch = candidate.sch
        return Trial(index, 0, sch.trace, sch.mod, predicted=candidate.predicted)
