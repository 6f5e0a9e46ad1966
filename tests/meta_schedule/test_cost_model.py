"""Cost models: features mean what they are called, and the trees learn."""

import math
import sys

import numpy as np
import pytest

from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext, cost_model
from mlcweb.meta_schedule.cost_model import (
    NumPyModel,
    RandomModel,
    XGBModel,
)
from mlcweb.meta_schedule.cost_model.learned_model import MAX_SAMPLES, rank, together
from mlcweb.meta_schedule.cost_model.loop_features import NAMES, features
from mlcweb.meta_schedule.cost_model.regression import fit_linear, fit_trees
from mlcweb.meta_schedule.feature_extractor import (
    PerProgramFeature,
    PerStoreFeature,
    RandomFeatureExtractor,
)
from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.meta_schedule.utils import shash2hex
from mlcweb.tir import Schedule
from tests.meta_schedule.matmul import Matmul, seconds, tiles
from tests.meta_schedule.programs import Double


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
    # Those steps load 4 numbers of A and 2 vectors of B, for 8 vectors of multiply-add.
    assert of["main loads per step"] == 4 + 2
    assert of["main work per load"] == pytest.approx(8 / 6, abs=1e-5)
    assert of["main waiting"] == 4
    assert of["main cycles"] == 32 * 32 * 32 / (4 * 8) * 4
    assert of["all cycles"] == of["main cycles"] + of["other cycles"]
    assert of["main touched bytes"] == 3 * 32 * 32 * 4
    assert of["main touched lines"] == 3 * 32 * 2
    # The rest is the initialisation.
    assert of["other iterations"] == 32 * 32


def test_trees_learn_a_function_and_nothing_where_nothing_varies() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(400, 6))
    targets = np.where(rows[:, 2] > 0.5, 1.0, 0.0) + 2 * rows[:, 4]
    model = fit_trees(rows[:300], targets[:300])
    error = model.predict(rows[300:]) - targets[300:]
    assert float(np.abs(error).mean()) < 0.1
    constant = fit_trees(np.ones((5, 3)), np.arange(5.0))
    assert constant.predict(np.zeros((2, 3))).tolist() == [2.0, 2.0]


def test_a_linear_model_needs_few_rows_and_forgives_what_was_disturbed() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 30))
    truth = rows[:, 3] - 0.5 * rows[:, 7]
    # A third of the programs seemed slower than they are, since something else ran.
    targets = np.where(rng.uniform(size=40) < 0.33, truth - 1.0, truth)
    unseen = rng.normal(size=(200, 30))
    wanted = unseen[:, 3] - 0.5 * unseen[:, 7]

    def agreement(below: float) -> float:
        model = fit_linear(rows, targets, regularisation=5.0, below=below)
        return float(np.corrcoef(model.predict(unseen), wanted)[0, 1])

    assert agreement(0.15) > 0.85
    assert agreement(0.15) > agreement(1.0)
    constant = fit_linear(np.ones((5, 3)), np.arange(5.0))
    assert constant.predict(np.zeros((2, 3))).tolist() == pytest.approx([2.0, 2.0])


def test_trees_split_many_values_in_few_places() -> None:
    rows = np.arange(5000.0)[:, None]
    model = fit_trees(rows, np.where(rows[:, 0] > 3000, 1.0, 0.0))
    assert model.predict(np.array([[100.0], [4900.0]])).tolist() == pytest.approx([0, 1], abs=0.05)


def context(mod: IRModule = Matmul) -> TuneContext:
    return TuneContext(mod, target="wasm", rand_state=1)


def sampled(
    count: int, first_seed: int, disturbed: float = 0.0
) -> tuple[list[MeasureCandidate], list[RunnerResult]]:
    """Candidates, and what they took: a share of them longer than they had to."""
    rng = np.random.default_rng(first_seed)
    candidates = []
    for seed in range(first_seed, first_seed + count):
        sch = Schedule(Matmul, seed=seed)
        tiles(sch)
        candidates.append(MeasureCandidate(sch))
    factors = np.where(rng.uniform(size=count) < disturbed, 1.45, 1.0)
    return candidates, [
        RunnerResult((factor * seconds(each.sch.mod), 2.0))
        for each, factor in zip(candidates, factors, strict=True)
    ]


