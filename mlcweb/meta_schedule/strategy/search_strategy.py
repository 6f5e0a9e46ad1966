"""The interface of search strategies: what is measured next."""

from __future__ import annotations

import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.strategy.sampler import Sampler, Seen
from mlcweb.schedule import Schedule, Trace

if TYPE_CHECKING:
    from mlcweb.meta_schedule.cost_model.cost_model import CostModel
    from mlcweb.meta_schedule.database.database import Database
    from mlcweb.meta_schedule.tune_context import TuneContext


@dataclass(frozen=True, slots=True, eq=False)
class MeasureCandidate:
    """A schedule to measure.

    Attributes:
        predicted: what the cost model thinks of it; larger is faster.
        known_hash: the structural hash of its program, where it was made already.
        seed: the seed of the schedule, where a function was called with it.
        reason: why there is nothing to measure: the function that was called failed.
    """

    sch: Schedule
    args_info: Sequence[ArgInfo] = ()
    predicted: float | None = None
    known_hash: int | None = None
    seed: int = 0
    reason: str | None = None

    @property
    def shash(self) -> int:
        """The structural hash of its program."""
        return structural_hash(self.sch.mod) if self.known_hash is None else self.known_hash


@dataclass(frozen=True, slots=True)
class RunnerResult:
    """What became of a candidate: seconds per call for each batch, or why there are none."""

    run_secs: tuple[float, ...] | None
    error_msg: str | None = None


KINDS: dict[str, type[SearchStrategy]] = {}
"""The strategies by the names that `SearchStrategy.create` takes."""


class SearchStrategy(ABC):
    """Proposes candidates round by round, and learns what they took.

    After `pre_tuning`, each `propose` gives a round, until it gives None; `notify_runner_results`
    tells what became of it.

    Attributes:
        repeats: whether it may propose what was measured before.
    """

    repeats = False

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        if context.mod is None:
            raise ValueError("TuneContext needs `mod` for a search")
        self.context = context
        self.rng = random.Random(context.rand_state)
        self.args_info = tuple(ArgInfo.from_entry_func(context.mod))

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule],
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search of at most `max_trials` candidates."""
        if not design_spaces:
            raise ValueError("There is no design space: nothing can be scheduled")
        mod = self.context.mod
        assert mod is not None
        self.max_trials = max_trials
        self.num_trials_per_iter = num_trials_per_iter
        self.database = database
        self.cost_model = cost_model
        self.design_spaces: list[Trace] = [
            space.trace.simplified(remove_postproc=True) for space in design_spaces
        ]
        self.proposed = 0
        self.seen = Seen()
        self.sampler = Sampler(mod, self.context.postprocs, self.rng)

    @abstractmethod
    def propose(self) -> Iterator[MeasureCandidate] | None:
        """The next round, made while it is taken; None at the end of the search."""

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next round; None at the end of the search."""
        found = self.propose()
        return None if found is None else list(found) or None

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """What became of a round. A strategy that does not learn does nothing."""
        return

    def post_tuning(self) -> None:
        """The end of a search."""
        return

    def clone(self) -> Self:
        """A strategy of the same options, for another task."""
        return copy(self)

    def room(self) -> int:
        """How many candidates the next round may have."""
        return min(self.num_trials_per_iter, self.max_trials - self.proposed)

    def candidate(
        self, sch: Schedule, shash: int, predicted: float | None = None
    ) -> MeasureCandidate:
        """A candidate, counted."""
        self.proposed += 1
        return MeasureCandidate(sch, self.args_info, predicted, shash)

    def fresh_candidates(self, count: int, max_failures: int) -> Iterator[MeasureCandidate]:
        """Up to `count` new programs, drawn at random; fewer where nothing new turns up in
        `max_failures` draws in a row."""
        failures = 0
        while count > 0 and failures < max_failures:
            sch = self.sampler.fresh(self.design_spaces)
            shash = 0 if sch is None else structural_hash(sch.mod)
            if sch is None or not self.seen.add(shash):
                failures += 1
                continue
            failures = 0
            count -= 1
            yield self.candidate(sch, shash)

    @staticmethod
    def create(kind: str = "evolutionary", **options: Any) -> SearchStrategy:
        """A strategy by name."""
        if kind not in KINDS:
            raise ValueError(f'Unknown search strategy "{kind}"; there are {", ".join(KINDS)}')
        return KINDS[kind](**options)


def peeked(candidates: Iterable[MeasureCandidate]) -> Iterator[MeasureCandidate] | None:
    """The candidates, or None where there are none."""
    iterator = iter(candidates)
    first = next(iterator, None)
    if first is None:
        return None

    def whole() -> Iterator[MeasureCandidate]:
        yield first
        yield from iterator

    return whole()


class PySearchStrategy(SearchStrategy):
    """What strategies of a program's own are subclasses of, in TVM: `generate_measure_candidates`
    gives the rounds, and every method may be replaced."""

    max_trials = sys.maxsize
    proposed = 0

    def __init_subclass__(cls) -> None:
        own = vars(cls).get("_initialize_with_tune_context")
        if own is None:
            return

        @wraps(own)
        def initialize(self: PySearchStrategy, context: TuneContext) -> None:
            if context.mod is not None:
                super(cls, self)._initialize_with_tune_context(context)
            own(self, context)

        cls._initialize_with_tune_context = initialize

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        super()._initialize_with_tune_context(context)
        self.seen = Seen()

    def propose(self) -> Iterator[MeasureCandidate] | None:
        found = self.generate_measure_candidates()
        return None if found is None else self._counted(found)

    def _counted(self, candidates: Sequence[MeasureCandidate]) -> Iterator[MeasureCandidate]:
        for candidate in candidates:
            if self.proposed == self.max_trials:
                return
            self.proposed += 1
            yield candidate
