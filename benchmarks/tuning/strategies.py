"""Strategies in comparison: the same budget of trials, the same seeds, the same space. Programs are
timed in the thread that searches, with nothing beside: what is compared is what strategies propose,
not how well their proposals can be told apart while the next are compiled."""

from __future__ import annotations

from functools import partial

from benchmarks.tuning.searched import SearchedEngine
from mlcweb.meta_schedule.measure.runner import ThreadRunner

PROGRAM = "searched"
SEEDS = 5
WORKLOADS = ("matmul512", "conv", "bmm_relu", "softmax")
STRATEGIES = {"random": "random search", "evolutionary": "evolutionary search"}


def engines() -> list[SearchedEngine]:
    """One for each strategy."""
    return [
        SearchedEngine(name, title, PROGRAM, SEEDS, strategy=name, runner=partial(ThreadRunner))
        for name, title in STRATEGIES.items()
    ]


def programs() -> list[str]:
    """What is searched for."""
    return [f"{name}/{PROGRAM}" for name in WORKLOADS]