MODELS = [NumPyModel, pytest.param(XGBModel, marks=pytest.mark.thorough)]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("disturbed", "least"), [(0.0, 0.85), (0.3, 0.75)])
def test_models_rank_trials_that_they_have_not_seen(kind, disturbed: float, least: float) -> None:
    if kind is XGBModel:
        pytest.importorskip("xgboost", reason="XGBoost comes with `make test-all`")
    model = kind()
    for first in (1, 100, 200, 300):
        model.update(context(), *sampled(32, first, disturbed))
    held_out, results = sampled(48, 1000)
    scores = model.predict(context(), held_out)
    times = [result.run_secs[0] for result in results if result.run_secs]
    assert rank(scores.tolist(), times).all > least


@pytest.mark.thorough
def test_xgboost_tells_nothing_apart_before_it_is_warm() -> None:
    pytest.importorskip("xgboost", reason="XGBoost comes with `make test-all`")
    model = XGBModel(num_warmup_samples=40, adaptive_training=False)
    held_out, _ = sampled(8, 1000)
    model.update(context(), *sampled(32, 1))
    assert set(model.predict(context(), held_out)) == {0.0}
    model.update(context(), *sampled(32, 100))
    assert len(set(model.predict(context(), held_out))) > 1


def test_a_ranking_is_of_predictions_made_before() -> None:
    model = NumPyModel()
    assert math.isnan(model.ranking(context()).all)
    rankings = []
    for first in (1, 100, 200):
        candidates, results = sampled(16, first)
        scores = model.predict(context(), candidates)
        rankings.append(rank(scores.tolist(), [min(r.run_secs or ()) for r in results]))
        model.update(context(), candidates, results)
    found = model.ranking(context())
    # Of the first batch nothing could be known.
    assert found == together(rankings[1:])
    assert found.clear > 0.6
    assert found.clear_pairs <= found.pairs


def test_tasks_do_not_mix_and_a_new_one_profits_from_others() -> None:
    model = NumPyModel()
    first = sampled(32, 1)
    model.update(context(), *first)
    of_others = model.predict(context(Double), first[0])
    assert len(set(of_others)) > 1
    before = model.predict(context(), first[0]).tolist()
    model.update(context(Double), first[0], [RunnerResult((1.0,))] * 31 + [RunnerResult((2.0,))])
    assert model.predict(context(), first[0]).tolist() == before


def test_what_was_learnt_is_saved(tmp_path) -> None:
    model = NumPyModel()
    model.update(context(), *sampled(32, 1))
    path = str(tmp_path / "model.npz")
    model.save(path)
    other = NumPyModel()
    other.load(path)
    held_out, _ = sampled(8, 100)
    assert other.predict(context(), held_out).tolist() == (
        model.predict(context(), held_out).tolist()
    )


def test_what_is_learnt_from_can_be_looked_at_and_survives_saving(tmp_path) -> None:
    model, again = NumPyModel(), NumPyModel()
    assert model.data == {} and model.data_size == 0
    candidates, results = sampled(6, 1)
    model.update(context(), candidates, results)
    (group,) = model.data.values()
    assert list(model.data) == [group.group_hash] == [shash2hex(Matmul)]
    assert group.costs.tolist() == [min(each.run_secs) for each in results]
    assert group.min_cost == group.costs.min()
    assert len(group.features) == model.data_size == 6
    model.save(str(tmp_path / "model"))
    again.load(str(tmp_path / "model"))
    (loaded,) = again.data.values()
    assert loaded.group_hash == group.group_hash and (loaded.costs == group.costs).all()
    pairs = zip(loaded.features, group.features, strict=True)
    assert all((one == other).all() for one, other in pairs)


