"""Buffers whose elements are vectors, on all targets."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import TVMError
from mlcweb.script import from_source
from tests.gpu import compile_cuda, runners

TARGETS = ["interpreter", "numpy", "wasm", "llvm", "simulated"]
VALUES = np.arange(32, dtype="float32").reshape(8, 4)

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "float32x4"), B: T.Buffer((8,), "float32x4"), s: T.float32):
    C = T.alloc_buffer((8,), "float32x4")
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] * T.Broadcast(s, 4)
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = C[7 - v] + T.Broadcast(T.float32(1), 4)
"""


def vectors(values: np.ndarray) -> tvm.nd.NDArray:
    dtype = f"{values.dtype}x{values.shape[-1]}"
    return tvm.nd.empty(values.shape[:-1], dtype).copyfrom(values)


@pytest.mark.parametrize("target", TARGETS)
def test_vectors_are_computed_and_kept(target: str) -> None:
    sch = tvm.tir.Schedule(from_source(PROGRAM))
    if target == "simulated":
        sch.compute_inline("C")
        sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    a, b = vectors(VALUES), vectors(np.zeros_like(VALUES))
    tvm.build(sch.mod, target)["main"](a, b, 2.0)
    np.testing.assert_array_equal(b.numpy(), VALUES[::-1] * 2 + 1)


def test_an_array_of_vectors_has_their_shape_and_all_numbers() -> None:
    array = vectors(VALUES)
    assert (array.shape, array.dtype, array.nbytes) == ((8,), "float32x4", 128)
    np.testing.assert_array_equal(array.numpy(), VALUES)
    with pytest.raises(ValueError, match=r"into one of shape \(8, 4\)"):
        array.copyfrom(VALUES[:, 0])


def test_a_vector_is_shuffled_together() -> None:
    func = from_source("""
@T.prim_func
def main(x: T.int32, y: T.int32, B: T.Buffer((1,), "int32x2")):
    B[0] = T.Shuffle([x, y], [1, 0])
""")
    for target in TARGETS[:-1]:
        pair = vectors(np.zeros((1, 2), "int32"))
        tvm.build(func, target)["main"](3, 4, pair)
        assert pair.numpy().tolist() == [[4, 3]], target


def test_several_vectors_at_once_are_refused() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32x2"), B: T.Buffer((8,), "float32")):
    B[0:8] = A[T.Ramp(0, 1, 4)]
""")
    with pytest.raises(TVMError, match="a buffer of vectors, of which one is accessed at a time"):
        tvm.build(func, "interpreter")


def test_kernels_of_gpus_store_vectors() -> None:
    """A slice is a loop over its lanes, which WGSL writes as one store of a vector; where it reads
    what it overwrites, all lanes are computed before."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i in T.thread_binding(8, "threadIdx.x"):
        B[i * 4:i * 4 + 4] = T.exp(A[i * 4:i * 4 + 4]) + T.Broadcast(T.float32(1), 4)
        B[i * 4:i * 4 + 4] = B[T.Ramp(i * 4 + 3, -1, 4)]
""")
    cuda = tvm.build(func, "cuda -device=simulated").imports[0].get_source()
    assert "for (int lane = 0; lane < 4; ++lane)" in cuda
    a, b = (tvm.nd.array(values) for values in (VALUES.reshape(-1) / 32, np.zeros(32, "float32")))
    tvm.build(func, "simulated")["main"](a, b)
    expected = np.exp(VALUES / 32)[:, ::-1].reshape(-1) + 1
    np.testing.assert_allclose(b.numpy(), expected, rtol=1e-6)
    sch = tvm.tir.Schedule(from_source(PROGRAM))
    sch.compute_inline("C")
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    wgsl = tvm.build(sch.mod, "webgpu -device=simulated").imports[0].get_source()
    assert "A : array<vec4<f32>>" in wgsl
    assert "for (" not in wgsl


WORDS = np.random.default_rng(1).integers(0, 2**32, 16, "uint32")
VIEWS = """
@T.prim_func
def main(A: T.Buffer((16,), "uint32"), B: T.Buffer((16, 4), "int32"), C: T.Buffer((16,), "uint32")):
    for i in T.{kind}:
        B[i, 0:4] = T.Cast("int32x4", T.reinterpret("int8x4", A[i]))
        C[i] = T.reinterpret("uint32", T.Cast("uint8x4", B[i, 0:4])) + T.uint32(1)
"""


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
def test_the_bits_of_a_vector_are_a_number(target: str) -> None:
    func = from_source(VIEWS.format(kind="serial(16)"))
    a = tvm.nd.array(WORDS)
    b, c = tvm.nd.array(np.zeros((16, 4), "int32")), tvm.nd.array(0 * WORDS)
    tvm.build(func, target=target)(a, b, c)
    np.testing.assert_array_equal(b.numpy(), WORDS.view("int8").reshape(16, 4))
    np.testing.assert_array_equal(c.numpy(), WORDS + 1)


def test_the_bits_of_a_vector_are_a_number_in_kernels() -> None:
    func = from_source(VIEWS.format(kind='thread_binding(16, thread="threadIdx.x")'))
    assert compile_cuda(tvm.build(func, target="cuda").imports[0].get_source()) == ""
    if (run := runners().get("opencl")) is not None:
        b, c = np.zeros((16, 4), "int32"), 0 * WORDS
        run(func, [WORDS.copy(), b, c])
        np.testing.assert_array_equal(b, WORDS.view("int8").reshape(16, 4))
        np.testing.assert_array_equal(c, WORDS + 1)
