"""How many trials a search makes a second, natively with two processes: 64 of the 128x128 product.

A trial is found, compiled, run, checked and timed. The clock starts when the first is done, so that
starting processes and measuring the program as it stands do not count.
"""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

from benchmarks.engine import NotForThis
from benchmarks.kernels.matmul import untransformed
from mlcweb import meta_schedule as ms
from mlcweb.meta_schedule.runner import LocalRunner
from mlcweb.runtime.host.engine import available

RATE = "trials"
STRATEGIES = ("random", "evolutionary")
TRIALS = 64
WORKERS = 2


def programs() -> list[str]:
    """The names of what is measured."""
    return [f"{RATE}/{strategy}" for strategy in STRATEGIES]


class RateEngine:
    """mlcweb with wasmtime, asked how fast it searches."""

    name = RATE
    title = "seconds a trial"
    only_best = False

    def __init__(self) -> None:
        if not available():
            raise NotForThis('wasmtime is not installed: pip install ".[native]"')
        self._seed = 0

    def prepare(self, name: str) -> None:
        if name not in programs():
            raise NotForThis(f"{name} is no search")

    def sample(self, name: str) -> float:
        """Seconds per trial of one search; each search has another seed."""
        self._seed += 1
        return seconds_per_trial(name.partition("/")[2], self._seed)

    def peak(self) -> None:
        return None

    def forget(self, name: str) -> None:
        """Nothing is kept."""


def seconds_per_trial(strategy: str, seed: int) -> float:
    """Search once, and divide the time from the first trial to the last.

    Raises:
        RuntimeError: a trial failed, so that not all were checked.
    """
    done: list[float] = []

    def observe(scheduler: Any, task_id: int | None) -> None:
        # After the trials the best are measured again.
        if task_id is not None and len(done) < scheduler.total_trials:
            done.append(time.perf_counter())
        if any(task.failed for task in scheduler.tasks):
            raise RuntimeError("A trial failed")

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        ms.tune_tir(
            untransformed(128),
            "wasm",
            max_trials_global=TRIALS,
            strategy=strategy,
            seed=seed,
            database="memory",
            runner=LocalRunner(max_workers=WORKERS),
            measure_callbacks=observe,
        )
    return (done[-1] - done[0]) / (len(done) - 1)
