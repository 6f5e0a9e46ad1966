"""Sums: the threads of a block share each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlcweb.arith import IterSumExpr
from mlcweb.dlight.analysis import (
    BlockInfo,
    dominant_access,
    get_reduction_expr,
    is_broadcast_epilogue,
    normalize_prim_func,
)
from mlcweb.dlight.base import (
    main_and_epilogue,
    suggest_threads_per_block,
    try_inline_contiguous_spatial,
    unroll,
)
from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.tir.arithmetic import constant_value, is_const_int
from mlcweb.tir.function import PrimFunc

ROWS = 16
"""The threads that share a sum whose elements are not beside each other."""

COLUMNS = 16
"""The most such sums of a block of threads."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum whose loops are three: spatial, reduced, and the inner part of one of them."""

    block: BlockRV
    inner_reduction: bool
    """Whether it adds up elements that are beside each other."""
    order: list[int]
    """Of each spatial iterator, its place among them in the order of the indices that are read."""
    domains: list[Any]
    """The extents of spatial iterators in that order."""
    packed_at: int = 0
    packed: int | None = None
    """The place of a spatial iterator whose inner part is read next to each other, and its
    extent."""


class Reduction(GPUScheduleRule):
    """Schedules a sum with what is elementwise before and after it. Threads of a block add up parts
    of it on their own, and then these parts together."""

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func)
        blocks = main_and_epilogue(try_inline_contiguous_spatial(sch, normalize_prim_func(sch)))
        if blocks is None:
            return None
        main, epilogue = blocks
        block: Any = sch.get(main.block_rv)
        if (
            not main.is_reduction()
            or "R" not in main.dom_kind()
            or len(block.writes) != 1
            or get_reduction_expr(block) is None
        ):
            return None
        access = dominant_access(block)
        total = None if access is None else _normalize(sch, main, access)
        if total is None:
            return None
        if total.inner_reduction:
            _share_rows(sch, target, total, epilogue)
        elif _columns_are_affine(total.domains):
            _share_columns(sch, total, epilogue)
        else:
            return None
        return sch


def _normalize(sch: Schedule, info: BlockInfo, access: IterSumExpr) -> _Sum | None:
    """Make the loops of a sum three; None where what it reads is no such sum of its iterators."""
    if not is_const_int(access.base, 0):
        return None
    left = {each.var: each for each in info.iters}
    spatial: list[LoopRV] = []
    before: list[LoopRV] = []
    reduced: list[LoopRV] = []
    domains: list[Any] = []
    inner: list[LoopRV] = []
    kind, packed, packed_at = "", None, 0
    for part in access.args:
        each = left.pop(part.source.source, None)
        factor = constant_value(part.lower_factor)
        if each is None or factor is None or (factor > 1 and inner):
            return None
        loop, kind, dom = each.loop_rv, each.kind, each.dom
        if factor > 1:
            loop, rest = sch.split(loop, [None, int(factor)])
            inner.append(rest)
            dom = part.extent
            if kind != "R":
                packed, packed_at = int(factor), len(spatial)
        if kind == "R":
            reduced.append(loop)
        else:
            spatial.append(loop)
            before.append(each.loop_rv)
            domains.append(constant_value(dom) or dom)
    for each in left.values():
        if each.kind != "S" or each.dom != 1:
            return None
        spatial.append(each.loop_rv)
        before.append(each.loop_rv)
        domains.append(1)
    if not spatial or not reduced or len(spatial) != info.dom_kind().count("S"):
        return None
    inner = inner or [sch.add_unit_loop(info.block_rv)]
    sch.reorder(*spatial, *reduced, *inner)
    sch.fuse(*spatial)
    sch.fuse(*reduced)
    order = [before.index(each.loop_rv) for each in info.iters if each.kind == "S"]
    return _Sum(info.block_rv, kind == "R", order, domains, packed_at, packed)


