"""Several tasks share the trials."""

from collections import Counter

import pytest

from mlcweb import meta_schedule as ms
from mlcweb.script import from_source
from tests.meta_schedule.matmul import FakeRunner, Matmul, tiles

SOURCE = Matmul.script()


def program(number: int):
    """A matrix product of its own for each task."""
    return from_source(SOURCE.replace("T.grid(32", f"T.grid({32 >> number}"))


def share(kind, weights, trials: int = 96, **options):
    """How many trials each of several tasks gets, and the tasks in the order of their rounds."""
    contexts = [
        ms.TuneContext(
            program(number), target="numpy", space_generator=tiles, search_strategy="replay-trace",
            task_name=f"task {number}", rand_state=number + 1,
        )
        for number in range(len(weights))
    ]  # fmt: skip
    rounds: list[int] = []
    counts: Counter[int] = Counter()

    def observe(scheduler, task_id) -> None:
        if task_id is None:
            counts.update({n: task.trials for n, task in enumerate(scheduler.tasks)})
        elif scheduler.tasks[task_id].trials % 8 == 1 and sum(counts.values()) == 0:
            rounds.append(task_id)

    ms.tune_tasks(
        tasks=contexts, task_weights=weights, work_dir=None, max_trials_global=trials,
        num_trials_per_iter=8, task_scheduler=kind, runner=lambda workload: FakeRunner(),
        measure_callbacks=observe, **options,
    )  # fmt: skip
    return [counts[number] for number in range(len(weights))], rounds


def test_round_robin_treats_all_alike() -> None:
    assert share("round-robin", [1.0, 5.0, 100.0])[0] == [32, 32, 32]


def test_the_gradient_favours_what_takes_most_of_the_model() -> None:
    counts, rounds = share(ms.task_scheduler.GradientBased(seed=1), [1.0, 1.0, 50.0])
    assert rounds[:3] == [0, 1, 2]
    assert sum(counts) == 96
    assert counts[2] >= 64


class Lightest(ms.task_scheduler.PyTaskScheduler):
    """A scheduler of a program's own, with TVM's names of what tasks have."""

    def next_task_id(self) -> int:
        alive = [task for task in self._outer().tasks_ if not task.is_terminated]
        assert all(task.runner_futures is None for task in alive)
        lightest = min(alive, key=lambda task: (task.task_weight, task.ctx.task_name))
        return self.tasks.index(lightest)


def test_a_scheduler_of_ones_own_chooses() -> None:
    counts, rounds = share(Lightest(), [3.0, 1.0, 2.0], trials=40, max_trials_per_task=16)
    assert counts == [8, 16, 16]
    assert rounds[0] == 1


@pytest.mark.parametrize("kind", ["gradient", "round-robin"])
def test_no_task_gets_more_than_it_may(kind: str) -> None:
    counts, _ = share(kind, [1.0, 50.0], max_trials_per_task=24)
    assert counts == [24, 24]


@pytest.mark.parametrize("kind", ["gradient", "round-robin"])
def test_trials_that_are_few_are_not_overspent(kind: str) -> None:
    counts, _ = share(kind, [1.0, 1.0, 1.0], trials=11)
    assert counts == [8, 3, 0]
