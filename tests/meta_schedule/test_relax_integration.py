"""Models: what there is to tune in them, tuned, and put back."""

import json
import subprocess
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import meta_schedule as ms
from mlcweb import relax
from mlcweb.ir import TVMError, assert_structural_equal, structural_equal
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.database.tuning_record import TuningRecord
from mlcweb.meta_schedule.measure.artifact import Artifact, TrialInputs
from mlcweb.meta_schedule.measure.runner import Seconds, ThreadRunner, Timing
from mlcweb.relax.pipeline import fused
from mlcweb.relax.transform.apply_database import program_of
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from mlcweb.tir import PrimFunc, Schedule
from mlcweb.tir.function import prim_funcs
from tests.meta_schedule import models

TARGET = "llvm --num-cores=1"
SMALL = {
    "runner": partial(ThreadRunner, timing=Timing(2, 0.02)),
    "seed": 1,
    "space": "post-order-apply",
}


def names_and_weights(tasks):
    return {task.task_name: task.weight for task in tasks}


def run(executable, x, **weights):
    vm = relax.VirtualMachine(executable, tvm.cpu())
    return vm["main"](tvm.nd.array(x), *map(tvm.nd.array, weights.values())).numpy()


def test_tasks_are_the_functions_that_relax_build_makes() -> None:
    tasks = ms.relax_integration.extract_tasks(models.Mlp, TARGET)
    assert names_and_weights(tasks) == {
        "transpose": 1, "transpose1": 2, "fused_matmul_add_relu": 1, "fused_matmul1_add_relu": 2,
    }  # fmt: skip
    bound = ms.relax_integration.extract_tasks(
        models.Mlp, Target(TARGET), models.arrays(models.mlp_weights())
    )
    assert names_and_weights(bound) == {"fused_matmul_add_relu": 1, "fused_matmul1_add_relu": 2}
    (task, _) = bound
    assert task.dispatched == [task.mod]
    assert [var.name_hint for var in task.mod.functions] == ["main"]
    assert task.mod["main"].attrs["global_symbol"] == "main"


