"""Integers of 64 bits in WGSL: what fits into 32 is computed, what may not is refused."""

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.gpu.kernels import kernels_of
from mlcweb.codegen.gpu.wide_integers import check_integers_fit, is_wide
from mlcweb.script import from_source
from tests.gpu import assert_kernels_give

X = np.linspace(-3, 3, 256, dtype="float32").reshape(8, 32)


def program(value, index="i, j", size="T.int64(8)"):
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    for i in T.thread_binding({size}, thread="blockIdx.x"):
        for j in T.thread_binding(T.int64(32), thread="threadIdx.x"):
            B[i, j] = {value}
"""
    )


I, J = np.mgrid[:8, :32]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A[T.int64(7) - i, (j * T.int64(5) - T.int64(3)) % T.int64(32)]",
         X[::-1][:, (np.arange(32) * 5 - 3) % 32]),
        ("T.cast((i * j - T.int64(9)) // T.int64(4), 'float32')", ((I * J - 9) // 4)),
        ("T.if_then_else(i * j < T.int64(50), A[i, j], T.float32(0))", np.where(I * J < 50, X, 0)),
        # Beyond 32 bits, but of the sum only the low bits are looked at, and these are right.
        ("T.cast(T.cast((i + T.int64(1)) * T.int64(2000000000) - i * T.int64(2000000000), 'int32'),"
         "'float32')", np.full((8, 32), 2e9)),
        ("T.cast(T.shift_right(j + T.int64(64), T.int64(3)), 'float32')", (J + 64) // 8),
    ],
)  # fmt: skip
def test_what_fits_is_computed(value, expected):
    assert_kernels_give(program(value), [X], expected.astype("float32"))


@pytest.mark.parametrize(
    ("value", "expression", "ends"),
    [
        ("T.cast(i * T.int64(1000000000), 'float32')", r"i \* T.int64\(1000000000\)",
         "0 to 7000000000"),
        ("T.if_then_else(i * T.int64(2000000000) < j, A[i, j], T.float32(0))", "i", "14000000000"),
        ("A[i * T.int64(2000000000) // T.int64(2000000000), j] + T.cast(i * j * T.int64(30000000)"
         " // T.int64(7), 'float32')", "", "6510000000"),
        ("T.cast(T.shift_right(i, j + T.int64(1)), 'float32')", "", "shift by more than 31"),
    ],
)  # fmt: skip
def test_what_may_not_fit_is_refused_when_built(value, expression, ends):
    with pytest.raises(mlcweb.TVMError, match=f"{expression}.*is int64 and may.*{ends}.*32 bits"):
        mlcweb.build(program(value), target="webgpu -device=simulated")
    assert mlcweb.build(program(value), target="cuda -device=simulated").imported_modules


SYMBOLIC = from_source(
    """
@T.prim_func
def main(a: T.handle, s: T.int64, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for j in T.thread_binding(T.int64(4), thread="threadIdx.x"):
            B[i, j] = A[n - i - T.int64(1), j] + T.cast((i * s) // T.int64(3), "float32")
"""
)


def test_sizes_and_scalars_are_checked_by_their_values():
    [kernel] = kernels_of(SYMBOLIC, "main")[1]
    assert is_wide(kernel)
    names = {var.name: var for var in kernel.scalars}
    check_integers_fit(kernel, "webgpu", {names["n"]: 100, names["s"]: 20_000_000})
    with pytest.raises(mlcweb.TVMError, match="may be 0 to 66000000000"):
        check_integers_fit(kernel, "webgpu", {names["n"]: 100, names["s"]: 2_000_000_000})
    with pytest.raises(mlcweb.TVMError, match='"s" is int64 and is 4294967296, beyond the 32 bits'):
        check_integers_fit(kernel, "webgpu", {names["n"]: 1, names["s"]: 2**32})
