"""Attention kernels of language models, as TVM users write them by hand: blocks that declare to
read and write nothing, loops as long as numbers in memory say, all threads of a block together."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlcweb.tir import Schedule
from tests.schedule.case_files import module

GROUP, HEADS, DIM = 2, 2, 16  # queries of a head of keys, heads of keys, elements of a vector
ROWS, KEYS = 8, 8  # of a tile
LANES, WARPS = 8, 2

PREFILL = f"""
@T.prim_func
def main(
    Q: T.Buffer((21, {HEADS * GROUP}, {DIM}), "float32"),
    q_start: T.Buffer((4,), "int32"),
    K: T.Buffer((30, {HEADS}, {DIM}), "float32"),
    V: T.Buffer((30, {HEADS}, {DIM}), "float32"),
    kv_start: T.Buffer((4,), "int32"),
    out: T.Buffer((21, {HEADS * GROUP}, {DIM}), "float32"),
    lse: T.Buffer((21, {HEADS * GROUP}), "float32"),
):
    for lbx in T.thread_binding(2, thread="blockIdx.x"):
        for lby in T.thread_binding({HEADS}, thread="blockIdx.y"):
            for lty in T.thread_binding({WARPS}, thread="threadIdx.y"):
                for ltx in T.thread_binding({LANES}, thread="threadIdx.x"):
                    with T.block("attention"):
                        bx, by, ty, tx = T.axis.remap("SSSS", [lbx, lby, lty, ltx])
                        T.reads()
                        T.writes()
                        tile = T.alloc_buffer((1,), "int32", scope="local")
                        seq = T.alloc_buffer((1,), "int32", scope="local")
                        tiles = T.alloc_buffer((1,), "int32", scope="local")
                        rows = T.alloc_buffer((1,), "int32", scope="local")
                        keys = T.alloc_buffer((1,), "int32", scope="local")
                        Q_smem = T.alloc_buffer(({ROWS}, {DIM}), "float32", scope="shared")
                        K_smem = T.alloc_buffer(({KEYS}, {DIM}), "float32", scope="shared")
                        V_smem = T.alloc_buffer(({KEYS}, {DIM}), "float32", scope="shared")
                        S_smem = T.alloc_buffer(({ROWS}, {KEYS}), "float32", scope="shared")
                        S_local = T.alloc_buffer(({ROWS}, {KEYS}), "float32", scope="local")
                        O_local = T.alloc_buffer(({ROWS}, {DIM}), "float32", scope="local")
                        m_smem = T.alloc_buffer(({ROWS},), "float32", scope="shared")
                        m_prev_smem = T.alloc_buffer(({ROWS},), "float32", scope="shared")
                        d_smem = T.alloc_buffer(({ROWS},), "float32", scope="shared")
                        m_new = T.alloc_buffer((1,), "float32", scope="local")
                        m_prev = T.alloc_buffer((1,), "float32", scope="local")
                        d_new = T.alloc_buffer((1,), "float32", scope="local")

                        tile[0] = bx
                        seq[0] = 0
                        rows[0] = (q_start[1] - q_start[0]) * {GROUP}
                        tiles[0] = T.ceildiv(rows[0], {ROWS})
                        while T.tvm_thread_invariant(seq[0] < 3):
                            while T.tvm_thread_invariant(tile[0] >= tiles[0] and seq[0] < 3):
                                tile[0] = tile[0] - tiles[0]
                                seq[0] = seq[0] + 1
                                if seq[0] < 3:
                                    rows[0] = (q_start[seq[0] + 1] - q_start[seq[0]]) * {GROUP}
                                    tiles[0] = T.ceildiv(rows[0], {ROWS})
                            if T.tvm_thread_invariant(seq[0] < 3):
                                b: T.int32 = seq[0]
                                first: T.int32 = tile[0] * {ROWS}
                                begin: T.int32 = kv_start[b]
                                keys[0] = kv_start[b + 1] - begin
                                T.tvm_storage_sync("shared")
                                for i in T.serial(T.ceildiv({ROWS}, {LANES * WARPS})):
                                    row: T.int32 = i * {LANES * WARPS} + ty * {LANES} + tx
                                    if row < {ROWS}:
                                        m_smem[row] = T.float32(-50000)
                                        d_smem[row] = T.float32(1)
                                for li, lj in T.grid({ROWS}, {DIM}):
                                    with T.block("O_init"):
                                        i, j = T.axis.remap("SS", [li, lj])
                                        O_local[i, j] = T.float32(0)
                                T.tvm_storage_sync("shared")
                                for li, lj in T.grid({ROWS}, {DIM}):
                                    with T.block("Q_load"):
                                        i, j = T.axis.remap("SS", [li, lj])
                                        T.reads()
                                        T.writes()
                                        at: T.int32 = q_start[b] + (first + i) // {GROUP}
                                        head: T.int32 = by * {GROUP} + (first + i) % {GROUP}
                                        if at < q_start[b + 1]:
                                            Q_smem[i, j] = Q[at, head, j]
                                        else:
                                            Q_smem[i, j] = T.float32(0)
                                T.tvm_storage_sync("shared")
                                for step in T.serial(T.ceildiv(keys[0], {KEYS})):
                                    start: T.int32 = step * {KEYS}
                                    for lz, ly in T.grid({KEYS}, {DIM}):
                                        with T.block("K_load"):
                                            i, j = T.axis.remap("SS", [lz, ly])
                                            T.reads()
                                            T.writes()
                                            at: T.int32 = start + i
                                            if at < keys[0]:
                                                K_smem[i, j] = K[begin + at, by, j]
                                            else:
                                                K_smem[i, j] = T.float32(0)
                                    T.tvm_storage_sync("shared")
                                    for lz, ly in T.grid({KEYS}, {DIM}):
                                        with T.block("V_load"):
                                            i, j = T.axis.remap("SS", [lz, ly])
                                            T.reads()
                                            T.writes()
                                            at: T.int32 = start + i
                                            if at < keys[0]:
                                                V_smem[i, j] = V[begin + at, by, j]
                                            else:
                                                V_smem[i, j] = T.float32(0)
                                    T.tvm_storage_sync("shared")
                                    with T.block():
                                        for li, lj, lk in T.grid({ROWS}, {KEYS}, {DIM}):
                                            with T.block("S_gemm"):
                                                i, j, k = T.axis.remap("SSR", [li, lj, lk])
                                                with T.init():
                                                    S_local[i, j] = T.float32(0)
                                                S_local[i, j] += Q_smem[i, k] * K_smem[j, k]
                                    T.tvm_storage_sync("shared")
                                    for li, lj in T.grid({ROWS}, {KEYS}):
                                        with T.block("S_store"):
                                            i, j = T.axis.remap("SS", [li, lj])
                                            S_smem[i, j] = S_local[i, j]
                                    T.tvm_storage_sync("shared")
                                    for i in T.serial(T.ceildiv({ROWS}, {LANES * WARPS})):
                                        row: T.int32 = i * {LANES * WARPS} + ty * {LANES} + tx
                                        if row < {ROWS}:
                                            with T.block("update"):
                                                m_prev[i] = m_smem[row]
                                                m_new[i] = m_smem[row]
                                                for j in T.serial({KEYS}):
                                                    if start + j < keys[0]:
                                                        m_new[i] = T.max(m_new[i], S_smem[row, j])
                                                d_new[i] = d_smem[row] * T.exp2(
                                                    m_prev[i] - m_new[i])
                                    for i in T.serial(T.ceildiv({ROWS}, {LANES * WARPS})):
                                        row: T.int32 = i * {LANES * WARPS} + ty * {LANES} + tx
                                        if row < {ROWS}:
                                            with T.block("update"):
                                                for j in T.serial({KEYS}):
                                                    if start + j < keys[0]:
                                                        S_smem[row, j] = T.exp2(
                                                            S_smem[row, j] - m_new[i])
                                                    else:
                                                        S_smem[row, j] = T.exp2(
                                                            T.float32(-50000) - m_new[i])
                                    for i in T.serial(T.ceildiv({ROWS}, {LANES * WARPS})):
                                        row: T.int32 = i * {LANES * WARPS} + ty * {LANES} + tx
                                        if row < {ROWS}:
                                            with T.block("update"):
                                                for j in T.serial({KEYS}):
                                                    d_new[i] += S_smem[row, j]
                                                m_smem[row] = m_new[i]
                                                d_smem[row] = d_new[i]
                                                m_prev_smem[row] = m_prev[i]
                                    T.tvm_storage_sync("shared")
                                    with T.block():
                                        for li, lj, lk in T.grid({ROWS}, {DIM}, {KEYS}):
                                            with T.block("O_gemm"):
                                                i, j, k = T.axis.remap("SSR", [li, lj, lk])
                                                with T.init():
                                                    O_local[i, j] *= T.exp2(
                                                        m_prev_smem[i] - m_smem[i])
                                                O_local[i, j] += S_smem[i, k] * V_smem[k, j]
                                    T.tvm_storage_sync("shared")
                                for li, lj in T.grid({ROWS}, {DIM}):
                                    with T.block("O_store"):
                                        i, j = T.axis.remap("SS", [li, lj])
                                        at: T.int32 = q_start[b] + (first + i) // {GROUP}
                                        head: T.int32 = by * {GROUP} + (first + i) % {GROUP}
                                        if at < q_start[b + 1]:
                                            out[at, head, j] = O_local[i, j] / d_smem[i]
                                for li in T.grid({ROWS}):
                                    with T.block("lse_store"):
                                        i = T.axis.remap("S", [li])
                                        at: T.int32 = q_start[b] + (first + i) // {GROUP}
                                        head: T.int32 = by * {GROUP} + (first + i) % {GROUP}
                                        if at < q_start[b + 1]:
                                            lse[at, head] = m_smem[i] + T.log2(d_smem[i])
                                tile[0] = tile[0] + 2
