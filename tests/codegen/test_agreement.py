"""All ways to run a program give the same numbers: as blocks or lowered, interpreted, by NumPy, or
compiled to WebAssembly, with checked accesses and without."""

import numpy as np
import pytest

from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available
from mlcweb.tir.transform import lower
from tests.codegen.corpus import PROGRAMS, inputs

TARGETS = ["interpreter", "numpy", *(["wasm", "wasm -bounds_check=1"] if available() else [])]
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
