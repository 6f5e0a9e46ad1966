"""A model from its file to its results: the functions of tvmc, and the commands."""

import numpy as np
import pytest

from mlcweb import cli
from mlcweb.driver import tvmc
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
