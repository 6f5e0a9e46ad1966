"""Random search: the steps of the design spaces with decisions drawn anew."""

from __future__ import annotations

from collections.abc import Iterator

from mlcweb.meta_schedule.search_strategy.search_strategy import (
    MeasureCandidate,
    SearchStrategy,
    peeked,
)  # fmt: skip


class ReplayTrace(SearchStrategy):
    """Draws programs at random, each once.

    Args:
        max_fail_count: draws in a row without a new program that end the search.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count

    def propose(self) -> Iterator[MeasureCandidate] | None:
        return peeked(self.fresh_candidates(self.room(), self.max_fail_count))
