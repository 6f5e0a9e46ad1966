"""Strategies in comparison: the same budget of trials, the same seeds, the same space."""

from __future__ import annotations

from benchmarks.tuning.searched import SearchedEngine

PROGRAM = "searched"
SEEDS = 5
WORKLOADS = ("matmul512", "conv", "bmm_relu", "softmax")
STRATEGIES = {"random": "random search", "evolutionary": "evolutionary search"}


def engines() -> list[SearchedEngine]:
    """One for each strategy."""
    return [
        SearchedEngine(name, title, PROGRAM, SEEDS, strategy=name)
        for name, title in STRATEGIES.items()
    ]


def programs() -> list[str]:
    """What is searched for."""
    return [f"{name}/{PROGRAM}" for name in WORKLOADS]
