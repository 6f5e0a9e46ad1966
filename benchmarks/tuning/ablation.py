"""What each part of evolutionary search brings: `python -m benchmarks.tuning.ablation conv`.

The search runs whole and with one part left out, with the same seeds and the same number of trials.
A program is timed once, whoever proposes it, so that no search is luckier than another with its
measurements; by the processor's clock, of which its shortest batch counts, so that other work does
not matter. The table has, as means over the seeds, the best that was found, compared with the
best of all searches; the trials until one was within a tenth of that (all of them where none was);
and for each program that was proposed the steps of schedules that were carried out and the
milliseconds of the processor.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from benchmarks.kernels import WORKLOADS
from benchmarks.tuning.searched import TRIALS
from benchmarks.tuning.strategies import WORKLOADS as NAMES
from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.cost_model import CostModel, learned_model
from mlcweb.meta_schedule.database import MemoryDatabase, TuningRecord
from mlcweb.meta_schedule.feature_extractor import PerStoreFeature
from mlcweb.meta_schedule.measure.artifact import build_artifact, random_inputs
from mlcweb.meta_schedule.measure.runner import Timing, run_here
from mlcweb.meta_schedule.search_strategy import (
    MeasureCandidate,
    RunnerResult,
    evolutionary_search,
    search_strategy,
)
from mlcweb.meta_schedule.space_generator import PostOrderApply
from mlcweb.runtime.host import clock
from mlcweb.schedule.base import ScheduleBase
from mlcweb.schedule.replay_cache import ReplayCache

PARTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "whole": nullcontext,
    "no cost model": lambda: patch.object(
        evolutionary_search.EvolutionarySearch, "_score", lambda self, population: None
    ),
    "TVM's features": lambda: patch.object(learned_model, "PerProgramFeature", PerStoreFeature),
    "no conditions": lambda: patch.object(
        search_strategy.Sampler, "_conditions", lambda self, trace: []
    ),
    "no replay cache": lambda: patch.object(ReplayCache, "start", lambda self: None),
    "none waiting": lambda: patch.object(evolutionary_search, "MAX_WAITING", 0),
}
"""The parts that can be left out, and how."""

TIMING = Timing(batches=15, enough_ms=100.0)

NEAR = 1.1
"""A program that takes at most so many times as long as the best is near it."""


class Times:
    """The times of the programs of one workload, each taken once."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._inputs = random_inputs(module)
        self._known: dict[int, float] = {}

    @property
    def best(self) -> float:
        """Seconds of the fastest program of all."""
        return min(self._known.values())

    def of(self, candidate: MeasureCandidate) -> float:
        """Seconds a call."""
        if candidate.shash not in self._known:
            artifact = build_artifact(candidate.sch.mod, "main")
            with patch.dict(clock.__globals__, clock_source=lambda: time.process_time):
                timed, _ = run_here(artifact, self._inputs, TIMING)
            self._known[candidate.shash] = min(timed.seconds)
        return self._known[candidate.shash]


@dataclass(slots=True)
class Outcome:
    """What a search came to: seconds of its programs in the order of its trials, and for each of
    them the steps carried out and the seconds spent by the search."""

    seconds: list[float]
    steps: float
    spent: float

    def trials_until(self, limit: float) -> int:
        """The number of the first trial of no more than `limit` seconds; of all where there is
        none."""
        return next((n for n, each in enumerate(self.seconds, 1) if each <= limit), TRIALS)


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Counts, in a list of one number, the steps that schedules carry out within."""
    count, replay = [0], ScheduleBase.replay

    def counted(self: ScheduleBase, *arguments: Any) -> Any:
        count[0] += 1
        return replay(self, *arguments)

    with patch.object(ScheduleBase, "replay", counted):
        yield count


def search(times: Times, seed: int) -> Outcome:
    """Search once."""
    context = TuneContext(
        times.module, target="llvm", space_generator=PostOrderApply(), rand_state=seed,
        search_strategy="evolutionary",
    )  # fmt: skip
    assert context.mod is not None
    database = MemoryDatabase()
    workload = database.commit_workload(context.mod)
    context.pre_tuning(TRIALS, TRIALS, None, database, CostModel.create("numpy"))
    outcome, spent = [], 0.0
    with counted_steps() as steps:
        while True:
            start = time.process_time()
            candidates = context.generate_measure_candidates()
            spent += time.process_time() - start
            if candidates is None:
                return Outcome(outcome, steps[0] / len(outcome), spent / len(outcome))
            measured = [times.of(each) for each in candidates]
            outcome += measured
            for each, seconds in zip(candidates, measured, strict=True):
                record = TuningRecord(each.sch.trace, workload, [seconds], program=each.shash)
                database.commit_tuning_record(record)
            start = time.process_time()
            context.notify_runner_results(candidates, [RunnerResult([each]) for each in measured])
            spent += time.process_time() - start


def compare(name: str, seeds: int, parts: list[str]) -> None:
    """Search for one workload in all ways, and print a table."""
    times = Times(WORKLOADS[name].as_written())
    outcomes: dict[str, list[Outcome]] = {part: [] for part in parts}
    for seed in range(1, seeds + 1):
        for part in parts:
            with PARTS[part]():
                outcomes[part].append(search(times, seed))
    print(f"{name}, {TRIALS} trials, {seeds} seeds, the best of all {times.best * 1e6:.1f} us")
    mean = statistics.mean
    for part, results in outcomes.items():
        ratios = sorted(min(each.seconds) / times.best for each in results)
        until = [each.trials_until(NEAR * times.best) for each in results]
        print(
            f"  {part:16} best {mean(ratios):.3f}, near after {mean(until):4.1f} trials, "
            f"{mean(each.steps for each in results):5.1f} steps and "
            f"{mean(each.spent for each in results) * 1e3:5.1f} ms a program;  "
            f"{' '.join(f'{each:.2f}' for each in ratios)};  {' '.join(map(str, sorted(until)))}",
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
