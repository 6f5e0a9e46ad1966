"""How well cost models rank unseen programs: `python -m benchmarks.tuning.ranking`.

Programs of a workload are proposed by random and by evolutionary search, and timed once each as in
`ablation`. A model learns some of them, and ranks the others: the table has the share of pairs
whose times differ by a tenth that it ranks right, for the whole model and with one part left out;
first with times as they are, then where a quarter of those that are learnt was disturbed, as in a
search beside other work.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

import numpy as np

from benchmarks.kernels import WORKLOADS
from benchmarks.tuning.ablation import Times
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.cost_model import CostModel, NumPyModel, numpy_model, rank
from mlcweb.meta_schedule.cost_model.regression import BoostedTrees
from mlcweb.meta_schedule.database import MemoryDatabase, TuningRecord
from mlcweb.meta_schedule.feature_extractor import (
    FeatureExtractor,
    PerProgramFeature,
    PerStoreFeature,
)
from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.meta_schedule.space_generator import PostOrderApply

NAMES = ("matmul128", "conv", "layer_norm")
SEARCHES = (("replay-trace", 1), ("evolutionary", 2), ("evolutionary", 3))
TRIALS = 80
LEARNT = (16, 32, 64)
SPLITS = 6

DISTURBED, LONGER = 0.25, 1.5
"""The share of disturbed programs, and up to how many times as long they seem to take."""

OWN, TVM = PerProgramFeature(), PerStoreFeature()

PARTS: dict[str, tuple[Callable[[], AbstractContextManager[object]], FeatureExtractor]] = {
    "whole": (nullcontext, OWN),
    "no trees": (
        lambda: patch.object(numpy_model, "fit_trees", lambda *_, **__: BoostedTrees(0.0, (), 0)),
        OWN,
    ),
    "no forgiveness": (lambda: patch.object(numpy_model, "BELOW", 1.0), OWN),
    "TVM's features": (nullcontext, TVM),
}
"""The parts that can be left out, and how; and the features that are learnt from."""


def programs(times: Times) -> list[MeasureCandidate]:
    """What searches over a workload propose, each program once."""
    candidates: dict[int, MeasureCandidate] = {}
    for strategy, seed in SEARCHES:
        context = TuneContext(
            times.module, target="llvm", space_generator=PostOrderApply(), rand_state=seed,
            search_strategy=strategy,
        )  # fmt: skip
        database = MemoryDatabase()
        workload = database.commit_workload(times.module)
        context.pre_tuning(TRIALS, 8, None, database, CostModel.create("numpy"))
        while (proposed := context.generate_measure_candidates()) is not None:
            candidates |= {each.shash: each for each in proposed}
            for each in proposed:
                seconds = [times.of(each)]
                record = TuningRecord(each.sch.trace, workload, seconds, program=each.shash)
                database.commit_tuning_record(record)
            results = [RunnerResult([times.of(each)]) for each in proposed]
            context.notify_runner_results(proposed, results)
    return list(candidates.values())


def compare(name: str) -> None:
    """Measure the programs of a workload, and print the table."""
    times = Times(WORKLOADS[name].as_written())
    every = programs(times)
    context = TuneContext(times.module, target="llvm")
    seconds = np.array([times.of(each) for each in every])
    print(f"{name}, {len(every)} programs")
    for disturbed in (0.0, DISTURBED):
        for part, (without, extractor) in PARTS.items():
            shares = []
            for learnt in LEARNT:
                ranked = []
                for split in range(SPLITS):
                    random = np.random.default_rng(split)
                    order = random.permutation(len(every))
                    one, other = order[:learnt], order[learnt:]
                    longer = np.where(
                        random.random(learnt) < disturbed, random.uniform(1, LONGER, learnt), 1
                    )
                    results = [RunnerResult([each]) for each in seconds[one] * longer]
                    with without():
                        model = NumPyModel(extractor=extractor)
                        model.update(context, [every[n] for n in one], results)
                        scores = model.predict(context, [every[n] for n in other])
                    ranked.append(rank(scores.tolist(), seconds[other].tolist()).clear)
                shares.append(f"{statistics.mean(ranked):6.1%} of {learnt}")
            print(f"  {disturbed:4.0%} disturbed, {part:15}{',  '.join(shares)}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Compare for the workloads that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=NAMES, metavar="WORKLOAD")
    for name in parser.parse_args(arguments).workloads:
        compare(name)


if __name__ == "__main__":
    main(sys.argv[1:])
