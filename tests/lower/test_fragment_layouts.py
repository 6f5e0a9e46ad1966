"""Layouts for tensor cores: columns of shared memory in another order in each row, and matrices in
the registers of lanes. The programs expected are what TVM 0.27 makes."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir.errors import TVMError
from mlcweb.ir.structural import assert_structural_equal
from mlcweb.script import from_source


def permuted(func):
    return tvm.tir.transform.InjectPermutedLayout()(func)


PERMUTED = """
@T.prim_func
def main(A: T.Buffer((128, 64), "float16"), B: T.Buffer((128, 64), "float16")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("root"):
            T.reads(A[0:128, 0:64])
            T.writes(B[0:128, 0:64])
            S = T.alloc_buffer((64, 64), "float16", scope="shared")
            D = T.alloc_buffer((2, 64, 32), "float16", scope="shared.dyn")
            L = T.alloc_buffer((64,), "float16", scope="local")
            for i, j in T.grid(16, 8):
                with T.block("store"):
                    T.reads(A[0:128, 0:64])
                    T.writes(S[0:64, 0:64])
                    {one}
                    for v in T.vectorized(8):
                        S[i * 4 + tx // 8, {s}] = A[i * 4 + tx // 8, tx % 8 * 8 + v]
            for i in range(8):
                with T.block("other"):
                    T.reads(A[0:128, 0:64])
                    T.writes(D[0:2, 0:64, 0:32])
                    {text}
                    D[i % 2, i * 8 + tx // 4, {d}] = (
                        A[i * 8 + tx // 4, tx % 4 * 8] + D[i % 2, i, {e}] + S[tx, {f}])
            for i in range(8):
                with T.block("plain"):
                    T.reads(S[0:64, 0:64])
                    T.writes(B[0:128, 0:64])
                    T.block_attr({{"permuted_layout": 0}})
                    B[i, tx] = S[tx, i]
            for i in range(4):
                with T.block("ldmatrix"):
                    T.reads(S[0:64, 0:64])
                    T.writes(L[0:64])
                    {one}
                    T.ptx_ldmatrix("float16", 0, 4, ".b16", L.data, 8 * i,
                        T.tvm_access_ptr(T.type_annotation("float16"), S.data, {begin}, 1024, 1),
                        {offset})
"""


def test_columns_of_annotated_blocks_are_in_the_order_that_tvm_gives_them():
    before = PERMUTED.format(
        one='T.block_attr({"permuted_layout": 1})',
        text='T.block_attr({"permuted_layout": "g2s", "other": 2})',
        s="tx % 8 * 8 + v", d="tx % 4 * 8", e="tx", f="i",
        begin="i * 1024", offset="tx % 16 * 64 + tx // 16 * 8",
    )  # fmt: skip
    after = PERMUTED.format(
        one="", text='T.block_attr({"other": 2})',
        s="(tx % 8 ^ i % 2 * 4 + tx // 8) * 8 + v",
        d="(tx % 4 ^ tx // 8) * 8", e="(tx // 8 ^ i // 2) * 8 + tx % 8",
        f="T.bitwise_xor(0, tx % 8) * 8 + i",
        begin="i * 1024 + tx % 16 * 64 + (tx // 16 ^ tx % 8) * 8", offset="0",
    )  # fmt: skip
    assert_structural_equal(permuted(from_source(before)), from_source(after))


@pytest.mark.parametrize(("shape", "order"), [
    ((8, 64), [[g ^ r for g in range(8)] for r in range(8)]),
    ((8, 32), [[g ^ r // 2 for g in range(4)] for r in range(8)]),
])  # fmt: skip
def test_what_is_read_in_the_same_order_stays(shape, order):
    rows, columns = shape
    text = f"""
@T.prim_func
def main(A: T.Buffer({shape}, "float16"), B: T.Buffer({shape}, "float16"),
         M: T.Buffer({shape}, "float16")):
    S = T.alloc_buffer({shape}, "float16", scope="shared")
    for i, j in T.grid({rows}, {columns}):
        with T.block("in"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({{"permuted_layout": 1}})
            S[vi, vj] = A[vi, vj]
    for i, j in T.grid({rows}, {columns}):
        with T.block("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({{"permuted_layout": 1}})
            B[vi, vj] = S[vi, vj]
    for i, j in T.grid({rows}, {columns}):
        with T.block("memory"):
            vi, vj = T.axis.remap("SS", [i, j])
            M[vi, vj] = S[vi, vj]
"""
    a = np.arange(rows * columns).reshape(shape).astype("float16")
    arrays = [tvm.nd.array(x) for x in (a, np.zeros_like(a), np.zeros_like(a))]
    tvm.build(permuted(from_source(text)), target="interpreter")["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), a)
    groups = arrays[2].numpy().reshape(rows, -1, 8)
    np.testing.assert_array_equal(groups[:, :, 0] % columns // 8, order)
    np.testing.assert_array_equal(np.diff(groups, axis=2), 1)


@pytest.mark.parametrize("shape", [(8, 48), (3, 32)])
def test_rows_that_cannot_be_permuted_are_refused(shape):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer({shape}, "float16")):
    with T.block("root"):
        T.block_attr({{"permuted_layout": 1}})
        S = T.alloc_buffer({shape}, "float16", scope="shared")
        S[0, 0] = A[0, 0]
""")
    with pytest.raises(TVMError, match=r'"S" has shape \(.*\), and a permuted layout takes rows'):
        permuted(func)


FRAGMENTS = """
@T.prim_func
def main(A: T.Buffer((64, 32), "float16"), B: T.Buffer((64, 32), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("root"):
            T.reads(A[0:64, 0:32])
            T.writes(B[0:64, 0:32])
            MA = T.alloc_buffer({a})
            MB = T.alloc_buffer({b})
            MC = T.alloc_buffer({c})
            for i, j in T.grid(64, 32):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads()
                    T.writes({all_c})
                    MC[{c_ij}] = T.float32(0)
            T.ptx_ldmatrix("float16", 0, 4, ".b16", MA.data, 8,
                T.tvm_access_ptr(T.type_annotation("float16"), A.data, 0, 1024, 1), tx)
            for i, j in T.grid(64, 32):
                with T.block("store"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads({all_c})
                    T.writes(B[vi, vj])
                    B[vi, vj] = MC[{c_ij}] + MC[{c_i3}]
"""


def fragments(**changes):
    parts = {
        "a": '(64, 32), "float16", scope="m16n8k8.matrixA"',
        "b": '(32, 64), "float16", scope="m16n8k8.matrixB"',
        "c": '(64, 32), scope="m16n8k8.matrixC"',
        "all_c": "MC[0:64, 0:32]", "c_ij": "vi, vj", "c_i3": "vi, 3",
    }  # fmt: skip
    return from_source(FRAGMENTS.format(**{**parts, **changes}))


def test_matrices_become_registers_as_tvm_lays_them_out():
    """TVM leaves the regions of blocks with the buffers that are gone."""
    expected = fragments(
        a='(2, 4, 4, 2), "float16", scope="local"', b='(4, 2, 1, 8), "float16", scope="local"',
        c='(4, 4, 2, 2), scope="local"', all_c="MC[0:4, 0:4, 0:2, 0:2]",
        c_ij="vi // 16, vj // 8, vi % 16 // 8, vj % 2", c_i3="vi // 16, 0, vi % 16 // 8, 1",
    )  # fmt: skip
    assert_structural_equal(tvm.tir.transform.TransformMmaBufferLayout()(fragments()), expected)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"c": '(60, 32), scope="m16n8k8.matrixC"'}, r"not made of tiles of 16 x 8"),
        ({"c": '(64, 32), scope="m16n8k8.matrixA"'}, "whose elements no statement reaches"),
    ],
)
def test_matrices_that_no_lanes_hold_are_refused(changes, reason):
    with pytest.raises(TVMError, match=reason):
        tvm.tir.transform.TransformMmaBufferLayout()(fragments(**changes))