def test_failed_trials_teach_nothing_and_an_empty_model_has_no_opinion() -> None:
    model = NumPyModel()
    candidates, _ = sampled(3, 1)
    model.update(context(), candidates, [RunnerResult(None, "it crashed")] * 3)
    assert model.predict(context(), candidates).tolist() == [0.0, 0.0, 0.0]
    assert model.ranking(context()).pairs == 0


def test_samples_stay_bounded_and_the_fastest_stay() -> None:
    from mlcweb.meta_schedule.cost_model.learned_model import _Samples

    samples = _Samples()
    for number in range(3 * MAX_SAMPLES):
        samples.rows.append(np.zeros(1))
        samples.seconds.append(float(number))
        samples.prune()
    assert len(samples.rows) == len(samples.seconds) == MAX_SAMPLES
    assert samples.seconds[0] == 0.0
    assert samples.seconds[-1] == 3 * MAX_SAMPLES - 1


def test_metrics() -> None:
    assert rank([3, 2, 1], [1, 2, 3]).all == 1.0
    assert rank([1, 2, 3], [1, 2, 3]).all == 0.0
    assert rank([1, 1], [1, 2]).all == 0.5
    assert math.isnan(rank([1, 2], [1.0, 1.001]).all)
    # The first two differ by less than noise, and are ranked wrong.
    both = rank([2, 3, 1], [1.0, 1.05, 2.0])
    assert (both.clear, both.clear_pairs, both.pairs) == (1.0, 2, 3)
    assert both.all == pytest.approx(2 / 3)
    assert math.isnan(rank([], []).clear) and rank([], [])[2:] == (0, 0)


def test_models_by_name_and_the_missing_one_says_what_to_do(monkeypatch) -> None:
    assert isinstance(cost_model.create("numpy"), NumPyModel)
    one, other = (RandomModel(seed=1).predict(context(), sampled(2, 1)[0]) for _ in range(2))
    assert one.tolist() == other.tolist()
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ImportError, match=r'pip install "mlcweb\[xgboost\]"'):
        cost_model.create("xgb")
    with pytest.raises(ValueError, match='Unknown cost model "oracle"'):
        cost_model.create("oracle")


def test_a_random_model_goes_on_from_where_it_was_saved(tmp_path) -> None:
    candidates, _ = sampled(5, 1)
    model = RandomModel(seed=3, max_range=100.0)
    model.predict(context(), candidates)
    model.save(str(tmp_path / "model"))
    after = model.predict(context(), candidates)
    assert 1.0 < after.max() <= 100.0
    model.load(str(tmp_path / "model"))
    assert model.predict(context(), candidates).tolist() == after.tolist()


def test_a_model_learns_from_rows_of_another_extractor() -> None:
    candidates, results = sampled(12, 1)
    extractor = RandomFeatureExtractor(feature_size=7, seed=5)
    rows = extractor.extract_from(context(), candidates)
    assert all(1 <= each.shape[0] <= 5 and each.shape[1] == 7 for each in rows)
    model = NumPyModel(extractor=extractor)
    model.update(context(), candidates, results)
    state = extractor.random_state
    first = model.predict(context(), candidates)
    extractor.random_state = state
    assert model.predict(context(), candidates).tolist() == first.tolist()


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_learns_from_the_extractor_that_it_is_given(kind) -> None:
    if kind is XGBModel:
        pytest.importorskip("xgboost", reason="XGBoost comes with `make test-all`")
    model, own = kind(extractor="per-store-feature"), kind()
    assert isinstance(model.extractor, PerStoreFeature)
    assert isinstance(own.extractor, PerProgramFeature)
    for first in (1, 100):
        model.update(context(), *sampled(32, first))
    held_out, results = sampled(48, 1000)
    times = [result.run_secs[0] for result in results if result.run_secs]
    assert rank(model.predict(context(), held_out).tolist(), times).all > 0.7
    with pytest.raises(ValueError, match='Unknown feature extractor "per-loop"'):
        kind(extractor="per-loop")
