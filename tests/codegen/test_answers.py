"""Small programs with answers worked out by hand: what every target must compute, as blocks or
lowered. The interpreter is one of the targets."""

import numpy as np
import pytest

from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available
from mlcweb.script import from_source
from mlcweb.tir.transform import lower

TARGETS = ["interpreter", "numpy", *(["wasm", "wasm -bounds_check=1"] if available() else [])]


def ints(*values: int, dtype: str = "int32") -> np.ndarray:
    return np.array(values, dtype)


PROGRAMS: dict[str, tuple[str, list[np.ndarray], list[np.ndarray]]] = {
    "a_condition_whose_memory_is_overwritten": (
        """
@T.prim_func
def main(A: T.Buffer((1,), "int32"), B: T.Buffer((2,), "int32")):
    if A[0] < 5:
        A[0] = 10
        B[0] = T.if_then_else(A[0] < 5, 1, 2)
    if A[0] < 5:
        B[1] = 3
    else:
        A[0] = 0
        B[1] = T.if_then_else(A[0] < 5, 4, 5)
""",
        [ints(1), ints(0, 0)],
        [ints(0), ints(2, 4)],
    ),
    "a_loop_whose_bound_is_overwritten": (
        """
@T.prim_func
def main(A: T.Buffer((2,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(A[0]):
        A[0] = 2
        if i < A[0]:
            B[i] = 1
    for i in range(A[1], A[1] + 1):
        A[1] = 7
        B[i] = 5
""",
        [ints(5, 6), ints(0, 0, 0, 0, 0, 0, 0, 0)],
        [ints(2, 7), ints(1, 1, 0, 0, 0, 0, 5, 0)],
    ),
    "a_binding_whose_memory_is_overwritten": (
        """
@T.prim_func
def main(A: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(1):
        with T.block("b"):
            v = T.axis.opaque(4, A[0])
            A[0] = 3
            B[v] = 9
""",
        [ints(1), ints(0, 0, 0, 0)],
        [ints(3), ints(0, 9, 0, 0)],
    ),
    "an_allocation_indexed_by_what_is_overwritten": (
        """
@T.prim_func
def main(A: T.Buffer((1,), "int32"), B: T.Buffer((3,), "int32")):
    Y = T.alloc_buffer((2,), "int32")
    Y[0] = 0
    Y[1] = 0
    for i in range(3):
        A[0] = i % 2
        Y[A[0]] = i
        A[0] = 1 - A[0]
        B[i] = Y[A[0]]
""",
        [ints(0), ints(0, 0, 0)],
        [ints(1), ints(0, 0, 1)],
    ),
    "an_allocation_touched_only_where_memory_says": (
        """
@T.prim_func
def main(A: T.Buffer((1,), "int32"), B: T.Buffer((2,), "int32")):
    Y = T.alloc_buffer((4,), "int32")
    A[0] = 1
    Y[A[0] % 3] = 5
    A[0] = 2
    Y[A[0] % 3] = 6
    A[0] = 1
    B[0] = Y[A[0] % 3]
    A[0] = 2
    B[1] = Y[A[0] % 3]
""",
        [ints(0), ints(0, 0)],
        [ints(2), ints(5, 6)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["blocks", "loops"])
def test_answer(name, target, form):
    text, inputs, expected = PROGRAMS[name]
    func = from_source(text)
    arguments = [nd.array(values) for values in inputs]
    build(func if form == "blocks" else lower(func), target)(*arguments)
    for argument, answer in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(argument.numpy(), answer)
