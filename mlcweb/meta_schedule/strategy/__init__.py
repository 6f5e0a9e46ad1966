"""Search strategies: which schedules are measured next."""

from mlcweb.meta_schedule.strategy.evolutionary_search import EvolutionarySearch
from mlcweb.meta_schedule.strategy.replay import Exhaustive
from mlcweb.meta_schedule.strategy.replay import ReplayFunc, ReplayTrace
from mlcweb.meta_schedule.strategy.search_strategy import KINDS

KINDS |= {
    "evolutionary": EvolutionarySearch,
    "replay-trace": ReplayTrace,
    "replay_trace": ReplayTrace,
    "random": ReplayTrace,
    "replay-func": ReplayFunc,
    "replay_func": ReplayFunc,
    "exhaustive": Exhaustive,
}
