"""Random programs: WebAssembly computes what the interpreter computes, to the last bit where
products and sums are not fused."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples

pytest.importorskip("wasmtime")

from mlcweb.codegen import interpreter
from mlcweb.codegen.registry import RELAXED_MADD
from mlcweb.tir import Schedule
from tests.codegen.compiled import BUILDERS
from tests.codegen.corpus import PROGRAMS, inputs
from tests.random_schedules import random_step
from tests.strategies import prim_funcs

FLOAT_TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 4e-15}
TRANSCENDENTAL = ("softmax", "floatmath")


def results(build, func):
    arguments = inputs(func)
    build({"main": func}, lambda name: None)["main"].run(*arguments)
    return arguments


def unfused():
    """Builders of code that rounds each operation."""
    config = {RELAXED_MADD: False}
    return [partial(build, config=config) for build in BUILDERS.values()]


def check(func, reference=None, exact=True):
    """Both ways to run give the same; zeros of either sign count as equal."""
    expected = results(interpreter.build, reference or func)
    found = [array for build in unfused() for array in results(build, func)]
    for one, other in zip(expected * len(BUILDERS), found, strict=True):
        if exact:
            np.testing.assert_array_equal(other, one)
        else:
            tolerance = FLOAT_TOLERANCE.get(one.dtype.name, 0)
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_try_every_path(name):
    check(PROGRAMS[name], exact=name not in TRANSCENDENTAL)


@examples(150)
@given(prim_funcs())
def test_block_programs(func):
    check(func, exact="tanh" not in func.script())


@examples(100)
@given(prim_funcs(), st.data())
def test_scheduled_programs(func, data):
    schedule = Schedule(func, seed=1)

    def choose(items):
        if not items:
            raise IndexError("nothing to choose from")
        return data.draw(st.sampled_from(list(items)))

    for _ in range(data.draw(st.integers(1, 6))):
        random_step(schedule, choose)
    scheduled = schedule.mod["main"]
    check(scheduled, exact="tanh" not in func.script())
