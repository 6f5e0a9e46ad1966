"""By which iterators a block reads and writes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mlcweb.arith import IterSumExpr, normalize_to_iter_sum
from mlcweb.arith.equality import same_expression
from mlcweb.ir.errors import TVMError
from mlcweb.schedule import BlockRV, Schedule, ScheduleError
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import BufferRegion, Range
from mlcweb.tir.substitute import variables_in


def collect_vars_used_in_prim_expr(expr: E.PrimExpr) -> set[E.Var]:
    """The variables of an expression."""
    return variables_in(expr)


def collect_block_iter_vars_used_in_access_region(
    block: S.Block, region: Sequence[Range]
) -> set[E.Var]:
    """The iterators of a block by which it accesses a single element.

    Raises:
        ScheduleError: the region has several elements.
    """
    if not all(is_const_int(part.extent, 1) for part in region):
        raise ScheduleError("The block accesses several elements of a buffer at once")
    used = variables_in(*(part.min for part in region))
    return used & {axis.var for axis in block.iter_vars}


def detect_dominant_read(block: S.Block, iterators: Collection[E.Var] | None = None) -> E.PrimExpr:
    """The offset of what a block reads by the most of its iterators (of `iterators`, where they
    are given); the first of several such reads."""

    def count(read: BufferRegion) -> int:
        used = collect_block_iter_vars_used_in_access_region(block, read.region)
        return len(used if iterators is None else used.intersection(iterators))

    if not block.reads:
        raise ScheduleError("The block reads nothing")
    read = max(block.reads, key=count)
    (offset,) = read.buffer.offset_of([part.min for part in read.region])
    return offset


def dominant_access(
    block: S.Block, iterators: Collection[E.Var] | None = None
) -> IterSumExpr | None:
    """`detect_dominant_read` as a sum of digits of the iterators; None where it is none."""
    domains = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    try:
        return normalize_to_iter_sum(detect_dominant_read(block, iterators), domains)
    except TVMError:
        return None


def get_reduction_expr(block: S.Block) -> E.PrimExpr | None:
    """What a block adds to the element that it writes; None where it does anything else."""
    store = block.body
    if not isinstance(store, S.BufferStore) or not isinstance(store.value, E.Add):
        return None
    before = E.BufferLoad(store.buffer, store.indices)
    return store.value.b if same_expression(store.value.a, before) else None


def is_broadcast_epilogue(sch: Schedule, block: BlockRV, epilogue: BlockRV) -> bool:
    """Whether an epilogue reads an element that a block writes in several of its iterations."""
    producer: Any = sch.get(block)
    consumer: Any = sch.get(epilogue)
    written = {region.buffer for region in producer.writes}
    # Unit iterators count, as they do in TVM.
    return any(
        len(collect_block_iter_vars_used_in_access_region(consumer, read.region))
        < len(consumer.iter_vars)
        for read in consumer.reads
        if read.buffer in written
    )
