"""Functions that reduce rows several times: softmax, normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.dlight.analysis import BlockInfo, normalize_prim_func
from mlcweb.dlight.base import get_extent, try_inline_contiguous_spatial, unroll
from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.runtime.target import Target
from mlcweb.schedule import LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import extent_of, place_of
from mlcweb.tir.arithmetic import const, convert
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import IterType
from mlcweb.tir.substitute import variables_in

_THREADS = {"cuda": 256, "opencl": 256}
_UNROLL = {"cuda": 256}
_LEAST = 64


class GeneralReduction(GPUScheduleRule):
    """Schedules blocks that all reduce the same rows, and a last one that writes them: a block of
    threads does all of a row, and keeps what it reduces in shared memory."""

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        threads = _THREADS.get(target.kind.name, _LEAST)
        steps = _UNROLL.get(target.kind.name, _LEAST)
        sch = Schedule(func)
        infos = try_inline_contiguous_spatial(sch, normalize_prim_func(sch))
        if not infos:
            return None
        kind = infos[0].dom_kind()
        if not infos[-1].iters:
            return _scalar(sch, infos) if kind else None
        if len(infos[-1].iters) < len(kind):
            _align(sch, infos[0], infos[-1])
        reduced = len(kind) - len(kind.rstrip("R"))
        if (
            not reduced
            or any(info.dom_kind() != kind for info in infos[1:-1])
            or not infos[-1].is_injective()
            or len(infos[-1].iters) > len(kind)
            or _reads_other_rows(sch, infos[:-1])
        ):
            return None
        _reduced_first(sch, infos)
        loops = sch.get_loops(infos[-1].block_rv)
        row = sch.fuse(*loops[: len(kind) - len(kind.lstrip("S"))])
        _share(sch, loops[-1], threads, steps, row)
        for info in reversed(infos[:-1]):
            for index in range(len(place_of(sch, info.block_rv).block.writes)):
                sch.set_scope(info.block_rv, index, "shared")
            sch.compute_at(info.block_rv, row, preserve_unit_loops=True)
            _share(sch, sch.fuse(*sch.get_loops(info.block_rv)[-reduced:]), threads, steps)
        return sch


def _reads_other_rows(sch: Schedule, infos: Sequence[BlockInfo]) -> bool:
    """Whether a block reduces what blocks before it have reduced rows to."""
    reduced = set()
    for info in infos:
        block = place_of(sch, info.block_rv).block
        along = {axis.var for axis in block.iter_vars if axis.iter_type is IterType.COMM_REDUCE}
        for read in block.reads:
            parts = (expression for part in read.region for expression in (part.min, part.extent))
            if read.buffer in reduced and along & variables_in(*parts):
                return True
        reduced |= {write.buffer for write in block.writes}
    return False


def _share(
    sch: Schedule, loop: LoopRV, threads: int, steps: int, row: LoopRV | None = None
) -> None:
    """Share the iterations of a loop among the threads of a block."""
    rest, thread = sch.split(loop, [None, threads])
    sch.reorder(thread, rest)
    if row is not None:
        sch.bind(row, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    unroll(sch, rest, steps)


def _scalar(sch: Schedule, infos: Sequence[BlockInfo]) -> Schedule:
    """A schedule of blocks the last of which writes one number: a thread for each."""
    root = place_of(sch, infos[0].block_rv)
    allocated = {
        buffer for parent in root.parents for buffer in getattr(parent, "alloc_buffers", ())
    }
    blocks = [place_of(sch, info.block_rv) for info in infos]
    for n, (info, place) in enumerate(zip(infos[:-1], blocks[:-1], strict=True)):
        if any(extent_of(loop) != 1 for loop in place.loops):
            continue
        others = {
            region.buffer
            for other in (*blocks[:n], *blocks[n + 1 :])
            for region in (*other.block.reads, *other.block.writes)
        }
        for index, region in enumerate(place.block.writes):
            buffer = region.buffer
            if buffer.scope() == "global" and buffer in allocated and buffer not in others:
                sch.set_scope(info.block_rv, index, "local")
    for n, info in enumerate(infos):
        sch.bind(sch.add_unit_loop(info.block_rv), "threadIdx.x" if n else "blockIdx.x")
    return sch


def _align(sch: Schedule, first: BlockInfo, last: BlockInfo) -> None:
    """Give the last block an iterator for each of the first: its own where the extents agree, and
    others of extent one."""
    analyzer = Analyzer()
    inputs = [Var(each.var.name, each.var.dtype) for each in last.iters]
    zero = const(0, "int64")
    outputs: list[PrimExpr] = []
    matched = 0
    for each in first.iters:
        if matched < len(inputs) and analyzer.can_prove_equal(
            convert(each.dom), convert(last.iters[matched].dom)
        ):
            outputs.append(inputs[matched])
            matched += 1
        else:
            outputs.append(zero)
    if matched < len(inputs):
        outputs = [zero] * (len(first.iters) - len(inputs)) + list(inputs)
    sch.transform_block_layout(last.block_rv, IndexMap(tuple(inputs), tuple(outputs)))


def _reduced_first(sch: Schedule, infos: Sequence[BlockInfo]) -> None:
    """Put the loops of the last block by which it reads what was reduced before its others."""
    reduced = {
        region.buffer for info in infos[:-1] for region in place_of(sch, info.block_rv).block.writes
    }
    last: Any = sch.get(infos[-1].block_rv)
    used = {
        var
        for read in last.reads
        if read.buffer in reduced
        for part in read.region
        for var in variables_in(part.min, part.extent)
    }
    loops = sch.get_loops(infos[-1].block_rv)
    rows = [
        loop
        for axis, loop in zip(last.iter_vars, loops, strict=True)
        if axis.var in used or get_extent(sch, loop) == 1
    ]
    sch.reorder(*rows, *(loop for loop in loops if loop not in rows))
