"""Strategies: no program twice, the same seed the same search, and evolution beats chance."""

import statistics
from typing import Any

import pytest

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule import TuneContext, search_strategy
from mlcweb.meta_schedule.cost_model import NumPyModel, RandomModel
from mlcweb.meta_schedule.database import MemoryDatabase
from mlcweb.meta_schedule.measure.measuring import ROUNDS
from mlcweb.meta_schedule.search_strategy.decisions import divisors, factorisations
from mlcweb.meta_schedule.space_generator import ScheduleFn
from mlcweb.meta_schedule.tune import tune_tasks
from mlcweb.tir import Schedule
from tests.meta_schedule.matmul import FakeRunner, Matmul, columns, tiles
from tests.meta_schedule.matmul import seconds as time_of


def space(function: Any) -> ScheduleFn:
    return ScheduleFn(function, sch_rules=[], postprocs=[], mutator_probs={})


def tuned(function: Any, strategy: Any, trials: int = 40, seed: int = 1, **options: Any) -> Any:
    runners: list[FakeRunner] = []

    def opened(workload: Any) -> FakeRunner:
        runners.append(FakeRunner())
        return runners[-1]

    context = TuneContext(
        Matmul, target="numpy", space_generator=space(function), search_strategy=strategy,
        rand_state=seed,
    )  # fmt: skip
    database = tune_tasks(
        tasks=[context], task_weights=[1.0], work_dir=None, max_trials_global=trials,
        runner=opened, **options,
    )  # fmt: skip
    return database, runners[0]


def test_factorisations_are_all_and_each_once() -> None:
    found = list(factorisations(12, 3))
    assert len(found) == len(set(found)) == 18
    assert all(a * b * c == 12 for a, b, c in found)
    assert divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func", "evolutionary", "exhaustive"])
def test_no_program_is_measured_twice_and_a_small_space_ends(strategy: str) -> None:
    database, runner = tuned(columns, strategy, 64)
    # Five programs with an innermost factor of at most 16; then all of them again.
    distinct = {structural_hash(module) for module in runner.measured}
    assert len(distinct) == 5
    assert len(runner.measured) == 5 + 5 * ROUNDS
    assert len(database) == 5 + 5


def test_exhaustive_finds_every_program() -> None:
    def dependent(sch: Schedule) -> None:
        _, j, _ = sch.get_loops(sch.get_block("C"))
        _, inner = sch.split(j, sch.sample_perfect_tile(j, 2, 32))
        sch.split(inner, sch.sample_perfect_tile(inner, 2, 32))

    _, runner = tuned(dependent, "exhaustive", 1000)
    # Triples of factors of 32: as many as ways to share five twos among three.
    assert len({structural_hash(module) for module in runner.measured}) == 21


@pytest.mark.parametrize("strategy", ["evolutionary", "replay-trace"])
def test_the_same_seed_and_times_make_the_same_search(strategy: str) -> None:
    def found(seed: int) -> tuple[list[Any], list[Any]]:
        database, runner = tuned(tiles, strategy, 32, seed, cost_model=NumPyModel())
        records = [(r.trace_text, r.run_secs) for r in database.get_all_tuning_records()]
        return records, [structural_hash(module) for module in runner.measured]

    assert found(3) == found(3)
    assert found(3) != found(4)


def test_what_was_predicted_is_kept_with_the_candidate() -> None:
    context = TuneContext(
        Matmul, target="llvm", space_generator=space(tiles), search_strategy="evolutionary",
        rand_state=1,
    )  # fmt: skip
    model = NumPyModel()
    context.pre_tuning(48, 64, cost_model=model)
    rounds: list[list[float | None]] = []
    measured: set[int] = set()
    while (candidates := context.generate_measure_candidates()) is not None:
        # What was chosen by chance has a prediction as well.
        rounds.append([each.predicted for each in candidates])
        expected = model.predict(context, candidates).tolist()
        if len(rounds) == 1:
            assert rounds[0] == [None] * 16
        else:
            assert rounds[-1] == pytest.approx(expected)
        hashes = {structural_hash(each.sch.mod) for each in candidates}
        assert len(hashes) == len(candidates)
        assert not hashes & measured
        measured |= hashes
        results = [search_strategy.RunnerResult((time_of(each.sch.mod),)) for each in candidates]
        context.notify_runner_results(candidates, results)
    assert [len(each) for each in rounds] == [16, 8, 8, 8, 8]


