"""Programs that try every path of the code generators: reductions, scans, predicates, padding, data
types, vectors, matched buffers. Every target has to agree with the interpreter on all of them.
"""

from typing import Any

import numpy as np

from mlcweb.script import tir as T
from mlcweb.tir import PrimFunc


@T.prim_func
def scan(
    A: T.Buffer((33,), "float32"),
    B: T.Buffer((33,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(33):
        with T.block("s"):
            vi = T.axis.opaque(33, i)
            B[vi] = A[vi] + T.if_then_else(vi > 0, B[vi - 1], T.float32(0))


@T.prim_func
def rowscan(
    A: T.Buffer((8, 33), "float32"),
    B: T.Buffer((8, 33), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i, k in T.grid(8, 32):
        B[i, k + 1] = A[i, k] + B[i, k]


@T.prim_func
def stencil_inplace(
    A: T.Buffer((40,), "int32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for _ in range(3):
        for i in range(38):
            A[i + 1] = A[i] + A[i + 1] + A[i + 2]


@T.prim_func
def triangle(
    A: T.Buffer((9, 9), "float32"),
    B: T.Buffer((9, 9), "float32"),
    C: T.Buffer((9,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(9, 9):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j <= i)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(9, 9):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            if vj <= vi:
                C[vi] = C[vi] + B[vi, vj]


@T.prim_func
def pad_conv(
    A: T.Buffer((2, 3, 8, 8), "float32"),
    W: T.Buffer((4, 3, 3, 3), "float32"),
    O: T.Buffer((2, 4, 8, 8), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    Pd = T.alloc_buffer((2, 3, 10, 10), "float32")
    for n, c, h, w in T.grid(2, 3, 10, 10):
        with T.block("pad"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            Pd[vn, vc, vh, vw] = T.if_then_else(
                vh >= 1 and vh < 9 and vw >= 1 and vw < 9, A[vn, vc, vh - 1, vw - 1], T.float32(0)
            )
    for n, o, h, w, c, kh, kw in T.grid(2, 4, 8, 8, 3, 3, 3):
        with T.block("conv"):
            vn, vo, vh, vw, vc, vkh, vkw = T.axis.remap("SSSSRRR", [n, o, h, w, c, kh, kw])
            with T.init():
                O[vn, vo, vh, vw] = T.float32(0)
            O[vn, vo, vh, vw] = (
                O[vn, vo, vh, vw] + Pd[vn, vc, vh + vkh, vw + vkw] * W[vo, vc, vkh, vkw]
            )


@T.prim_func
def softmax(
    A: T.Buffer((6, 20), "float32"),
    B: T.Buffer((6, 20), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    m = T.alloc_buffer((6,), "float32")
    e = T.alloc_buffer((6, 20), "float32")
    s = T.alloc_buffer((6,), "float32")
    for i in range(6):
        for k in range(20):
            with T.block("m"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    m[vi] = T.min_value("float32")
                m[vi] = T.max(m[vi], A[vi, vk])
        for k in range(20):
            with T.block("e"):
                vi, vk = T.axis.remap("SS", [i, k])
                e[vi, vk] = T.exp(A[vi, vk] - m[vi])
        for k in range(20):
            with T.block("s"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    s[vi] = T.float32(0)
                s[vi] = s[vi] + e[vi, vk]
        for k in range(20):
            with T.block("d"):
                vi, vk = T.axis.remap("SS", [i, k])
                B[vi, vk] = e[vi, vk] / s[vi]


@T.prim_func
def shared_scalar(
    A: T.Buffer((6, 20), "float32"),
    B: T.Buffer((6, 20), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    s = T.alloc_buffer((1,), "float32")
    for i in range(6):
        s[0] = T.float32(0)
        for k in range(20):
            s[0] = s[0] + A[i, k]
        for k in range(20):
            B[i, k] = A[i, k] / s[0]


@T.prim_func
def uneven_split(
    A: T.Buffer((127,), "float32"),
    B: T.Buffer((127,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i0, i1 in T.grid(32, 4):
        with T.block("B"):
            vi = T.axis.spatial(127, i0 * 4 + i1)
            T.where(i0 * 4 + i1 < 127)
            B[vi] = A[vi] + T.float32(1)


@T.prim_func
def int8dot(
    A: T.Buffer((7, 16), "int8"),
    B: T.Buffer((16, 5), "int8"),
    C: T.Buffer((7, 5), "int32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(7, 5, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32")


@T.prim_func
def int8wrap(
    A: T.Buffer((64,), "int8"),
    B: T.Buffer((64,), "int8"),
    C: T.Buffer((64,), "uint8"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(64):
        B[i] = A[i] * A[i] + T.int8(100)
    for i in range(64):
        C[i] = T.cast(B[i], "uint8") // T.uint8(3)


@T.prim_func
def gather_rows(
    A: T.Buffer((10, 4), "float32"),
    I: T.Buffer((6,), "int32"),
    B: T.Buffer((6, 4), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[T.abs(I[vi]) % 10, vj]


@T.prim_func
def transpose_sum(
    A: T.Buffer((5, 6, 7), "float64"),
    B: T.Buffer((7, 5), "float64"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(5, 6, 7):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SRS", [i, j, k])
            with T.init():
                B[vk, vi] = T.float64(0)
            B[vk, vi] = B[vk, vi] + A[vi, vj, vk]


@T.prim_func
def histogram(
    I: T.Buffer((50,), "int32"),
    B: T.Buffer((4,), "int32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(4):
        B[i] = 0
    for i in range(50):
        B[T.abs(I[i]) % 4] = B[T.abs(I[i]) % 4] + 1


@T.prim_func
def colliding_writes(
    A: T.Buffer((16,), "int32"),
    B: T.Buffer((8,), "int32"),
    C: T.Buffer((8,), "int32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(16):
        B[i // 2] = A[i]
    for i in range(8):
        C[i] = 0
    for i in range(16):
        C[i // 2] = C[i // 2] + A[i]


@T.prim_func
def moving_average(
    A: T.Buffer((5, 12), "float32"),
    B: T.Buffer((5,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(5):
        B[i] = T.float32(0)
    for i, k in T.grid(5, 12):
        B[i] = B[i] * T.float32(0.5) + A[i, k]


@T.prim_func
def argmax(
    A: T.Buffer((4, 11), "float32"),
    I: T.Buffer((4,), "int32"),
    V: T.Buffer((4,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i, k in T.grid(4, 11):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                V[vi] = T.min_value("float32")
            v_i: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
            v_v: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            I[vi] = v_i
            V[vi] = v_v


@T.prim_func
def tensorized(
    A: T.Buffer((32, 32), "float32"),
    B: T.Buffer((32, 32), "float32"),
    C: T.Buffer((32, 32), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i0, j0, k0 in T.grid(4, 4, 4):
        with T.block("o"):
            vi0, vj0, vk0 = T.axis.remap("SSR", [i0, j0, k0])
            with T.init():
                for i1, j1 in T.grid(8, 8):
                    with T.block("init"):
                        vi1, vj1 = T.axis.remap("SS", [i1, j1])
                        C[vi0 * 8 + vi1, vj0 * 8 + vj1] = T.float32(0)
            for i1, j1, k1 in T.grid(8, 8, 8):
                with T.block("tmm"):
                    vi1, vj1, vk1 = T.axis.remap("SSR", [i1, j1, k1])
                    C[vi0 * 8 + vi1, vj0 * 8 + vj1] = (
                        C[vi0 * 8 + vi1, vj0 * 8 + vj1]
                        + A[vi0 * 8 + vi1, vk0 * 8 + vk1] * B[vj0 * 8 + vj1, vk0 * 8 + vk1]
                    )


@T.prim_func
def overlapping_tiles(
    A: T.Buffer((32,), "float32"),
    C: T.Buffer((30,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    B = T.alloc_buffer((32,), "float32")
    for i0 in range(3):
        for ax in range(12):
            with T.block("B"):
                v = T.axis.spatial(32, i0 * 10 + ax)
                B[v] = A[v] * T.float32(2)
        for i1 in range(10):
            with T.block("C"):
                v = T.axis.spatial(30, i0 * 10 + i1)
                C[v] = B[v] + B[v + 1] + B[v + 2]


@T.prim_func
def vectors(
    A: T.Buffer((32,), "float32"),
    B: T.Buffer((32,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(8):
        B[T.ramp(i * 4, 1, 4)] = A[T.ramp(i * 4, 1, 4)] * T.broadcast(T.float32(3), 4)


@T.prim_func
def matched_buffers(
    A: T.Buffer((16, 16), "float32"),
    B: T.Buffer((16, 16), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(4, 4):
        with T.block("o"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            T.writes(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            A_s = T.match_buffer(
                A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", offset_factor=1
            )
            B_s = T.match_buffer(
                B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", offset_factor=1
            )
            for a, b in T.grid(4, 4):
                with T.block("i"):
                    va, vb = T.axis.remap("SS", [a, b])
                    B_s[va, vb] = A_s[vb, va]


@T.prim_func
def while_loop(
    A: T.Buffer((4,), "int32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    i = T.alloc_buffer((1,), "int32")
    i[0] = 0
    while i[0] < 4:
        A[i[0]] = A[i[0]] // 2
        i[0] = i[0] + 1


@T.prim_func
def floatmath(
    A: T.Buffer((64,), "float32"),
    B: T.Buffer((64,), "float32"),
    C: T.Buffer((64,), "int32"),
    D: T.Buffer((64,), "bool"),
    E: T.Buffer((64,), "float16"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(64):
        B[i] = (
            T.tanh(A[i])
            + T.sigmoid(A[i]) * T.erf(A[i])
            - T.sqrt(T.abs(A[i]))
            + T.max(A[i], T.float32(0))
            + T.floor(A[i])
            + T.round(A[i] * T.float32(4))
        )
    for i in range(64):
        C[i] = (
            T.cast(A[i] * T.float32(10), "int32") % 7
            + i // 3
            - T.truncmod(T.cast(A[i] * T.float32(10), "int32"), 3)
        )
    for i in range(64):
        D[i] = A[i] > T.float32(0) and i % 3 != 1
    for i in range(64):
        E[i] = T.Select(D[i], T.cast(A[i], "float16"), T.float16(2)) * T.float16(1.5)


@T.prim_func
def total_of_scalars(
    A: T.Buffer((8,), "float32"),
    S: T.Buffer((), "float32"),
    B: T.Buffer((), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    for i in range(8):
        with T.block("S"):
            vi = T.axis.reduce(8, i)
            with T.init():
                S[()] = T.float32(0)
            S[()] = S[()] + A[vi]
    with T.block("B"):
        vi = T.axis.spatial(1, 0)
        B[()] = S[()] * T.float32(2)


@T.prim_func
def stored_conditions(
    A: T.Buffer((9,), "float32"),
    B: T.Buffer((9,), "float32"),
) -> None:
    T.func_attr({"tir.noalias": True})
    C = T.alloc_buffer((9,), "bool")
    for i in range(9):
        with T.block("C"):
            vi = T.axis.spatial(9, i)
            C[vi] = T.float32(0) < A[vi]
    for i in range(9):
        with T.block("B"):
            vi = T.axis.spatial(9, i)
            B[vi] = T.if_then_else(C[vi], A[vi], T.float32(0))


PROGRAMS: dict[str, PrimFunc] = {
    "scan": scan,
    "total_of_scalars": total_of_scalars,
    "stored_conditions": stored_conditions,
    "rowscan": rowscan,
    "stencil_inplace": stencil_inplace,
    "triangle": triangle,
    "pad_conv": pad_conv,
    "softmax": softmax,
    "shared_scalar": shared_scalar,
    "uneven_split": uneven_split,
    "int8dot": int8dot,
    "int8wrap": int8wrap,
    "gather_rows": gather_rows,
    "transpose_sum": transpose_sum,
    "histogram": histogram,
    "colliding_writes": colliding_writes,
    "moving_average": moving_average,
    "argmax": argmax,
    "tensorized": tensorized,
    "overlapping_tiles": overlapping_tiles,
    "vectors": vectors,
    "matched_buffers": matched_buffers,
    "while_loop": while_loop,
    "floatmath": floatmath,
}


def inputs(func: PrimFunc, seed: int = 0) -> list[Any]:
    """One random NumPy array for each parameter, outputs included."""
    generator = np.random.default_rng(seed)
    arrays = []
    for buffer in func.parameter_buffers:
        values = generator.standard_normal([int(extent) for extent in buffer.shape])
        if buffer.dtype == "bool":
            arrays.append(values > 0)
        elif buffer.dtype.startswith("float"):
            arrays.append(values.astype(buffer.dtype))
        else:
            whole = np.rint(20 * values)
            arrays.append((abs(whole) if buffer.dtype[0] == "u" else whole).astype(buffer.dtype))
    return arrays
