"""Scalars that change: what loops and branches assign again is kept in a buffer of one element."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.script import parse
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import AllocBuffer

HEAD = '@T.prim_func\ndef main(A: T.Buffer((4,), "int32"), n: T.int32):\n'


def read(body, **names):
    return parse(HEAD + "".join(f"    {line}\n" for line in body.splitlines()), names)


def python(body, a, n):
    """What Python itself makes of the statements."""
    lines = [line.split(":")[0] + line[line.index(" =") :] if ": T." in line else line
             for line in body.splitlines()]  # fmt: skip
    scope = {"A": a, "n": n}
    exec("\n".join(lines), scope)


PROGRAMS = [
    "x: T.int32 = 0\nfor i in range(4):\n    x = x + i\n    A[i] = x",
    "x = 0\nfor i in range(4):\n    x += A[i]\nA[0] = x",
    "best: T.int32 = 0\nfor i in range(4):\n    if A[i] > best:\n        best = A[i]\nA[0] = best",
    "x = n\nwhile x < 100:\n    x = x * 3\nA[1] = x",
    "x: T.int32 = n + 1\nx += 2\ny = x\nx = x * y\nA[2] = x + y",
    "x, y = 1, 0\nfor i in range(4):\n    z = x + y\n    x = y\n    y = z\nA[3] = y",
    "x = n\nx = x + 1\nA[0] = x",
    "for i in range(4):\n    s = 0\n    for j in range(3):\n        s += i * j\n    A[i] = s",
    "n = n + 1\nA[0] = n",
    "x = 0\nif n > 3:\n    x = 1\nA[0] = x",
    "N = 4\nfor i in range(N):\n    A[i] = N + i",
]


@pytest.mark.parametrize("body", PROGRAMS)
@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm"])
def test_compute_what_python_does(body, target):
    wanted = np.array([3, 9, 4, 1], "int32")
    given = tvm.nd.array(wanted.copy())
    python(body, wanted, 5)
    tvm.build(read(body), target=target)["main"](given, 5)
    np.testing.assert_array_equal(given.numpy(), wanted)


def test_in_blocks_and_round_trips():
    func = read("""x: T.int32 = 1
for i in range(4):
    with T.block("B"):
        vi = T.axis.spatial(4, i)
        x = x * 2
        A[vi] = x""")
    assert structural_equal(parse(func.script()), func)
    out = tvm.nd.empty((4,), "int32")
    tvm.build(func, target="interpreter")["main"](out, 0)
    np.testing.assert_array_equal(out.numpy(), [2, 4, 8, 16])


def test_in_macros():
    from mlcweb.script import tir as T

    @T.macro
    def total(A, out):
        s: T.int32 = 0
        for i in range(4):
            s += A[i]
        out[0] = s

    given = tvm.nd.array(np.array([3, 9, 4, 1], "int32"))
    tvm.build(read("total(A, A)", total=total), target="interpreter")["main"](given, 0)
    assert given.numpy()[0] == 17


def test_names_that_keep_their_value_need_no_memory():
    for body in ("x = n\nx = x + 1\nA[0] = x", "x = 3\nfor k in T.meta_var([1, 2]):\n    x = k"):
        assert not isinstance(read(body + "\nA[1] = x").body, AllocBuffer)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for i in range(4):\n    n = n - 1\n    A[i] = n", '"n" is a parameter of "main", which'),
        ("for i in range(4):\n    for j in range(2):\n        i = i + 1\n        A[i] = 0",
         "the variable of the loop at line 3, which keeps"),
        ("for i in range(4):\n    i += 1", "A name keeps its value"),
    ],
)  # fmt: skip
def test_refusals(body, message):
    with pytest.raises(DiagnosticError, match=message):
        read(body)


def test_a_quoted_extent_is_the_later_parameter_of_its_name() -> None:
    """As TVM 0.27 prints a shape of a parameter that comes after the buffers."""
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8, "n * T.int64(4)"), "float32"), B: T.Buffer(("n", "n"), "float32"),
         n: T.int64):
    T.evaluate(0)
""")
    assert isinstance(func, PrimFunc)
    n = func.params[2]
    (_, columns), square = (buffer.shape for buffer in func.parameter_buffers)
    assert n.dtype == "int64"
    assert columns.a is n
    assert all(extent is n for extent in square)
