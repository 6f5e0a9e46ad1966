"""Programs that are compared by their anchor blocks, and steps of one for another. What is expected
is what TVM 0.27 gave, in anchors.json."""

import json
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import meta_schedule as ms
from mlcweb import relax
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.meta_schedule.database import JSONDatabase, MemoryDatabase, TuningRecord
from mlcweb.meta_schedule.trace_apply import schedule_using_anchor_trace
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.meta_schedule.anchors import PROGRAMS

ANSWERS = json.loads(Path(__file__).with_name("anchors.json").read_text())
MODULES = {name: IRModule({"main": from_source(text)}) for name, text in PROGRAMS.items()}
ONE_CORE = {"kind": "llvm", "num-cores": 1}


@pytest.mark.parametrize("equality", ["structural", "ignore-tensor", "anchor-block"])
def test_programs_are_the_same_that_are_for_tvm(equality: str) -> None:
    for name, module in MODULES.items():
        database = MemoryDatabase(module_equality=equality)
        database.commit_workload(module)
        same = [other for other, each in MODULES.items() if database.has_workload(each)]
        assert same == ANSWERS["equal"][equality][name]


def test_programs_without_a_reduction_are_compared_as_a_whole() -> None:
    def elementwise(factor: int) -> IRModule:
        return IRModule({"main": from_source(
            "@T.prim_func\n"
            'def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
            '    for i in range(4):\n        with T.block("B"):\n'
            "            vi = T.axis.spatial(4, i)\n"
            f"            B[vi] = A[vi] * T.float32({factor})"
        )})  # fmt: skip

    database = MemoryDatabase(module_equality="anchor-block")
    database.commit_workload(elementwise(2))
    assert database.has_workload(elementwise(2))
    assert not database.has_workload(elementwise(3))


def tile(sch: Schedule) -> None:
    i, j, k = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [4, 4])
    j_0, j_1 = sch.split(j, [2, 8])
    sch.reorder(i_0, j_0, k, i_1, j_1)
    sch.vectorize(j_1)
    sch.parallel(i_0)


def tile_all(sch: Schedule) -> None:
    tile(sch)
    sch.reverse_compute_at("D", sch.get_loops("C")[1])


def cached(sch: Schedule) -> None:
    copy = sch.cache_write("C", 0, "global")
    tile(sch)
    sch.reverse_compute_at(copy, sch.get_loops("C")[1])


def copied(sch: Schedule) -> None:
    copy = sch.cache_write("C", 0, "global")
    tile(sch)
    sch.vectorize(sch.get_loops(copy)[1])


def bind(sch: Schedule) -> None:
    i, j, _ = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")


STEPS = {"tile": (tile, "plain"), "tile_all": (tile_all, "relu"), "cached": (cached, "plain"),
         "copied": (copied, "plain")}  # fmt: skip


def scheduled(name: str) -> Schedule:
    steps, program = STEPS[name]
    sch = Schedule(MODULES[program])
    steps(sch)
    return sch


@pytest.mark.parametrize("case", list(ANSWERS["scheduled"]))
def test_steps_of_one_program_for_another(case: str) -> None:
    name = max((name for name in STEPS if case.startswith(name)), key=len)
    program = case.removeprefix(f"{name}_")
    sch = Schedule(MODULES[program])
    schedule_using_anchor_trace(sch, scheduled(name).trace, ONE_CORE)
    assert_structural_equal(sch.mod, from_source(ANSWERS["scheduled"][case]))


def test_on_a_gpu_what_is_left_gets_threads() -> None:
    start = Schedule(MODULES["plain"])
    bind(start)
    sch = Schedule(MODULES["add_relu"], seed=1)
    schedule_using_anchor_trace(sch, start.trace, "nvidia/tesla-p100")
    a, b = (np.random.default_rng(n).integers(-4, 5, (16, 16)).astype("float32") for n in (1, 2))
    result = tvm.nd.empty((16, 16))
    tvm.build(sch.mod, target="simulated")["main"](tvm.nd.array(a), tvm.nd.array(b), result)
    np.testing.assert_array_equal(result.numpy(), np.maximum(a @ b + 1, 0))


def test_a_database_applies_the_record_of_another_program(tmp_path: Path) -> None:
    for again in range(2):
        database = JSONDatabase(work_dir=tmp_path, module_equality="anchor-block")
        workload = database.commit_workload(MODULES["plain"])
        if not again:
            trace = scheduled("tile").trace
            database.commit_tuning_record(TuningRecord(trace, workload, [1e-3], "llvm"))
        scheduled_relu = database.query_ir_module(MODULES["relu"], tvm.target.Target(ONE_CORE))
        expected = from_source(ANSWERS["scheduled"]["tile_relu"])
        assert_structural_equal(scheduled_relu, expected)
        assert_structural_equal(database.query_ir_module(MODULES["plain"]), scheduled("tile").mod)
        assert database.query_ir_module(MODULES["larger"]) is None


GRAPH = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((16, 16), "float32"), w: R.Tensor((16, 16), "float32"),
        b: R.Tensor((16,), "float32"),
    ):
        with R.dataflow():
            p = R.nn.relu(R.add(R.matmul(x, w), b))
            q = R.nn.relu(R.matmul(p, w))
            r = R.add(R.matmul(q, w), b)
            s = R.nn.softmax(r)
            R.output(s)
        return s
"""


def test_functions_with_one_product_are_one_task() -> None:
    """TVM chooses the same function; its weight is 4, as it counts one twice."""
    module = from_source(GRAPH)
    tasks = ms.relax_integration.extract_tasks(module, ONE_CORE, module_equality="anchor-block")
    assert {task.task_name: task.weight for task in tasks} == {
        "fused_matmul_relu": 3, "softmax": 1
    }  # fmt: skip
    alone = ms.relax_integration.extract_tasks(module, ONE_CORE)
    assert sorted(task.weight for task in alone) == [1] * 4


def test_a_model_is_tuned_by_its_products(tmp_path: Path) -> None:
    module = from_source(GRAPH)
    database = ms.relax_integration.tune_relax(
        module, {}, ONE_CORE, tmp_path, max_trials_global=4, num_trials_per_iter=2,
        module_equality="anchor-block", seed=1, op_names=["matmul"],
    )  # fmt: skip
    with database:
        tuned = relax.transform.MetaScheduleApplyDatabase()(relax.get_pipeline("zero")(module))
    names = {v.name_hint for v, func in tuned.functions.items() if "tir.is_scheduled" in func.attrs}
    assert names == {"fused_matmul_relu", "fused_matmul_add", "fused_matmul_add_relu"}
    arrays = [np.random.default_rng(n).random(s, "float32") for n, s in enumerate([(16, 16)] * 2)]
    arrays.append(np.arange(16, dtype="float32"))
    results = []
    for each in (module, tuned):
        vm = relax.VirtualMachine(relax.build(each, "llvm"), tvm.cpu())
        results.append(vm["main"](*map(tvm.nd.array, arrays)).numpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-6)
