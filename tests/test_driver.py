"""A model from its file to its results: the functions of tvmc, and the commands."""

from functools import partial

import numpy as np
import pytest

from mlcweb import cli
from mlcweb.driver import tvmc
from mlcweb.meta_schedule.runner import ThreadRunner, Timing
from tests.relax.frontend.test_onnx import W, dense

STAGES = ["import", "LegalizeOps", "FoldConstant", "AnnotateTIROpPattern", "FuseOps", "FuseTIR",
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


def test_the_command_compile(model, tmp_path, capsys):
    folder = tmp_path / "stages"
    assert cli.main(["compile", str(model), "--shape", "x=3,2", "--stages", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert all(stage in printed for stage in STAGES)
    assert sorted(path.name for path in folder.iterdir())[0] == "0_import.py"
    assert "R.Tensor((3, 2)" in (folder / "0_import.py").read_text()


def test_the_command_run(model, tmp_path, capsys):
    x, out = tmp_path / "x.npz", tmp_path / "y.npz"
    np.savez(x, x=np.ones((4, 2), "float32"))
    assert cli.main(["run", str(model), "--inputs", str(x), "--outputs", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out)["output_0"], np.ones((4, 2), "float32") @ W)
    assert "fused_matmul_relu" in capsys.readouterr().out
    assert cli.main(["run", str(tmp_path / "other.onnx")]) == 1
    assert "other.onnx" in capsys.readouterr().err


SMALL = {"runner": partial(ThreadRunner, timing=Timing(2, 0.02)), "seed": 1, "trials": 3}


def test_tuned_models_compute_the_same(model, tmp_path):
    database = tvmc.tune(tvmc.load(model), tuning_records=tmp_path / "records", **SMALL)
    assert len(database) >= 2
    x = np.array([[1, -2], [3, 4], [0, 0], [-1, 1]], "float32")
    for records in (database, tmp_path / "records"):
        package = tvmc.compile(tvmc.load(model), tuning_records=records)
        assert [stage.name for stage in package.stages] == [*STAGES, "ApplyDatabase"]
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


@pytest.mark.slow
def test_the_commands_tune_and_records(model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--trials", "3", "--seed", "1", "--workers", "1"]
    assert cli.main(["tune", str(model), *options]) == 0
    printed = capsys.readouterr().out
    assert "records are in dense_records after" in printed
    assert f"mlcweb run {model} --tuning-records dense_records" in printed
    assert cli.main(["run", str(model), "--tuning-records", "dense_records"]) == 0
    assert "ApplyDatabase" in capsys.readouterr().out

    assert cli.main(["records", "show", "dense_records", "--trace"]) == 0
    shown = capsys.readouterr().out
    assert "schedules  (float32[4, 2], float32[2, 3], float32[4, 3])" in shown
    assert "    sch.enter_postproc()" in shown
    assert cli.main(["records", "merge", "both", "dense_records"]) == 0
    assert "0 records" not in capsys.readouterr().out
    assert cli.main(["records", "merge", "both", "dense_records"]) == 0
    assert capsys.readouterr().out.startswith("0 records are new in both")
    assert cli.main(["records", "prune", "both", "best"]) == 0
    assert capsys.readouterr().out == "1 records are in best\n"
    assert cli.main(["compile", str(model), "--tuning-records", "best"]) == 0
    assert "ApplyDatabase" in capsys.readouterr().out

    assert cli.main(["records", "show", "nothing"]) == 1
    assert "nothing holds no tuning records" in capsys.readouterr().err
    assert cli.main(["tune", str(model), "--tasks", "conv2d"]) == 1
    assert "There are no tasks to tune" in capsys.readouterr().err
