"""Strategies that learn nothing: steps drawn anew, the generator or a function called anew, and all
programs of a small space in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.measure.measuring import reason_of
from mlcweb.meta_schedule.search_strategy.decisions import choices
from mlcweb.meta_schedule.search_strategy.search_strategy import (
    MeasureCandidate,
    SearchStrategy,
    peeked,
)
from mlcweb.schedule import Instruction, Schedule, ScheduleError, Trace


class ReplayTrace(SearchStrategy):
    """Draws programs at random, each once.

    Args:
        max_fail_count: draws in a row without a new program that end the search.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count

    def propose(self) -> Iterator[MeasureCandidate] | None:
        return peeked(self.fresh_candidates(self.room(), self.max_fail_count))

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next round, in full where the draws do not fail: a program may come again. None at
        the end of the search."""
        room = self.room()
        if room <= 0:
            return None
        candidates: list[MeasureCandidate] = []
        failures = 0
        while len(candidates) < room and failures < self.max_fail_count:
            sch = self.draw()
            failures = failures + 1 if sch is None else 0
            if sch is not None:
                candidates.append(self.candidate(sch, structural_hash(sch.mod)))
        return candidates or None


class ReplayFunc(ReplayTrace):
    """Generates the design spaces anew for each candidate, each program once."""

    def draw(self) -> Schedule | None:
        """A schedule of the spaces generated anew; None where that fails."""
        if self.context.space_generator is not None:
            self.context.space_generator.seed = self.rng.randrange(1, 2**31 - 1)
        try:
            sch = self.rng.choice(self.context.generate_design_space())
            return self.sampler.finished(sch.copy())
        except ScheduleError:
            return None


class CallFunction(SearchStrategy):
    """Calls a function with a new schedule, and a seed of its own, for each trial, whatever the
    function makes of it: the same program again, or an error. It needs no design space.

    Args:
        function: transforms the schedule that it is given. What it returns is used if it is a
            schedule.
    """

    repeats = True

    def __init__(self, function: Callable[[Schedule], Any]) -> None:
        self.function = function

    def pre_tuning(
        self, max_trials: int, num_trials_per_iter: int, *others: Any, **named: Any
    ) -> None:
        self.max_trials = max_trials
        self.num_trials_per_iter = num_trials_per_iter
        self.proposed = 0

    def propose(self) -> Iterator[MeasureCandidate] | None:
        return self._called(self.room()) if self.room() > 0 else None

    def _called(self, count: int) -> Iterator[MeasureCandidate]:
        mod = self.context.mod
        assert mod is not None
        for _ in range(count):
            seed = self.rng.randrange(1, 2**31 - 1)
            sch = Schedule(mod, seed=seed)
            reason = None
            try:
                result = self.function(sch)
                if isinstance(result, Schedule):
                    sch = result
            except Exception as error:
                reason = reason_of(error)
            self.proposed += 1
            yield MeasureCandidate(sch, self.args_info, seed=seed, reason=reason)


class Exhaustive(SearchStrategy):
    """Tries all combinations of decisions, each program once, until all are tried."""

    def pre_tuning(self, *args: Any, **kwargs: Any) -> None:
        super().pre_tuning(*args, **kwargs)
        self._rest = self._new_programs()

    def propose(self) -> Iterator[MeasureCandidate] | None:
        return peeked(islice(self._rest, self.room()))

    def _new_programs(self) -> Iterator[MeasureCandidate]:
        for trace in self.design_spaces:
            for sch in self._all(trace):
                finished = self.sampler.finished(sch)
                if finished is None:
                    continue
                shash = structural_hash(finished.mod)
                if self.is_new(shash):
                    yield self.candidate(finished, shash)

    def _all(self, trace: Trace) -> Iterator[Schedule]:
        """The trace with all combinations of decisions, counted up like the digits of a number:
        what a step may decide can depend on the decisions before it."""
        path: list[int] = []
        while True:
            sch = self.sampler.blank()
            widths: list[int] = []

            def decide(
                inst: Instruction,
                inputs: Sequence[Any],
                attrs: Sequence[Any],
                decision: Any,
                sch: Schedule = sch,
                widths: list[int] = widths,
            ) -> Any:
                options = choices(sch, inst, inputs)
                widths.append(len(options))
                if len(path) < len(widths):
                    path.append(0)
                return options[path[len(widths) - 1]]

            try:
                trace.apply_to_schedule(sch, remove_postproc=True, decision_provider=decide)
                yield sch
            except ScheduleError:
                pass
            while path and path[-1] + 1 >= widths[len(path) - 1]:
                path.pop()
            if not path:
                return
            path[-1] += 1
