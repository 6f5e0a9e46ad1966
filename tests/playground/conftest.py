"""Fixtures of the playground's tests: programs as the page would send them."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mlcweb.playground import cell
from mlcweb.playground.session import session

PROGRAM = """
import mlcweb as tvm
from mlcweb.script import tir as T

@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(
        A: T.Buffer((16, 16), "float32"),
        B: T.Buffer((16, 16), "float32"),
        C: T.Buffer((16, 16), "float32"),
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

def stochastic_schedule_mm(sch: tvm.tir.Schedule):
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch

def tuned(mod: tvm.IRModule, trials=5):
    return mod
"""


@pytest.fixture(autouse=True)
def own_main() -> Iterator[None]:
    """Running a cell replaces the module `__main__`; here it is put back, and documents closed."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before
    for name in list(session.documents):
        session.close(name)


@pytest.fixture
def run() -> Callable[[str], Any]:
    """Runs a program after the matrix product above."""
    return lambda source: cell.execute(PROGRAM + source)
