"""Products of a matrix and a vector, and their loops in one order."""

from __future__ import annotations

from typing import Any

from mlcweb.dlight.analysis.accesses import (
    collect_block_iter_vars_used_in_access_region,
    dominant_access,
    get_reduction_expr,
)
from mlcweb.dlight.analysis.blocks import BlockInfo
from mlcweb.schedule import LoopRV, Schedule, ScheduleError
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.substitute import variables_in


def is_gemv(sch: Schedule, block_info: BlockInfo) -> list[Buffer] | None:
    """The buffers that a sum of products reads by fewer than all iterators: its vectors. None where
    a block is anything else, or reads no matrix."""
    block: Any = sch.get(block_info.block_rv)
    if not (
        block_info.is_reduction()
        and len(block.reads) >= 2
        and len(block.writes) == 1
        and get_reduction_expr(block) is not None
        and collect_block_iter_vars_used_in_access_region(block, block.writes[0].region)
    ):
        return None
    vectors = [
        read.buffer
        for read in block.reads
        for used in (collect_block_iter_vars_used_in_access_region(block, read.region),)
        if 0 < len(used) < len(block.iter_vars)
    ]
    return vectors if 0 < len(vectors) < len(block.reads) else None


def normalize(sch: Schedule, block_info: BlockInfo) -> bool | None:
    """Make the loops of a product four: of batches, of rows, of what is summed, and of the elements
    that are packed in one of the matrix. Whether the innermost axis of the matrix is summed; None
    where the loops cannot be made these four."""
    block: Any = sch.get(block_info.block_rv)
    access = dominant_access(block)
    if access is None:
        return None
    infos = {info.var: info for info in block_info.iters}
    sources = [part.source.source for part in access.args]
    if (
        not sources
        or any(source not in infos for source in sources)
        or not variables_in(access.base).isdisjoint(infos)
    ):
        return None
    uses = [
        collect_block_iter_vars_used_in_access_region(block, region.region)
        for region in (*block.writes, *block.reads)
    ]
    batches: list[LoopRV] = []
    rows: list[LoopRV] = []
    summed: list[LoopRV] = []
    packed: list[LoopRV] = []
    for part, source in zip(access.args, sources, strict=True):
        info = infos[source]
        loop = info.loop_rv
        factor = constant_value(part.lower_factor)
        if factor is None or factor > 1:
            if packed or factor is None:
                return None
            loop, inner = sch.split(loop, [None, int(factor)])
            if info.kind != "R":
                return None  # only what is summed may be packed
            packed.append(inner)
        if info.kind == "R":
            summed.append(loop)
        elif all(info.var in used for used in uses):
            batches.append(loop)
        else:
            rows.append(loop)
    if not rows or not summed:
        raise ScheduleError("A product of a matrix and a vector has rows and a sum")
    packed = packed or [sch.add_unit_loop(block_info.block_rv)]
    batches = batches or [sch.add_unit_loop(block_info.block_rv)]
    sch.reorder(*batches, *rows, *summed, *packed)
    for loops in (batches, rows, summed):
        sch.fuse(*loops)
    return infos[sources[-1]].kind == "R"
