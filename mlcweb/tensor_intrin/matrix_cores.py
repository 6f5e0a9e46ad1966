"""The matrix instructions of AMD's GPUs, `mfma`, and what goes with them.

A tile lies in the registers of the 64 threads of a wavefront. Those of one element to a thread,
16 x 4 and 4 x 16 tiles of float32, and those of four, 16 x 16 tiles of smaller types and results,
have layouts of their own, which are those of "Matrix Arithmetic Instructions" in AMD's manuals of
the CDNA instruction set.
"""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

from mlcweb.script import tir as T
from mlcweb.tensor_intrin import register_tiles as tiles
from mlcweb.tensor_intrin.register_tiles import M_DIM, N_DIM, Intrinsic, Place
from mlcweb.tir.arithmetic import const
from mlcweb.tir.tensor_intrin import TensorIntrin

WARP_SIZE = 64

_SHORT = {"float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32"}


# Layouts


def shared_16x4_to_local_64x1_layout_A(i: Any, j: Any) -> Place:
    """The lane and register of an element of a 16 x 4 tile."""
    return j * 16 + i, const(0)


def thread_id_shared_access_64x1_to_16x4_layout_A(thread_id: Any, local_id: Any) -> Place:
    """The row and column of what is in the register of a lane."""
    return thread_id % 16, thread_id // 16 + local_id


def shared_4x16_to_local_64x1_layout_B(i: Any, j: Any) -> Place:
    """The lane and register of an element of a 4 x 16 tile."""
    return i * 16 + j, const(0)


def thread_id_shared_access_64x1_to_4x16_layout_B(thread_id: Any, local_id: Any) -> Place:
    """The row and column of what is in the register of a lane."""
    return thread_id // 16, thread_id % 16 + local_id


