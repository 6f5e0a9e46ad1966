"""Cost models: features mean what they are called, and the trees learn."""

import math
import sys

import numpy as np
import pytest

from mlcweb.meta_schedule import TuneContext, cost_model
from mlcweb.meta_schedule.cost_model import NumPyModel, RandomModel, pairwise_accuracy
from mlcweb.meta_schedule.cost_model.boosted_trees import fit
from mlcweb.meta_schedule.cost_model.learned_model import MOST_SAMPLES
from mlcweb.meta_schedule.cost_model.metric import max_curve
from mlcweb.meta_schedule.feature_extractor import NAMES, features
from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.tir import Schedule
from tests.meta_schedule.matmul import Matmul, seconds, tiles


def named(schedule: Schedule) -> dict[str, float]:
    """The features as they were before the logarithm."""
    return {n: round(2**v - 1, 6) for n, v in zip(NAMES, features(schedule.mod), strict=True)}


def scheduled() -> Schedule:
    sch = Schedule(Matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    sch.parallel(i0)
    sch.decompose_reduction(block, k)
    return sch


def test_features_of_a_tiled_product() -> None:
    of = named(scheduled())
    assert of["main iterations"] == of["main add"] == of["main multiply"] == 32**3
    assert (of["main vector extent"], of["main unrolled"], of["main parallel extent"]) == (8, 4, 8)
    # C, and C again as it is read, and B run along the vectors; A stays.
    assert (of["main vector still"], of["main vector contiguous"]) == (1, 3)
    # 4 x 8 sums of float32 are 8 vectors; a step needs them, 4 of A and 8 of B.
    assert of["main accumulators"] == 8
    assert of["main operands per step"] == 32 + 4 + 8
    assert of["main reduction"] == 32
    assert of["main touched bytes"] == 3 * 32 * 32 * 4
    assert of["main touched lines"] == 3 * 32 * 2
    # The rest is the initialisation.
    assert of["other iterations"] == 32 * 32


def test_trees_learn_a_function_and_nothing_where_nothing_varies() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(400, 6))
    targets = np.where(rows[:, 2] > 0.5, 1.0, 0.0) + 2 * rows[:, 4]
    model = fit(rows[:300], targets[:300])
    error = model.predict(rows[300:]) - targets[300:]
    assert float(np.abs(error).mean()) < 0.1
    constant = fit(np.ones((5, 3)), np.arange(5.0))
    assert constant.predict(np.zeros((2, 3))).tolist() == [2.0, 2.0]


def context() -> TuneContext:
    return TuneContext(Matmul, target="llvm", rand_state=1)


def sampled(count: int, first_seed: int) -> tuple[list[MeasureCandidate], list[RunnerResult]]:
    candidates = []
    for seed in range(first_seed, first_seed + count):
        sch = Schedule(Matmul, seed=seed)
        tiles(sch)
        candidates.append(MeasureCandidate(sch))
    return candidates, [RunnerResult((seconds(each.sch.mod),)) for each in candidates]


def test_the_model_ranks_trials_that_it_has_not_seen() -> None:
    model = NumPyModel()
    for first in (1, 100, 200, 300):
        model.update(context(), *sampled(32, first))
    assert math.isnan(model.accuracy[0])
    assert all(0 <= accuracy <= 1 for accuracy in model.accuracy[1:])
    held_out, results = sampled(48, 1000)
    scores = model.predict(context(), held_out)
    times = [result.run_secs[0] for result in results if result.run_secs]
    assert pairwise_accuracy(scores.tolist(), times) > 0.75


def test_failed_trials_teach_nothing_and_an_empty_model_has_no_opinion() -> None:
    model = NumPyModel()
    candidates, _ = sampled(3, 1)
    model.update(context(), candidates, [RunnerResult(None, "it crashed")] * 3)
    assert model.predict(context(), candidates).tolist() == [0.0, 0.0, 0.0]
    assert model.accuracy == []


def test_samples_stay_bounded_and_the_fastest_stay() -> None:
    from mlcweb.meta_schedule.cost_model.learned_model import _Samples

    samples = _Samples()
    for number in range(3 * MOST_SAMPLES):
        samples.rows.append(np.zeros(1))
        samples.seconds.append(float(number))
        samples.prune()
    assert len(samples.rows) == len(samples.seconds) == MOST_SAMPLES
    assert samples.seconds[0] == 0.0
    assert samples.seconds[-1] == 3 * MOST_SAMPLES - 1


def test_metrics() -> None:
    assert pairwise_accuracy([3, 2, 1], [1, 2, 3]) == 1.0
    assert pairwise_accuracy([1, 2, 3], [1, 2, 3]) == 0.0
    assert pairwise_accuracy([1, 1], [1, 2]) == 0.5
    assert math.isnan(pairwise_accuracy([1, 2], [1.0, 1.001]))
    assert max_curve([1, 3, 2], [1.0, 4.0, 2.0]) == [0.25, 0.5, 1.0]


def test_models_by_name_and_the_missing_one_says_what_to_do(monkeypatch) -> None:
    assert isinstance(cost_model.create("numpy"), NumPyModel)
    one, other = (RandomModel(seed=1).predict(context(), sampled(2, 1)[0]) for _ in range(2))
    assert one.tolist() == other.tolist()
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ImportError, match=r'pip install "mlcweb\[xgboost\]"'):
        cost_model.create("xgb")
    with pytest.raises(ValueError, match='Unknown cost model "oracle"'):
        cost_model.create("oracle")
