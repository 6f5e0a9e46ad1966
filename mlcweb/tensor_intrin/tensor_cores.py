"""The matrix units of NVIDIA GPUs, as CUDA's `wmma` names them.

A fragment is a tile in the registers of a warp. For each shape, type and scope there are
intrinsics that fill, load and store fragments and multiply them.
"""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from itertools import product
from typing import Any

from mlcweb.script import tir as T
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.tensor_intrin import TensorIntrin

Intrinsic = tuple[PrimFunc, PrimFunc]

_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int4": "s4", "int32": "s32"}
_RESULTS = {"float16": ("float32", "float16"), "int8": ("int32",), "int4": ("int32",)}
_SHAPES = {"float16": (16, 16, 16), "int8": (16, 16, 16), "int4": (8, 8, 32)}


def _text(shape: tuple[int, int, int]) -> str:
    return "x".join(map(str, shape))


def get_wmma_fragment_index(buffer: Any, stride: Any, m_dim: int, n_dim: int) -> Any:
    """Which of the fragments that a buffer is divided into starts at its offset."""
    row, column = buffer.elem_offset // stride, buffer.elem_offset % stride
    return row // m_dim * (stride // n_dim) + column // n_dim


def _copy(
    shape: tuple[int, int, int],
    rows: int,
    columns: int,
    dtype: str,
    source: str,
    target: str,
    layout: str,
) -> Intrinsic:
    """A tile copied to a fragment, or from one where `source` is the accumulator's scope."""
    m, n, k = shape
    p, q, offset = rows, columns, rows

    @T.prim_func
    def description(
        A: T.Buffer((p, q), dtype, align=64, offset_factor=offset, scope=source),
        C: T.Buffer((p, q), dtype, align=64, offset_factor=offset, scope=target),
    ):
        with T.block("root"):
            T.reads(A[0:p, 0:q])
            T.writes(C[0:p, 0:q])
            for i, j in T.grid(p, q):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj]

    @T.prim_func
    def load(
        A: T.Buffer(
            (p, q), dtype, strides=("s1", "s0"), align=64, offset_factor=offset, scope=source
        ),
        C: T.Buffer(
            (p, q), dtype, strides=("d1", "d0"), align=64, offset_factor=offset, scope=target
        ),
    ):
        with T.block("root"):
            T.reads(A[0:p, 0:q])
            T.writes(C[0:p, 0:q])
            T.evaluate(
                T.tvm_load_matrix_sync(
                    C.data,
                    m,
                    n,
                    k,
                    get_wmma_fragment_index(C, C.strides[0], p, q),
                    A.access_ptr("r"),
                    A.strides[0],
                    layout,
                )
            )

    @T.prim_func
    def store(
        A: T.Buffer(
            (p, q), dtype, strides=("d1", "d0"), align=64, offset_factor=offset, scope=source
        ),
        C: T.Buffer(
            (p, q), dtype, strides=("s1", "s0"), align=64, offset_factor=offset, scope=target
        ),
    ):
        with T.block("root"):
            T.reads(A[0:p, 0:q])
            T.writes(C[0:p, 0:q])
            T.evaluate(
                T.tvm_store_matrix_sync(
                    A.data,
                    m,
                    n,
                    k,
                    get_wmma_fragment_index(A, A.strides[0], p, q),
                    C.access_ptr("w"),
                    C.strides[0],
                    layout,
                )
            )

    return description, store if source == "wmma.accumulator" else load


def get_wmma_load_intrin(
    m_dim: int,
    n_dim: int,
    k_dim: int,
    dtype: str,
    shared_scope: str,
    is_b: bool,
    is_col_major: bool,
) -> Intrinsic:
    """A tile of A or B from shared memory to a fragment."""
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    if is_col_major:
        rows, columns = columns, rows
    layout = "col_major" if is_col_major else "row_major"
    target = f"wmma.matrix_{'b' if is_b else 'a'}"
    return _copy((m_dim, n_dim, k_dim), rows, columns, dtype, shared_scope, target, layout)


def get_wmma_store_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, scope: str) -> Intrinsic:
    """A fragment of the result to shared or global memory."""
    shape = (m_dim, n_dim, k_dim)
    return _copy(shape, m_dim, n_dim, dtype, "wmma.accumulator", scope, "row_major")


def get_wmma_fill_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Intrinsic:
    """Zeros in a fragment."""
    m, n, k = m_dim, n_dim, k_dim
    zero = T.float32(0) if dtype == "float32" else T.float16(0) if dtype == "float16" else 0

    @T.prim_func
    def description(
        C: T.Buffer((m, n), dtype, align=64, offset_factor=m, scope="wmma.accumulator"),
    ):
        with T.block("root"):
            T.reads()
            T.writes(C[0:m, 0:n])
            for i, j in T.grid(m, n):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = zero

    @T.prim_func
    def implementation(
        C: T.Buffer(
            (m, n), dtype, strides=("d1", "d0"), align=64, offset_factor=m, scope="wmma.accumulator"
        ),
    ):
        with T.block("root"):
            T.reads()
            T.writes(C[0:m, 0:n])
            T.evaluate(
                T.tvm_fill_fragment(
                    C.data, m, n, k, get_wmma_fragment_index(C, C.strides[0], m, n), T.float32(0)
                )
            )

    return description, implementation


