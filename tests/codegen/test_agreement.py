"""All ways to run a program give the same numbers: as blocks or lowered, interpreted, by NumPy, or
compiled to WebAssembly, with checked accesses and without."""

import numpy as np
import pytest

from mlcweb.lower import lower
from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.script import from_source
from tests.codegen.corpus import PROGRAMS, inputs

TARGETS = ["interpreter", "numpy", *(["wasm", "wasm -bounds_check=1"] if available() else [])]
if has_llvm():
    TARGETS += ["llvm -mcpu=host", "llvm -mcpu=host -bounds_check=1"]
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def run(func, target):
    arguments = [nd.array(values) for values in inputs(func)]
    build(func, target)(*arguments)
    return [argument.numpy() for argument in arguments]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["blocks", "loops"])
def test_targets_agree_with_the_interpreter(name, target, form):
    func = PROGRAMS[name]
    expected = run(func, "interpreter")
    actual = run(func if form == "blocks" else lower(func), target)
    for one, other in zip(expected, actual, strict=True):
        if one.dtype.kind == "f":
            tolerance = TOLERANCE[one.dtype.name]
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("place", "expected"),
    [("i0, i38", [[1, 3], [5, 7]]), ("i38, A[i0, i38] // 4", [[6, 0], [10, 0]])],
)
def test_loops_may_nest_deeper_than_those_of_python(target, place, expected):
    loops = "".join(
        "    " * (depth + 1) + f"for i{depth} in range({2 if depth in (0, 20, 38) else 1}):\n"
        for depth in range(39)
    )
    func = from_source(
        '@T.prim_func\ndef main(A: T.Buffer((2, 2), "int32"), B: T.Buffer((2, 2), "int32")):\n'
        f"{loops}{'    ' * 40}B[{place}] = B[{place}] + A[i0, i38] + i20\n"
    )
    values = np.arange(4, dtype="int32").reshape(2, 2)
    arguments = [nd.array(values), nd.array(np.zeros_like(values))]
    build(func, target)(*arguments)
    assert arguments[1].numpy().tolist() == expected