"""
"""Queries of three sequences with their keys and values; the rows of a tile are the queries of one
head of keys."""


def scheduled_prefill() -> Schedule:
    """Loads over all threads, products in tiles of registers."""
    sch = Schedule(module(PREFILL))

    def bind(loop: Any, size: int | None = None) -> None:
        ty, tx = sch.split(loop, [size, LANES])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")

    def tile(name: str, tile: tuple[int, int], reduced: int = 0, inner_last: bool = False) -> None:
        loops = sch.get_loops(name)[-3:] if reduced else sch.get_loops(name)[-2:]
        xo, xi = sch.split(loops[0], [None, tile[0]])
        yo, yi = sch.split(loops[1], [None, tile[1]])
        sch.reorder(xo, yo, xi, yi)
        fused = sch.fuse(xo, yo)
        ty, tx = sch.split(fused, [None, LANES])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
        if not reduced:
            sch.vectorize(yi)
            return
        ko, ki = sch.split(loops[2], [None, reduced])
        sch.reorder(*((ko, xi, yi, ki) if inner_last else (ko, ki, xi, yi)))
        sch.unroll(xi)
        sch.decompose_reduction(name, ty)

    tile("S_gemm", (2, 2), 8, inner_last=True)
    tile("O_gemm", (2, 4), 8)
    tile("S_store", (2, 2))
    tile("O_init", (2, 4))
    tile("O_store", (2, 4))
    for name in ("Q_load", "K_load", "V_load"):
        x, y = sch.get_loops(name)[-2:]
        yo, vector = sch.split(y, [None, 4])
        xo, xi = sch.split(x, [4, None])
        yo, yi = sch.split(yo, [4, None])
        sch.reorder(xi, yi, xo, yo)
        fused = sch.fuse(xo, yo)
        bind(fused, WARPS)
        sch.vectorize(vector)
    _, ty, tx = sch.split(sch.get_loops("lse_store")[-1], [None, WARPS, LANES])
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    return sch


def prefill_inputs() -> list[Any]:
    random = np.random.default_rng(0)
    q = random.standard_normal((21, HEADS * GROUP, DIM)).astype("float32")
    k, v = random.standard_normal((2, 30, HEADS, DIM)).astype("float32")
    return [q, np.array([0, 9, 9, 21], "int32"), k, v, np.array([0, 11, 13, 30], "int32")]


def attention(inputs: list[Any]) -> tuple[Any, Any]:
    """The result and, to the base 2, the logarithm of the sums of the weights."""
    q, q_start, k, v, kv_start = inputs
    out = np.zeros(q.shape, "float32")
    lse = np.zeros(q.shape[:2], "float32")
    for b in range(len(q_start) - 1):
        rows = slice(q_start[b], q_start[b + 1])
        keys = slice(kv_start[b], kv_start[b + 1])
        for head in range(q.shape[1]):
            scores = q[rows, head] @ k[keys, head // GROUP].T
            top = np.max(scores, axis=1, keepdims=True)
            weights = np.exp2(scores - top)
            total = weights.sum(1, keepdims=True)
            out[rows, head] = weights @ v[keys, head // GROUP] / total
            lse[rows, head] = (top + np.log2(total))[:, 0]
    return out, lse


PAGE = 4
DECODE = f"""
@T.prim_func
def main(
    Q: T.Buffer((3, {HEADS * GROUP}, {DIM}), "float32"),
    pages: T.Buffer((12, 2, {HEADS}, {PAGE}, {DIM}), "float32"),
    page_start: T.Buffer((4,), "int32"),
    page_of: T.Buffer((10,), "int32"),
    last_page: T.Buffer((3,), "int32"),
    out: T.Buffer((3, {HEADS * GROUP}, {DIM}), "float32"),
    lse: T.Buffer((3, {HEADS * GROUP}), "float32"),
):
    for bx in T.thread_binding(3, thread="blockIdx.x"):
        for by in T.thread_binding({HEADS}, thread="blockIdx.y"):
            for ty in T.thread_binding({GROUP}, thread="threadIdx.y"):
                for tx in T.thread_binding({DIM // 2}, thread="threadIdx.x"):
                    for tz in T.thread_binding(2, thread="threadIdx.z"):
                        with T.block("attention"):
                            Q_local = T.alloc_buffer((2,), "float32", scope="local")
                            keys = T.alloc_buffer((1,), "int32", scope="local")
                            K_smem = T.alloc_buffer(({2 * GROUP}, {DIM}), "float32", scope="shared")
                            V_smem = T.alloc_buffer(({2 * GROUP}, {DIM}), "float32", scope="shared")
                            O_all = T.alloc_buffer((2, {GROUP}, {DIM}), "float32", scope="shared")
                            md_all = T.alloc_buffer((2, {GROUP}, 2), "float32", scope="shared")
                            own = T.alloc_buffer((1,), "float32", scope="local")
                            score = T.alloc_buffer((1,), "float32", scope="local")
                            S_local = T.alloc_buffer(({GROUP},), "float32", scope="local")
                            m_prev = T.alloc_buffer((1,), "float32", scope="local")
                            d_prev = T.alloc_buffer((1,), "float32", scope="local")
                            m = T.alloc_buffer((1,), "float32", scope="local")
                            d = T.alloc_buffer((1,), "float32", scope="local")
                            O_local = T.alloc_buffer((2,), "float32", scope="local")
                            first_page: T.int32 = page_start[bx]
                            keys[0] = T.if_then_else(
                                page_start[bx + 1] == first_page,
                                0,
                                (page_start[bx + 1] - first_page - 1) * {PAGE} + last_page[bx],
                            )
                            m[0] = T.float32(-50000)
                            d[0] = T.float32(1)
                            for vec in T.vectorized(2):
                                O_local[vec] = T.float32(0)
                            for vec in T.vectorized(2):
                                Q_local[vec] = Q[bx, by * {GROUP} + ty, tx * 2 + vec]
                            for step in T.serial(T.ceildiv(keys[0], {2 * GROUP})):
                                row_s: T.int32 = tz * {GROUP} + ty
                                row_g: T.int32 = (step * 2 + tz) * {GROUP} + ty
                                with T.block("KV_load"):
                                    T.reads()
                                    T.writes()
                                    if row_g < keys[0]:
                                        page: T.int32 = page_of[first_page + row_g // {PAGE}]
                                        at: T.int32 = row_g % {PAGE}
                                        for vec in T.vectorized(2):
                                            K_smem[row_s, tx * 2 + vec] = (
                                                pages[page, 0, by, at, tx * 2 + vec])
                                            V_smem[row_s, tx * 2 + vec] = (
                                                pages[page, 1, by, at, tx * 2 + vec])
                                    else:
                                        for vec in T.vectorized(2):
                                            K_smem[row_s, tx * 2 + vec] = T.float32(0)
                                            V_smem[row_s, tx * 2 + vec] = T.float32(0)
                                T.tvm_storage_sync("shared")
                                m_prev[0] = m[0]
                                for j in T.serial({GROUP}):
                                    own[0] = T.float32(0)
                                    for vec in T.unroll(2):
                                        own[0] += (
                                            Q_local[vec] * K_smem[tz * {GROUP} + j, tx * 2 + vec])
                                    with T.block("cross_thread"):
                                        T.reads(own[0])
                                        T.writes(score[0])
                                        T.attr(
                                            T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                                            "reduce_scope",
                                            T.reinterpret("handle", T.uint64(0)),
                                        )
                                        T.tvm_thread_allreduce(
                                            T.uint32(1), own[0], True, score[0], tx,
                                            dtype="handle")
                                    S_local[j] = T.float32(-50000)
                                    if (step * 2 + tz) * {GROUP} + j < keys[0]:
                                        S_local[j] = score[0]
                                    m[0] = T.max(m[0], S_local[j])
                                scale: T.float32 = T.exp2(m_prev[0] - m[0])
                                d[0] *= scale
                                for vec in T.vectorized(2):
                                    O_local[vec] *= scale
                                for j in T.serial({GROUP}):
                                    S_local[j] = T.exp2(S_local[j] - m[0])
                                    d[0] += S_local[j]
                                    for vec in T.vectorized(2):
                                        O_local[vec] += (
                                            V_smem[tz * {GROUP} + j, tx * 2 + vec] * S_local[j])
                            for vec in T.vectorized(2):
                                O_all[tz, ty, tx * 2 + vec] = O_local[vec]
                            md_all[tz, ty, 0] = m[0]
                            md_all[tz, ty, 1] = d[0]
                            T.tvm_storage_sync("shared")
                            m[0] = T.float32(-50000)
                            d[0] = T.float32(1)
                            for vec in T.vectorized(2):
                                O_local[vec] = T.float32(0)
                            for j in T.serial(2):
                                m_prev[0] = m[0]
                                d_prev[0] = d[0]
                                m[0] = T.max(m[0], md_all[j, ty, 0])
                                d[0] = (d_prev[0] * T.exp2(m_prev[0] - m[0])
                                        + md_all[j, ty, 1] * T.exp2(md_all[j, ty, 0] - m[0]))
                                for vec in T.vectorized(2):
                                    O_local[vec] = (
                                        O_local[vec] * T.exp2(m_prev[0] - m[0])
                                        + O_all[j, ty, tx * 2 + vec]
                                        * T.exp2(md_all[j, ty, 0] - m[0]))
                            for vec in T.serial(2):
                                out[bx, by * {GROUP} + ty, tx * 2 + vec] = O_local[vec] / d[0]
                            lse[bx, by * {GROUP} + ty] = m[0] + T.log2(d[0])
"""
"""One query of each of three sequences, whose keys and values are on pages. Threads along x have
two elements each of a vector, those along z every other pair of keys."""


def decode_inputs() -> list[Any]:
    random = np.random.default_rng(1)
    return [
        random.standard_normal((3, HEADS * GROUP, DIM)).astype("float32"),
        random.standard_normal((12, 2, HEADS, PAGE, DIM)).astype("float32"),
        np.array([0, 3, 4, 10], "int32"),
        random.permutation(12)[:10].astype("int32"),
        np.array([2, 4, 1], "int32"),
    ]


def decoded(inputs: list[Any]) -> tuple[Any, Any]:
    q, pages, page_start, page_of, last_page = inputs
    keys, values, start = [], [], [0]
    for b in range(len(q)):
        mine = pages[page_of[page_start[b] : page_start[b + 1]]]
        length = (len(mine) - 1) * PAGE + last_page[b]
        k, v = mine.transpose(1, 0, 3, 2, 4).reshape(2, -1, HEADS, DIM)[:, :length]
        keys.append(k)
        values.append(v)
        start.append(start[-1] + length)
    k, v = np.concatenate(keys), np.concatenate(values)
    return attention([q, np.arange(len(q) + 1), k, v, np.array(start)])
