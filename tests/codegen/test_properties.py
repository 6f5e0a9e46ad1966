"""Programs for every path, and random programs, scheduled at random: all targets and the lowering
agree with the interpreter, compiled code to the last bit where products and sums are not fused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.codegen import interpreter
from mlcweb.codegen.registry import RELAXED_MADD
from mlcweb.lower import lower
from mlcweb.runtime import build, nd
from mlcweb.tir import Schedule
from tests.codegen.compiled import BUILDERS
from tests.codegen.corpus import PROGRAMS, inputs
from tests.random_schedules import random_step
from tests.strategies import examples, prim_funcs

TRANSCENDENTAL_TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 4e-15}


def built(func, target):
    arguments = [nd.array(values) for values in inputs(func)]
    build(func, target)(*arguments)
    return [argument.numpy() for argument in arguments]


def run(builder, func, **options):
    arguments = inputs(func)
    builder({"main": func}, lambda name: None, **options)["main"].run(*arguments)
    return arguments


def check_compiled(func, expected, exact):
    """Compiled code, where products and sums are not fused; zeros of either sign count as equal."""
    for builder in BUILDERS.values():
        results = run(builder, func, config={RELAXED_MADD: False})
        for one, other in zip(expected, results, strict=True):
            tolerance = 0 if exact else TRANSCENDENTAL_TOLERANCE.get(one.dtype.name, 0)
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_try_every_path(name):
    func = PROGRAMS[name]
    check_compiled(func, run(interpreter.build, func), exact=name not in ("softmax", "floatmath"))


@pytest.mark.parametrize("steps", [(0, 2), (3, 6)])
@examples(50, 150)
@given(prim_funcs(), st.data())
def test_programs_and_schedules(steps, func, data):
    schedule = Schedule(func, seed=1)

    def choose(items):
        if not items:
            raise IndexError("nothing to choose from")
        return data.draw(st.sampled_from(list(items)))

    for _ in range(data.draw(st.integers(*steps))):
        random_step(schedule, choose)
    scheduled = schedule.mod["main"]
    expected = run(interpreter.build, scheduled)
    lowered = lower(scheduled)
    for form, target in ((lowered, "interpreter"), (scheduled, "numpy"), (lowered, "numpy")):
        for one, other in zip(expected, built(form, target), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-3)
    check_compiled(scheduled, expected, exact="tanh" not in func.script())
