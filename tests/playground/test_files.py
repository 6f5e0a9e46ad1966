"""A program of several files."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import cell, files
from mlcweb.playground.protocol.program import ProgramFile

MODULE = """
import mlcweb as tvm
from mlcweb.script import tir as T


@T.prim_func
def doubled(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
"""


@pytest.fixture(autouse=True)
def no_files_left() -> Iterator[None]:
    yield
    files.place([])
    sys.modules.pop("kernels_of_test", None)


def run(source: str) -> Any:
    return cell.execute(source)


def test_another_file_is_imported_with_its_decorated_functions() -> None:
    files.place([ProgramFile("kernels_of_test.py", MODULE)])
    result = run("from kernels_of_test import doubled\nprint(doubled.script())")
    assert result.error is None


def test_an_edited_file_is_imported_anew(capsys: pytest.CaptureFixture[str]) -> None:
    for value in (1, 2):
        files.place([ProgramFile("kernels_of_test.py", f"value = {value}")])
        assert run("import kernels_of_test\nprint(kernels_of_test.value)").ok
    assert capsys.readouterr().out.split() == ["1", "2"]


def test_a_removed_file_is_gone() -> None:
    files.place([ProgramFile("kernels_of_test.py", "")])
    files.place([])
    assert run("import kernels_of_test").error.kind == "ModuleNotFoundError"


@pytest.mark.parametrize("name", ["../evil.py", "a/b.py", "", ".."])
def test_a_name_with_a_folder_is_refused(name: str) -> None:
    with pytest.raises(TVMError, match="no name of a file"):
        files.place([ProgramFile(name, "")])
