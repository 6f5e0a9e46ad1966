"""The products of 16 x 8 x 8 by PTX's `mma`, on matrices of scopes of their own.

A buffer of scope "m16n8k8.matrixA", …B or …C is a matrix of several tiles; the instructions are
told which registers of a lane a tile begins at. There is no lowering of these scopes here, so that
what is tensorized by them cannot be built.
"""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

from mlcweb.script import tir as T
from mlcweb.tensor_intrin.register_tiles import Intrinsic
from mlcweb.tensor_intrin.warp_matrices import WARP_SIZE
from mlcweb.tir.arithmetic import const
from mlcweb.tir.tensor_intrin import TensorIntrin

_SCOPE = "m16n8k8.matrix"


def get_index_A(elem_offset: Any, stride: Any) -> Any:
    """The register at which the tile of A begins that is at an offset."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // 32 * (stride // 8) + column // 8) * 8 + row % 32 // 16 * 4


def get_index_B(elem_offset: Any, stride: Any) -> Any:
    """The same of B."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // 8 * (stride // 32) + column // 32) * 8 + column % 32 // 8 * 2


def get_index_C(elem_offset: Any, stride: Any) -> Any:
    """The same of C."""
    row, column = elem_offset // stride, elem_offset % stride
    block, half = row // 8 // 2, row // 8 % 2
    return (block * 2 * (stride // 8) + half + column // 8 * 2) * 2


def get_mma_init_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Intrinsic:
    """Zeros in a tile of C."""
    zero, lanes = const(0, dtype), n_dim // 4

    @T.prim_func
    def description(
        dst: T.Buffer((m_dim, n_dim), dtype, offset_factor=1, scope=f"{_SCOPE}C"),
    ):
        with T.block("root"):
            T.reads()
            T.writes(dst[0:m_dim, 0:n_dim])
            for i, j in T.grid(m_dim, n_dim):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    dst[vi, vj] = zero

    @T.prim_func
    def implementation(
        dst: T.Buffer((m_dim, n_dim), dtype, offset_factor=1, scope=f"{_SCOPE}C"),
    ):
        with T.block("root"):
            T.reads()
            T.writes(dst[0:m_dim, 0:n_dim])
            for tx in T.thread_binding(WARP_SIZE, thread="threadIdx.x"):
                for b in range(m_dim // 8):
                    for v in T.vectorized(lanes):
                        dst[b * 8 + tx // 4, (tx % 4) * lanes + v] = zero

    return description, implementation


def get_mma_load_intrin(
    m_dim: int,
    n_dim: int,
    k_dim: int,
    dtype: str,
    shared_scope: str,
    is_b: bool,
    is_col_major: bool,
) -> Intrinsic:
    """A tile of A or B from shared memory."""
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    if is_col_major:
        rows, columns = columns, rows
    scope = f"{_SCOPE}{'B' if is_b else 'A'}"
    first = get_index_B if is_b else get_index_A
    turns = is_b != is_col_major

    def address(lane: Any, stride: Any) -> Any:
        return (lane % 8) * stride + (lane // 8) * 8 if turns else lane * stride

    @T.prim_func
    def description(
        src: T.Buffer((rows, columns), dtype, offset_factor=1, scope=shared_scope),
        dst: T.Buffer((rows, columns), dtype, offset_factor=1, scope=scope),
    ):
        with T.block("root"):
            T.reads(src[0:rows, 0:columns])
            T.writes(dst[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block("root"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    dst[vi, vj] = src[vi, vj]

    @T.prim_func
    def implementation(
        src: T.Buffer(
            (rows, columns), dtype, strides=("s0", "s1"), offset_factor=1, scope=shared_scope
        ),
        dst: T.Buffer((rows, columns), dtype, strides=("d0", "d1"), offset_factor=1, scope=scope),
    ):
        with T.block("root"):
            T.reads(src[0:rows, 0:columns])
            T.writes(dst[0:rows, 0:columns])
            for tx in T.thread_binding(WARP_SIZE, thread="threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        turns,
                        4,
                        ".b16",
                        dst.data,
                        first(dst.elem_offset, dst.strides[0]),
                        src.access_ptr("r"),
                        address(tx, src.strides[0]),
                        dtype=dtype,
                    )
                )

    return description, implementation


def get_mma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> Intrinsic:
    """The product of a tile of A and one of B, added to one of C."""
    rows, columns = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)
    shape = f"m{m_dim}n{n_dim}k{k_dim}"

    def widened(value: Any) -> Any:
        return value if in_dtype == out_dtype else T.Cast(out_dtype, value)

    def swap(i: Any, j: Any) -> tuple[Any, Any]:
        return (j, i) if b_transposed else (i, j)

    @T.prim_func
    def description(
        A: T.Buffer((m_dim, k_dim), in_dtype, offset_factor=1, scope=f"{_SCOPE}A"),
        B: T.Buffer((rows, columns), in_dtype, offset_factor=1, scope=f"{_SCOPE}B"),
        C: T.Buffer((m_dim, n_dim), out_dtype, offset_factor=1, scope=f"{_SCOPE}C"),
    ):
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:rows, 0:columns])
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j, k in T.grid(m_dim, n_dim, k_dim):
                with T.block("m16n8k8_sync"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + widened(A[vi, vk]) * widened(B[swap(vk, vj)])

    @T.prim_func
    def implementation(
        A: T.Buffer(
            (m_dim, k_dim), in_dtype, strides=("a0", "a1"), offset_factor=1, scope=f"{_SCOPE}A"
        ),
        B: T.Buffer(
            (rows, columns), in_dtype, strides=("b0", "b1"), offset_factor=1, scope=f"{_SCOPE}B"
        ),
        C: T.Buffer(
            (m_dim, n_dim), out_dtype, strides=("c0", "c1"), offset_factor=1, scope=f"{_SCOPE}C"
        ),
    ):
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:rows, 0:columns])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.ptx_mma(
                    shape, "row", "col", in_dtype, in_dtype, out_dtype,
                    A.data, get_index_A(A.elem_offset, A.strides[0]),
                    B.data, get_index_B(B.elem_offset, B.strides[0]),
                    C.data, get_index_C(C.elem_offset, C.strides[0]),
                    False, dtype=out_dtype,
                )
            )  # fmt: skip

    return description, implementation


def get_mma_store_dummy_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Intrinsic:
    """A tile of C to shared memory by its elements: what it describes is what it does."""

    @T.prim_func
    def description(
        src: T.Buffer((m_dim, n_dim), dtype, offset_factor=1, scope=f"{_SCOPE}C"),
        dst: T.Buffer((m_dim, n_dim), dtype, offset_factor=1, scope="shared.dyn"),
    ):
        with T.block("root"):
            T.reads(src[0:m_dim, 0:n_dim])
            T.writes(dst[0:m_dim, 0:n_dim])
            for i, j in T.grid(m_dim, n_dim):
                with T.block("m16n8k8_store"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    dst[vi, vj] = src[vi, vj]

    return description, description


for _is_b in (False, True):
    TensorIntrin.register(
        f"mma_load_m16n8k8_f16_{'B' if _is_b else 'A'}_shared_dyn",
        *get_mma_load_intrin(32, 32, 8, "float16", "shared.dyn", _is_b, False),
    )
for _short, _dtype in (("f16", "float16"), ("f32", "float32")):
    TensorIntrin.register(f"mma_init_m16n8k8_{_short}", *get_mma_init_intrin(16, 8, 8, _dtype))
    TensorIntrin.register(
        f"mma_sync_m16n8k8_f16f16{_short}",
        *get_mma_sync_intrin(16, 8, 8, "float16", _dtype, False),
    )
    TensorIntrin.register(
        f"mma_store_m16n8k8_{_short}_global", *get_mma_store_dummy_intrin(16, 8, 8, _dtype)
    )
