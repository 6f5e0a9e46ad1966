"""The matrix instructions of PTX, NVIDIA's assembly: `ldmatrix`, `mma`, and what goes with them.

A tile lies in the registers of a warp. The layouts say which element of a tile is where. For each
type and scope there are intrinsics that fill, load and store such tiles and multiply them. The
layouts and intrinsics are those of "Warp Level Matrix Instructions" in NVIDIA's PTX ISA.
"""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from itertools import product
from typing import Any

from mlcweb.script import tir as T
from mlcweb.tensor_intrin import register_tiles as tiles
from mlcweb.tensor_intrin.register_tiles import M_DIM, N_DIM, Intrinsic, Place
from mlcweb.tir.tensor_intrin import TensorIntrin

WARP_SIZE = 32

_SHORT = {"float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32",
          "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}  # fmt: skip
_IN_PTX = {"float16": "fp16", "float32": "fp32", "int8": "int8", "int32": "int32",
           "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}  # fmt: skip
_RESULTS = {"float16": ("float32", "float16"), "int8": ("int32",),
            "float8_e4m3fn": ("float32",), "float8_e5m2": ("float32",)}  # fmt: skip
_OLD = ("float16", "int8")
"""The types whose loads TVM called by their shapes up to 0.11, LDMATRIX_16x32_A_INTRIN, and whose
products by B alone where it is transposed, MMA_i8i8i32_TRANS_INTRIN."""


# Layouts


def shared_16x16_to_ldmatrix_32x8_layout(i: Any, j: Any) -> Place:
    """The lane and register of an element of a 16 x 16 tile of 16 bits each, or of a result."""
    return 4 * (i % 8) + (j % 8) // 2, 4 * (j // 8) + (i // 8) * 2 + (j % 2)


def shared_16x32_to_ldmatrix_32x16_layout(i: Any, j: Any) -> Place:
    """The same of a 16 x 32 tile of bytes: A, or B by columns."""
    return 4 * (i % 8) + (j % 16) // 4, 8 * (j // 16) + (i // 8) * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i: Any, j: Any) -> Place:
    """The same of a 32 x 16 tile of bytes: B by rows."""
    return (i % 16) // 4 + 4 * (j % 8), 8 * (j // 8) + (i // 16) * 4 + i % 4


def ldmatrix_32x8_to_shared_16x16_layout(thread_id: Any, local_id: Any) -> Place:
    """The row and column of what is in a register of a lane."""
    row = 8 * (local_id % 4 // 2) + (thread_id // 4)
    return row, 8 * (local_id // 4) + (thread_id % 4) * 2 + (local_id % 2)


def index_map_shared_16x16_to_ldmatrix_32x8_layout(ind: Any) -> list[Any]:
    """`shared_16x16_to_ldmatrix_32x8_layout` of a pair of indices."""
    return list(shared_16x16_to_ldmatrix_32x8_layout(ind[0], ind[1]))


def index_map_m16n8k8_matrixC(ind: Any) -> list[Any]:
    """The blocks of 8 x 8 of a result, and which of the two registers of a lane in each."""
    i, j = ind[0], ind[1]
    return [(i // 8) // 2, j // 8, (i // 8) % 2, (j % 8) % 2]


def _layout(operand: str, k_dim: int, transposed: bool) -> Any:
    """The layout of an operand; `transposed` as memory has it."""
    if k_dim == 16:
        return shared_16x16_to_ldmatrix_32x8_layout
    if operand == "B" and not transposed:
        return shared_32x16_to_ldmatrix_32x16_layout
    return shared_16x32_to_ldmatrix_32x16_layout


def _row_address(operand: str, k_dim: int, transposed: bool) -> Any:
    """Where the row of 16 bytes begins of which a lane tells `ldmatrix` the address, as a function
    of the lane and the stride of rows."""
    step = k_dim // 2  # elements, 16 bytes
    if k_dim == 32 and operand == "B" and not transposed:
        # Bytes are not transposed by the instruction, but loaded one by one: it needs the stride.
        return lambda lane, stride: stride
    if not transposed:
        return lambda lane, stride: stride * (lane % 16) + step * (lane // 16)
    if k_dim == 32:
        return lambda lane, stride: (
            stride * 8 * (lane // 16) + (lane % 8) * stride + step * ((lane % 16) // 8)
        )
    return lambda lane, stride: (
        stride * 8 * (lane // 16) + stride * (lane % 8) + step * ((lane % 16) // 8)
    )


# Intrinsics


def get_ldmatrix_intrin(
    k_dim: int, dtype: str, matrix_name: str, transposed: bool, shared_scope: str = "shared"
) -> Intrinsic:
    """A tile of operand "A" or "B" from shared memory to registers.

    `k_dim` is 16 for float16, and 32 for types of a byte. A ValueError for others, and for an A of
    bytes that is transposed.
    """
    if k_dim == 32 and matrix_name == "A" and transposed:
        raise ValueError(f"A of {dtype} cannot be transposed; only B can of types of a byte")
    if (k_dim, dtype) not in [(16 if key == "float16" else 32, key) for key in _RESULTS]:
        raise ValueError(f"No tile of {dtype} has {k_dim} columns; float16 has 16, int8 has 32")
    rows, columns = (M_DIM, k_dim) if (matrix_name == "A") != transposed else (k_dim, M_DIM)
    count = M_DIM * k_dim // WARP_SIZE
    layout = _layout(matrix_name, k_dim, transposed)
    address = _row_address(matrix_name, k_dim, transposed)
    turns = transposed == (matrix_name == "A")

    @T.prim_func
    def implementation(
        warp: T.Buffer((WARP_SIZE, count), dtype, offset_factor=columns, scope="warp"),
        shared: T.Buffer(
            (rows, columns), dtype, strides=("s0", "s1"), offset_factor=columns, scope=shared_scope
        ),
    ):
        with T.block("root"):
            T.reads(shared[0:rows, 0:columns])
            T.writes(warp[0:WARP_SIZE, 0:count])
            for tx in T.thread_binding(WARP_SIZE, thread="threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        turns,
                        4,
                        ".b16",
                        warp.data,
                        warp.elem_offset + count * tx,
                        shared.access_ptr("r"),
                        address(tx, shared.strides[0]),
                        dtype=dtype,
                    )
                )

    description = tiles.load(WARP_SIZE, (rows, columns), dtype, layout, shared_scope, columns)
    return description, implementation


def get_mma_intrin(
    k_dim: int,
    a_dtype: str = "float16",
    b_dtype: str = "float16",
    out_dtype: str = "float16",
    a_transposed: bool = False,
    b_transposed: bool = False,
) -> Intrinsic:
    """The product of a 16 x `k_dim` and a `k_dim` x 16 tile, added to a third: two instructions of
    eight columns each."""
    count, results = M_DIM * k_dim // WARP_SIZE, M_DIM * N_DIM // WARP_SIZE
    a_factor = M_DIM if a_transposed else k_dim
    b_factor = k_dim if b_transposed else N_DIM
    shape = f"m16n8k{k_dim}"
    a_type, b_type, c_type = (_IN_PTX[dtype] for dtype in (a_dtype, b_dtype, out_dtype))

    a_in_memory = _layout("A", k_dim, a_transposed)
    b_in_memory = _layout("B", k_dim, b_transposed)

    def a_layout(i: Any, k: Any) -> Place:
        return a_in_memory(k, i) if a_transposed else a_in_memory(i, k)

    def b_layout(k: Any, j: Any) -> Place:
        return b_in_memory(j, k) if b_transposed else b_in_memory(k, j)

    @T.prim_func
    def implementation(
        A: T.Buffer((WARP_SIZE, count), a_dtype, offset_factor=a_factor, scope="warp"),
        B: T.Buffer((WARP_SIZE, count), b_dtype, offset_factor=b_factor, scope="warp"),
        C: T.Buffer((WARP_SIZE, results), out_dtype, offset_factor=N_DIM, scope="warp"),
    ):
        with T.block("root"):
            T.reads(C[0:WARP_SIZE, 0:results], A[0:WARP_SIZE, 0:count], B[0:WARP_SIZE, 0:count])
            T.writes(C[0:WARP_SIZE, 0:results])
            for tx in T.thread_binding(WARP_SIZE, thread="threadIdx.x"):
                T.evaluate(
                    T.ptx_mma(
                        shape, "row", "col", a_type, b_type, c_type,
                        A.data, A.elem_offset + tx * count,
                        B.data, B.elem_offset + tx * count,
                        C.data, C.elem_offset + tx * results,
                        False, dtype=out_dtype,
                    )
                )  # fmt: skip
                T.evaluate(
                    T.ptx_mma(
                        shape, "row", "col", a_type, b_type, c_type,
                        A.data, A.elem_offset + tx * count,
                        B.data, B.elem_offset + tx * count + count // 2,
                        C.data, C.elem_offset + tx * results + results // 2,
                        False, dtype=out_dtype,
                    )
                )  # fmt: skip

    description = tiles.product(
        WARP_SIZE,
        k_dim,
        (a_dtype, b_dtype, out_dtype),
        (a_layout, b_layout, shared_16x16_to_ldmatrix_32x8_layout),
        out_dtype in ("float32", "int32"),
        (a_factor, b_factor, N_DIM),
    )
    return description, implementation


def get_mma_fill_intrin(dtype: str, local_size: int) -> Intrinsic:
    """Zeros in the registers of a result."""

    @T.prim_func
    def implementation(
        C_warp: T.Buffer((WARP_SIZE, local_size), dtype, offset_factor=1, scope="warp"),
    ):
        with T.block("root"):
            T.reads()
            T.writes(C_warp[0:WARP_SIZE, 0:local_size])
            for tx in T.thread_binding(WARP_SIZE, thread="threadIdx.x"):  # noqa: B007
                T.evaluate(T.mma_fill(local_size, C_warp.data, C_warp.elem_offset, dtype=dtype))

    layout = shared_16x16_to_ldmatrix_32x8_layout
    return tiles.fill(WARP_SIZE, local_size, dtype, layout), implementation


def get_mma_store_intrin(
    dtype: str, local_size: int, scope: str = "global", use_mma_store_intrinic: bool = True
) -> Intrinsic:
    """A result from registers to memory, by `T.mma_store` or by stores of its elements."""
    layout, inverse = shared_16x16_to_ldmatrix_32x8_layout, ldmatrix_32x8_to_shared_16x16_layout

    @T.prim_func
    def whole(
        C_warp: T.Buffer((WARP_SIZE, local_size), dtype, offset_factor=1, scope="warp"),
        C: T.Buffer((M_DIM, N_DIM), dtype, strides=("s0", "s1"), offset_factor=1, scope=scope),
    ):
        with T.block("root"):
            T.reads(C_warp[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for tx in T.thread_binding(WARP_SIZE, thread="threadIdx.x"):  # noqa: B007
                T.evaluate(
                    T.mma_store(
                        M_DIM,
                        N_DIM,
                        C.access_ptr("w"),
                        C_warp.data,
                        C_warp.elem_offset,
                        C.strides[0],
                        dtype=dtype,
                    )
                )

    @T.prim_func
    def elements(
        C_warp: T.Buffer((WARP_SIZE, local_size), dtype, offset_factor=1, scope="warp"),
        C: T.Buffer((M_DIM, N_DIM), dtype, strides=("s0", "s1"), offset_factor=1, scope=scope),
    ):
        with T.block("root"):
            T.reads(C_warp[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for tx in T.thread_binding(WARP_SIZE, thread="threadIdx.x"):
                for local_id in range(local_size):
                    C[inverse(tx, local_id)] = C_warp[tx, local_id]

    description = tiles.store(WARP_SIZE, local_size, dtype, layout, scope)
    return description, whole if use_mma_store_intrinic else elements


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    in_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str | None = None,
) -> dict[str, str]:
    """The intrinsics of a matrix product by their parts: what fills the accumulator, loads A and B,
    computes, and stores the result, by elements or by `T.mma_store`."""
    short, out = _SHORT[in_dtype], _SHORT[out_dtype]
    stored = _SHORT[store_to_smem_dtype or out_dtype]
    load = "_dyn" if load_scope == "shared.dyn" else ""
    a, b = ("_trans" if flag else "" for flag in (trans_a, trans_b))
    simple = "simple_" if not_use_mma_store_intrinic else ""
    return {
        "init": f"mma_fill_16x16_{out}",
        "load_a": f"mma_ldmatrix_{short}_a{a}{load}",
        "load_b": f"mma_ldmatrix_{short}_b{b}{load}",
        "compute": f"mma_{short}{short}{out}{a and '_trans_a'}{b and '_trans_b'}",
        "store": f"mma_store_16x16_{stored}_{store_scope.replace('.', '_')}_{simple}",
    }


# Names


def _register(name: str, intrinsic: Intrinsic, *constants: str) -> None:
    TensorIntrin.register(name, *intrinsic)
    globals().update(dict.fromkeys(constants, name))


def _register_loads(dtype: str, k_dim: int) -> None:
    for operand, transposed in product("AB", (False, True)):
        if k_dim == 32 and (operand, transposed) == ("A", True):
            continue
        rows, columns = (M_DIM, k_dim) if (operand == "A") != transposed else (k_dim, M_DIM)
        for dyn in ("", "_DYN") if k_dim == 16 else ("",):
            scope = "shared.dyn" if dyn else "shared"
            ending = f"{operand}{'_TRANS' if transposed else ''}{dyn}"
            names = [f"LDMATRIX_{_SHORT[dtype]}_{ending}_INTRIN"]
            if dtype in _OLD:
                names.append(f"LDMATRIX_{rows}x{columns}_{ending}_INTRIN")
            load = get_ldmatrix_intrin(k_dim, dtype, operand, transposed, scope)
            _register(f"mma_ldmatrix_{_SHORT[dtype]}_{ending.lower()}", load, *names)


def _register_products(dtype: str, k_dim: int, out: str) -> None:
    types = f"{_SHORT[dtype]}{_SHORT[dtype]}{_SHORT[out]}"
    for a, b in product((False, True), repeat=2):
        if a and k_dim == 32:
            continue
        ending = f"{'_trans_a' * a}{'_trans_b' * b}"
        names = [f"MMA_{types}{ending.upper()}_INTRIN"]
        if ending == "_trans_b" and dtype in _OLD:
            names.append(f"MMA_{types}_TRANS_INTRIN")
        multiply = get_mma_intrin(k_dim, dtype, dtype, out, a, b)
        _register(f"mma_{types}{ending}", multiply, *names)


def _register_results(dtype: str) -> None:
    fill = get_mma_fill_intrin(dtype, 8)
    where = f"16x16_{_SHORT[dtype]}"
    _register(f"mma_fill_{where}", fill, f"MMA_fill_{where}_INTRIN")
    for scope, whole in product(("global", "shared.dyn"), (True, False)):
        place = f"{where}_{scope.replace('.', '_')}"
        ending = ("_", "_INTRIN") if whole else ("_simple_", "_INTRIN_SIMPLE")
        store = get_mma_store_intrin(dtype, 8, scope, whole)
        _register(f"mma_store_{place}{ending[0]}", store, f"MMA_store_{place}{ending[1]}")


for _dtype, _results in _RESULTS.items():
    _k_dim = 16 if _dtype == "float16" else 32
    _register_loads(_dtype, _k_dim)
    for _out in _results:
        _register_products(_dtype, _k_dim, _out)
for _dtype in ("float32", "float16", "int32"):
    _register_results(_dtype)
