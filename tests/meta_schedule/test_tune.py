"""The tuning calls of both generations, natively, from end to end."""

from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import meta_schedule as ms
from mlcweb.meta_schedule.builder import LocalBuilder
from mlcweb.meta_schedule.database.json_database import RECORDS
from mlcweb.meta_schedule.measure.measuring import FINALISTS, ROUNDS
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.meta_schedule.progress import rows, totals
from mlcweb.meta_schedule.runner import EvaluatorConfig, LocalRunner
from mlcweb.meta_schedule.task_scheduler import GradientBased, RoundRobin
from mlcweb.script import from_source
from tests.meta_schedule import programs
from tests.meta_schedule.matmul import FakeRunner, Matmul, columns, tiles
from tests.waiting import HANG_S

TARGET = "llvm --num-cores=1"


def here(workload):
    return ThreadRunner(workload, Timing(2, 0.05))


def product_is_right(module) -> bool:
    a, b = np.random.default_rng(0).random((2, 32, 32)).astype("float32")
    c = tvm.nd.empty((32, 32))
    tvm.build(module, target="llvm")["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    return np.allclose(c.numpy(), a @ b, atol=1e-4)


def test_the_call_of_the_course_returns_a_schedule(tmp_path: Path) -> None:
    sch = ms.tune_tir(
        mod=Matmul,
        target=TARGET,
        config=ms.TuneConfig(max_trials_global=64, num_trials_per_iter=64),
        space=ms.space_generator.ScheduleFn(columns),
        work_dir=str(tmp_path / "tune_tmp"),
        task_name="main",
        runner=here,
    )
    lines = sch.trace.as_python()
    assert lines[2].startswith("v4, v5 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_facto")
    assert lines[-1] == "sch.enter_postproc()"
    assert product_is_right(sch.mod)
    # The files that are left answer again, with nothing measured.
    database = ms.database.JSONDatabase(work_dir=tmp_path / "tune_tmp")
    again = ms.tir_integration.compile_tir(database, Matmul, TARGET)
    assert again.trace.as_python() == lines


TOTALS = ({"num_trials_total": 3}, {"max_trials_per_task": 3, "max_trials_global": 3})


@pytest.mark.parametrize("totals", TOTALS)
@pytest.mark.parametrize("config", [ms.ReplayTraceConfig, ms.ReplayFuncConfig])
def test_a_strategy_of_2022_is_that_of_the_search(config, totals, tmp_path: Path) -> None:
    sch = ms.tune_tir(
        mod=Matmul,
        target=TARGET,
        config=config(num_trials_per_iter=2, **totals),
        space=ms.space_generator.ScheduleFn(columns),
        work_dir=str(tmp_path),
        runner=here,
    )
    assert product_is_right(sch.mod)


def test_the_call_of_today_returns_a_database(tmp_path: Path) -> None:
    database = ms.tune_tir(
        Matmul,
        TARGET,
        str(tmp_path),
        max_trials_global=6,
        num_trials_per_iter=4,
        seed=1,
        runner=here,
    )
    assert isinstance(database, ms.database.JSONDatabase)
    assert (tmp_path / RECORDS).exists()
    sch = ms.tir_integration.compile_tir(database, Matmul, TARGET)
    assert product_is_right(sch.mod)


def test_workers_of_this_machine_build_and_measure() -> None:
    database = ms.tune_tir(
        Matmul,
        TARGET,
        max_trials_global=5,
        space=tiles,
        builder=LocalBuilder(max_workers=2),
        runner=LocalRunner(
            timeout_sec=HANG_S,
            evaluator_config=EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0.1),
            max_workers=2,
        ),
    )
    records = database.get_all_tuning_records()
    assert len(records) == 5 + 5
    assert all(r.is_valid and 1 <= len(r.run_secs) <= 2 * ROUNDS for r in records)


def tasks(*modules):
    return [
        ms.TuneContext(
            module,
            target="numpy",
            space_generator=ms.space_generator.ScheduleFn(function, [], [], {}),
            search_strategy="replay-trace",
            task_name=f"task {number}",
            rand_state=1,
        )
        for number, (module, function) in enumerate(modules)
    ]


@pytest.mark.parametrize("kind", ["round-robin", "gradient"])
def test_several_tasks_share_the_trials(kind: str) -> None:
    seen = []

    def observed(scheduler, task_id):
        if task_id is not None:
            seen.append(task_id)
        assert len(rows(scheduler)) == 2
        assert totals(scheduler, 2.0)

    ms.tune_tasks(
        tasks=tasks((Matmul, tiles), (programs.Double, programs.tile)),
        task_weights=[1.0, 3.0],
        work_dir=None,
        max_trials_global=24,
        num_trials_per_iter=4,
        runner=lambda workload: FakeRunner(),
        task_scheduler=kind,
        measure_callbacks=observed,
    )
    assert seen[:4] == [0] * 4
    assert 1 in seen
    # The small space ends; the rest goes to the other.
    assert seen.count(0) + seen.count(1) <= 24 + 2 * FINALISTS


def test_the_gradient_goes_where_most_is_gained() -> None:
    class Fake:
        terminated, trials, failed = False, 10, 0

        def __init__(self, weight, *history):
            self.weight, self.round_bests = weight, list(history)

    scheduler = GradientBased(seed=1)
    scheduler.tasks = [Fake(1.0, 5.0, 5.0), Fake(1.0, 50.0, 40.0), Fake(1.0, 1.0, 1.0)]
    assert scheduler.next_task_id() == 1
    scheduler.tasks = [Fake(100.0, 5.0, 5.0), Fake(1.0, 50.0, 40.0)]
    assert scheduler.next_task_id() == 0
    turns = RoundRobin()
    turns.tasks = scheduler.tasks
    assert [turns.next_task_id() for _ in range(3)] == [0, 1, 0]


def test_options_that_are_not_known_are_named() -> None:
    with pytest.raises(ValueError, match="needs max_trials_global"):
        ms.tune_tir(Matmul, TARGET)
    with pytest.raises(ValueError, match='Unknown runner "rpc"'):
        ms.tune_tir(Matmul, TARGET, max_trials_global=1, runner="rpc", space=columns)
    with pytest.raises(TypeError, match='tune_tir has no option "num_trials"; there are blocks'):
        ms.tune_tir(Matmul, TARGET, max_trials_global=1, num_trials=2)
    with pytest.raises(ValueError, match="There are no tasks to tune"):
        ms.tune_tir(Matmul, TARGET, max_trials_global=1, special_space={"main": None})


def test_functions_of_vectors_are_tuned(tmp_path: Path) -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "float32x4"), B: T.Buffer((64,), "float32x4")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.Broadcast(T.float32(2), 4)
""")
    module = tvm.IRModule({"main": func})
    database = ms.tune_tir(module, TARGET, str(tmp_path), max_trials_global=4, runner=here)
    sch = database.query_schedule(module, tvm.target.Target(TARGET), "main")
    assert sch is not None
    a, b = (tvm.nd.empty((64,), "float32x4") for _ in range(2))
    a.copyfrom(np.arange(256, dtype="float32").reshape(64, 4))
    tvm.build(sch.mod, TARGET)["main"](a, b)
    assert (b.numpy() == a.numpy() * 2).all()
