"""Tiles of matrices in the registers of threads that work together: what is done with them, in
loops over elements.

Such a tile is a buffer of scope "warp" whose first index is the lane, a thread of those, and whose
second is a register of the lane. A layout says which is which element's. Machines differ in
layouts and sizes, and in the instructions that stand for these loops.
"""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.script import tir as T
from mlcweb.tir.arithmetic import const
from mlcweb.tir.function import PrimFunc

Intrinsic = tuple[PrimFunc, PrimFunc]
"""A description and an implementation."""

Place = tuple[Any, Any]
Layout = Callable[[Any, Any], Place]
"""The lane and the register of an element, by its row and column, or the other way round."""

M_DIM = N_DIM = 16


def load(
    lanes: int, shape: tuple[int, int], dtype: str, layout: Layout, scope: str, factor: int = 1
) -> PrimFunc:
    """A tile from memory of a scope. `factor` is what offsets are multiples of."""
    rows, columns = shape
    count = rows * columns // lanes

    @T.prim_func
    def description(
        warp: T.Buffer((lanes, count), dtype, offset_factor=factor, scope="warp"),
        shared: T.Buffer((rows, columns), dtype, offset_factor=factor, scope=scope),
    ):
        with T.block("root"):
            T.reads(shared[0:rows, 0:columns])
            T.writes(warp[0:lanes, 0:count])
            for ax0, ax1 in T.grid(rows, columns):
                with T.block("shared_warp"):
                    v0, v1 = T.axis.remap("SS", [ax0, ax1])
                    T.reads(shared[v0, v1])
                    lane, register = T.meta_var(layout(v0, v1))
                    T.writes(warp[lane, register])
                    warp[lane, register] = shared[v0, v1]

    return description


def product(
    lanes: int,
    k_dim: int,
    dtypes: tuple[str, str, str],
    layouts: tuple[Layout, Layout, Layout],
    widens: bool,
    factors: tuple[int, int, int] = (1, 1, 1),
) -> PrimFunc:
    """The product of a 16 x `k_dim` and a `k_dim` x 16 tile, added to a third. The types, layouts
    and factors are of A, B and C, by row and column of each; `widens` says that elements are
    converted before they are multiplied."""
    count, results = M_DIM * k_dim // lanes, M_DIM * N_DIM // lanes
    (a_dtype, b_dtype, c_dtype), (a_factor, b_factor, c_factor) = dtypes, factors
    a_layout, b_layout, c_layout = layouts

    def places(i: Any, j: Any, k: Any) -> tuple[Any, ...]:
        return *c_layout(i, j), *a_layout(i, k), *b_layout(k, j)

    def widened(value: Any) -> Any:
        return T.Cast(c_dtype, value) if widens else value

    @T.prim_func
    def description(
        A: T.Buffer((lanes, count), a_dtype, offset_factor=a_factor, scope="warp"),
        B: T.Buffer((lanes, count), b_dtype, offset_factor=b_factor, scope="warp"),
        C: T.Buffer((lanes, results), c_dtype, offset_factor=c_factor, scope="warp"),
    ):
        with T.block("root"):
            T.reads(C[0:lanes, 0:results], A[0:lanes, 0:count], B[0:lanes, 0:count])
            T.writes(C[0:lanes, 0:results])
            for i, j, k in T.grid(M_DIM, N_DIM, k_dim):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    c0, c1, a0, a1, b0, b1 = T.meta_var(places(vi, vj, vk))
                    T.reads(C[c0, c1], A[a0, a1], B[b0, b1])
                    T.writes(C[c0, c1])
                    C[c0, c1] = C[c0, c1] + widened(A[a0, a1]) * widened(B[b0, b1])

    return description


def fill(lanes: int, count: int, dtype: str, layout: Layout) -> PrimFunc:
    """Zeros in the registers of a result."""
    zero = const(0, dtype)

    @T.prim_func
    def description(C_warp: T.Buffer((lanes, count), dtype, scope="warp")):
        with T.block("root"):
            T.reads()
            T.writes(C_warp[0:lanes, 0:count])
            for i0, i1 in T.grid(M_DIM, N_DIM):
                with T.block("C_warp"):
                    i, j = T.axis.remap("SS", [i0, i1])
                    lane, register = T.meta_var(layout(i, j))
                    T.reads()
                    T.writes(C_warp[lane, register])
                    C_warp[lane, register] = zero

    return description


def store(lanes: int, count: int, dtype: str, layout: Layout, scope: str) -> PrimFunc:
    """A result to memory of a scope."""

    @T.prim_func
    def description(
        C_warp: T.Buffer((lanes, count), dtype, scope="warp"),
        C: T.Buffer((M_DIM, N_DIM), dtype, scope=scope),
    ):
        with T.block("root"):
            T.reads(C_warp[0:lanes, 0:count])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for i0, i1 in T.grid(M_DIM, N_DIM):
                with T.block("C_warp"):
                    v0, v1 = T.axis.remap("SS", [i0, i1])
                    lane, register = T.meta_var(layout(v0, v1))
                    T.reads(C_warp[lane, register])
                    T.writes(C[v0, v1])
                    C[v0, v1] = C_warp[lane, register]

    return description
