"""What Python decides while a script is read: macros, comprehensions, f-strings, lists of loops."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.script import parse
from mlcweb.script import relax as R
from mlcweb.script import tir as T

HEAD = '@T.prim_func\ndef main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((16,), "int32")):\n'


def read(body: str, **names):
    return parse(HEAD + "".join(f"    {line}\n" for line in body.splitlines()), names)


def double(x):
    return x * 2


class Settings:
    width = 2


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("B[0] = sum([A[j, 1] for j in range(3)])", "B[0] = 0 + A[0, 1] + A[1, 1] + A[2, 1]"),
        ("B[0] = T.max(*[A[0, j] for j in range(2)])", "B[0] = T.max(A[0, 0], A[0, 1])"),
        ("for i in range(4):\n    B[i] = sum(A[i, j] * w for j, w in enumerate([3, 5]))",
         "for i in range(4):\n    B[i] = 0 + A[i, 0] * 3 + A[i, 1] * 5"),
        ("d = T.meta_var({k: A[k, 0] for k in range(3)})\nB[0] = d[1]", "B[0] = A[1, 0]"),
        ("C = T.alloc_buffer([s // 2 for s in A.shape], 'int32')\nC[0, 0] = 1",
         "C = T.alloc_buffer((2, 2), 'int32')\nC[0, 0] = 1"),
        ("T.call_extern('int32', f'run_{width}x{2 * width}')", "T.call_extern('int32', 'run_2x4')"),
        ("B[0] = getattr(T, 'abs')(A[0, 0])", "B[0] = T.abs(A[0, 0])"),
        ("B[0] = double(A[0, 0]) + len({1, 1, 2})", "B[0] = A[0, 0] * 2 + 2"),
        ("if width is not None and 'a' in ('a', 'b'):\n    B[0] = width\nelse:\n    B[1] = 1",
         "B[0] = 2"),
        ("T.func_attr({'a': 1, **{'b': 2}})\nB[0] = Settings.width",
         "T.func_attr({'a': 1, 'b': 2})\nB[0] = 2"),
        ("i, j = T.meta_var((A[0, 0], 3))\nB[j] = i", "B[3] = A[0, 0]"),
        ("for k, w in T.meta_var(list(enumerate([3, 5]))):\n    B[k] = w", "B[0] = 3\nB[1] = 5"),
        ("for ij in T.grid(*A.shape):\n    A[ij] = 1",
         "for i, j in T.grid(4, 4):\n    A[i, j] = 1"),
        ("for i, *rest in T.grid(*A.shape):\n    A[i, *rest] = 1",
         "for i, j in T.grid(4, 4):\n    A[i, j] = 1"),
        ("for *s, r in T.grid(4, 4):\n    A[(*s, r)] = 1",
         "for i, j in T.grid(4, 4):\n    A[i, j] = 1"),
        ("for i, j in T.grid(4, 4):\n    with T.block('A'):\n"
         "        v = T.axis.remap('SS', [i, j])\n        A[v] = 1",
         "for i, j in T.grid(4, 4):\n    with T.block('A'):\n"
         "        v, w = T.axis.remap('SS', [i, j])\n        A[v, w] = 1"),
        ("first, *rest = T.meta_var([1, 2, 3])\nB[first] = len(rest)", "B[1] = 2"),
        ("for i in range(1, 16, 4):\n    B[i] = 1", "for i in range(4):\n    B[i * 4 + 1] = 1"),
        ("for i in range(15, 0, -5):\n    B[i] = 1", "for i in range(3):\n    B[i * -5 + 15] = 1"),
        ("for i in T.serial(3, step=2):\n    B[i] = 1", "for i in range(2):\n    B[0 + i * 2] = 1"),
        ("with T.block('nothing'):\n    pass\nwith T.block('more'):\n    T.reads()\n"
         "    T.writes()",
         "with T.block('nothing'):\n    T.evaluate(0)\nwith T.block('more'):\n    T.evaluate(0)"),
        ("for i in range(4):\n    if i > 2:\n        break\n    if i > 1:\n        continue\n"
         "    B[i] = i",
         "for i in range(4):\n    if i > 2:\n        T.break_loop()\n    if i > 1:\n"
         "        T.continue_loop()\n    B[i] = i"),
    ],
)  # fmt: skip
def test_means_what_is_written_out(body, plain):
    names = {"width": 2, "double": double, "Settings": Settings}
    assert structural_equal(read(body, **names), read(plain))


def test_loops_with_steps_compute_what_python_does():
    func = read(
        "for i in range(1, 16, 4):\n    for j in T.serial(14, 2, step=-3):\n        B[i] = j"
    )
    a, b = np.zeros((4, 4), "int32"), np.zeros(16, "int32")
    for target in ("interpreter", "numpy", "wasm"):
        arrays = mlcweb.nd.array(a), mlcweb.nd.array(b)
        mlcweb.build(func, target=target)(*arrays)
        expected = b.copy()
        for i in range(1, 16, 4):
            for j in range(14, 2, -3):
                expected[i] = j
        np.testing.assert_array_equal(arrays[1].numpy(), expected)


offset = 3


@T.macro
def fill(X, start, *rest, value, **more):
    for i in range(4):
        X[start + i] = value + offset
    X[rest[0]] = more["last"]


@T.macro(hygienic=False)
def fill_here(X, k=1):
    X[k] = offset


@T.inline
def returns(x):
    y = T.meta_var(x * 2)
    return y + 1


class Row:
    def __init__(self, scale):
        self.scale = scale

    @T.macro
    def fill(self, X, i):
        X[i] = i * self.scale


ROW = Row(5)


@T.prim_func(private=True)
def with_macros(B: T.Buffer((16,), "int32")):
    for offset in range(2):
        fill(B, 1, 9, value=7, last=offset)
        fill_here(B)
    ROW.fill(B, 2)
    B[3] = returns(B[0])

    @T.inline
    def own(i: T.int32 = 4):
        nonlocal offset
        B[i] = i

    own(5)
    own(i=6)


@T.prim_func(private=True)
def without_macros(B: T.Buffer((16,), "int32")):
    for o in range(2):
        for i in range(4):
            B[1 + i] = 10
        B[9] = o
        B[1] = o
    B[2] = 10
    B[3] = B[0] * 2 + 1
    B[5] = 5
    B[6] = 6


def test_macros_are_read_where_they_are_called():
    assert structural_equal(with_macros, without_macros)


def test_what_a_macro_defines_belongs_to_its_caller():
    @T.macro
    def scaled(X, vi):
        C = T.alloc_buffer((1,), "int32")
        C[0] = X[vi]
        X[vi] = C[0] * 2

    text = """for i in range(16):
    with T.block("B"):
        vi = T.axis.spatial(16, i)
        {}"""
    plain = 'C = T.alloc_buffer((1,), "int32")\n        C[0] = B[vi]\n        B[vi] = C[0] * 2'
    found = read(text.format("scaled(B, vi)"), scaled=scaled)
    assert structural_equal(found, read(text.format(plain)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("fill(B)", "fill: missing a required argument: 'start'"),
        ("fill(B, 1, 2, value=1, last=0.5, k=A[0])", 'Buffer "A" has 2 dimensions'),
        ("fill_here(A)", 'Buffer "A" has 2 dimensions'),
    ],
)
def test_faults_of_calls_of_macros(body, message):
    with pytest.raises(DiagnosticError, match=message):
        read(body, fill=fill, fill_here=fill_here, offset=1)


def test_only_scripts_call_macros():
    with pytest.raises(DiagnosticError, match='"fill" is a macro, which only a script calls'):
        fill(None, 1)
    with pytest.raises(ValueError, match="hygienic"):
        T.macro(True)


def test_macros_of_the_graph_level():
    @R.macro
    def twice(x):
        y = R.add(x, x)
        return R.multiply(y, y)

    @R.function(private=True)
    def with_macro(x: R.Tensor((4,), "float32")):
        z = twice(x)
        w = R.concat([z for _ in range(2)], axis=0)
        return w

    @R.function(private=True)
    def without(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        z = R.multiply(y, y)
        w = R.concat([z, z], axis=0)
        return w

    assert structural_equal(with_macro, without)
