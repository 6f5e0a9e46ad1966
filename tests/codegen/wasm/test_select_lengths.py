"""Loops of every length: vectors, what is left over, and loops that do not run at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples

pytest.importorskip("wasmtime")

from mlcweb.codegen import interpreter
from mlcweb.codegen.registry import RELAXED_MADD
from mlcweb.runtime.host import wasm_target
from mlcweb.runtime.host.engine import engine
from mlcweb.script import from_source
from tests.codegen.compiled import BUILDERS

DTYPES = (
    "float32", "float64", "float16", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64",
)  # fmt: skip
ELEMENTWISE = (
    "C[i] = A[i] + B[i]",
    "C[i + 1] = A[i] * B[i] - A[i + 1]",
    "C[i] = T.max(A[i], B[i])",
    "C[i] = T.min(A[i], T.{dtype}(3))",
    "C[i] = T.if_then_else(i < 5, A[i], B[i + 2])",
    "C[i] = T.Select(A[i] < B[i], A[i], B[i])",
    "C[i * 2] = A[i] + B[i * 2]",
    "C[i] = A[i * 2] + B[i * 2 + 5]",
    "C[{n} - i] = A[i]",
)
REDUCTIONS = (
    "C[0] = C[0] + A[i]",
    "C[0] = C[0] + A[i] * B[i]",
    "C[0] = T.max(C[0], A[i])",
    "C[0] = T.min(C[0], A[i] + B[i])",
    "C[i // 8] = C[i // 8] + A[i]",
)
PROGRAM = """
@T.prim_func
def main(A: T.Buffer(({size},), "{dtype}"), B: T.Buffer(({size},), "{dtype}"),
         C: T.Buffer(({size},), "{dtype}")):
    T.func_attr({{"tir.noalias": True, "mlcweb.reassociate": {reassociate}}})
    for j in range({rows}):
        for i in range({n}):
            {body}
"""


def run(build, func, seed, **options):
    buffers = func.parameter_buffers
    values = np.random.default_rng(seed).integers(-50, 50, (3, int(buffers[0].shape[0])))
    arrays = list((values / 8 if "float" in buffers[0].dtype else values).astype(buffers[0].dtype))
    build({"main": func}, lambda name: None, **options)["main"].run(*arrays)
    return arrays


def program(body, dtype, n, rows=1, reassociate=False):
    body = body.format(dtype=dtype, n=n)
    return from_source(
        PROGRAM.format(
            body=body, dtype=dtype, n=n, size=2 * n + 4, rows=rows, reassociate=reassociate
        )
    )


@examples(200)
@given(
    st.sampled_from(ELEMENTWISE + REDUCTIONS),
    st.sampled_from(DTYPES),
    st.integers(0, 70),
    st.integers(0, 2),
)
def test_every_length(body, dtype, n, rows):
    func = program(body, dtype, n, rows)
    plain = engine().options
    expected = run(interpreter.build, func, n)
    found = [run(wasm_target.build, func, n, options=plain)]
    if "llvm" in BUILDERS:
        found.append(run(BUILDERS["llvm"], func, n, config={RELAXED_MADD: False}))
    for arrays in found:
        for one, other in zip(expected, arrays, strict=True):
            np.testing.assert_array_equal(other, one)


@examples(60)
@given(st.sampled_from(REDUCTIONS), st.sampled_from(("float32", "float64")), st.integers(0, 300))
def test_sums_in_another_order_are_close(body, dtype, n):
    func = program(body, dtype, n, reassociate=True)
    expected = run(interpreter.build, func, n)
    for one, other in zip(expected, run(wasm_target.build, func, n), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-3)


@examples(30)
@given(st.sampled_from(("max", "min")), st.integers(1, 80), st.data())
def test_not_a_number_is_kept(name, n, data):
    func = program(f"C[0] = T.{name}(C[0], A[i])", "float32", n)
    kernel = wasm_target.build({"main": func}, lambda name: None)["main"]
    a, b, c = (np.zeros(2 * n + 4, "float32") for _ in range(3))
    place = data.draw(st.integers(0, n))
    a[place] = np.nan
    kernel.run(a, b, c)
    assert np.isnan(c[0]) == (place < n)
