"""A program, and the command line as a user types it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlcweb import compat

ROOT = Path(__file__).parents[2]

PROGRAM = '''\
import sys

import tvm
from tvm.script import tir as T


@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j in T.grid(64, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0


def sampled(sch):
    """Any tile of j."""
    i, j = sch.get_loops(sch.get_block("B"))
    sch.split(j, sch.sample_perfect_tile(j, n=2))
    return sch


def refused(sch):
    sch.get_block("C")


if __name__ == "__main__":
    print("main", sys.argv[1:])
'''


@pytest.fixture(autouse=True)
def names_taken_back() -> Iterator[None]:
    """A command takes the name `tvm` for its process, which here is that of other tests, too."""
    yield
    compat.uninstall()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def mlcweb(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mlcweb", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"},
    )
