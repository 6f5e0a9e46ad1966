"""The table of operators: what it says of each, and that no layer forgets one."""

import math
from itertools import product

import numpy as np
import pytest

from mlcweb.codegen.interpreter.operators import FORMS as PYTHON
from mlcweb.codegen.interpreter.support import intrinsics
from mlcweb.codegen.wasm.operators import FORMS as WASM
from mlcweb.codegen.wasm.operators import has_vector_operator
from mlcweb.ir.visitor import walk
from mlcweb.runtime import build, nd
from mlcweb.runtime.registry import register_func
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const, may_trap
from mlcweb.tir.intrinsics import BUILDERS
from mlcweb.tir.operators import (
    OPERATORS,
    Family,
    columns,
    key_of,
    keys,
    operands_of,
    register_column,
)


def test_every_target_knows_every_operator_or_says_why_not():
    assert {"builder", "python", "wasm"} <= columns.keys()
    assert PYTHON.keys() == BUILDERS.keys() == OPERATORS.keys()
    called = {key for key in PYTHON if PYTHON[key].scalar.startswith("intrinsic_")}
    assert called == set(intrinsics)
    assert OPERATORS.keys() - WASM.keys() == {"fmod", "nextafter", "ldexp"}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_operators_overflow_that_the_table_says_so_of(dtype):
    limits = np.iinfo(dtype)
    numbers = [limits.min, limits.min + 1, limits.max, *range(max(-1, limits.min), 7)]
    for row in (OPERATORS[key] for key in keys(Family.ARITHMETIC, Family.BITWISE)):
        if row.fold is None or row.name.startswith("shift"):  # by fewer bits than there are
            continue
        values = [
            row.fold(*operands)
            for operands in product(numbers, repeat=row.arity)
            if not (row.divides and operands[-1] == 0)
        ]
        leaves = any(not limits.min <= value <= limits.max for value in values)
        never = dtype == "uint8" if row.divides else row.name == "bitwise_not" and dtype == "int8"
        assert leaves is (row.overflows and not never), row.name


@pytest.mark.parametrize(
    ("entries", "absent", "message"),
    [
        ({key: 0 for key in OPERATORS if key != "exp"}, {}, "'exp'"),
        (dict.fromkeys(OPERATORS, 0), {"exp": "twice"}, "exp"),
        (dict.fromkeys((*OPERATORS, "new"), 0), {}, "new"),
    ],
)
def test_a_column_that_forgets_an_operator_is_refused(entries, absent, message):
    with pytest.raises(ValueError, match=message):
        register_column("incomplete", entries, absent)
    assert "incomplete" not in columns


@pytest.mark.parametrize(
    ("key", "operands", "expected"),
    [
        (E.Add, (7, -3), 4), (E.Sub, (7, -3), 10), (E.Mul, (7, -3), -21), (E.Div, (7, -3), -2),
        (E.Div, (-7.0, 2.0), -3.5), (E.Mod, (-7, 3), -1), (E.FloorDiv, (7, -3), -3),
        (E.FloorMod, (7, -3), -2), (E.Min, (7, -3), -3), (E.Max, (7, -3), 7), (E.EQ, (7, 7), True),
        (E.NE, (7, 7), False), (E.LT, (2, 3), True), (E.LE, (3, 3), True), (E.GT, (2, 3), False),
        (E.GE, (3, 3), True), ("bitwise_and", (12, 10), 8), ("bitwise_or", (12, 10), 14),
        ("bitwise_xor", (12, 10), 6), ("bitwise_not", (12,), -13), ("shift_left", (3, 2), 12),
        ("shift_right", (-12, 2), -3), (E.Not, (True,), False),
    ],
)  # fmt: skip
def test_what_constants_fold_to(key, operands, expected):
    fold = OPERATORS[key].fold
    assert fold is not None
    assert fold(*operands) == expected


@pytest.mark.parametrize("operands", [(1.0, math.nan), (math.nan, 1.0)])
@pytest.mark.parametrize("build_extremum", [arithmetic.minimum, arithmetic.maximum])
def test_extrema_of_constants_are_nan_where_one_is(build_extremum, operands):
    folded = build_extremum(*(const(value, "float32") for value in operands))
    assert math.isnan(folded.value)


@pytest.mark.parametrize("key", [key for key in OPERATORS if OPERATORS[key].identity is not None])
def test_identities_change_nothing(key):
    dtype = "bool" if OPERATORS[key].family is Family.LOGIC else "int8"
    identity = OPERATORS[key].identity
    assert identity is not None
    for value in (0, 1) if dtype == "bool" else (-128, -1, 0, 5, 127):
        result = BUILDERS[key](const(identity(dtype), dtype), const(value, dtype))
        assert result.value == value


def test_expressions_and_their_operators():
    x, y = E.Var("x", "float32"), E.Var("y", "float32")
    call = T.pow(x, y)
    assert key_of(call) == "pow"
    assert operands_of(call) == [x, y]
    chosen = E.Select(x < y, x, y)
    assert key_of(chosen) is E.Select
    assert operands_of(chosen)[1:] == [x, y]
    assert key_of(x) not in OPERATORS
    assert key_of(T.call_extern("float32", "f", x)) not in OPERATORS


def test_what_must_not_be_computed_where_it_is_not_needed():
    x, y = E.Var("x", "int32"), E.Var("y", "int32")
    for divide in (E.Div, E.Mod, E.FloorDiv, E.FloorMod):
        assert may_trap(divide(x, y) + 1)
        assert not may_trap(divide(x, const(3)))
    assert may_trap(T.call_extern("int32", "f", x))
    assert not may_trap(T.exp(x) + T.shift_left(x, y))


def test_numpy_calls_no_function_where_its_value_is_not_needed():
    calls = []

    @register_func("test.operators.counted", override=True)
    def counted():
        calls.append(1)
        return 1.0

    func = from_source(
        '@T.prim_func\ndef main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
        "    for i in range(4):\n        B[i] = T.if_then_else(A[i] > T.float32(0), "
        'T.call_extern("float32", "test.operators.counted"), T.float32(5))\n'
    )
    result = nd.empty((4,))
    build(func, "numpy")(nd.array(np.zeros(4, "float32")), result)
    assert result.numpy().tolist() == [5, 5, 5, 5]
    assert not calls


def test_which_vectors_webassembly_has():
    assert has_vector_operator(E.Mul, "int16")
    assert not has_vector_operator(E.Mul, "int8")
    assert not has_vector_operator(E.Div, "int32")
    assert has_vector_operator(E.Div, "float64")
    assert not has_vector_operator(E.LT, "uint64")
    assert not has_vector_operator("fmod", "float32")


def test_bits_of_arrays_are_read_as_another_type():
    func = from_source(
        '@T.prim_func\ndef main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32")):\n'
        '    for i in range(4):\n        B[i] = T.reinterpret("int32", A[i])\n'
    )
    kernel, result = build(func, "numpy"), nd.empty((4,), "int32")
    kernel(nd.array(np.array([0, 1, -1, 2], "float32")), result)
    assert result.numpy().tolist() == [0, 0x3F800000, -0x40800000, 0x40000000]


def test_python_prints_each_operator_that_it_writes_infix():
    x, y = E.Var("x", "int32"), E.Var("y", "int32")
    for key in keys(Family.BITWISE, arity=2):
        node = BUILDERS[key](x, y)
        assert repr(node) == f"x {OPERATORS[key].symbol} y"
        assert [part for part in walk(node) if isinstance(part, E.Var)] == [x, y]
