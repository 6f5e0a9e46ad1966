"""Random search: steps of the design spaces drawn anew, or the generator called anew."""

from __future__ import annotations

from collections.abc import Iterator

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.strategy.search_strategy import MeasureCandidate, SearchStrategy, peeked
from mlcweb.schedule import ScheduleError


class ReplayTrace(SearchStrategy):
    """Draws programs at random, each once.

    Args:
        max_fail_count: draws in a row without a new program that end the search.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count

    def propose(self) -> Iterator[MeasureCandidate] | None:
        return peeked(self.fresh_candidates(self.room(), self.max_fail_count))


class ReplayFunc(SearchStrategy):
    """Generates the design spaces anew for each candidate, each program once.

    Args:
        max_fail_count: calls in a row without a new program that end the search.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count

    def propose(self) -> Iterator[MeasureCandidate] | None:
        return peeked(self._called(self.room()))

    def _called(self, count: int) -> Iterator[MeasureCandidate]:
        failures = 0
        while count > 0 and failures < self.max_fail_count:
            failures += 1
            if self.context.space_generator is not None:
                self.context.space_generator.seed = self.rng.randrange(1, 2**31 - 1)
            try:
                sch = self.rng.choice(self.context.generate_design_space())
                finished = self.sampler.finished(sch.copy())
            except ScheduleError:
                continue
            if finished is None:
                continue
            shash = structural_hash(finished.mod)
            if self.seen.add(shash):
                failures = 0
                count -= 1
                yield self.candidate(finished, shash)
