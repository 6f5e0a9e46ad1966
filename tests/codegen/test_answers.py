"""Small programs with answers worked out by hand: what every target must compute, as blocks or
lowered. The interpreter is one of the targets."""

from math import inf

import numpy as np
import pytest

from mlcweb.lower import lower
from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", *(["wasm", "wasm -bounds_check=1"] if available() else [])]
TARGETS += ["llvm -mcpu=host", "llvm -mcpu=host -bounds_check=1"] if has_llvm() else []


def ints(*values: int, dtype: str = "int32") -> np.ndarray:
    return np.array(values, dtype)


def floats(*values: float, dtype: str = "float32") -> np.ndarray:
    return np.array(values, dtype)


Program = tuple[str, list[np.ndarray], list[np.ndarray]]
"""The text, the arguments before the call and after it."""


def least_divided(dtype: str) -> Program:
    """The one quotient of integers that its type does not hold wraps around."""
    least = int(np.iinfo(dtype).min)
    text = f"""
@T.prim_func
def main(A: T.Buffer((4,), "{dtype}"), B: T.Buffer((4,), "{dtype}"), C: T.Buffer((16,), "{dtype}")):
    for i in range(4):
        C[i] = A[i] // B[i]
    for i in range(4):
        C[i + 4] = A[i] % B[i]
    for i in range(4):
        C[i + 8] = T.truncdiv(A[i], B[i])
    for i in range(4):
        C[i + 12] = T.truncmod(A[i], B[i])
"""
    a, b = ints(least, -7, 7, -8, dtype=dtype), ints(-1, 2, -2, 2, dtype=dtype)
    c = [least, -4, -4, -4, 0, 1, -1, 0, least, -3, -3, -4, 0, -1, 1, 0]
    return text, [a, b, np.zeros(16, dtype)], [a, b, ints(*c, dtype=dtype)]


