"""A search with a builder, a runner and callbacks of one's own: each candidate comes by, and
nothing else is built or run."""

import random

import pytest

from mlcweb.meta_schedule import TuneContext, tune_tasks
from mlcweb.meta_schedule.builder import BuilderResult, PyBuilder
from mlcweb.meta_schedule.cost_model import RandomModel
from mlcweb.meta_schedule.database import MemoryDatabase
from mlcweb.meta_schedule.events import Ended, Round, Trial
from mlcweb.meta_schedule.measure_callback import AddToDatabase, MeasureCallback, UpdateCostModel
from mlcweb.meta_schedule.runner import RunnerFuture
from mlcweb.meta_schedule.search_strategy import (
    MeasureCandidate,
    PySearchStrategy,
    ReplayTrace,
    RunnerResult,
)
from mlcweb.meta_schedule.task_scheduler import (
    GradientBased,
    PyTaskScheduler,
    RoundRobin,
    listening,
)
from mlcweb.runtime.build import reset_warnings
from mlcweb.testing.dummy_object import DummyBuilder, DummyRunner
from mlcweb.tir import Schedule
from tests.meta_schedule.database.records import Other
from tests.meta_schedule.matmul import FakeRunner, Matmul, tiles


def halves(sch):
    i, _, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, [2, None])


def task(module, strategy=None):
    return TuneContext(
        module, target="llvm", space_generator=halves, rand_state=7,
        search_strategy=ReplayTrace() if strategy is None else strategy,
    )  # fmt: skip


def tune(scheduler, tasks, database=None, callbacks=(), **options):
    numbers = {"max_trials_global": 18, "max_trials_per_task": 9, "num_trials_per_iter": 4}
    database = MemoryDatabase() if database is None else database
    parts = {"builder": DummyBuilder(), "runner": DummyRunner(), **options}
    scheduler.tune(
        tasks, [1.0] * len(tasks), **numbers | parts, database=database,
        measure_callbacks=[AddToDatabase(), *callbacks],
    )  # fmt: skip
    found = [len(database.get_top_k(database.commit_workload(t.mod), 100)) for t in tasks]
    return len(database), found


class ByChance(PyTaskScheduler):
    def next_task_id(self):
        left = [n for n, each in enumerate(self._outer().tasks_) if not each.is_terminated]
        number = random.choice(left)
        if self.tasks_[number].runner_futures is not None:
            self.join_running_task(number)
        return number


@pytest.mark.parametrize("scheduler", [RoundRobin, GradientBased, ByChance])
def test_every_trial_is_measured_though_the_programs_are_the_same(scheduler):
    assert tune(scheduler(), [task(Matmul), task(Other)]) == (18, [9, 9])


def test_a_round_that_was_begun_is_measured_in_full():
    scheduler, database = RoundRobin(), MemoryDatabase()
    scheduler.tune(
        [task(Matmul)], [1.0], max_trials_global=3, max_trials_per_task=10, num_trials_per_iter=64,
        builder=DummyBuilder(), runner=DummyRunner(), database=database,
        measure_callbacks=[AddToDatabase()],
    )  # fmt: skip
    assert len(database) == 10


class Nothing(PySearchStrategy):
    def __init__(self, empty):
        self.empty = empty

    def pre_tuning(self, *args, **kwargs):
        """Nothing is searched."""

    def generate_measure_candidates(self):
        self.empty -= 1
        return [] if self.empty >= 0 else None


def test_tasks_without_candidates_do_not_stop_the_others():
    tasks = [task(Matmul, Nothing(3)), task(Other)]
    assert tune(GradientBased(), tasks) == (9, [0, 9])


class Broken(PyBuilder):
    def build(self, build_inputs):
        return [
            BuilderResult("path") if number % 2 else BuilderResult(None, "broken")
            for number, _ in enumerate(build_inputs)
        ]


class Seen(MeasureCallback):
    def __init__(self):
        self.rounds = []

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        assert len(measure_candidates) == len(builder_results)
        self.rounds.append((task_id, [result.error_msg for result in runner_results]))


def test_callbacks_hear_of_each_round_and_what_is_not_built_is_not_run():
    seen = Seen()
    counted = tune(RoundRobin(), [task(Matmul)], callbacks=[seen], builder=Broken())
    failed = ["broken", None, "broken", None]
    assert seen.rounds == [(0, failed), (0, failed), (0, ["broken"])]
    assert counted == (9, [4])


class Counting(RandomModel):
    updates = 0

    def update(self, context, candidates, results):
        self.updates += len(results)


def test_the_cost_model_learns_where_a_callback_says_so():
    model = Counting()
    tune(RoundRobin(), [task(Matmul)], cost_model=model)
    assert model.updates == 0
    tune(RoundRobin(), [task(Matmul)], callbacks=[UpdateCostModel()], cost_model=model)
    assert model.updates == 9


def test_a_scheduler_must_choose():
    with pytest.raises(ValueError, match="next_task_id is not defined"):
        PyTaskScheduler().next_task_id()


