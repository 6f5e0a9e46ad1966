"""Search strategies: which schedules are measured next."""

from mlcweb.meta_schedule.search_strategy.evolutionary_search import EvolutionarySearch
from mlcweb.meta_schedule.search_strategy.replay import Exhaustive, ReplayFunc, ReplayTrace
from mlcweb.meta_schedule.search_strategy.search_strategy import (
    KINDS,
    MeasureCandidate,
    PySearchStrategy,
    RunnerResult,
    SearchStrategy,
)

KINDS |= {
    "evolutionary": EvolutionarySearch,
    "replay-trace": ReplayTrace,
    "replay_trace": ReplayTrace,
    "random": ReplayTrace,
    "replay-func": ReplayFunc,
    "replay_func": ReplayFunc,
    "exhaustive": Exhaustive,
}

create = SearchStrategy.create
