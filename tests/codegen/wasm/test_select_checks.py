"""Checked code: what is out of bounds, or asserted in vain, is reported in the program's terms."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("wasmtime")

from mlcweb.codegen.errors import AssertionFailed, IndexOutOfBounds
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.runtime.host import wasm_target
from mlcweb.script import from_source
from tests.codegen.corpus import PROGRAMS, inputs

UNCHECKED = Options(load_splat=False)
CHECKED = replace(UNCHECKED, bounds_check=True)


def checked(text):
    functions = {"main": from_source(text)}
    return wasm_target.build(functions, lambda name: None, CHECKED)["main"]


def test_an_index_out_of_bounds_is_reported():
    kernel = checked(
        "@T.prim_func\n"
        "def main(A: T.Buffer((4, 8), 'float32'), B: T.Buffer((4, 8), 'float32')):\n"
        "    for i, j in T.grid(4, 8):\n"
        "        B[i, j] = A[i, j + 1]\n"
    )
    with pytest.raises(IndexOutOfBounds) as caught:
        kernel.run(np.zeros((4, 8), "float32"), np.zeros((4, 8), "float32"))
    assert 'Reading "A" out of bounds: index 8 of axis 1, which has extent 8' in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.line == 4


def test_a_negative_index_is_reported():
    kernel = checked(
        "@T.prim_func\n"
        "def main(A: T.Buffer((8,), 'int32')):\n"
        "    for i in range(8):\n"
        "        A[i - 3] = 1\n"
    )
    with pytest.raises(IndexOutOfBounds, match='Writing "A" out of bounds: index -3 of axis 0'):
        kernel.run(np.zeros(8, "int32"))


def test_the_side_that_is_not_chosen_is_not_checked():
    kernel = checked(
        "@T.prim_func\n"
        "def main(A: T.Buffer((8,), 'int32'), B: T.Buffer((10,), 'int32')):\n"
        "    for i in range(10):\n"
        "        B[i] = T.if_then_else(1 <= i and i < 9, A[i - 1], 0)\n"
    )
    values = np.zeros(10, "int32")
    kernel.run(np.arange(1, 9, dtype="int32"), values)
    assert values.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 0]


def test_an_index_is_checked_where_its_condition_holds():
    """Its part that does not change in the inner loop was checked before that."""
    kernel = checked(
        "@T.prim_func\n"
        "def main(A: T.Buffer((1, 6), 'int32')):\n"
        "    for i, j in T.grid(2, 6):\n"
        "        if i < 1:\n"
        "            A[i, j] = j\n"
    )
    values = np.zeros((1, 6), "int32")
    kernel.run(values)
    assert values.tolist() == [list(range(6))]


def test_an_axis_outside_of_its_domain_is_reported():
    kernel = checked(
        "@T.prim_func\n"
        "def main(A: T.Buffer((8,), 'int32'), n: T.int32):\n"
        "    for i in range(8):\n"
        "        with T.block('A'):\n"
        "            v = T.axis.spatial(8, i + n)\n"
        "            T.where(i + n < 9)\n"
        "            A[v % 8] = 1\n"
    )
    kernel.run(np.zeros(8, "int32"), 0)
    with pytest.raises(
        AssertionFailed, match=r'Axis "v" of block "A" .* domain \[0, 8\)'
    ) as caught:
        kernel.run(np.zeros(8, "int32"), 3)
    assert caught.value.span is not None
    assert caught.value.span.line == 5


def test_an_assertion_is_reported():
    kernel = checked(
        "@T.prim_func\n"
        "def main(A: T.Buffer((8,), 'int32')):\n"
        "    assert A[0] == 1, 'the first element is one'\n"
        "    A[1] = 2\n"
    )
    kernel.run(np.ones(8, "int32"))
    with pytest.raises(AssertionFailed, match="the first element is one"):
        kernel.run(np.zeros(8, "int32"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_checks_change_nothing_else(name):
    plain, guarded = inputs(PROGRAMS[name]), inputs(PROGRAMS[name])
    functions = {"main": PROGRAMS[name]}
    wasm_target.build(functions, lambda name: None, UNCHECKED)["main"].run(*plain)
    wasm_target.build(functions, lambda name: None, CHECKED)["main"].run(*guarded)
    for one, other in zip(plain, guarded, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6)
