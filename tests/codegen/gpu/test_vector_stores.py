"""Vectorized loops in WGSL: which memory becomes an array of vectors, and what it computes."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb
from mlcweb.script import from_source
from mlcweb.tir import PrimFunc
from tests.gpu import assert_kernels_give

THREADS = 16


def program(statements: str, size: int = 64, dtype: str = "float32", memory: str = "") -> PrimFunc:
    lines = "\n".join(f"        {line}" for line in statements.splitlines())
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer(({size},), "{dtype}"), B: T.Buffer(({size},), "{dtype}")):
    {memory}
    for t in T.thread_binding({THREADS}, thread="threadIdx.x"):
{lines}
"""
    )
    assert isinstance(func, PrimFunc)
    return func


def wgsl(func: PrimFunc) -> str:
    return mlcweb.build(func, target="webgpu").imported_modules[0].get_source()


X = np.linspace(0.5, 4, 64, dtype="float32")


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("A[t * 4 + v]", "A[i32(threadIdx.x)]", X),
        ("A[(15 - t) * 4 + v]", "A[", X.reshape(16, 4)[::-1]),
        ("(A[t * 4 + v] + T.float32(1)) * A[t]",
         "(A[i32(threadIdx.x)] + vec4<f32>(1.0f)) * vec4<f32>(",
         (X.reshape(16, 4) + 1) * X[:16, None]),
        ("T.max(T.exp(A[t * 4 + v]), A[v]) / A[t * 4 + v]",
         "max(exp(A[i32(threadIdx.x)]), A[0]) / A[i32(threadIdx.x)]",
         np.maximum(np.exp(X.reshape(16, 4)), X[:4]) / X.reshape(16, 4)),
        ("A[t * 4 + v] - (A[t * 4 + v] - T.float32(3)) - T.rsqrt(A[v])", "A[0])",
         X.reshape(16, 4) - (X.reshape(16, 4) - 3) - 1 / np.sqrt(X[:4])),
    ],
)  # fmt: skip
def test_four_neighbours_are_computed_as_a_vector(value, text, expected):
    func = program(f"for v in T.vectorized(4):\n    B[t * 4 + v] = {value}")
    source = wgsl(func)
    assert "A : array<vec4<f32>>" in source
    assert "B : array<vec4<f32>>" in source
    assert text in source
    assert "for (" not in source
    assert_kernels_give(func, [X], np.asarray(expected, "float32").reshape(64))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A[t * 4 + v + 1 - v // 3]", X.reshape(16, 4)[:, [1, 2, 3, 3]]),  # no neighbours
        ("A[v * 16 + t]", X.reshape(4, 16).T),
        ("A[t * 4 + v] + T.cast(v, 'float32')", X.reshape(16, 4) + np.arange(4)),
        ("T.if_then_else(A[t * 4 + v] > T.float32(2), A[t * 4 + v], T.float32(0))",
         np.where(X > 2, X, 0)),
    ],
)  # fmt: skip
def test_what_is_no_vector_remains_a_loop(value, expected):
    func = program(f"for v in T.vectorized(4):\n    B[t * 4 + v] = {value}")
    assert "vec4" not in wgsl(func)
    assert_kernels_give(func, [X], np.asarray(expected, "float32").reshape(64))


def test_memory_stored_by_elements_is_no_array_of_vectors():
    # A store of one lane may be a store of its whole vector, of which other threads store the rest.
    func = program("B[t] = A[t]\nfor v in T.vectorized(4):\n    B[t * 4 + v] = A[t * 4 + v]")
    assert "vec4" not in wgsl(func)


def test_other_loops_of_memory_that_is_refused_are_refused_too():
    func = program(
        "S[t] = A[t]\n"
        "for v in T.vectorized(4):\n    S[t * 4 + v] = A[t * 4 + v]\n"
        "for v in T.vectorized(4):\n    B[t * 4 + v] = S[t * 4 + v]",
        memory='S = T.alloc_buffer((64,), scope="shared")',
    )
    assert "vec4" not in wgsl(func)


def test_a_size_that_vectors_do_not_divide_is_refused():
    func = program("for v in T.vectorized(4):\n    B[t * 4 + v] = A[t * 4 + v]", size=66)
    assert "vec4" not in wgsl(func)


def test_vectors_of_two_lengths_are_refused():
    func = program(
        "for v in T.vectorized(4):\n    B[t * 4 + v] = A[t * 4 + v]\n"
        "for v in T.vectorized(2):\n    B[t * 2 + v] = A[t * 2 + v] + T.float32(0)"
    )
    assert "vec" not in wgsl(func).replace("vec3<u32>", "")


@pytest.mark.parametrize(("dtype", "kind"), [("int32", "i32"), ("uint32", "u32")])
def test_pairs_of_integers_through_shared_memory(dtype, kind):
    func = program(
        "for v in T.vectorized(2):\n    S[t * 2 + v] = A[t * 2 + v] * A[v]\n"
        "for v in range(4):\n    B[t * 4 + v] = S[(t * 4 + v) % 32]",
        dtype=dtype,
        memory=f'S = T.alloc_buffer((32,), "{dtype}", scope="shared")',
    )
    source = wgsl(func)
    assert f"var<workgroup> S : array<vec2<{kind}>, 16>;" in source
    assert f"B : array<{kind}>;" in source
    x = np.arange(64).astype(dtype)
    products = (x[:32].reshape(16, 2) * x[:2]).reshape(32)
    assert_kernels_give(func, [x], np.tile(products, 2))


def test_sums_in_the_lanes_of_a_register():
    func = program(
        "for v in T.vectorized(4):\n    L[v] = T.float32(0)\n"
        "for k in range(4):\n"
        "    for v in T.vectorized(4):\n        L[v] = L[v] + A[(t // 4) * 16 + k * 4 + v]\n"
        "for v in range(4):\n    B[t * 4 + v] = L[v] + L[0]",
        memory='L = T.alloc_buffer((4,), scope="local")',
    )
    assert "L[0] = L[0] + A[" in wgsl(func)
    sums = X.reshape(4, 4, 4).sum(1)
    expected = np.repeat(sums + sums[:, :1], 4, axis=0)
    assert_kernels_give(func, [X], expected.reshape(64))


def test_flags_in_shared_memory() -> None:
    """WGSL has them there, although not in the memory of arrays."""
    func = program(
        "S[t] = A[t] > T.float32(2)\nB[t] = T.Select(S[15 - t], A[t], T.float32(0))",
        16,
        memory='S = T.alloc_buffer((16,), "bool", scope="shared")',
    )
    a = X[:16] * 2
    assert_kernels_give(func, [a], np.where(a[::-1] > 2, a, 0))
