"""Loop optimisation for machines of other vectors, registers and operators than WebAssembly's: the
programs still compute the same, and use what the machine has."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.codegen.wasm.machine import MACHINE
from mlcweb.ir.visitor import walk
from mlcweb.lower import lower
from mlcweb.lower.optimize import MachineModel, optimize
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.runtime import build, nd
from mlcweb.script import from_source
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from tests.codegen.corpus import PROGRAMS, inputs
from tests.random_programs.stages import WITHOUT_BLOCKS, random_program
from tests.strategies import examples


def machine(vector_bytes: int) -> MachineModel:
    """A machine on which vectors can do whatever scalars can."""
    return MachineModel(
        vector_bytes=vector_bytes,
        min_vector_bytes=16,
        registers=32,
        register_bytes=32 * vector_bytes,
        vector_sums=8,
        jammed_vectors=8,
        scalar_sums=4,
        shifts_alike=False,
        computed_in_float64=frozenset(),
        has_vector_operator=lambda operator, dtype: True,
        has_vector_cast=lambda source, target: True,
    )


def run(func):
    arguments = [nd.array(values) for values in inputs(func)]
    build(func, "interpreter")(*arguments)
    return [argument.numpy() for argument in arguments]


def program(body):
    return from_source(
        "@T.prim_func\n"
        'def main(A: T.Buffer((100,), "float32"), N: T.Buffer((100,), "int32"),\n'
        '         B: T.Buffer((100,), "float32"), M: T.Buffer((100,), "int32")):\n'
        '    T.func_attr({"tir.noalias": True})\n'
        + "".join(f"    {line}\n" for line in body.splitlines())
    )


def longest(func):
    """The most lanes of a value that a function computes."""
    expressions = (node for node in walk(func.body) if isinstance(node, E.PrimExpr))
    return max(dtypes.lanes(node.dtype) for node in expressions)


@pytest.mark.parametrize("vector_bytes", [8, 32, 64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same_for_other_vectors(name, vector_bytes):
    flat = lower(PROGRAMS[name])
    actual = run(optimize(flat, machine(vector_bytes)))
    for one, other in zip(run(flat), actual, strict=True):
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("half", range(2))
@given(seed=st.integers(0, 2**29))
@examples(30, 500)
def test_random_loops_compute_the_same_with_long_vectors(half, seed):
    flat = lower(from_source(random_program(2 * seed + half, WITHOUT_BLOCKS).text))
    for one, other in zip(run(flat), run(optimize(flat, machine(64))), strict=True):
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize(("vector_bytes", "lanes"), [(16, 4), (32, 8), (64, 16)])
def test_vectors_are_as_long_as_the_machine_has_them(vector_bytes, lanes):
    func = program("for i in range(100):\n    B[i] = A[i] * T.float32(3)")
    optimized = optimize(func, machine(vector_bytes))
    assert longest(optimized) == lanes
    values = inputs(func)
    np.testing.assert_array_equal(run(optimized)[2], values[0] * np.float32(3))


def test_short_loops_become_shorter_vectors():
    func = program("for i in range(8):\n    B[i] = A[i] + T.float32(1)")
    assert longest(optimize(func, machine(64))) == 8
    assert longest(optimize(func, replace(machine(64), min_vector_bytes=64))) == 1


def test_operators_that_vectors_lack_keep_a_loop_scalar():
    func = program("for i in range(100):\n    M[i] = T.shift_left(N[i] // 3, N[i] % 8)")
    able = machine(32)
    assert longest(optimize(func, able)) == 8
    lacks_division = replace(able, has_vector_operator=lambda op, dtype: op is not E.FloorDiv)
    assert longest(optimize(func, lacks_division)) == 1
    assert longest(optimize(func, replace(able, shifts_alike=True))) == 1
    assert longest(optimize(func, MACHINE)) == 1
    numbers = inputs(func)[1]
    np.testing.assert_array_equal(run(optimize(func, able))[3], (numbers // 3) << (numbers % 8))


def test_sums_stay_in_as_many_registers_as_there_are():
    func = program(
        "for i in T.unroll(10):\n    B[i] = T.float32(0)\nfor k in range(50):\n"
        "    for i in T.unroll(10):\n        B[i] = B[i] + A[k] * T.float32(2)"
    )

    def registers(model):
        return [
            node.buffer.name
            for node in walk(optimize(func, model).body)
            if isinstance(node, S.AllocBuffer) and node.buffer.scope() == REGISTER_SCOPE
        ]

    assert registers(machine(16)) == ["B_registers"]
    assert registers(replace(machine(16), registers=9)) == []


def test_what_a_long_vector_leaves_over_goes_into_shorter_ones():
    func = program("for i in T.vectorized(23):\n    B[i] = A[i] * T.float32(2)")
    stores = [
        dtypes.lanes(node.value.dtype)
        for node in walk(optimize(lower(func), machine(64)).body)
        if isinstance(node, S.BufferStore)
    ]
    assert stores == [16, 4, 2, 1]