def test_listeners_hear_of_each_trial_and_its_times():
    heard = []

    def hear(scheduler, number, event):
        heard.append((number, event))

    with listening(hear):
        tune(RoundRobin(), [task(Matmul), task(Other)], builder=Broken())
    assert heard[0] == heard[-1] == (None, None)
    for number in (0, 1):
        events = [event for each, event in heard if each == number]
        trials = [event for event in events if isinstance(event, Trial)]
        assert [trial.index for trial in trials] == list(range(9))
        assert [trial.round for trial in trials] == [0] * 4 + [1] * 4 + [2]
        assert [trial.reason for trial in trials] == ["broken", None] * 4 + ["broken"]
        assert all((trial.seconds is None) == (trial.reason == "broken") for trial in trials)
        assert sum(isinstance(event, Round) for event in events) == 3
        assert events[-1] == Ended(9)


def test_rounds_of_several_tasks_run_beside_each_other():
    log = []

    class Later:
        def run(self, runner_inputs):
            log.append("begun")
            return [RunnerFuture(f_result=self.result) for _ in runner_inputs]

        def result(self):
            log.append("waited for")
            return RunnerResult([1.0])

    tune(RoundRobin(), [task(Matmul), task(Other)], runner=Later())
    assert log[:6] == ["begun", "begun", *["waited for"] * 4]
    assert log.count("waited for") == 18


class OneTurn(RoundRobin):
    turns = 0

    def next_task_id(self):
        self.turns += 1
        return -1 if self.turns > 1 else super().next_task_id()


def test_a_scheduler_may_end_the_search():
    assert tune(OneTurn(), [task(Matmul), task(Other)]) == (4, [4, 0])


class Logged(PySearchStrategy):
    """A strategy of two rounds, a builder, a runner and a callback that say when they are called.
    Every second program cannot be built."""

    def __init__(self):
        self.log, self.rounds = [], 0

    def pre_tuning(self, *args, **kwargs):
        self.log.append("pre")

    def post_tuning(self):
        self.log.append("post")

    def generate_measure_candidates(self):
        self.log.append("generate")
        self.rounds += 1
        mod = self.context.mod
        return [MeasureCandidate(Schedule(mod)) for _ in range(2)] if self.rounds < 3 else None

    def notify_runner_results(self, measure_candidates, results):
        self.log.append(("notify", [result.error_msg for result in results]))

    def build(self, build_inputs):
        self.log.append(("build", len(build_inputs)))
        return Broken().build(build_inputs)

    def run(self, runner_inputs):
        self.log.append(("run", [len(item.args_info) for item in runner_inputs]))
        return [RunnerFuture(f_result=self.result) for _ in runner_inputs]

    def result(self):
        self.log.append("result")
        return RunnerResult([1.0])

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        self.log.append(("callback", [result.error_msg for result in builder_results]))


def test_parts_of_ones_own_are_called_in_the_order_of_tvm():
    part = Logged()
    tune(RoundRobin(), [task(Matmul, part)], builder=part, runner=part, callbacks=[part])
    round_of_two = [
        "generate", ("build", 2), ("run", [3]), "result", ("notify", ["broken", None]),
        ("callback", ["broken", None]),
    ]  # fmt: skip
    assert part.log == ["pre", *round_of_two, *round_of_two, "generate", "post"]


class Ending(RoundRobin):
    def next_task_id(self):
        number = super().next_task_id()
        for each in range(len(self.tasks)):
            self.terminate_task(each)
        return number


def test_a_task_that_was_ended_generates_nothing():
    part = Logged()
    tune(Ending(), [task(Matmul, part)], builder=part, runner=part)
    assert part.log == ["pre", "post"]


class Tiles(PyBuilder):
    """Builds, and says how many programs at a time, and whether they have a schedule."""

    def __init__(self):
        self.sizes, self.scheduled = [], True

    def build(self, build_inputs):
        self.sizes.append(len(build_inputs))
        self.scheduled &= all("i_0" in item.mod.script() for item in build_inputs)
        return DummyBuilder().build(build_inputs)


def search(**options):
    context = TuneContext(
        Matmul, target=options.pop("target", "llvm"), space_generator=options.pop("space", tiles),
        search_strategy=options.pop("strategy", "replay-trace"), rand_state=3,
    )  # fmt: skip
    return tune_tasks(
        tasks=[context], task_weights=[1.0], work_dir=None, max_trials_global=10,
        num_trials_per_iter=4, measure_callbacks=[], **options,
    )  # fmt: skip


def test_a_search_gives_a_builder_and_a_runner_whole_rounds_and_candidates_alone():
    builder = Tiles()
    assert len(search(builder=builder, runner=DummyRunner())) == 10 + 8
    # The best eight are measured twice more, in turn.
    assert builder.sizes == [4, 4, 2] + [1] * 16
    assert builder.scheduled


class Once(ReplayTrace):
    def post_tuning(self):
        self.ends = getattr(self, "ends", 0) + 1


def test_a_search_tells_its_strategy_the_end_once():
    strategy = Once()
    search(strategy=strategy, runner=lambda workload: FakeRunner())
    assert strategy.ends == 1


def test_where_a_runner_of_ones_own_measures_nothing_is_said_of_other_devices(capsys):
    reset_warnings()
    search(target="nvidia/nvidia-a100", space=halves, builder=DummyBuilder(), runner=DummyRunner())
    assert "GPU" not in capsys.readouterr().err


def test_the_gradient_begins_a_round_of_each_task_before_it_waits_for_one():
    part = Logged()
    options = {"max_trials_global": 8, "builder": DummyBuilder(), "runner": part}
    tune(GradientBased(), [task(Matmul), task(Other)], **options)
    begun_or_waited = [each if each == "result" else each[0] for each in part.log]
    assert begun_or_waited == ["run", "run", *["result"] * 8]