@I.ir_module
class Calls:
    """The same function under two names, one called by name, one that nobody calls."""

    @T.prim_func
    def inc(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def inc_again(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def unused(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.call_tir(Calls.inc, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_tir(Calls.inc, (a,), out_sinfo=R.Tensor((4,), "float32"))
            c = R.call_dps_packed("inc_again", (b,), R.Tensor((4,), "float32"))
            R.output(c)
        return c


def halves(sch: Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("b"))
    sch.split(i, [2, None])


def test_functions_that_are_the_same_are_one_task() -> None:
    tasks = ms.relax_integration.extract_tasks(Calls, TARGET)
    assert names_and_weights(tasks) == {"inc": 3}
    with pytest.raises(ValueError, match='module_equality "anchor" is not known'):
        ms.relax_integration.extract_tasks(Calls, TARGET, module_equality="anchor")


def test_an_entered_database_schedules_what_it_knows() -> None:
    with ms.Database.create(halves):
        new = relax.transform.MetaScheduleApplyDatabase()(Calls)
    for name in ("inc", "inc_again", "unused"):
        attrs = new[name].attrs
        assert attrs["tir.is_scheduled"]
        assert attrs.get("global_symbol") == Calls[name].attrs.get("global_symbol")
        assert "i_0" in new[name].script()
    assert ms.relax_integration.extract_tasks(new, TARGET) == []
    with ms.Database.create(halves):
        assert relax.transform.MetaScheduleApplyDatabase()(new) is new
        x = np.zeros(4, "float32")
        np.testing.assert_array_equal(run(relax.build(Calls, TARGET), x), np.full(4, 3.0))


def test_what_a_database_does_not_know_stays_and_may_cause_a_warning(tmp_path) -> None:
    with ms.Database.create("memory"):
        assert relax.transform.MetaScheduleApplyDatabase()(Calls) is Calls
        with pytest.warns(UserWarning, match='No tuning record for the function "') as warned:
            relax.transform.MetaScheduleApplyDatabase(enable_warning=True)(Calls)
    assert len(warned) == 3
    assert relax.transform.MetaScheduleApplyDatabase(str(tmp_path))(Calls) is Calls
    with pytest.raises(TVMError, match="write `with database:` around it, or give work_dir"):
        relax.transform.MetaScheduleApplyDatabase()(Calls)


def test_a_record_that_does_not_fit_is_left_out() -> None:
    database = ms.database.MemoryDatabase()
    (task,) = ms.relax_integration.extract_tasks(Calls, TARGET)
    workload = database.commit_workload(task.mod)
    trace = json.dumps([[["GetSBlock", [], ["nowhere", "main"], ["b0"]]], []])
    database.commit_tuning_record(ms.database.TuningRecord(trace, workload, (1.0,), TARGET))
    with database, pytest.warns(UserWarning, match='The record of "inc.* does not fit'):
        assert relax.transform.MetaScheduleApplyDatabase()(Calls) is Calls


def test_a_model_is_tuned_and_computes_the_same(tmp_path) -> None:
    weights = models.mlp_weights()
    params = models.arrays(weights)
    database = ms.relax_integration.tune_relax(
        models.Mlp, params, TARGET, tmp_path, max_trials_global=8, num_trials_per_iter=4, **SMALL
    )
    tasks = ms.relax_integration.extract_tasks(models.Mlp, TARGET, params)
    for task in tasks:
        assert database.query_tuning_record(task.mod) is not None
    x = np.random.default_rng(0).random((1, 48), dtype="float32")
    compiled = ms.relax_integration.compile_relax(database, models.Mlp, TARGET, params, True)
    np.testing.assert_allclose(run(compiled, x), models.mlp_expected(x), rtol=1e-4, atol=1e-5)
    with database:
        built = relax.build(models.Mlp, TARGET, params=params)
        zero = relax.get_pipeline("zero")(relax.transform.BindParams("main", params)(models.Mlp))
    np.testing.assert_allclose(run(built, x), models.mlp_expected(x), rtol=1e-4, atol=1e-5)
    assert zero["fused_matmul_add_relu"].attrs["tir.is_scheduled"]
    # Nothing is left of it outside of the `with`.
    plain = relax.get_pipeline("default")(relax.transform.BindParams("main", params)(models.Mlp))
    assert not any("tir.is_scheduled" in func.attrs for func in plain.functions.values())


def test_options_have_the_names_of_today_and_others_are_refused() -> None:
    tune = ms.relax_integration.tune_relax
    options = {
        "num_trials_per_iter": 2, "builder": "local", "database": "memory", "cost_model": "random",
        "measure_callbacks": "default", "task_scheduler": "round-robin", "strategy": "replay-trace",
        "module_equality": "structural", **SMALL,
    }  # fmt: skip
    database = tune(models.Mlp, None, TARGET, None, 4, 2, ["fused_matmul_"], **options)
    assert len({record.workload.shash for record in database.get_all_tuning_records()}) == 1
    with pytest.raises(
        TypeError, match=r'no option "num_trials"; there are .* num_trials_per_iter'
    ):
        tune(Calls, None, TARGET, None, 4, num_trials=2)
    with pytest.raises(TypeError, match='no option "task_weights"'):
        tune(Calls, None, TARGET, None, 4, task_weights=[1.0])
    with pytest.raises(ValueError, match='Unknown runner "rpc"'):
        tune(Calls, None, TARGET, None, 4, runner="rpc")
    with pytest.warns(UserWarning, match="post_optimization: the best programs are timed once"):
        tune(Calls, None, TARGET, None, 2, post_optimization=True, num_trials_per_iter=2, **SMALL)


def test_tasks_may_have_spaces_of_their_own() -> None:
    seen = []
    special = {"inc": halves}
    database = ms.relax_integration.tune_relax(
        Calls, None, TARGET, None, 2, num_tuning_cores=1, **{**SMALL, "space": None},
        special_space=special, measure_callbacks=lambda scheduler, _: seen.append(scheduler.tasks),
    )  # fmt: skip
    (task,) = seen[-1]
    assert task.context.num_threads == 1
    (record,) = database.get_records_of(database.commit_workload(task.context.mod))
    assert "Split" in record.trace_text
    with pytest.raises(ValueError, match="There are no tasks to tune"):
        ms.relax_integration.tune_relax(
            Calls, None, TARGET, None, 2, **SMALL, special_space={"inc": None}
        )


def test_the_tuning_passes_leave_records(tmp_path, monkeypatch) -> None:
    from mlcweb.meta_schedule import relax_integration as tuning_passes

    for name in ("tune_relax", "tune_tir"):
        whole = getattr(ms.relax_integration if name == "tune_relax" else ms.tir_integration, name)
        monkeypatch.setattr(tuning_passes, name, partial(whole, **SMALL))
    params = models.arrays(models.mlp_weights())
    with Target(TARGET):
        tuned = tvm.transform.Sequential([
            relax.transform.BindParams("main", params),
            relax.transform.MetaScheduleTuneIRMod({}, str(tmp_path / "a"), 4, op_names=["matmul1"]),
            relax.get_pipeline("zero"),
            relax.transform.MetaScheduleApplyDatabase(str(tmp_path / "a")),
        ])(models.Mlp)  # fmt: skip
        assert relax.transform.MetaScheduleTuneTIR(str(tmp_path / "b"), 3)(Calls) is Calls
    scheduled = [v.name_hint for v, f in tuned.functions.items() if "tir.is_scheduled" in f.attrs]
    assert scheduled == ["fused_matmul1_add_relu"]
    assert ms.database.JSONDatabase(work_dir=tmp_path / "b").has_workload(
        ms.tune_context.normalized(Calls["inc"])
    )
    with pytest.raises(ValueError, match="Target context required"):
        relax.transform.MetaScheduleTuneTIR(str(tmp_path), 3)(Calls)


def test_the_tuning_pipeline_tunes_and_applies(tmp_path, monkeypatch) -> None:
    from mlcweb.meta_schedule import relax_integration as tuning_passes

    monkeypatch.setattr(
        tuning_passes, "tune_relax", partial(ms.relax_integration.tune_relax, **SMALL)
    )
    weights = models.mlp_weights()
    bound = relax.transform.BindParams("main", models.arrays(weights))(models.Mlp)
    options = {"target": TARGET, "work_dir": str(tmp_path)}
    tuned = relax.get_pipeline("static_shape_tuning", total_trials=4, **options)(bound)
    names = [v.name_hint for v, f in tuned.functions.items() if "tir.is_scheduled" in f.attrs]
    assert "fused_matmul_add_relu" in names
    x = np.random.default_rng(0).random((1, 48), dtype="float32")
    result = run(relax.build(tuned, TARGET), x)
    np.testing.assert_allclose(result, models.mlp_expected(x), rtol=1e-4, atol=1e-5)
    again = relax.get_pipeline("static_shape_tuning", total_trials=0, **options)(bound)
    assert_structural_equal(again, tuned)


@pytest.mark.parametrize("name", ["dense", "conv"])
def test_a_search_lays_constant_weights_out_ahead_of_calls(name) -> None:
    plain, x, w, expected = models.one_layer(name)
    mod = relax.transform.BindParams("main", {"w": w})(plain)
    (task,) = ms.relax_integration.extract_tasks(mod, TARGET)
    assert 1 in task.mod["main"].attrs["layout_free_buffers"]
    (on_gpu,) = ms.relax_integration.extract_tasks(mod, "cuda")
    assert "layout_free_buffers" not in on_gpu.mod["main"].attrs
    # The default schedule, which may be the fastest, is no candidate here.
    contexts, weights = ms.relax_integration.extracted_tasks_to_tune_contexts(
        [replace(task, has_default=False)], None, seed=1
    )
    database = MemoryDatabase()
    ms.tune_tasks(
        tasks=contexts, task_weights=weights, work_dir=None, max_trials_global=4,
        database=database, runner=SMALL["runner"],
    )  # fmt: skip
    (best,) = database.get_top_k(database.commit_workload(task.mod), 1)
    assert "layout_rewrite_preproc" in best.schedule().mod.script()
    executable = ms.relax_integration.compile_relax(database, mod, TARGET, None)
    # The one kernel takes the weights as they are laid out, and copies nothing of them.
    (kernel,) = executable.kernel_names
    assert kernel == task.task_name + "_prepacked"
    scheduled = executable.module[kernel]
    assert "layout_rewrite_preproc" not in scheduled.script()
    laid_out = scheduled.parameter_buffers[1].shape
    assert np.prod([int(extent) for extent in laid_out]) == w.size
    np.testing.assert_allclose(run(executable, x), expected, rtol=1e-4, atol=1e-4)


def test_records_of_functions_without_free_layouts_are_applied() -> None:
    """As searches left them that knew of no constants."""
    plain, x, w, expected = models.one_layer("dense")
    mod = relax.transform.BindParams("main", {"w": w})(plain)
    ((name, func),) = prim_funcs(fused(mod)).items()
    assert "layout_free_buffers" not in func.attrs
    program = program_of(func)
    sch = Schedule(program)
    sch.parallel(sch.get_loops("T_matmul")[0])
    database = MemoryDatabase()
    workload = database.commit_workload(program)
    database.commit_tuning_record(TuningRecord(sch.trace, workload, [1.0], Target(TARGET), []))
    executable = ms.relax_integration.compile_relax(database, mod, TARGET, None)
    assert executable.kernel_names == [name]
    assert "T.parallel" in executable.module[name].script()
    np.testing.assert_allclose(run(executable, x), expected, rtol=1e-4, atol=1e-4)


def test_the_tuning_pipeline_prepacks_weights(tmp_path, monkeypatch) -> None:
    from mlcweb.meta_schedule import relax_integration as tuning_passes

    monkeypatch.setattr(
        tuning_passes, "tune_relax", partial(ms.relax_integration.tune_relax, **SMALL)
    )
    mod, x, w, expected = models.one_layer("dense")
    tuned = relax.get_pipeline(
        "static_shape_tuning", total_trials=4, cpu_weight_prepack=True, target=TARGET,
        work_dir=str(tmp_path),
    )(mod)  # fmt: skip
    names = {var.name_hint for var in tuned.functions}
    assert "main_transform_params" in names
    assert any(name.endswith("_prepacked") for name in names)
    vm = relax.VirtualMachine(relax.build(tuned, TARGET), tvm.cpu())
    weights = vm["main_transform_params"]([tvm.nd.array(w)])
    got = vm["main"](tvm.nd.array(x), *weights)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-4)


@I.ir_module
class Symbolic:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.matmul(w, w)
            R.output(y, z)
        return y, z


def test_functions_of_symbolic_extents_are_left_out_with_a_warning() -> None:
    tasks = ms.relax_integration.extract_tasks(Symbolic, TARGET)
    with pytest.warns(UserWarning, match='"matmul" is not tuned: The buffer "x" has no constant'):
        contexts, weights = ms.relax_integration.extracted_tasks_to_tune_contexts(tasks, None)
    assert [context.task_name for context in contexts] == ["matmul1"]
    assert weights == [1.0]


@pytest.mark.thorough
def test_a_convolutional_network_is_tuned_and_computes_the_same() -> None:
    weights = models.cnn_weights()
    x = np.random.default_rng(0).random((1, 3, 16, 16), dtype="float32")
    before = run(relax.build(models.Cnn, TARGET), x, **weights)
    database = ms.relax_integration.tune_relax(
        models.Cnn, None, TARGET, None, 15, num_trials_per_iter=3, **SMALL
    )
    assert len(database) >= 12
    after = run(
        ms.relax_integration.compile_relax(database, models.Cnn, TARGET, None), x, **weights
    )
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


ORACLE = """
import sys, json
import tvm
from tvm import relax
from tvm.s_tir import meta_schedule as ms
model = tvm.script.from_source(sys.stdin.read())
target = tvm.target.Target({"kind": "llvm", "num-cores": 1})
lowered = relax.get_pipeline("zero")(model)
tasks = ms.relax_integration.extract_tasks(lowered, target)
database = ms.database.JSONDatabase(work_dir=sys.argv[1])
with target, database:
    new = relax.get_pipeline("zero")(model)
scheduled = [v.name_hint for v, f in new.functions.items() if "tirx.is_scheduled" in f.attrs]
print(json.dumps([[[t.task_name, t.weight, t.mod.script()] for t in tasks], scheduled]))
"""


@pytest.mark.oracle
@pytest.mark.thorough
def test_tvm_has_the_same_tasks_and_applies_our_records(oracle_python, tmp_path) -> None:
    database = ms.relax_integration.tune_relax(
        models.Mlp, None, TARGET, tmp_path / "ours", 4, op_names=["matmul1"], **SMALL
    )
    assert len(database)
    script = tmp_path / "ask.py"
    script.write_text(ORACLE)
    done = subprocess.run(
        [oracle_python, str(script), str(tmp_path / "ours")],
        input=models.Mlp.script(dialect="s_tir"), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs, scheduled = json.loads(done.stdout.splitlines()[-1])
    ours = {task.task_name: task for task in ms.relax_integration.extract_tasks(models.Mlp, TARGET)}
    assert {name: weight for name, weight, _ in theirs} == names_and_weights(ours.values())
    for name, _, source in theirs:
        module = from_source(source)
        func = module["main"]
        assert isinstance(func, PrimFunc)
        assert structural_equal(module, ours[name].mod), name
    assert scheduled == ["fused_matmul1_add_relu"]
    assert_structural_equal(ours["transpose"].mod, ours["transpose"].dispatched[0])


def convolution_with_constant_weights() -> tvm.IRModule:
    """The model that relax.build packs the weights of."""
    weights = np.random.default_rng(0).standard_normal((32, 16, 3, 3)).astype("float32")
    x = relax.Var("x", relax.TensorStructInfo((1, 16, 7, 7), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            value = relax.op.nn.conv2d(x, relax.const(weights), padding=1)
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


class FirstTakes(ThreadRunner):
    """Checks programs for one core. The first takes so many seconds, each other one takes 1."""

    def __init__(self, seconds: float, workload: TrialInputs) -> None:
        super().__init__(workload, Timing(batches=1, min_ms=0.0))
        self.seconds = seconds
        self.first: Artifact | None = None

    async def build(self, module: tvm.IRModule, target: str) -> Artifact:
        assert "T.parallel" not in module.script()
        return await super().build(module, target)

    async def measure(self, artifact: Artifact) -> Seconds:
        await super().measure(artifact)
        self.first = self.first or artifact
        return (self.seconds if artifact == self.first else 1.0,)


@pytest.mark.parametrize("seconds", [0.5, 1.01, 2.0])
def test_the_default_schedule_is_a_candidate(seconds: float) -> None:
    mod = convolution_with_constant_weights()
    (task,) = ms.relax_integration.extract_tasks(mod, TARGET)
    database = ms.relax_integration.tune_relax(
        mod, None, TARGET, None, 4, num_trials_per_iter=3, seed=1,
        runner=partial(FirstTakes, seconds),
    )  # fmt: skip
    records = database.get_all_tuning_records()
    assert (records[0].trace.insts, records[0].seconds) == ([], seconds)
    assert len({record.trace_text for record in records}) == 4
    for record in records:
        assert record.seconds == (1.0 if record.trace.insts else seconds)
    executable = ms.relax_integration.compile_relax(database, mod, TARGET, None)
    untuned = relax.build(mod, TARGET)
    assert structural_equal(executable.module, untuned.module) == (seconds < 1.02)
    x = tvm.nd.array(np.ones((1, 16, 7, 7), "float32"))
    plain = relax.VirtualMachine(relax.build(mod, "interpreter"), tvm.cpu())["main"](x)
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](x)
    np.testing.assert_allclose(got.numpy(), plain.numpy(), rtol=1e-4, atol=1e-4)
    # A search that goes on does not measure it again, and draws no schedule from it.
    ms.relax_integration.tune_relax(
        mod, None, TARGET, None, 2, seed=2, database=database, runner=partial(FirstTakes, 0.25)
    )
    again = {record.seconds: record for record in database.get_all_tuning_records()}
    assert again[0.25].trace.insts and again[seconds].trace.insts == []


def test_functions_without_default_schedules_have_no_such_candidate() -> None:
    (small, *_) = ms.relax_integration.extract_tasks(models.Mlp, TARGET)
    (on_gpu,) = ms.relax_integration.extract_tasks(convolution_with_constant_weights(), "cuda")
    (one_for_many,) = ms.relax_integration.extract_tasks(
        convolution_with_constant_weights(), TARGET, module_equality="anchor-block"
    )
    assert not (small.has_default or on_gpu.has_default or one_for_many.has_default)
