"""The interface of search strategies, what is measured next; and how traces become schedules that
can be measured."""

from __future__ import annotations

import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, Self

from mlcweb.ir import IRModule, TVMError, structural_hash
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.database.tuning_record import RunSeconds, run_seconds
from mlcweb.meta_schedule.space.postprocs import Condition, Postproc
from mlcweb.schedule import Instruction, Schedule, ScheduleError, Trace
from mlcweb.schedule.replay_cache import ReplayCache
from mlcweb.schedule.sampling import RandomState, draw_perfect_tile
from mlcweb.tir.arithmetic import constant_value

if TYPE_CHECKING:
    from mlcweb.meta_schedule.cost_model.cost_model import CostModel
    from mlcweb.meta_schedule.database.database import Database
    from mlcweb.meta_schedule.tune_context import TuneContext


PATIENCE = 4
"""So many times as long is looked for the first program: without one there is no search."""

MAX_DRAWS = 256
"""Draws of the steps of a condition until it holds, at most."""


class Sampler:
    """Replays traces onto a program.

    Args:
        postprocs: run after the steps of each trace.
        rng: where the seeds of schedules come from.
    """

    def __init__(self, mod: IRModule, postprocs: Iterable[Postproc], rng: random.Random) -> None:
        self.mod = mod
        self.postprocs = tuple(postprocs)
        self.rng = rng
        self._memory = ReplayCache()

    def fresh(self, design_spaces: Sequence[Trace]) -> Schedule | None:
        """A schedule of one of the spaces whose steps all decide anew; None where that fails."""
        space = self.rng.choice(design_spaces)
        drawn: dict[Instruction, Any] = {}
        for condition in self._conditions(space):
            drawn |= self._drawn(space, condition)
        return self.replay(Trace(space.insts, drawn))

    def may_pass(self, trace: Trace) -> bool:
        """False where the decisions of a trace alone show that a post-processor would refuse it."""
        return all(condition.holds(trace.decisions) for condition in self._conditions(trace))

    def _conditions(self, trace: Trace) -> list[Condition]:
        return [condition for each in self.postprocs for condition in each.conditions(trace)]

    def _drawn(self, space: Trace, condition: Condition) -> dict[Instruction, Any]:
        """Decisions for which a condition holds, each as likely as where all are drawn and some are
        refused; none where they are hard to find."""
        extents = [prod(space.get_decision(inst) or (0,)) for inst in condition.steps]
        if any(extent < 1 for extent in extents):
            return {}
        random_state = RandomState(self._seed())
        for _ in range(MAX_DRAWS):
            drawn = {
                inst: draw_perfect_tile(random_state, extent, *_limits(inst))
                for inst, extent in zip(condition.steps, extents, strict=True)
            }
            if condition.holds(drawn):
                return drawn
        return {}

    def replay(self, trace: Trace) -> Schedule | None:
        """A schedule with the steps and decisions of a trace, and post-processed; None where they
        do not fit, or where a post-processor refuses."""
        sch = self.blank()
        try:
            trace.apply_to_schedule(sch, remove_postproc=True, memory=self._memory)
            return self.finished(sch)
        except (ScheduleError, TVMError, ValueError):
            return None

    def blank(self) -> Schedule:
        """A schedule without steps, with a seed of its own."""
        return Schedule(self.mod, seed=self._seed(), error_render_level="none")

    def _seed(self) -> int:
        return self.rng.randrange(1, 2**31 - 1)

    def finished(self, sch: Schedule) -> Schedule | None:
        """The schedule post-processed; None where a post-processor refuses."""
        sch.enter_postproc()
        return sch if all(postproc.apply(sch) for postproc in self.postprocs) else None


def _limits(inst: Instruction) -> tuple[int, int]:
    """How many factors a tiling has, and the limit of the innermost; -1 is none."""
    n, limit = (int(constant_value(value) or 0) for value in inst.attrs)
    return n, limit


@dataclass(frozen=True, slots=True, eq=False)
class MeasureCandidate:
    """A schedule to measure.

    Attributes:
        predicted: what the cost model thinks of it; larger is faster.
        cached_hash: the structural hash of its program, where it was made already.
        seed: the seed of the schedule, where a function was called with it.
        reason: why there is nothing to measure: the function that was called failed.
    """

    sch: Schedule
    args_info: Sequence[ArgInfo] = ()
    predicted: float | None = None
    cached_hash: int | None = None
    seed: int = 0
    reason: str | None = None

    @property
    def shash(self) -> int:
        """The structural hash of its program."""
        return structural_hash(self.sch.mod) if self.cached_hash is None else self.cached_hash


@dataclass(frozen=True, slots=True, init=False)
class RunnerResult:
    """What became of a candidate: seconds per call for each batch, or why there are none."""

    run_secs: tuple[RunSeconds, ...] | None
    error_msg: str | None

    def __init__(self, run_secs: Iterable[float] | None, error_msg: str | None = None) -> None:
        object.__setattr__(self, "run_secs", run_seconds(run_secs))
        object.__setattr__(self, "error_msg", error_msg)


KINDS: dict[str, type[SearchStrategy]] = {}
"""The strategies by the names that `SearchStrategy.create` takes."""


class SearchStrategy(ABC):
    """Proposes candidates round by round, and learns what they took.

    After `pre_tuning`, each `propose` gives a round, until it gives None; `notify_runner_results`
    tells what became of it.

    Attributes:
        repeats: whether it may propose what was measured before.
        seen: the programs that were tried, by structural hash.
    """

    repeats = False
    seen: set[int]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if cls is SearchStrategy:
            raise TypeError(
                "Cannot instantiate abstract class SearchStrategy; SearchStrategy.create(kind) "
                f"makes one of {', '.join(KINDS)}"
            )
        return super().__new__(cls)

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
        self.seen = set()
        self.sampler = Sampler(mod, self.context.postprocs, self.rng)

    @abstractmethod
    def propose(self) -> Iterator[MeasureCandidate] | None:
        """The next round, made while it is taken; None at the end of the search."""

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next round; None at the end of the search."""
        candidates = self.propose()
        return None if candidates is None else list(candidates) or None

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

    def is_new(self, shash: int) -> bool:
        """Whether a program was not seen before; from now on it was."""
        new = shash not in self.seen
        self.seen.add(shash)
        return new

    def draw(self) -> Schedule | None:
        """A program drawn at random; None where that fails."""
        return self.sampler.fresh(self.design_spaces)

    def fresh_candidates(self, count: int, max_failures: int) -> Iterator[MeasureCandidate]:
        """Up to `count` new programs, drawn at random; fewer where nothing new turns up in
        `max_failures` draws in a row; before the first of a search, in `PATIENCE` times as many."""
        failures, most = 0, max_failures if self.proposed else PATIENCE * max_failures
        while count > 0 and failures < most:
            sch = self.draw()
            shash = 0 if sch is None else structural_hash(sch.mod)
            if sch is None or not self.is_new(shash):
                failures += 1
                continue
            failures, most = 0, max_failures
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
        self.seen = set()

    def propose(self) -> Iterator[MeasureCandidate] | None:
        candidates = self.generate_measure_candidates()
        return None if candidates is None else self._counted(candidates)

    def _counted(self, candidates: Sequence[MeasureCandidate]) -> Iterator[MeasureCandidate]:
        for candidate in candidates:
            if self.proposed == self.max_trials:
                return
            self.proposed += 1
            yield candidate
