"""How good what the default settings find is: beside peaks, schedules made by hand, and programs as
they stand; after so many trials, and after some seconds from a cold start."""

from __future__ import annotations

from benchmarks.tuning.searched import SearchedEngine

TUNED, COLD = "tuned", "cold"
SEEDS = 3
COLD_SECONDS = 5.0
WORKLOADS = ("matmul128", "softmax", "layer_norm", "linear0")


def engines() -> list[SearchedEngine]:
    """One with a budget of trials, one with a budget of time."""
    return [
        SearchedEngine(TUNED, "tuned, 64 trials", TUNED, SEEDS),
        SearchedEngine(
            COLD, f"tuned, {COLD_SECONDS:g} s", COLD, SEEDS,
            max_trials_global=10_000, max_seconds=COLD_SECONDS,
        ),
    ]  # fmt: skip


def programs() -> list[str]:
    """What is tuned."""
    return [*(f"{name}/{TUNED}" for name in WORKLOADS), f"matmul128/{COLD}"]
