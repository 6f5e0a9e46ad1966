"""Weights that are loaded where they are needed, and results that are given as they come."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import from_source

MODEL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"),
             b: R.Tensor((4,), "float32"), unused: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.multiply(x, w)
            z = R.add(y, b)
            R.output(y, z)
        return (z, y)
"""

TRANSFORM = """
@I.ir_module
class Module:
    @R.function
    def main_transform_params(
        params: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))
    ):
        a = params[0]
        y = R.add(a, a)
        b = params[1]
        z = R.multiply(y, b)
        out = (z, y)
        return out
"""

x, w, b = (np.arange(start, start + 4, dtype="float32") for start in (1, 3, 7))


def machine(mod) -> relax.VirtualMachine:
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


def test_weights_are_asked_for_by_number_and_name() -> None:
    asked = []

    def fget_param(index, name):
        asked.append((index, str(name)))
        return tvm.nd.array((w, b)[index])

    mod = relax.transform.LazyGetInput()(from_source(MODEL))
    z, y = machine(mod)["main"](tvm.nd.array(x), fget_param)
    np.testing.assert_allclose(z.numpy(), x * w + b)
    np.testing.assert_allclose(y.numpy(), x * w)
    assert asked == [(0, "w"), (1, "b")]


def test_results_are_given_as_soon_as_they_are_there() -> None:
    given = []
    mod = relax.transform.LazySetOutput()(from_source(MODEL))
    arrays = [tvm.nd.array(value) for value in (w, b, b)]
    machine(mod)["main"](
        tvm.nd.array(x), lambda index, value: given.append((index, value.numpy().copy())), *arrays
    )
    assert [index for index, _ in given] == [1, 0]
    np.testing.assert_allclose(given[0][1], x * w)
    np.testing.assert_allclose(given[1][1], x * w + b)


def test_a_transformation_of_weights_loads_and_stores_one_by_one() -> None:
    events = []
    kept = {}

    @tvm.register_func("tests.lazy.load", override=True)
    def load(index):
        events.append(f"load {index}")
        return tvm.nd.array((w, b)[index])

    @tvm.register_func("tests.lazy.keep", override=True)
    def keep(index, value):
        events.append(f"keep {index}")
        kept[index] = value.numpy().copy()

    lazy = relax.transform.LazyTransformParams("tests.lazy.load", "tests.lazy.keep")
    machine(lazy(from_source(TRANSFORM)))["main_transform_params"]()
    assert events == ["load 0", "load 1", "keep 1", "keep 0"]
    np.testing.assert_allclose(kept[1], w + w)
    np.testing.assert_allclose(kept[0], (w + w) * b)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return out", "return (z, y)", "the results are a variable that is bound to a tuple"),
        ("y = R.add(a, a)", "copy = params\n        y = R.add(a, a)", "are used as a whole"),
    ],
)
def test_what_cannot_be_loaded_or_stored_one_by_one_is_refused(old, new, message) -> None:
    with pytest.raises(DiagnosticError, match=message):
        relax.transform.LazyTransformParams()(from_source(TRANSFORM.replace(old, new)))
