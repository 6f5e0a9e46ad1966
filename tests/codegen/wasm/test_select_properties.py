"""Random programs: WebAssembly computes what the interpreter computes, to the last bit where
products and sums are not fused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples

pytest.importorskip("wasmtime")

from mlcweb.codegen import interpreter
from mlcweb.runtime.host import wasm_target
from mlcweb.runtime.host.engine import engine
from mlcweb.tir import Schedule
from tests.codegen.corpus import PROGRAMS, inputs
from tests.random_schedules import random_step
from tests.strategies import prim_funcs

FLOAT_TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 4e-15}
TRANSCENDENTAL = ("softmax", "floatmath")


def results(build, func):
    arguments = inputs(func)
    build({"main": func}, lambda name: None)["main"].run(*arguments)
    return arguments


def build_unfused(functions, lookup):
    return wasm_target.build(functions, lookup, engine().options)


def check(func, reference=None, exact=True):
    """Both ways to run give the same; zeros of either sign count as equal."""
    expected = results(interpreter.build, reference or func)
    for one, other in zip(expected, results(build_unfused, func), strict=True):
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
