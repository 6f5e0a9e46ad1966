"""Parts of a search that a program defines itself, as TVM's users write them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlcweb import IRModule, tir
from mlcweb import meta_schedule as ms
from mlcweb.ir import TVMError, structural_equal
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.builder import BuilderInput, BuilderResult, LocalBuilder, PyBuilder
from mlcweb.meta_schedule.cost_model import PyCostModel
from mlcweb.meta_schedule.database import PyDatabase, TuningRecord, Workload
from mlcweb.meta_schedule.database.tuning_record import FAILED_SECONDS
from mlcweb.meta_schedule.feature_extractor import PyFeatureExtractor
from mlcweb.meta_schedule.measure_callback import MeasureCallback, PyMeasureCallback
from mlcweb.meta_schedule.mutator import PyMutator
from mlcweb.meta_schedule.postproc import PyPostproc
from mlcweb.meta_schedule.runner import (
    EvaluatorConfig,
    LocalRunner,
    PyRunner,
    PyRunnerFuture,
    RunnerInput,
)
from mlcweb.meta_schedule.schedule_rule import PyScheduleRule
from mlcweb.meta_schedule.search_strategy import MeasureCandidate, PySearchStrategy, RunnerResult
from mlcweb.meta_schedule.space_generator import PySpaceGenerator
from mlcweb.meta_schedule.utils import derived_object
from mlcweb.runtime import Target, build
from mlcweb.runtime.registry import register_func
from mlcweb.schedule import BlockRV, Schedule, Trace
from tests.lower.test_tvm_names import matmul


@derived_object
class TileFirstLoop(PyScheduleRule):
    def _initialize_with_tune_context(self, context: Any) -> None:
        self.task = context.task_name

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not sch.get_loops(block):
            return [sch]
        new = sch.copy()
        loop = new.get_loops(block)[0]
        new.split(loop, new.sample_perfect_tile(loop, n=2))
        return [new]

    def clone(self) -> Any:
        return TileFirstLoop()


@derived_object
class KeepsTrace(PyMutator):
    def _initialize_with_tune_context(self, context: Any) -> None:
        pass

    def apply(self, trace: Trace, _: Any) -> Trace:
        return Trace(trace.insts, trace.decisions)


@derived_object
class Counts(PyPostproc):
    def __init__(self) -> None:
        self.count = 0

    def apply(self, sch: Schedule) -> bool:
        self.count += 1
        return True

    def clone(self) -> Any:
        return self


@derived_object
class Builds(PyBuilder):
    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        return [BuilderResult(f"path of {item.target.kind.name}") for item in build_inputs]


class Future(PyRunnerFuture):
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return RunnerResult((self.seconds,))


@derived_object
class Runs(PyRunner):
    def __init__(self) -> None:
        self.paths: list[str] = []

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[Future]:
        self.paths += [item.artifact_path for item in runner_inputs]
        assert [info.as_json() for info in runner_inputs[0].args_info] == [
            ["TENSOR", "float32", [4, 4]]
        ] * 3
        return [Future(1.0 / len(self.paths)) for _ in runner_inputs]


@derived_object
class Listens(PyMeasureCallback):
    def __init__(self) -> None:
        self.seen: list[tuple[int, bool, float]] = []

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        (candidate,), (result,) = measure_candidates, runner_results
        assert result.run_secs is not None
        self.seen.append((task_id, "split" in str(candidate.sch.trace), result.run_secs[0]))


@derived_object
class ByNumber(PyCostModel):
    def __init__(self) -> None:
        self.learnt = 0

    def update(self, context: Any, candidates: Any, results: Sequence[RunnerResult]) -> None:
        self.learnt += len(results)

    def predict(self, context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        return np.arange(len(candidates), dtype="float64")


class InList(PyDatabase):
    def __init__(self) -> None:
        super().__init__()
        self.workloads: list[Workload] = []
        self.records: list[TuningRecord] = []

    def has_workload(self, mod: IRModule) -> bool:
        return any(structural_equal(mod, known.mod) for known in self.workloads)

    def commit_workload(self, mod: IRModule) -> Workload:
        for known in self.workloads:
            if structural_equal(mod, known.mod):
                return known
        self.workloads.append(Workload(mod))
        return self.workloads[-1]

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self.records.append(record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        return sorted(self.records, key=lambda record: min(record.run_secs))[:top_k]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return self.records

    def __len__(self) -> int:
        return len(self.records)


@derived_object
class Rounds(PySearchStrategy):
    """Two rounds of two candidates each. A task takes a clone of it, which shares the results."""

    def __init__(self) -> None:
        self.results: list[RunnerResult] = []

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule],
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        self.space = design_spaces[0]
        self.rounds = 0

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        if self.rounds == 2:
            return None
        self.rounds += 1
        mod = self.context.mod
        assert mod is not None
        found = []
        for extent in (1, 2 * self.rounds):
            sch = Schedule(mod)
            block = sch.get_block("C")
            sch.split(sch.get_loops(block)[0], [None, extent])
            found.append(MeasureCandidate(sch, ArgInfo.from_prim_func(matmul)))
        return found

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        self.results += results


def space(postproc: PyPostproc) -> ms.SpaceGenerator:
    return ms.space_generator.PostOrderApply(
        sch_rules=[TileFirstLoop()], postprocs=[postproc], mutator_probs={KeepsTrace(): 1.0}
    )


def test_a_search_of_parts_of_ones_own() -> None:
    postproc, runner, callback = Counts(), Runs(), Listens()
    database = ms.tune_tir(
        matmul,
        target="llvm -num-cores=1",
        work_dir=None,
        max_trials_global=3,
        space=space(postproc),
        builder=Builds(),
        runner=runner,
        database=InList(),
        cost_model=ByNumber(),
        measure_callbacks=[callback, *MeasureCallback.create("default")],
        seed=1,
    )
    assert isinstance(database, InList)
    assert postproc.count >= 3
    assert set(runner.paths) == {"path of llvm"}
    measured = callback.seen[:3]
    assert [(task, split) for task, split, _ in measured] == [(0, True)] * 3
    assert len(database.get_all_tuning_records()) >= 3
    fastest = database.query_tuning_record(database.workloads[0].mod, "llvm -num-cores=1", "main")
    assert fastest is not None
    assert min(fastest.run_secs) == 1 / len(runner.paths)


def test_a_strategy_of_ones_own() -> None:
    strategy, runner = Rounds(), Runs()
    ms.tune_tir(
        matmul,
        target="llvm -num-cores=1",
        work_dir=None,
        max_trials_global=3,
        space=space(Counts()),
        strategy=strategy,
        builder=Builds(),
        runner=runner,
        database="memory",
    )
    # The last of four candidates is over the budget.
    assert [result.error_msg for result in strategy.results] == [None] * 3


def test_a_space_of_ones_own_need_not_call_the_base() -> None:
    @derived_object
    class Twice(PySpaceGenerator):
        def __init__(self) -> None:
            self.asked = 0

        def _initialize_with_tune_context(self, context: Any) -> None:
            self.context = context

        def generate_design_space(self, mod: IRModule) -> list[Schedule]:
            self.asked += 1
            return [Schedule(mod), Schedule(mod)]

    context = ms.TuneContext(matmul, target="llvm", space_generator=Twice())
    assert len(context.generate_design_space()) == 2
    assert context.postprocs == ()


def test_mutators_may_be_called_without_random_numbers() -> None:
    sch = Schedule(matmul)
    sch.get_block("C")
    assert len(KeepsTrace().apply(sch.trace).insts) == 1


def test_features_of_ones_own() -> None:
    @derived_object
    class Ones(PyFeatureExtractor):
        def extract_from(self, context: Any, candidates: Sequence[MeasureCandidate]) -> list[Any]:
            return [np.ones((4, 5)) for _ in candidates]

    candidate = MeasureCandidate(Schedule(matmul))
    assert Ones().extract_from(ms.TuneContext(), [candidate])[0].shape == (4, 5)
    assert isinstance(Ones(), ms.FeatureExtractor)


def test_the_local_builder_and_runner_are_called_by_themselves() -> None:
    def refuse(mod: IRModule, target: Target, params: Any) -> Any:
        raise ValueError("too large")

    item = BuilderInput(IRModule({"main": matmul}), Target("numpy"))
    (built,) = LocalBuilder().build([item])
    (failed,) = LocalBuilder(f_build=refuse).build([item])
    assert failed.artifact_path is None and "too large" in str(failed.error_msg)
    infos = ArgInfo.from_prim_func(matmul)
    inputs = [RunnerInput(str(path), "cpu", infos) for path in (built.artifact_path, "nowhere")]
    runner = LocalRunner(evaluator_config=EvaluatorConfig(repeat=2, min_repeat_ms=0))
    result, missing = [future.result() for future in runner.run(inputs)]
    assert result.run_secs is not None and len(result.run_secs) == 2 and result.error_msg is None
    assert missing.run_secs is None and "nowhere" in str(missing.error_msg)


def test_a_search_with_hooks_of_the_local_builder_and_runner() -> None:
    asked: list[Any] = []

    def arguments(dev: Any, infos: Sequence[Any], repeat: int) -> list[list[Any]]:
        asked.append([tuple(shape) for _, _, shape in infos])
        return [[0]] * repeat

    database = ms.tune_tir(
        matmul,
        target="llvm -num-cores=1",
        work_dir=None,
        max_trials_global=2,
        builder=LocalBuilder(
            f_build=lambda mod, target, params: build(mod, "numpy"),
        ),
        runner=LocalRunner(
            alloc_repeat=2,
            f_alloc_argument="tests.own_arguments",
            initializer=lambda: register_func("tests.own_arguments", arguments, override=True),
            f_run_evaluator=lambda mod, dev, config, args: [0.5] * len(args),
        ),
    )
    assert asked[0] == [(4, 4)] * 3
    records = database.get_all_tuning_records()
    assert {seconds for record in records for seconds in record.run_secs or ()} == {0.5}


def test_what_is_no_part_of_a_search_is_not_derived() -> None:
    with pytest.raises(TypeError, match="is a subclass of object"):

        @derived_object
        class Alone:
            pass


def test_profiler_sums_up() -> None:
    with ms.Profiler() as profiler:
        for _ in range(2):
            with ms.Profiler.timeit("part"):
                pass
    assert set(profiler.get()) == {"part", "Total"}
    assert "part" in profiler.table()
    assert ms.Profiler.current() is None
    assert isinstance(matmul, tir.PrimFunc)


def test_a_builder_looks_its_functions_up_after_the_initializer():
    def initialize():
        @register_func("test.refuses_to_build", override=True)
        def refuse(mod, target, params):
            raise ValueError("not today")

    with pytest.raises(ValueError, match="wrong-name"):
        LocalBuilder(f_build="wrong-name")
    builder = LocalBuilder(f_build="test.refuses_to_build", initializer=initialize)
    (failed,) = builder.build([BuilderInput(IRModule(), Target("llvm"))])
    assert failed.artifact_path is None
    assert failed.error_msg == "LocalBuilder: An exception occurred\nnot today"


def test_a_build_that_does_not_end_stops_no_other():
    waits = threading.Event()

    def wait(mod: IRModule, target: Target, params: Any) -> Any:
        if not mod.functions:
            waits.wait()
        return build(mod, "numpy")

    items = [BuilderInput(mod, Target("numpy")) for mod in (IRModule(), IRModule.from_expr(matmul))]
    late, built = LocalBuilder(timeout_sec=2.0, f_build=wait).build(items)
    waits.set()
    assert late.artifact_path is None
    assert late.error_msg == "LocalBuilder: Timeout, killed after 2.0 seconds"
    assert built.error_msg is None and built.artifact_path is not None


def test_a_method_that_a_class_lacks_is_missed_when_it_is_called() -> None:
    @derived_object
    class Rule(PyScheduleRule):
        pass

    rule: Any = Rule
    with pytest.raises(TVMError, match=r"^PyScheduleRule's Apply method not implemented!"):
        rule().apply(Schedule(matmul), Schedule(matmul).get_block("C"))


def test_a_generator_says_itself_what_it_makes_of_a_task() -> None:
    @derived_object
    class Generator(PySpaceGenerator):
        pass

    generator: Any = Generator
    missing = r"^PySpaceGenerator's InitializeWithTuneContext method not implemented!"
    with pytest.raises(TVMError, match=missing):
        ms.TuneContext(matmul, target="llvm", space_generator=generator())


class Answer(PyRunnerFuture):
    def __init__(self, answer: RunnerResult) -> None:
        super().__init__(f_result=lambda: answer)


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [
        (RunnerResult([0.0, 0.0]), (0.0,)),
        (RunnerResult(None, "the board is off"), (FAILED_SECONDS,)),
    ],
)
def test_a_search_survives_a_runner_that_gives_no_time(
    answer: RunnerResult, recorded: tuple[float, ...], tmp_path: Any
) -> None:
    @derived_object
    class Runner(PyRunner):
        def run(self, runner_inputs: Sequence[RunnerInput]) -> list[PyRunnerFuture]:
            return [Answer(answer) for _ in runner_inputs]

    database = ms.tune_tir(
        matmul, target="llvm --num-cores=1", work_dir=str(tmp_path), max_trials_global=3,
        builder=Builds(), runner=Runner(), cost_model="numpy", measure_callbacks=[],
    )  # fmt: skip
    times = [record.run_secs for record in database.get_all_tuning_records()]
    assert {second for seconds in times for second in seconds or ()} == set(recorded)


def test_times_have_a_value_as_constants_have() -> None:
    times: Any = [tir.FloatImm("float32", 0.5)]
    measured = RunnerResult(times).run_secs
    record = TuningRecord(Schedule(matmul).trace, Workload(IRModule.from_expr(matmul)), [2.0])
    assert measured is not None and (*measured, measured[0].value) == (0.5, 0.5)
    assert [second.value for second in record.run_secs or ()] == [2.0]
    assert record.as_json()[1] == [2.0]


def test_a_record_is_valid_whose_mean_is_less_than_a_failure() -> None:
    database = ms.database.MemoryDatabase()
    workload = database.commit_workload(IRModule.from_expr(matmul))
    for seconds in ([3.0, FAILED_SECONDS], [FAILED_SECONDS], [], None, [2.0]):
        database.commit_tuning_record(TuningRecord(Schedule(matmul).trace, workload, seconds))
    fastest = database.get_top_k(workload, 5)
    assert [record.run_secs for record in fastest] == [(2.0,), (3.0, FAILED_SECONDS)]
