"""The commands on models: `mlcweb compile`, `run`, `tune` and `records`."""

import numpy as np
import pytest

from mlcweb import cli
from tests.relax.frontend.test_onnx import W, dense
from tests.test_driver import STAGES


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense())
    return path


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
