"""Functions of Python that a script calls, and the statements that they make."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import assert_structural_equal
from mlcweb.script import relax as R
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


def guard(A, i, v):
    T.where(i < 10)
    T.reads()
    T.writes(A[v])
    T.block_attr({"note": 1})


def test_what_is_said_of_a_block_is_said_by_a_function_too():
    """A predicate was lost, so that all elements were written."""

    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("fill"):
                v = T.axis.spatial(16, i)
                guard(A, i, v)
                A[v] = T.float32(1)

    realize = main.body.block.body.body
    assert str(realize.predicate) == "i < 10"
    assert realize.block.annotations == {"note": 1} and realize.block.reads == ()
    a = tvm.nd.empty((16,))
    a.copyfrom(np.zeros(16, "float32"))
    tvm.build(main, "interpreter")["main"](a)
    assert a.numpy().tolist() == [1] * 10 + [0] * 6


def twice_as_block(A, B, count):
    with T.grid(count // 4, 4) as (i, j), T.block("twice"):
        v = T.axis.spatial(count, i * 4 + j)
        T.buffer_store(B, A[v] * 2, [v])
    with T.attr(B.data, "mark", 1), T.serial(2) as k:
        T.buffer_store(B, T.float32(7), [k])
    T.func_attr({"twice": True})


def test_functions_open_loops_and_blocks():
    @T.prim_func
    def called(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        twice_as_block(A, B, 8)

    @T.prim_func
    def written(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"twice": True, "global_symbol": "called"})
        for i, j in T.grid(2, 4):
            with T.block("twice"):
                v = T.axis.spatial(8, i * 4 + j)
                B[v] = A[v] * 2
        with T.attr(B.data, "mark", 1):
            for k in range(2):
                B[k] = T.float32(7)

    assert_structural_equal(called, written)


class Ring:
    """Memory of a size, and how it is used."""

    def __init__(self, size):
        self.size = size
        self.memory = T.alloc_buffer((size,), "float32")
        self.count = T.alloc_local((1,), "int32")

    def clear(self):
        with T.serial(self.size) as i:
            T.buffer_store(self.memory, T.float32(0), [i])

    @T.macro
    def put(self, i, value):
        self.memory[i % self.size] = value
        self.count[0] = i + 1


def test_objects_have_memory_of_their_own():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
        ring = T.meta_var(Ring(4))
        ring.clear()
        for i in range(8):
            ring.put(i, A[i])
        for i in range(4):
            B[i] = ring.memory[i] + T.Cast("float32", ring.count[0])

    assert len(main.body.block.alloc_buffers) == 1
    b = tvm.nd.empty((4,))
    tvm.build(main, "interpreter")["main"](tvm.nd.array(np.arange(8, dtype="float32")), b)
    assert b.numpy().tolist() == [12, 13, 14, 15]


def assigns(A):
    A[0] = T.float32(1)


def loops(A):
    for i in T.serial(8):
        T.buffer_store(A, T.float32(1), [i])


def lacks_a_block(A):
    T.where(A[0] > 0)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (assigns, r"T.buffer_store\(A, value, \[i\]\), or make it a macro by @T.macro\n  --> "),
        (loops, r"opens T.serial by `with T.serial\(…\) as i:`.*\n  --> "),
        (lacks_a_block, r"T.where belongs inside `with T.block\(…\):`\n  --> "),
    ],
)
def test_what_only_the_text_of_a_script_does_is_refused(function, why):
    with pytest.raises(DiagnosticError, match=why):

        @T.prim_func
        def main(A: T.Buffer((8,), "float32")):
            function(A)


def test_graph_functions_have_no_statements():
    def stores(x):
        T.evaluate(0)
        return x

    with pytest.raises(DiagnosticError, match=r"T.evaluate belongs inside `with T.prim_func\(\):`"):

        @R.function
        def main(x: R.Tensor((8,), "float32")):
            return stores(x)


def alone():
    with T.If(T.bool(True)):
        pass


def stray():
    with T.Then():
        T.evaluate(0)


@pytest.mark.parametrize(
    ("function", "why"), [(alone, "T.If has no branch"), (stray, r"T.Then\(\) belongs inside")]
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
