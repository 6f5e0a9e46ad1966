"""`T.Shuffle` picks elements of vectors, on every target."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import tir
from mlcweb.ir import assert_structural_equal
from mlcweb.script import from_source
from mlcweb.script import tir as T


@T.prim_func
def interleave(
    A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((17,), "float32")
) -> None:
    for i in range(2):
        C[T.Ramp(i * 8, 1, 8)] = T.Shuffle(
            [A[T.Ramp(i * 4, 1, 4)], B[T.Ramp(i * 4, 1, 4)]], [0, 4, 1, 5, 2, 6, 3, 7]
        )
    C[16] = T.Shuffle([A[0], B[3]], [1])


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm -mcpu=host"])
def test_vectors_are_interleaved(target: str) -> None:
    a, b = np.arange(8, dtype="float32"), np.arange(8, dtype="float32") + 10
    out = tvm.nd.empty((17,))
    tvm.build(interleave, target=target)["interleave"](tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_array_equal(out.numpy(), [*np.stack([a, b], 1).ravel(), 13])


def test_it_is_printed_and_read() -> None:
    text = interleave.script()
    assert "C[16] = T.Shuffle([A[0], B[3]], [1])" in text
    assert_structural_equal(from_source(text), interleave)
    vector = tir.Shuffle([tir.Ramp(0, 1, 4)], [0, 3])
    assert vector.dtype == "int32x2"
