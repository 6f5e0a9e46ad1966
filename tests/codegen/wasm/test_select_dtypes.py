"""Arithmetic, comparisons and conversions of every type: exactly what the interpreter computes."""

import itertools

import numpy as np
import pytest

pytest.importorskip("wasmtime")

from mlcweb.codegen import interpreter
from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.codegen.wasm.kernel import compile_functions
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.script import from_source
from tests.codegen.compiled import BUILDERS, compiled

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "float32", "float64")
COUNT = 37
"""Not a multiple of any number of lanes."""


def values(dtype, seed, nonzero=False):
    """Random numbers, and the ends of the range."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, COUNT).astype(bool)
    if dtype in FLOATS:
        drawn = random.normal(0, 100, COUNT).astype(dtype)
        drawn[:6] = [0, 1, -1, 1e4, np.inf, -0.5]
        return drawn
    info = np.iinfo(dtype)
    drawn = random.integers(info.min, info.max, COUNT, dtype, endpoint=True)
    drawn[:6] = [0, 1, info.max, info.min, 7, info.max // 2]
    random.shuffle(drawn)
    drawn[20:30] %= 11
    return np.where(drawn == 0, 3, drawn).astype(dtype) if nonzero else drawn


def compare(expression, dtypes, result, seed=0, nonzero=False):
    """Compute an expression of A[i], B[i], … both ways."""
    names = "ABC"[: len(dtypes)]
    declared = [*zip(names, dtypes, strict=True), ("R", result)]
    parameters = ", ".join(f'{name}: T.Buffer(({COUNT},), "{dtype}")' for name, dtype in declared)
    func = from_source(
        f"@T.prim_func\ndef main({parameters}):\n"
        '    T.func_attr({"tir.noalias": True})\n'
        f"    for i in range({COUNT}):\n        R[i] = {expression}\n"
    )
    inputs = [values(dtype, seed + n, nonzero) for n, dtype in enumerate(dtypes)]
    expected = np.zeros(COUNT, result)
    interpreter.build({"main": func}, lambda name: None)["main"].run(*inputs, expected)
    for target in BUILDERS:
        actual = np.zeros(COUNT, result)
        compiled(target, func).run(*inputs, actual)
        np.testing.assert_array_equal(actual, expected, target)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize(
    "expression", ["A[i] + B[i]", "A[i] - B[i]", "A[i] * B[i]", "T.min(A[i], B[i])",
                   "T.max(A[i], B[i])", "T.max(A[i], T.{0}(1))", "T.min(A[i], T.{0}(1))"],
)  # fmt: skip
def test_arithmetic(expression, dtype):
    compare(expression.format(dtype), [dtype, dtype], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floordiv", "floormod", "truncdiv", "truncmod"])
def test_division_of_integers(name, dtype):
    compare(f"T.{name}(A[i], B[i])", [dtype, dtype], dtype, nonzero=True)
    for divisor in (1, 3, 8, 100):
        compare(f"T.{name}(A[i], T.{dtype}({divisor}))", [dtype], dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_division_of_floats(dtype):
    compare("A[i] / (B[i] + B[i])", [dtype, dtype], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    for expression in ("A[i] & B[i]", "A[i] | B[i]", "A[i] ^ B[i]", "~A[i]"):
        compare(expression, [dtype, dtype], dtype)
    for expression in ("A[i] << T.{0}(3)", "A[i] >> T.{0}(2)", "A[i] >> (B[i] % T.{0}(7))"):
        compare(expression.format(dtype), [dtype, dtype], dtype)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_comparisons_and_choices(dtype):
    for operator in ("==", "!=", "<", "<=", ">", ">="):
        compare(f"A[i] {operator} B[i]", [dtype, dtype], "bool")
    compare("T.Select(A[i] < B[i], A[i], B[i])", [dtype, dtype], dtype)
    compare("T.if_then_else(A[i] < B[i] and B[i] != A[i], A[i], B[i])", [dtype, dtype], dtype)


@pytest.mark.parametrize("dtype", SIGNED + FLOATS)
def test_absolute_value(dtype):
    compare("T.abs(A[i])", [dtype], dtype)


@pytest.mark.parametrize(
    ("source", "target"), [*itertools.permutations((*INTEGERS, *FLOATS, "bool"), 2)]
)
def test_conversions(source, target):
    compare(f'T.Cast("{target}", A[i])', [source], target)


def test_conditions():
    for expression in ("A[i] and B[i]", "A[i] or B[i]", "not A[i]", "A[i] == B[i]"):
        compare(expression, ["bool", "bool"], "bool")
    compare("T.Select(A[i], B[i], C[i])", ["bool", "float32", "float32"], "float32")
    compare("T.Select(A[i], B[i], C[i])", ["bool", "int8", "int8"], "int8")


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "int32"), ("int32", "float32"), ("float64", "int64"),
                           ("float16", "int16"), ("uint32", "float32")],
)  # fmt: skip
def test_bits_read_as_another_type(source, target):
    compare(f'T.reinterpret("{target}", A[i])', [source], target)


def test_loop_variables_as_values():
    compare("T.cast(i, 'float32') * A[i] + T.cast(i % 5, 'float32')", ["float32"], "float32")
    compare("A[i] * i + i // 3", ["int32"], "int32")


@pytest.mark.parametrize("operation", ["floordiv", "truncmod"])
def test_division_by_zero_stops_the_kernel(operation):
    func = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((4,), 'int32'), B: T.Buffer((4,), 'int32')):\n"
        f"    for i in range(4):\n        B[i] = T.{operation}(A[i], B[i])\n"
    )
    for target in BUILDERS:
        with pytest.raises(KernelTrap, match="divided an integer by zero"):
            compiled(target, func).run(np.ones(4, "int32"), np.zeros(4, "int32"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_tests_of_floats(name, dtype):
    compare(f"T.{name}(A[i] - A[i])", [dtype], "bool")
    compare(f"T.{name}(A[i])", [dtype], "bool")


@pytest.mark.parametrize(
    ("operator", "dtype", "reason"),
    [
        ("T.copysign(A[i], A[i])", "int32", "no i32.copysign"),
        ("T.abs(A[i])", "bool", "no i1x128.abs"),
    ],
)
def test_what_is_no_instruction_is_refused(operator, dtype, reason):
    """What WebAssembly cannot do is left to NumPy, and is no error of the encoder."""
    func = from_source(
        "from tvm.script import tir as T\n\n"
        "@T.prim_func\n"
        f'def main(A: T.Buffer((37,), "{dtype}"), B: T.Buffer((37,), "{dtype}")):\n'
        '    T.func_attr({"tir.noalias": True})\n'
        f"    for i in range(37):\n        B[i] = {operator}\n"
    )
    with pytest.raises(UnsupportedError, match=reason):
        compile_functions({"main": func})