PROGRAMS: dict[str, Program] = {
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
    "an_allocation_that_also_tells_where_to_read": (
        """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    Y = T.alloc_buffer((2,), "int32")
    for i in range(4):
        Y[0] = i
        B[i] = A[Y[0]]
        if i > 0:
            C[i] = Y[1]
        Y[1] = i * 10 + 1
""",
        [ints(*range(0, 24, 3)), ints(0, 0, 0, 0), ints(0, 0, 0, 0)],
        [ints(*range(0, 24, 3)), ints(0, 3, 6, 9), ints(0, 1, 11, 21)],
    ),
    "the_sign_of_a_chosen_zero": (
        """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = T.float32(1) / T.Select(A[i] > 0, T.float32(0.0), T.float32(-0.0))
""",
        [ints(1, -1, 1, -1), floats(0, 0, 0, 0)],
        [ints(1, -1, 1, -1), floats(inf, -inf, inf, -inf)],
    ),
    "a_zero_that_is_added_takes_the_sign_of_minus_zero": (
        """
@T.prim_func
def main(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        for j in range(1):
            B[i] = T.float32(1) / (A[i] + T.Cast("float32", j))
    for i in range(2):
        B[i] = B[i] - T.float32(1) / (T.float32(0) + A[i])
""",
        [floats(2, -0.0), floats(0, 0)],
        [floats(2, -0.0), floats(0, np.nan)],
    ),
    "the_first_of_two_zeros": (
        """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), H: T.Buffer((4,), "float16"), B: T.Buffer((8,), "float32"),
         C: T.Buffer((4,), "float16")):
    for i in range(8):
        B[i] = T.float32(1) / T.max(A[i], A[7 - i]) + T.float32(2) / T.min(A[i], T.float32(-0.0))
    for i in range(4):
        C[i] = T.max(H[3 - i], H[i])
        C[i] = T.min(C[i] * T.float16(0), C[i])
        C[i] = T.float16(1) / C[i]
""",
        [
            floats(0, -0.0, 0, 0, -0.0, -0.0, 0, -0.0),
            floats(0, -0.0, 0, -0.0, dtype="float16"),
            floats(*[0] * 8),
            floats(*[0] * 4, dtype="float16"),
        ],
        [
            floats(0, -0.0, 0, 0, -0.0, -0.0, 0, -0.0),
            floats(0, -0.0, 0, -0.0, dtype="float16"),
            floats(inf, -inf, inf, inf, -inf, -inf, inf, -inf),
            floats(-inf, inf, -inf, inf, dtype="float16"),
        ],
    ),
    "a_division_only_where_the_divisor_is_not_zero": (
        """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), d: T.Buffer((1,), "int32"), B: T.Buffer((16,), "int32")):
    for i in T.vectorized(16):
        B[i] = T.if_then_else(A[i] > 0, 12 // d[0], 7)
    for i in range(16):
        B[i] = B[i] + T.if_then_else(A[i] != 0, 12 % A[i], 1)
""",
        [ints(*[0] * 16), ints(0), ints(*[0] * 16)],
        [ints(*[0] * 16), ints(0), ints(*[8] * 16)],
    ),
    "products_of_constants_beyond_float32": (
        """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float16")):
    for i in range(8):
        B[i] = A[i] * (T.float32(1e38) * T.float32(-1e3))
    for i in range(8):
        C[i] = T.cast(A[i], "float16") + T.cast(T.float32(1e5), "float16")
""",
        [floats(1, 2, 3, 4, 5, 6, 7, 8), floats(*[0] * 8), floats(*[0] * 8, dtype="float16")],
        [floats(1, 2, 3, 4, 5, 6, 7, 8), floats(*[-inf] * 8), floats(*[inf] * 8, dtype="float16")],
    ),
    "a_sum_of_more_terms_than_its_type_counts": (
        """
@T.prim_func
def main(A: T.Buffer((1,), "int8"), B: T.Buffer((2,), "int8")):
    for i in range(200):
        B[0] = B[0] + A[0]
    for i, j in T.grid(200, 2):
        B[1] = B[1] + T.cast(j, "int8")
""",
        [ints(3, dtype="int8"), ints(0, 0, dtype="int8")],
        [ints(3, dtype="int8"), ints(600 - 512, 200 - 256, dtype="int8")],
    ),
    "threads_that_are_launched": (
        """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 4)
    C[bx * 4 + tx] = A[bx * 4 + tx] * 2
""",
        [ints(*range(8)), ints(*[0] * 8)],
        [ints(*range(8)), ints(*range(0, 16, 2))],
    ),
    "views_of_another_type": (
        """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((2, 4), "int32")):
    V = T.decl_buffer((32,), "int8", data=A.data)
    for i in range(8):
        A[i] = i * 513 + 5
        B[i] = T.cast(V[i], "int32")
    for i in range(8):
        for k in range(3):
            A[i] = A[i] + 1
            V[i * 4 + 1] = V[i * 4 + 1] + T.int8(1)
    for i in range(2):
        W = T.decl_buffer((4,), "int32", data=A.data, elem_offset=i * 4)
        for j in range(4):
            C[i, j] = W[j]
""",
        [ints(*[0] * 8), ints(*[0] * 8), ints(*[0] * 8).reshape(2, 4)],
        [
            ints(*(i * 513 + 5 + 3 * 257 for i in range(8))),
            ints(5, 0, 0, 0, 6, 2, 0, 0),
            ints(*(i * 513 + 5 + 3 * 257 for i in range(8))).reshape(2, 4),
        ],
    ),
    "arithmetic_with_flags": (
        """
@T.prim_func
def main(A: T.Buffer((4,), "bool"), B: T.Buffer((4,), "bool"), C: T.Buffer((5, 4), "bool")):
    for i in range(4):
        C[0, i] = A[i] + B[i]
        C[1, i] = A[i] - B[i]
        C[2, i] = A[i] * B[i]
        C[3, i] = A[i] + B[i] - B[i]
    for i in T.vectorized(4):
        C[4, i] = A[i] + B[i]
""",
        [ints(0, 0, 1, 1, dtype="bool"), ints(0, 1, 0, 1, dtype="bool"), np.zeros((5, 4), bool)],
        [
            ints(0, 0, 1, 1, dtype="bool"),
            ints(0, 1, 0, 1, dtype="bool"),
            np.array([[0, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 1, 1]], bool),
        ],
    ),
    "indices_wider_than_extents": (
        """
@T.prim_func
def main(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32")):
    for i, j in T.grid(T.int64(6), T.int64(7)):
        if i * T.int64(7) + j < T.int64(6):
            B[T.int64(5) - (i * T.int64(7) + j)] = A[i * T.int64(7) + j]
""",
        [ints(*range(6)), ints(*[0] * 6)],
        [ints(*range(6)), ints(*range(5, -1, -1))],
    ),
    **{f"the_least_{dtype}_divided_by_minus_one": least_divided(dtype)
       for dtype in ("int8", "int16", "int32", "int64")},
}  # fmt: skip


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
