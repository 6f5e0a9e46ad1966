"""Computing elementwise blocks where their results are used."""

from __future__ import annotations

from mlcweb.ir.visitor import walk
from mlcweb.schedule import BlockRV, Schedule, ScheduleError
from mlcweb.schedule.analysis.block_facts import consumers_of, has_block, is_spatial, place_of
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.expr import BufferLoad, Call, Div, Select

MAX_NODES = 100
"""A block that is used several times is inlined while its copies are no larger than this."""


def inline_spatial(sch: Schedule) -> list[BlockRV]:
    """Inline each spatial block into its consumers, unless these are reductions that would compute
    more than a copy each time, or would compute something costly several times. The blocks that are
    left, in order."""
    blocks = sch.get_child_blocks(sch.get_block("root"))
    for block in blocks:
        if is_worth_inlining(sch, place_of(sch, block)):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue
    return [block for block in blocks if has_block(sch, block)]


def is_worth_inlining(sch: Schedule, place: BlockPlace) -> bool:
    """Whether a block is spatial and costs nothing more where its consumers compute it."""
    if not is_spatial(place.block) or len(place.block.writes) != 1:
        return False
    consumers = consumers_of(sch.state, place)
    nodes = list(walk(place.block.body))
    is_costly = any(isinstance(node, (Call, Select, Div)) for node in nodes)
    if is_costly and not all(is_spatial(consumer.block) for consumer in consumers):
        return False
    buffer = place.block.writes[0].buffer
    uses = sum(
        isinstance(node, BufferLoad) and node.buffer is buffer
        for consumer in consumers
        for node in walk(consumer.block.body)
    )
    return uses == 1 or (not is_costly and uses * len(nodes) <= MAX_NODES)