def _share_rows(sch: Schedule, target: Target, total: _Sum, epilogue: BlockInfo | None) -> None:
    """A block of threads for each sum."""
    _, r, _ = sch.get_loops(total.block)
    (threads,) = suggest_threads_per_block(target, [sch.get(r)])
    _, tx = sch.split(r, [None, threads])
    part = sch.rfactor(tx, 0)
    bx, r, tx, _ = sch.get_loops(part)
    sch.reorder(bx, tx, r)
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    unroll(sch, tx, 256)
    sch.set_scope(part, 0, "local")
    sch.decompose_reduction(part, r)
    sch.reverse_compute_at(total.block, bx, preserve_unit_loops=True)
    _, tx, *spatial = sch.get_loops(total.block)
    fused, *packed = _in_order_of_reads(sch, total, spatial)
    sch.reorder(fused, tx, *packed)
    sch.bind(tx, "threadIdx.x")
    if epilogue is None:
        return
    sch.reverse_compute_at(epilogue.block_rv, bx, preserve_unit_loops=True)
    if is_broadcast_epilogue(sch, total.block, epilogue.block_rv):
        sch.set_scope(total.block, 0, "shared")
        _, *rest = sch.get_loops(epilogue.block_rv)
        _, tx = sch.split(sch.fuse(*rest), [None, threads])
        sch.bind(tx, "threadIdx.x")
    else:
        sch.set_scope(total.block, 0, "local")


def _share_columns(sch: Schedule, total: _Sum, epilogue: BlockInfo | None) -> None:
    """A block of threads for sums beside each other: neighbouring threads read neighbouring
    elements."""
    s, r, _ = sch.get_loops(total.block)
    columns = _columns(total.domains[-1])
    sch.split(s, [None, columns])
    _, ty = sch.split(r, [None, ROWS])
    part = sch.rfactor(ty, 0)
    bx, tx, r, ty, _ = sch.get_loops(part)
    sch.reorder(bx, tx, ty, r)
    sch.bind(tx, "threadIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(bx, "blockIdx.x")
    sch.set_scope(part, 0, "local")
    sch.decompose_reduction(part, r)
    sch.reverse_compute_at(total.block, bx, preserve_unit_loops=True)
    _, r, *spatial = sch.get_loops(total.block)
    fused, *packed = _in_order_of_reads(sch, total, spatial)
    sch.reorder(fused, *packed, r)
    sch.bind(fused, "threadIdx.x")
    sch.bind(r, "threadIdx.y")
    if epilogue is None:
        return
    sch.reverse_compute_at(epilogue.block_rv, bx, preserve_unit_loops=True)
    broadcasts = is_broadcast_epilogue(sch, total.block, epilogue.block_rv)
    sch.set_scope(total.block, 0, "shared" if broadcasts else "local")
    _, *rest = sch.get_loops(epilogue.block_rv)
    fused = sch.fuse(*rest)
    if broadcasts:
        _, tx, ty = sch.split(fused, [None, columns, ROWS])
        sch.bind(ty, "threadIdx.y")
    else:
        tx, _ = sch.split(fused, [columns, None])
    sch.bind(tx, "threadIdx.x")


def _in_order_of_reads(sch: Schedule, total: _Sum, spatial: list[LoopRV]) -> list[LoopRV]:
    """Fuse the spatial loops of the block that adds up parts; beside the fused loop the one of
    what is packed."""
    if total.packed is None:
        return [sch.fuse(*spatial)]
    if len(spatial) != len(total.order):
        raise ScheduleError("The sum has not a loop for each spatial iterator")
    loops = [spatial[n] for n in total.order]
    sch.reorder(*loops)
    loops[total.packed_at], packed = sch.split(loops[total.packed_at], [None, total.packed])
    sch.reorder(*loops, packed)
    return [sch.fuse(*loops), packed]


def _columns(extent: Any) -> int:
    """The largest number of columns that divides an extent."""
    if not isinstance(extent, int):
        return 1
    return next(n for n in range(COLUMNS, 0, -1) if extent % n == 0)


def _columns_are_affine(domains: list[Any]) -> bool:
    """Whether the indices of sums beside each other stay sums of digits: of fewer than three."""
    digits = sum(extent != 1 for extent in domains[:-1])
    if not isinstance(domains[-1], int) or _columns(domains[-1]) < domains[-1]:
        digits += 1
    return digits < 3
