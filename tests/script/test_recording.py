"""Functions of Python that a script calls, and the statements that they make."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import assert_structural_equal
from mlcweb.script import tir as T


def fill(buffer, count):
    for i in range(count):
        T.buffer_store(buffer, T.float32(i), indices=[i])


def insert(best, places, value, place):
    """Put a value into a descending list, if it is greater than one there."""
    branches = [T.If(value > best[i]) for i in range(2)]
    others = T.Else()
    for i in range(2):
        branches[i].__enter__()
        with T.Then():
            for j in range(1, i, -1):
                T.buffer_store(best, best[j - 1], [j])
                T.buffer_store(places, places[j - 1], [j])
            T.buffer_store(best, value, [i])
            T.buffer_store(places, place, [i])
        if i == 0:
            others.__enter__()
    branches[1].__exit__(None, None, None)
    others.__exit__(None, None, None)
    branches[0].__exit__(None, None, None)


def test_statements_go_where_the_call_is():
    @T.prim_func
    def called(A: T.Buffer((4,), "float32")):
        A[3] = T.float32(9)
        fill(A, 2)
        A[2] = A[1]

    @T.prim_func
    def written(A: T.Buffer((4,), "float32")):
        A[3] = T.float32(9)
        A[0] = T.float32(0)
        A[1] = T.float32(1)
        A[2] = A[1]

    assert_structural_equal(called, written.with_attr("global_symbol", "called"))


def test_a_function_may_read_another_script():
    def size():
        @T.prim_func
        def other(A: T.Buffer((4,), "float32")):
            T.evaluate(A[1])
            T.buffer_store(A, T.float32(1), [2])

        return len(other.body.seq)

    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(size())

    assert main.script().count("A[") == 1 and "T.float32(2)" in main.script()


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_branches_in_each_other(target):
    @T.prim_func
    def main(
        A: T.Buffer((9,), "float32"), B: T.Buffer((2,), "float32"), P: T.Buffer((2,), "int32")
    ):
        for i in range(2):
            B[i] = T.min_value("float32")
            P[i] = -1
        for i in range(9):
            insert(B, P, A[i], i)

    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5], "float32")
    best, places = tvm.nd.empty((2,)), tvm.nd.empty((2,), "int32")
    tvm.build(main, target)["main"](tvm.nd.array(x), best, places)
    assert best.numpy().tolist() == [9, 6] and places.numpy().tolist() == [5, 7]


def alone():
    with T.If(T.bool(True)):
        pass


def stray():
    with T.Then():
        T.evaluate(0)


@pytest.mark.parametrize(
    ("function", "why"), [(alone, "T.If has no branch"), (stray, "T.Then belongs inside")]
)
def test_branches_that_do_not_fit_are_refused(function, why):
    with pytest.raises(DiagnosticError, match=why):

        @T.prim_func
        def main():
            function()


def test_branches_are_for_functions():
    with pytest.raises(DiagnosticError, match="write `if` and `else`"), T.If(True):
        pass


def test_sizes_are_variables():
    n = T.SizeVar("n", "int64")
    assert n.dtype == "int64" and isinstance(n, tvm.tir.SizeVar)
