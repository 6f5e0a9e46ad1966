"""Functions that return numbers, and those that take pointers, on all targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import DiagnosticError
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", "wasm", "llvm"]


def built(program: str, target: str) -> Any:
    return tvm.build(from_source(program), target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_return_ends_loops_and_function(target: str) -> None:
    """The place of the first number below zero, before which the numbers are doubled."""
    main = built(
        """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), n: T.int32) -> T.int32:
    if n == 0:
        return -7
    for i in range(n):
        for j in range(8):
            if A[i, j] < 0:
                return i * 8 + j
            A[i, j] = A[i, j] * 2
        A[i, 0] = A[i, 0] + 1
    A[3, 7] = 100
    return -1
""",
        target,
    )["main"]
    values = np.arange(32, dtype="int32").reshape(4, 8)
    array = tvm.nd.array(values)
    assert main(array, 0) == -7
    np.testing.assert_array_equal(array.numpy(), values)
    assert main(array, 2) == -1
    expected = values * [[2], [2], [1], [1]]
    expected[:2, 0] += 1
    expected[3, 7] = 100
    np.testing.assert_array_equal(array.numpy(), expected)
    values[1, 3] = -5
    array = tvm.nd.array(values)
    assert main(array, 4) == 11
    expected = values.copy()
    expected[0] *= 2
    expected[0, 0] += 1
    expected[1, :3] *= 2
    np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_of_all_kinds_are_returned(target: str) -> None:
    program = """
@I.ir_module
class Module:
    @T.prim_func
    def below(value: T.int32) -> T.bool:
        return value < 10

    @T.prim_func
    def choose(flag: T.bool) -> T.int64:
        if flag:
            return T.int64(5000000000)
        else:
            return T.int64(-1)

    @T.prim_func
    def half(value: T.float32) -> T.float32:
        return value * T.float32(0.5)
"""
    module = built(program, target)
    assert module["below"](3) is True and module["below"](15) is False
    # As in TVM every integer other than zero is true.
    assert [module["choose"](flag) for flag in (True, 2, False, 0)] == [5 * 10**9] * 2 + [-1] * 2
    assert module["half"](3) == 1.5


ROOT = """
@T.prim_func
def main(n: T.int32) -> T.int32:
    for i in range(n):
        if i * i >= n:
            return i
    return n
"""


@pytest.mark.parametrize("target", TARGETS)
def test_loops_inside_loops_are_left(target: str) -> None:
    assert [built(ROOT, target)(n) for n in range(8)] == [0, 1, 2, 2, 2, 3, 3, 3]
    divisor = built(
        """
@T.prim_func
def main(n: T.int64) -> T.int64:
    for i in range(2, 50):
        for j in range(2, 50):
            if T.Cast("int64", i * j) == n:
                return T.Cast("int64", i)
    return T.int64(-1)
""",
        target,
    )
    assert [divisor(n) for n in (15, 49, 53)] == [3, 7, -1]
    multiple_of_7 = built(
        """
@T.prim_func
def main(n: T.int32) -> T.bool:
    rest = T.alloc_buffer((1,), "int32")
    rest[0] = n
    while True:
        rest[0] = rest[0] - 7
        if rest[0] == 0:
            return True
        if rest[0] < 0:
            return False
    return False
""",
        target,
    )
    assert [multiple_of_7(n) for n in (21, 22)] == [True, False]


@pytest.mark.parametrize("target", TARGETS)
def test_a_number_is_returned_after_blocks(target: str) -> None:
    total = built(
        """
@T.prim_func
def main(A: T.Buffer((8,), "float32")) -> T.float64:
    s = T.alloc_buffer((1,), "float64")
    s[0] = T.float64(0)
    for i in range(8):
        with T.block("add"):
            vi = T.axis.reduce(8, i)
            s[0] = s[0] + T.Cast("float64", A[vi])
    return s[0]
""",
        target,
    )
    values = np.arange(8, dtype="float32") / 4
    assert total(tvm.nd.array(values)) == values.sum()


def test_a_function_that_returns_is_timed() -> None:
    module = built(ROOT, "wasm")
    assert module.time_evaluator("main", tvm.cpu(), number=2, repeat=3)(100).mean > 0


def test_a_function_returns_a_number_on_each_path() -> None:
    with pytest.raises(DiagnosticError, match="on each path"):
        built(ROOT.replace("    return n\n", ""), "interpreter")


def test_a_function_returns_numbers_of_one_type() -> None:
    program = """
@T.prim_func
def main(n: T.int32):
    if n > 0:
        return 1
    else:
        return T.float32(1)
"""
    with pytest.raises(DiagnosticError, match="numbers of one type, and not int32 and float32"):
        built(program, "interpreter")


def test_a_parallel_loop_is_not_left_by_return() -> None:
    program = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")) -> T.int32:
    for i in T.parallel(8):
        if A[i] == 3:
            return i
    return 8
"""
    with pytest.raises(DiagnosticError, match="return leaves a loop that runs in order"):
        built(program, "interpreter")


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_calls_one_that_takes_a_pointer(target: str) -> None:
    program = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        Module.fill(A.data, 3)

    @T.prim_func(private=True)
    def fill(data: T.handle("float32"), n: T.int32):
        B = T.decl_buffer((4,), "float32", data=data)
        for i in range(n):
            B[i] = T.float32(42)
"""
    array = tvm.nd.array(np.zeros(4, "float32"))
    built(program, target)["main"](array)
    assert array.numpy().tolist() == [42, 42, 42, 0]


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_called_function_returns_counts(target: str) -> None:
    program = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = Module.square(A[i]) + 1

    @T.prim_func
    def square(n: T.int32) -> T.int32:
        return n * n
"""
    array = tvm.nd.array(np.array([1, 2, 3, 4], "int32"))
    built(program, target)["main"](array)
    assert array.numpy().tolist() == [2, 5, 10, 17]
