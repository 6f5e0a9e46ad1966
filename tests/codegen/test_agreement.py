"""All ways to run a program give the same numbers: as blocks or lowered, interpreted or NumPy."""

import numpy as np
import pytest

from mlcweb.runtime import build, nd
from mlcweb.tir.transform import lower
from tests.codegen.corpus import PROGRAMS, inputs

TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def run(func, target):
    arguments = [nd.array(values) for values in inputs(func)]
    build(func, target)(*arguments)
    return [argument.numpy() for argument in arguments]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["interpreter", "numpy"])
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
