"""FlattenBuffer under TVM's name. The texts expected are what TVM 0.27 prints, in our spelling and
without its layouts."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError, tir
from mlcweb.analysis.verify import VerifyEachPass
from mlcweb.ir.transform import PassContext
from mlcweb.lower import transform
from mlcweb.script import from_source
from tests.lower.test_tvm_names import body

MIRRORED = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32"),
         C: T.Buffer((32,), "float32"), unused: T.Buffer((2, 2), "float32")):
    D = T.decl_buffer((4, 8))
    for i, j in T.grid(8, 4):
        D[j, i] = A[i, j] + A[0, 3 - j]
    for k in T.parallel(32):
        if k < 30:
            B[k // 4, k % 4] = D[3 - k % 4, k // 4] * C[k]
"""

FLAT = """
A_1 = T.decl_buffer((32,), data=A.data)
B_1 = T.decl_buffer((32,), data=B.data)
C_1 = T.decl_buffer((32,), data=C.data)
D = T.decl_buffer((32,))
for i, j in T.grid(8, 4):
    D[j * 8 + i] = A_1[i * 4 + j] + A_1[3 - j]
for k in T.parallel(32):
    if k < 30:
        B_1[k] = D[k // 4 + 24 - k % 4 * 8] * C_1[k]"""

SYMBOLIC = """
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (4, n, n))
    B = T.match_buffer(b, (4, n, n))
    for i in range(4 * n * n):
        B[i // (n * n), i % (n * n) // n, i % n] = A[i // (n * n), i % (n * n) // n, i % n]
"""

ROWS = """
@T.prim_func
def main(A: T.Buffer((4, 17), "float32"), B: T.Buffer((4, 16), "float32")):
    A_1 = T.decl_buffer((4, 16), data=A.data, strides=(17, 1), elem_offset=1)
    for i in range(4):
        B[i, 0:16] = A_1[i, 0:16]
"""

BLOCKS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    C = T.alloc_buffer((4, 8))
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:8])
            T.writes(C[vi, 0:8])
            for j in range(8):
                C[vi, j] = A[vi, j]
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(C[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = C[3 - vi, vj]
"""


def flattened(text: str) -> IRModule:
    with PassContext(instruments=[VerifyEachPass()]):
        return transform.FlattenBuffer()(IRModule({"main": from_source(text)}))


def computed(func: tir.PrimFunc, **sizes: int) -> list[list[float]]:
    """What a function makes of small numbers; the interpreter checks all accesses."""
    arrays = []
    for count, buffer in enumerate(func.parameter_buffers, start=1):
        shape = [
            extent.value if isinstance(extent, tir.IntImm) else sizes[str(extent)]
            for extent in buffer.shape
        ]
        numbers = np.arange(np.prod(shape), dtype="float32") % 7 + count
        arrays.append(tvm.nd.array(numbers.reshape(shape)))
    tvm.build(IRModule({"main": func}), "interpreter")["main"](*arrays, *sizes.values())
    return [array.numpy().tolist() for array in arrays]


def test_flat_buffers_of_parameters_are_declared_and_indices_simple() -> None:
    new = flattened(MIRRORED)
    assert body(new).strip() == FLAT.strip()
    assert computed(new["main"]) == computed(from_source(MIRRORED))


def test_symbolic_extents() -> None:
    new = flattened(SYMBOLIC)
    assert "    A_1 = T.decl_buffer((n * n * 4,), data=A.data)\n" in new.script()
    assert body(new).endswith("\n    B_1[i] = A_1[i]")
    assert computed(new["main"], n=3) == computed(from_source(SYMBOLIC), n=3)


def test_a_view_reaches_to_the_end_of_its_memory() -> None:
    new = flattened(ROWS)
    assert "    A_1 = T.decl_buffer((68,), data=A.data)\n" in new.script()
    assert "B_1[i * 16:i * 16 + 16] = A_1[i * 17 + 1:i * 17 + 1 + 16]" in new.script()
    assert computed(new["main"]) == computed(from_source(ROWS))


def test_a_transposed_view_reaches_as_far_as_its_greatest_stride() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((24,), "float32"), B: T.Buffer((6, 4), "float32")):
    V = T.decl_buffer((6, 4), data=A.data, strides=[1, 6])
    for i, j in T.grid(6, 4):
        B[i, j] = V[i, j]
"""
    new = flattened(text)
    assert "V = T.decl_buffer((24,), data=A.data)" in new.script()
    assert computed(new["main"]) == computed(from_source(text))


def test_regions_of_blocks_are_flat() -> None:
    new = flattened(BLOCKS)
    text = new.script()
    assert "C = T.alloc_buffer((32,))" in text
    assert "T.reads(A_1[vi * 8:vi * 8 + 8])" in text
    assert "T.writes(B_1[vi * 8 + vj])" in text
    assert computed(new["main"]) == computed(from_source(BLOCKS))


def test_matched_buffers_are_lowered_first() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32")):
    with T.block("row"):
        R = T.match_buffer(A[2, 0:8], (8,))
        R[3] = T.float32(1)
"""
    with pytest.raises(TVMError, match='A block matches "R": run LowerMatchBuffer first'):
        flattened(text)
