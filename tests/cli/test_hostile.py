"""Files that are not what a command takes them for: one sentence, and no traceback of ours."""

import json
import re

import numpy as np
import pytest

from mlcweb.cli import main
from tests.relax.frontend.onnx_mutants import build, floats


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(build("Add", [4], floats(4)).SerializeToString())
    return file


def said(capsys, *arguments: object) -> str:
    """What a command says that is refused."""
    assert main([str(argument) for argument in arguments]) == 1
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return text


def test_a_program_in_another_encoding(tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_bytes(b"# -*- coding: latin-1 -*-\nprint('\xe9')\n")
    assert main(["run", str(file)]) == 0
    assert capsys.readouterr().out == "é\n"
    file.write_bytes(b"print('\xff')\n")
    assert "SyntaxError" in said(capsys, "run", file)


@pytest.mark.parametrize("content", [b"junk", b"PK\3\4junk", b"", {"in0": [object()]}, [1.0, 2.0]])
def test_inputs_that_are_no_arrays_by_name(tmp_path, capsys, model, content):
    file = tmp_path / "inputs.npz"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif isinstance(content, list):
        with file.open("wb") as opened:
            np.save(opened, content)
    else:
        np.savez(file, in0=np.array(content["in0"], dtype=object))
    assert f"{file} holds no arrays by name" in said(capsys, "run", model, "--inputs", file)


def test_inputs_that_are_no_numbers(tmp_path, capsys, model):
    np.savez(tmp_path / "inputs.npz", in0=np.array(list("abcd")))
    assert "could not convert" in said(capsys, "run", model, "--inputs", tmp_path / "inputs.npz")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--target", "nothing", 'Target kind "nothing" is not defined'),
        ("--outputs", "{}/none/outputs.npz", "No such file"),
        ("--stages", "{}/model.onnx/stages", "Not a directory"),
        ("--tuning-records", "{}/model.onnx", "Not a directory"),
    ],
)
def test_options_that_cannot_be_followed(tmp_path, capsys, model, option, value, message):
    assert message in said(capsys, "run", model, option, value.format(tmp_path))


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("model.onnx/x", "Not a directory"),
        ("missing/x", "No such file or directory"),
        ("", "Is a directory"),
    ],
)
@pytest.mark.parametrize("command", ["search --json", "run --outputs"])
def test_a_file_that_cannot_be_written_is_said_before_the_work(
    tmp_path, capsys, model, command, where, reason
):
    name, option = command.split()
    # This file is no program and no model: what is said is not about it.
    junk = tmp_path / ("junk.py" if name == "search" else "junk.onnx")
    junk.write_text("junk")
    assert said(capsys, name, junk, option, tmp_path / where).endswith(f": {reason}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [junk.name, "model.onnx"]


@pytest.mark.parametrize("where", ["model.onnx", "model.onnx/x/y", "loop/x"])
@pytest.mark.parametrize(
    "command",
    ["search --work-dir", "tune --output", "compile --stages", "run --stages", "records merge"],
)
def test_a_folder_that_cannot_be_made_is_said_before_the_work(
    tmp_path, capsys, model, command, where
):
    (tmp_path / "loop").symlink_to("loop")
    name, option = command.split()
    junk = tmp_path / ("junk.py" if name == "search" else "junk.onnx")
    junk.write_text("junk")
    folder = tmp_path / where
    arguments = [name, option, folder, junk] if name == "records" else [name, junk, option, folder]
    assert said(capsys, *arguments).startswith(f"{tmp_path / where.split('/')[0]}: N")


@pytest.mark.parametrize(
    "arguments",
    [
        *(f"search FILE {option} {value}" for option in ("--seconds", "--timeout")
          for value in ("nan", "inf", "-1", "1e999", "soon")),
        "search FILE --timeout 0",
        *(f"serve --port {port}" for port in ("65536", "-1", "99999999999", "1.5")),
        "search FILE --trials 0", "search FILE --workers -1", "search FILE --trials nan",
    ],
)  # fmt: skip
def test_numbers_that_options_do_not_take(capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    assert re.search(r"error: argument --\w+: invalid \w+ value: '", capsys.readouterr().err)


def test_outputs_that_are_no_files_are_written(tmp_path, capsys, program):
    search = ["search", program, "--function", "sampled", "--trials", "1", "--workers", "1"]
    assert main([*map(str, search), "--json", "/dev/stdout"]) == 0


def test_records_that_are_no_folder(tmp_path, capsys, model):
    assert "Not a directory" in said(capsys, "records", "show", model)
    (tmp_path / "records" / "database_workload.json").mkdir(parents=True)
    (tmp_path / "records" / "database_tuning_record.json").mkdir()
    assert "Is a directory" in said(capsys, "records", "show", tmp_path / "records")


@pytest.mark.parametrize(
    ("old", "new"), [("Split", "Splat"), ('"B"', '"C"'), ('"main"', '"other"')]
)
def test_records_whose_steps_are_damaged_are_shown_without_them(
    tmp_path, capsys, program, old, new
):
    records = tmp_path / "records"
    search = ["search", program, "--function", "sampled", "--trials", "1", "--workers", "1"]
    assert main([*map(str, search), "--work-dir", str(records)]) == 0
    file = records / "database_tuning_record.json"
    text = file.read_text()
    assert old in text and json.loads(text.splitlines()[0])
    file.write_text(text.replace(old, new))
    capsys.readouterr()
    assert main(["records", "show", str(records), "--trace"]) == 0
    assert "its steps are damaged: " in capsys.readouterr().out