def shared_16x16_to_local_64x4_layout_A(i: Any, j: Any) -> Place:
    """The lane and register of an element of a 16 x 16 tile, four of a row to a lane."""
    return i + 16 * (j // 4), j % 4


def thread_id_shared_access_64x4_to_16x16_layout_A(thread_id: Any, local_id: Any) -> Place:
    """The row and column of what is in a register of a lane."""
    return thread_id % 16, (thread_id // 16) * 4 + local_id


def shared_16x16_to_local_64x4_layout_B(i: Any, j: Any) -> Place:
    """The same, four of a column to a lane."""
    return j + (i // 4) * 16, i % 4


def thread_id_shared_access_64x4_to_16x16_layout_B(thread_id: Any, local_id: Any) -> Place:
    """The row and column of what is in a register of a lane."""
    return local_id + (thread_id // 16) * 4, thread_id % 16


shared_16x16_to_local_64x4_layout_C = shared_16x16_to_local_64x4_layout_B
thread_id_shared_access_64x4_to_16x16_layout_C = thread_id_shared_access_64x4_to_16x16_layout_B

_LAYOUTS = {
    (4, "A"): (
        shared_16x4_to_local_64x1_layout_A,
        thread_id_shared_access_64x1_to_16x4_layout_A,
    ),
    (4, "B"): (
        shared_4x16_to_local_64x1_layout_B,
        thread_id_shared_access_64x1_to_4x16_layout_B,
    ),
    (16, "A"): (
        shared_16x16_to_local_64x4_layout_A,
        thread_id_shared_access_64x4_to_16x16_layout_A,
    ),
    (16, "B"): (
        shared_16x16_to_local_64x4_layout_B,
        thread_id_shared_access_64x4_to_16x16_layout_B,
    ),
}
"""The layout of an operand, by the depth of the product, and its inverse."""


def _check_depth(k_dim: int) -> None:
    if k_dim not in (4, 16):
        raise ValueError(f"No product has depth {k_dim}; k_dim is 4 for float32, and 16 for others")


# Intrinsics


def get_mma_fill_intrin(dtype: str, local_size: int) -> Intrinsic:
    """Zeros in the registers of a result."""
    zero = const(0, dtype)

    @T.prim_func
    def implementation(
        C_warp: T.Buffer((WARP_SIZE, local_size), dtype, offset_factor=1, scope="warp"),
    ):
        with T.block("root"):
            T.reads()
            T.writes(C_warp[0:WARP_SIZE, 0:local_size])
            with T.launch_thread("threadIdx.x", WARP_SIZE) as tx:
                for local_id in range(local_size):
                    C_warp[tx, local_id] = zero

    description = tiles.fill(WARP_SIZE, local_size, dtype, shared_16x16_to_local_64x4_layout_C)
    return description, implementation


def get_mfma_load_intrin(
    k_dim: int = 4,
    dtype: str = "float32",
    scope: str = "shared",
    is_b: bool = False,
    transposed: bool = False,
) -> Intrinsic:
    """A tile of operand A or B from memory to registers. `transposed` is for a B that lies in
    memory by columns."""
    _check_depth(k_dim)
    by_rows = is_b and not transposed
    rows, columns = (k_dim, N_DIM) if by_rows else (M_DIM, k_dim)
    layout, inverse = _LAYOUTS[k_dim, "B" if by_rows else "A"]
    local_size = M_DIM * k_dim // WARP_SIZE

    @T.prim_func
    def implementation(
        reg: T.Buffer((WARP_SIZE, local_size), dtype, offset_factor=1, scope="warp"),
        memory: T.Buffer(
            (rows, columns), dtype, strides=("s0", "s1"), offset_factor=1, scope=scope
        ),
    ):
        with T.block("root"):
            T.reads(memory[0:rows, 0:columns])
            T.writes(reg[0:WARP_SIZE, 0:local_size])
            for local_id in range(local_size):
                with T.launch_thread("threadIdx.x", WARP_SIZE) as tx:
                    reg[tx, local_id] = memory[inverse(tx, local_id)]

    return tiles.load(WARP_SIZE, (rows, columns), dtype, layout, scope), implementation


def get_mfma_intrin(
    k_dim: int, in_dtype: str = "float32", out_dtype: str = "float32", b_transposed: bool = False
) -> Intrinsic:
    """The product of a 16 x `k_dim` and a `k_dim` x 16 tile, added to a third.

    A B that memory has by columns is loaded to the same registers as another, so that
    `b_transposed` makes no difference.
    """
    _check_depth(k_dim)
    name = f"llvm.amdgcn.mfma.{_SHORT[out_dtype]}.{M_DIM}x{N_DIM}x{k_dim}{_SHORT[in_dtype]}"
    local_size, results = M_DIM * k_dim // WARP_SIZE, M_DIM * N_DIM // WARP_SIZE
    registers = T.ramp(0, 1, local_size) if local_size > 1 else const(0)

    def operand(value: Any) -> Any:
        return T.reinterpret("int32", value) if in_dtype == "int8" else value

    @T.prim_func
    def implementation(
        A: T.Buffer((WARP_SIZE, local_size), in_dtype, offset_factor=1, scope="warp"),
        B: T.Buffer((WARP_SIZE, local_size), in_dtype, offset_factor=1, scope="warp"),
        C: T.Buffer((WARP_SIZE, results), out_dtype, offset_factor=1, scope="warp"),
    ):
        with T.block("root"):
            T.reads(
                A[0:WARP_SIZE, 0:local_size],
                B[0:WARP_SIZE, 0:local_size],
                C[0:WARP_SIZE, 0:results],
            )
            T.writes(C[0:WARP_SIZE, 0:results])
            with T.launch_thread("threadIdx.x", WARP_SIZE) as tx:
                C[tx, T.ramp(0, 1, results)] = T.call_llvm_pure_intrin(
                    f"{out_dtype}x{results}",
                    name,
                    operand(A[tx, registers]),
                    operand(B[tx, registers]),
                    C[tx, T.ramp(0, 1, results)],
                    0,
                    0,
                    0,
                )

    description = tiles.product(
        WARP_SIZE,
        k_dim,
        (in_dtype, in_dtype, out_dtype),
        (_LAYOUTS[k_dim, "A"][0], _LAYOUTS[k_dim, "B"][0], shared_16x16_to_local_64x4_layout_C),
        in_dtype != out_dtype,
    )
    return description, implementation


def get_mfma_store_intrin(
    local_size: int = 4, dtype: str = "float32", scope: str = "global"
) -> Intrinsic:
    """A result from registers to memory."""
    layout = shared_16x16_to_local_64x4_layout_C

    @T.prim_func
    def implementation(
        C_warp: T.Buffer((WARP_SIZE, local_size), dtype, offset_factor=1, scope="warp"),
        C: T.Buffer((M_DIM, N_DIM), dtype, strides=("s0", "s1"), offset_factor=1, scope=scope),
    ):
        with T.block("root"):
            T.reads(C_warp[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            with T.launch_thread("threadIdx.x", WARP_SIZE) as tx:
                for local_id in range(local_size):
                    C[tx // 16 * 4 + local_id, tx % 16] = C_warp[tx, local_id]

    return tiles.store(WARP_SIZE, local_size, dtype, layout, scope), implementation


# Names


def _register(constant: str, intrinsic: Intrinsic, name: str = "") -> None:
    name = name or constant.removesuffix("_INTRIN").lower()
    TensorIntrin.register(name, *intrinsic)
    globals()[constant] = name


for _dtype in ("float32", "int32"):
    _constant = f"ROCM_MFMA_fill_16x16_{_SHORT[_dtype]}_INTRIN"
    _fill = get_mma_fill_intrin(_dtype, 4)
    _register(_constant, _fill, f"ROCM_mfma_fill_16x16_{_SHORT[_dtype]}")
for _dtype, _short, _k_dim in (("int8", "s8", 16), ("float16", "f16", 16), ("float32", "f32", 4)):
    for _operand in "AB":
        _shape = f"16x{_k_dim}"
        _place = f"{_shape}_a" if _operand == "A" else f"b_{_shape}"
        _register(
            f"ROCM_MFMA_LOAD_{_shape}_{_operand}_SHARED_{_short}_INTRIN",
            get_mfma_load_intrin(_k_dim, _dtype, is_b=_operand == "B"),
            f"rocm_mfma_load_{_place}_shared_{_short}",
        )
_register("ROCM_MFMA_f32f32f32_INTRIN", get_mfma_intrin(4, "float32", "float32"))
_register("ROCM_MFMA_f16f16f32_INTRIN", get_mfma_intrin(16, "float16", "float32"))
_register("ROCM_MFMA_s8s8s32_INTRIN", get_mfma_intrin(16, "int8", "int32"))
_register("ROCM_MFMA_STORE_16x16_s32_INTRIN", get_mfma_store_intrin(dtype="int32"))
_register("ROCM_MFMA_STORE_16x16_f32_INTRIN", get_mfma_store_intrin(dtype="float32"))
