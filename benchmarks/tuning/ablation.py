"""What each part of evolutionary search brings: `python -m benchmarks.tuning.ablation conv`.

The search runs whole and with one part left out, with the same seeds and the same number of trials.
A program is timed once, whoever proposes it, so that no search is luckier than another with its
measurements. The table has the best that was found, as a median and as a mean over the seeds and
compared with the best of all, and how long it took to propose a program.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

from benchmarks.kernels import WORKLOADS
from benchmarks.tuning.searched import TRIALS
from benchmarks.tuning.strategies import WORKLOADS as NAMES
from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.cost_model import CostModel
from mlcweb.meta_schedule.database import MemoryDatabase, TuningRecord
from mlcweb.meta_schedule.measure.artifact import build_artifact, random_inputs
from mlcweb.meta_schedule.measure.runner import Seconds, ThreadRunner
from mlcweb.meta_schedule.search_strategy import (
    MeasureCandidate,
    RunnerResult,
    evolutionary_search,
    search_strategy,
)
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.schedule.replay_cache import ReplayCache

PARTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "whole": nullcontext,
    "no cost model": lambda: patch.object(
        evolutionary_search.EvolutionarySearch, "_score", lambda self, population: None
    ),
    "no conditions": lambda: patch.object(
        search_strategy.Sampler, "_conditions", lambda self, trace: []
    ),
    "no replay cache": lambda: patch.object(ReplayCache, "start", lambda self: None),
    "no crossing": lambda: patch.object(evolutionary_search, "CROSSING", 0.0),
    "one change": lambda: patch.object(evolutionary_search, "FURTHER", 0.0),
    "none waiting": lambda: patch.object(evolutionary_search, "MAX_WAITING", 0),
}
"""The parts that can be left out, and how."""


class Times:
    """The times of the programs of one workload, each taken once."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._runner = ThreadRunner(random_inputs(module))
        asyncio.run(self._runner.begin(build_artifact(module, "main")))
        self._known: dict[int, Seconds] = {}

    @property
    def best(self) -> float:
        """Seconds of the fastest program of all."""
        return min(statistics.median(seconds) for seconds in self._known.values())

    def of(self, candidate: MeasureCandidate) -> Seconds:
        """Seconds a call, one number for each batch."""
        if candidate.shash not in self._known:
            artifact = build_artifact(candidate.sch.mod, "main")
            self._known[candidate.shash] = asyncio.run(self._runner.measure(artifact))
        return self._known[candidate.shash]


def search(times: Times, seed: int) -> tuple[float, float]:
    """Seconds of the best program that a search finds, and that it takes to propose one."""
    context = TuneContext(
        times.module, target="llvm", space_generator=PostOrderApply(), rand_state=seed,
        search_strategy="evolutionary",
    )  # fmt: skip
    assert context.mod is not None
    database = MemoryDatabase()
    workload = database.commit_workload(context.mod)
    context.pre_tuning(TRIALS, TRIALS, None, database, CostModel.create("numpy"))
    best, spent, count = float("inf"), 0.0, 0
    while True:
        start = time.process_time()
        candidates = context.generate_measure_candidates()
        spent += time.process_time() - start
        if candidates is None:
            return best, spent / count
        measured = [times.of(each) for each in candidates]
        for each, seconds in zip(candidates, measured, strict=True):
            best, count = min(best, statistics.median(seconds)), count + 1
            record = TuningRecord(each.sch.trace, workload, seconds, program=each.shash)
            database.commit_tuning_record(record)
        start = time.process_time()
        context.notify_runner_results(candidates, [RunnerResult(each) for each in measured])
        spent += time.process_time() - start


def compare(name: str, seeds: int, parts: list[str]) -> None:
    """Search for one workload in all ways, and print a table."""
    times = Times(WORKLOADS[name].as_written())
    results_of: dict[str, list[tuple[float, float]]] = {part: [] for part in parts}
    for seed in range(1, seeds + 1):
        for part in parts:
            with PARTS[part]():
                results_of[part].append(search(times, seed))
    print(f"{name}, {TRIALS} trials, {seeds} seeds, the best of all {times.best * 1e6:.1f} us")
    for part, results in results_of.items():
        ratios = sorted(best / times.best for best, _ in results)
        milliseconds = statistics.mean(spent for _, spent in results) * 1e3
        print(
            f"  {part:18} median {statistics.median(ratios):.3f}, "
            f"mean {statistics.mean(ratios):.3f}, "
            f"{milliseconds:5.1f} ms a program;  {' '.join(f'{each:.2f}' for each in ratios)}",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    """Compare for the workloads that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    options = parser.parse_args(arguments)
    for name in options.workloads or NAMES:
        compare(name, options.seeds, options.parts)


if __name__ == "__main__":
    main(sys.argv[1:])