def best(database: Any) -> float:
    return database.query_tuning_record(Matmul).seconds


@pytest.mark.thorough
def test_evolution_beats_chance() -> None:
    def medians(strategy: str) -> float:
        found = [best(tuned(tiles, strategy, 64, seed)[0]) for seed in range(5)]
        return statistics.median(found)

    assert medians("evolutionary") < 0.75 * medians("replay-trace")


def test_evolution_goes_on_from_the_records_of_a_database() -> None:
    database = MemoryDatabase()
    tuned(tiles, "evolutionary", 48, 1, database=database)
    before = best(database)
    _, runner = tuned(tiles, "evolutionary", 32, 2, database=database)
    assert best(database) <= before
    # It starts near the best of the first search, not anywhere.
    assert statistics.median(seconds_of(runner)[16:32]) < statistics.median(
        [r.seconds for r in database.get_all_tuning_records()][:16]
    )


def seconds_of(runner: FakeRunner) -> list[float]:
    return [time_of(module) for module in runner.measured]


def test_a_search_without_progress_ends_early() -> None:
    _, patient = tuned(tiles, "replay-trace", 64, num_trials_per_iter=8)
    _, hasty = tuned(tiles, "replay-trace", 64, num_trials_per_iter=8, early_stopping=8)
    assert len(hasty.measured) < len(patient.measured)


def test_strange_options_are_refused() -> None:
    with pytest.raises(ValueError, match='Unknown search strategy "magic"'):
        search_strategy.create("magic")
    with pytest.raises(ValueError, match="eps_greedy is a share"):
        search_strategy.EvolutionarySearch(eps_greedy=2)
    with pytest.raises(ValueError, match="There are no tasks"):
        tune_tasks(tasks=[], task_weights=[], work_dir=None, max_trials_global=1)


def test_rounds_are_what_tvm_calls_them() -> None:
    context = TuneContext(
        Matmul, target="llvm", space_generator=space(tiles), search_strategy="evolutionary",
        rand_state=1,
    )  # fmt: skip
    context.pre_tuning(20, 8, cost_model=RandomModel(seed=1))
    sizes = []
    while (candidates := context.generate_measure_candidates()) is not None:
        sizes.append(len(candidates))
        results = [search_strategy.RunnerResult((1.0,)) for _ in candidates]
        context.notify_runner_results(candidates, results)
    assert sizes == [8, 8, 4]


def halved(sch):
    i, _, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, [2, None])


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func"])
def test_rounds_are_full_where_all_programs_are_the_same(strategy) -> None:
    context = TuneContext(
        Matmul, target="llvm", space_generator=space(halved), search_strategy=strategy, rand_state=1
    )
    context.pre_tuning(20, 7)
    rounds = iter(context.generate_measure_candidates, None)
    assert [len(candidates) for candidates in rounds] == [7, 7, 6]


def test_evolution_gives_up_after_several_rounds_without_anything_new() -> None:
    strategy = search_strategy.EvolutionarySearch(num_empty_iters_before_early_stop=3)
    context = TuneContext(
        Matmul, target="llvm", space_generator=space(halved), search_strategy=strategy, rand_state=1
    )
    context.pre_tuning(20, 8)
    rounds = iter(context.generate_measure_candidates, None)
    assert [len(candidates) for candidates in rounds] == [1, 0, 0]


def test_a_strategy_without_a_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="Cannot instantiate abstract class SearchStrategy"):
        search_strategy.SearchStrategy()  # pyright: ignore[reportAbstractUsage]
