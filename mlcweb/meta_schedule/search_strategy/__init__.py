"""Search strategies: which schedules are measured next."""

from mlcweb.meta_schedule.search_strategy.evolutionary_search import EvolutionarySearch
from mlcweb.meta_schedule.search_strategy.exhaustive import Exhaustive
from mlcweb.meta_schedule.search_strategy.replay_func import ReplayFunc
from mlcweb.meta_schedule.search_strategy.replay_trace import ReplayTrace
from mlcweb.meta_schedule.search_strategy.search_strategy import (
    MeasureCandidate,
    PySearchStrategy,
    RunnerResult,
    SearchStrategy,
)  # fmt: skip

KINDS: dict[str, type[SearchStrategy]] = {
    "evolutionary": EvolutionarySearch,
    "replay-trace": ReplayTrace,
    "replay_trace": ReplayTrace,
    "random": ReplayTrace,
    "replay-func": ReplayFunc,
    "replay_func": ReplayFunc,
    "exhaustive": Exhaustive,
}
"""The strategies by the names that `SearchStrategy.create` takes."""

create = SearchStrategy.create
