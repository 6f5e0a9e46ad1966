"""A model from its file to its results: the functions of tvmc."""

from functools import partial

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.driver import tvmc
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.script import relax as R
from tests.relax.frontend.test_onnx import W, dense

STAGES = ["import", "LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR",
          "DeadCodeElimination"]  # fmt: skip


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense())
    return path


def test_every_stage_is_kept(model):
    package = tvmc.compile(tvmc.load(model))
    assert [stage.name for stage in package.stages] == STAGES
    assert "R.matmul(x" in package.stages[0].mod.script()
    assert "R.call_tir(cls.matmul, (x" in package.stages[1].mod.script()
    assert "fused_matmul_relu" in package.stages[-1].mod.script()
    assert str(package).splitlines()[-1].startswith("build for llvm")


def test_operators_are_lowered_for_the_target():
    x = relax.Var("x", R.Tensor((2, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.argsort(x)))
    package = tvmc.compile(builder.get(), "webgpu")
    assert "rank" in package.stages[-1].mod.script()


def test_results_and_times(model):
    x = np.array([[1, -2], [3, 4], [0, 0], [-1, 1]], "float32")
    result = tvmc.run(tvmc.compile(tvmc.load(model)), inputs={"x": x})
    np.testing.assert_array_equal(result.get_output("output_0"), np.maximum(x @ W, 0))
    assert "fused_matmul_relu" in str(result)


def test_other_shapes_and_inputs(model):
    package = tvmc.compile(tvmc.load(model, shape_dict={"x": (2, 2)}))
    result = tvmc.run(package, fill_mode="ones", profile=False)
    np.testing.assert_array_equal(result.outputs["output_0"], np.ones((2, 2), "float32") @ W)
    with pytest.raises(tvmc.TVMCException, match='no input "z"; it has x'):
        tvmc.run(package, inputs={"z": 1})
    with pytest.raises(tvmc.TVMCException, match='format "pb" is not supported'):
        tvmc.load("model.pb")


SMALL = {"runner": partial(ThreadRunner, timing=Timing(2, 0.02)), "seed": 1, "trials": 3}


def test_tuned_models_compute_the_same(model, tmp_path):
    database = tvmc.tune(tvmc.load(model), tuning_records=tmp_path / "records", **SMALL)
    assert len(database) >= 2
    x = np.array([[1, -2], [3, 4], [0, 0], [-1, 1]], "float32")
    for records in (database, tmp_path / "records"):
        package = tvmc.compile(tvmc.load(model), tuning_records=records)
        assert [stage.name for stage in package.stages] == [*STAGES, "MetaScheduleApplyDatabase"]
        assert "tir.is_scheduled" in package.stages[-1].mod.script()
        result = tvmc.run(package, inputs={"x": x})
        np.testing.assert_array_equal(result.get_output("output_0"), np.maximum(x @ W, 0))


def test_earlier_records_can_be_begun_with(model, tmp_path):
    first = tvmc.tune(tvmc.load(model), tuning_records=tmp_path / "first", **SMALL)
    second = tvmc.tune(tvmc.load(model), prior_records=tmp_path / "first", **{**SMALL, "trials": 0})
    standing = [record.as_json() for record in first.get_standing_records()]
    assert [record.as_json() for record in second.get_all_tuning_records()] == standing
    with pytest.raises(tvmc.TVMCException, match="nothing holds no tuning records"):
        tvmc.tune(tvmc.load(model), prior_records=tmp_path / "nothing", **SMALL)
    with pytest.raises(ValueError, match="There are no tasks to tune"):
        tvmc.tune(tvmc.load(model), tasks=["conv2d"], **SMALL)
