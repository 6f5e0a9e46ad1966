"""Changes of layout that later ones undo; programs that TVM was asked about are in passes/."""

from __future__ import annotations

import numpy as np
import pytest

from mlcweb.relax.transform import OptimizeLayoutTransform
from mlcweb.script import from_source
from tests.relax.transform.passes.cases_implementations import CASES
from tests.relax.transform.running import arguments, run
from tests.relax.transform.test_passes_as_tvm import given_by


def program(first: str, then: str, shape: str, between: str = "y", pad_value: str = "None"):
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def remove_pad(a: T.handle, b: T.handle):
        T.func_attr({{"operator_name": "remove_pad"}})
        n, m = T.int64(), T.int64()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (m,))
        for i in range(m):
            with T.block("B"):
                v = T.axis.spatial(m, i)
                B[v] = A[v]

    @R.function
    def main(x: R.Tensor({shape}, "float32")):
        cls = Module
        with R.dataflow():
            y = R.layout_transform(x, index_map={first})
            z = {between}
            u = R.layout_transform(z, index_map={then}, pad_value={pad_value})
            r = R.add(u, u)
            R.output(r)
        return r
""")


def changes(mod) -> int:
    return mod.script().count("R.layout_transform(")


@pytest.mark.parametrize(
    ("first", "then", "shape"),
    [
        ("lambda i, j: (j, i)", "lambda i, j: (j, i)", "(4, 6)"),
        ("lambda i: (i // 4, i % 4)", "lambda i, j: (i * 4 + j,)", "(24,)"),
        ("lambda i: (23 - i,)", "lambda i: (23 - i,)", "(24,)"),
        ("lambda i, j: (j, i)", "lambda i, j: (j, i)", '("n", 6)'),
    ],
)
def test_what_is_undone_goes_away(first: str, then: str, shape: str) -> None:
    mod = program(first, then, shape)
    assert (changes(mod), changes(OptimizeLayoutTransform()(mod))) == (2, 0)


@pytest.mark.parametrize(
    ("first", "then", "shape"),
    [
        ("lambda i, j: (j, i)", "lambda i, j: (i, j)", "(4, 4)"),
        ("lambda i: (15 - i,)", "lambda i: (i,)", "(16,)"),
        ("lambda i: (i // 4, i % 4)", "lambda i, j: (j * 4 + i,)", "(16,)"),
    ],
)
def test_elements_in_other_places_of_the_same_shape_stay_there(
    first: str, then: str, shape: str
) -> None:
    mod = program(first, then, shape)
    new = OptimizeLayoutTransform()(mod)
    assert changes(new) == 2
    inputs = arguments(mod["main"])
    for old, result in zip(run(mod, inputs), run(new, inputs), strict=True):
        np.testing.assert_array_equal(old, result)


@pytest.mark.parametrize(("pad_value", "count"), [("None", 0), ("0", 2)])
def test_padding_may_be_anything_unless_it_has_a_value(pad_value: str, count: int) -> None:
    between = 'R.call_tir(cls.remove_pad, (y,), R.Tensor((14,), "float32"))'
    mod = program(
        "lambda i, j: (i * 4 + j,)", "lambda i: (i // 4, i % 4)", "(4, 4)", between, pad_value
    )
    new = OptimizeLayoutTransform()(mod)
    assert changes(new) == count
    inputs = arguments(mod["main"])
    for old, result in zip(run(mod, inputs), run(new, inputs), strict=True):
        np.testing.assert_array_equal(old.reshape(-1)[:14], result.reshape(-1)[:14])


@pytest.mark.parametrize("name", ["even", "padded", "padded_twice", "transposed", "sums"])
def test_the_numbers_stay(name: str) -> None:
    before = from_source(CASES[f"undone_{name}"][1])
    inputs = arguments(before["main"])
    for old, new in zip(run(before, inputs), run(given_by(f"undone_{name}"), inputs), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6)