def get_wmma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> Intrinsic:
    """The product of two fragments, added to a third."""
    m, n, k = m_dim, n_dim, k_dim
    p, q = (n, k) if b_transposed else (k, n)

    def swap(i: Any, j: Any) -> tuple[Any, Any]:
        return (j, i) if b_transposed else (i, j)

    def widened(value: Any) -> Any:
        return value if in_dtype == out_dtype else T.cast(value, out_dtype)

    @T.prim_func
    def description(
        A: T.Buffer((m, k), in_dtype, align=64, offset_factor=m, scope="wmma.matrix_a"),
        B: T.Buffer((p, q), in_dtype, align=64, offset_factor=p, scope="wmma.matrix_b"),
        C: T.Buffer((m, n), out_dtype, align=64, offset_factor=m, scope="wmma.accumulator"),
    ):
        with T.block("root"):
            T.reads(C[0:m, 0:n], A[0:m, 0:k], B[0:p, 0:q])
            T.writes(C[0:m, 0:n])
            for i, j, l in T.grid(m, n, k):  # noqa: E741
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, l])
                    C[vi, vj] = C[vi, vj] + widened(A[vi, vk]) * widened(B[swap(vk, vj)])

    @T.prim_func
    def implementation(
        A: T.Buffer(
            (m, k), in_dtype, strides=("a1", "a0"), align=64, offset_factor=m, scope="wmma.matrix_a"
        ),
        B: T.Buffer(
            (p, q), in_dtype, strides=("b1", "b0"), align=64, offset_factor=p, scope="wmma.matrix_b"
        ),
        C: T.Buffer(
            (m, n),
            out_dtype,
            strides=("c1", "c0"),
            align=64,
            offset_factor=m,
            scope="wmma.accumulator",
        ),
    ):
        with T.block("root"):
            T.reads(C[0:m, 0:n], A[0:m, 0:k], B[0:p, 0:q])
            T.writes(C[0:m, 0:n])
            T.evaluate(
                T.tvm_mma_sync(
                    C.data,
                    get_wmma_fragment_index(C, C.strides[0], m, n),
                    A.data,
                    get_wmma_fragment_index(A, A.strides[0], m, k),
                    B.data,
                    get_wmma_fragment_index(B, B.strides[0], p, q),
                    C.data,
                    get_wmma_fragment_index(C, C.strides[0], m, n),
                )
            )

    return description, implementation


def _register(name: str, intrinsic: Intrinsic) -> None:
    """Under its name, and in this module as TVM calls it: `WMMA_FILL_16x16x16_F32_INTRIN`."""
    TensorIntrin.register(name, *intrinsic)
    head, shape, kind, *rest = name.removeprefix("wmma_").split("_")
    ending = "".join(f"_{part.upper()}" for part in rest)
    if head != "sync":
        kind = kind.upper()
    if head == "load":
        ending = ending.replace("_SHARED", "")
    globals()[f"WMMA_{head.upper()}_{shape}_{kind}{ending}_INTRIN"] = name


def _register_all() -> None:
    for (in_dtype, shape), transposed in product(_SHAPES.items(), (False, True)):
        _register_loads(in_dtype, shape, transposed)
        for out_dtype in _RESULTS[in_dtype]:
            if in_dtype != "int4" or transposed:
                ending = "_trans" if transposed else ""
                name = f"{_SHORT[in_dtype] * 2}{_SHORT[out_dtype]}{ending}"
                multiply = get_wmma_sync_intrin(*shape, in_dtype, out_dtype, transposed)
                _register(f"wmma_sync_{_text(shape)}_{name}", multiply)
    for shape, dtype in dict.fromkeys(
        (shape, out_dtype) for key, shape in _SHAPES.items() for out_dtype in _RESULTS[key]
    ):
        name = f"{_text(shape)}_{_SHORT[dtype]}"
        _register(f"wmma_fill_{name}", get_wmma_fill_intrin(*shape, dtype))
        for scope in ("shared", "shared.dyn", "global"):
            store = get_wmma_store_intrin(*shape, dtype, scope)
            _register(f"wmma_store_{name}_{scope.replace('.', '_')}", store)


def _register_loads(dtype: str, shape: tuple[int, int, int], transposed: bool) -> None:
    ending = "_trans" if transposed else ""
    for operand, scope in product("ab", ("shared", "shared.dyn")):
        if dtype == "int4" and transposed != (operand == "b"):
            continue
        name = f"{_text(shape)}_{_SHORT[dtype]}_{operand}{ending}_{scope.replace('.', '_')}"
        load = get_wmma_load_intrin(*shape, dtype, scope, operand == "b", transposed)
        _register(f"wmma_load_{name}", load)


_register_all()


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool
) -> dict[str, str]:
    """The intrinsics of a matrix product by their parts: what fills the accumulator, loads A and B,
    computes, and stores the result."""
    text = _text(_SHAPES[in_dtype])
    short, out = _SHORT[in_dtype], _SHORT[out_dtype]
    ending = "_trans" if trans_b else ""
    load, store = load_scope.replace(".", "_"), store_scope.replace(".", "_")
    return {
        "init": f"wmma_fill_{text}_{out}",
        "load_a": f"wmma_load_{text}_{short}_a_{load}",
        "load_b": f"wmma_load_{text}_{short}_b{ending}_{load}",
        "compute": f"wmma_sync_{text}_{short}{short}{out}{ending}",
        "store": f"wmma_store_{text}_{out}_{store}",
    }
