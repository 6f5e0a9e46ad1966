"""TVM's path to the search strategies."""

from mlcweb.meta_schedule.strategy.evolutionary_search import EvolutionarySearch
from mlcweb.meta_schedule.strategy.replay import Exhaustive, ReplayFunc, ReplayTrace
from mlcweb.meta_schedule.strategy.search_strategy import (
    KINDS,
    MeasureCandidate,
    PySearchStrategy,
    RunnerResult,
    SearchStrategy,
)

create = SearchStrategy.create

__all__ = [
    "KINDS",
    "EvolutionarySearch",
    "Exhaustive",
    "MeasureCandidate",
    "PySearchStrategy",
    "ReplayFunc",
    "ReplayTrace",
    "RunnerResult",
    "SearchStrategy",
    "create",
]
