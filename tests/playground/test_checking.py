"""What is told about a program that is being written, without running it."""

from pathlib import Path

import pytest

from mlcweb.playground import cell, checking, completion
from tests.playground.conftest import PROGRAM


def test_a_right_program_is_not_complained_about() -> None:
    assert checking.check("program", PROGRAM) == []


@pytest.mark.parametrize(
    ("right", "wrong", "line", "message"),
    [
        ("T.grid(16, 16, 16):", "T.grid(16, 16, 16:", 14, "SyntaxError"),
        ("T.grid(", "T.gird(", 14, "T has no gird; did you mean grid?"),
        ("A[vi, vk] *", "A[vi, vk, vk] *", 19, 'Buffer "A" has 2 dimensions'),
        ("A[vi, vk] *", "unknown[vi, vk] *", 19, '"unknown" is not defined'),
    ],
)
def test_errors_are_found_at_their_place(right: str, wrong: str, line: int, message: str) -> None:
    (mark,) = checking.check("program", PROGRAM.replace(right, wrong))
    assert mark.line == line
    assert message in mark.message


def test_nothing_of_the_program_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert checking.check("program", "print('run')\nimport os\nx = open('/nothing')") == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "value",
    [
        "sum([print('run') or 1 for _ in range(3)])",
        "print('run') or 1",
        "np.lib.os.system('touch run')",
        "tvm.script.parser.compile_time.builtins.print('run')",
        "int(f\"{print('run')}\")",
        "(lambda: print('run'))()",
    ],
)
def test_nothing_of_a_script_is_run(
    value: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = PROGRAM.replace("A[vi, vk] *", f"({value}) *")
    assert source != PROGRAM
    checking.check("program", "import numpy as np\nimport tvm\n" + source)
    assert capsys.readouterr().out == ""
    assert not list(tmp_path.iterdir())


def test_names_of_imports_constants_and_the_last_run_are_known() -> None:
    source = PROGRAM.replace("(16, 16), ", "(n, m), ").replace("(16, 16, 16)", "(n, m, k)")
    assert "n" in checking.check("program", source)[0].message
    assert checking.check("program", "n, m = 16, 16\nk = 16\n" + source) == []
    cell.execute("n = m = k = int('16')")
    assert checking.check("program", source) == []


def test_names_that_come_only_with_the_run_are_not_complained_about() -> None:
    cell.execute("")
    source = PROGRAM.replace("T.grid(16, 16, 16)", "T.grid(size, 16, 16)")
    assert checking.check("program", "size = int('16')\n" + source) == []
    assert '"size" is not defined' in checking.check("program", source)[0].message


def test_magics_of_notebooks_are_let_through() -> None:
    assert checking.check("program", "%matplotlib inline\nx = 1") == []


def test_live_names_after_a_run() -> None:
    cell.execute(PROGRAM + "sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule))")
    names = completion.live("program")
    assert names.variables["sch"] == "Schedule"
    assert names.variables["MyModule"] == "IRModule"
    assert names.functions == ["main"]
    assert set(names.blocks) == {"root", "C", "C_init", "C_update"}
