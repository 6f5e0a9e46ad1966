"""Row by row: all that makes a row of the result, in one loop over rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from mlcweb.meta_schedule.schedule_rule.block_facts import (
    SPATIAL,
    extent_of,
    has_trivial_binding,
    is_root,
    is_spatial,
    place_of,
)  # fmt: skip
from mlcweb.meta_schedule.schedule_rule.reduce_in_lanes import ReduceInLanes, settle
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.schedule.iteration_order import loop_type

INLINE_RULE = "meta_schedule.inline_rule"


@dataclass(eq=False)
class FuseRows(ScheduleRule):
    """Where rows are reduced and the result needs the row again, as in a softmax or a layer
    normalization: computes everything at the loop over rows of the result, so that a row stays in
    the first cache, and reduces in lanes. A second space leaves the blocks where they are.

    Args:
        lanes: how rows are reduced.
    """

    lanes: ReduceInLanes = field(default_factory=ReduceInLanes)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not is_root(place_of(sch, block)):
            return [sch]
        made = sch.copy()
        blocks = made.get_child_blocks(block)
        depth = self._row_loops(made, blocks)
        if not depth:
            return [sch]
        try:
            self._fuse(made, blocks, depth)
        except ScheduleError:
            return [sch]
        return [sch, made]

    def _row_loops(self, sch: Schedule, blocks: list[BlockRV]) -> int:
        """How many outer loops of the last block go over rows; 0 where there are no rows."""
        places = [place_of(sch, block) for block in blocks]
        reductions = [n for n, place in enumerate(places) if not is_spatial(place.block)]
        if not reductions or reductions[-1] == len(places) - 1:
            return 0
        if not has_trivial_binding(places[-1]):
            return 0
        if any(self.lanes.lane(sch, blocks[n]) is None for n in reductions):
            return 0
        depth = min(sum(loop_type(loop) == SPATIAL for loop in places[n].loops) for n in reductions)
        return depth if depth < len(places[-1].loops) else 0

    def _fuse(self, sch: Schedule, blocks: list[BlockRV], depth: int) -> None:
        row = sch.get_loops(blocks[-1])[depth - 1]
        for block in reversed(blocks[:-1]):
            position = self.lanes.lane(sch, block)
            if position is not None:
                reduction = self.lanes.split(sch, block, position)
                for each in (reduction.block, reduction.sums, reduction.parts):
                    _move(sch, each, row)
                for each in (reduction.sums, reduction.parts):
                    settle(sch, each)
            else:
                _move(sch, block, row)
                if _iterations(sch, block, depth) == 1:
                    # Inlined, it would be made for each element of the row.
                    sch.annotate(block, INLINE_RULE, "disable")


def _move(sch: Schedule, block: BlockRV, row: LoopRV) -> None:
    """Compute a block at a loop. A ScheduleError where parts would be computed several times."""
    before = _iterations(sch, block)
    sch.compute_at(block, row, preserve_unit_loops=True)
    if _iterations(sch, block) > before:
        raise ScheduleError(f"A row needs more of {block} than its own row of it")


def _iterations(sch: Schedule, block: BlockRV, depth: int = 0) -> int:
    """How often a block runs, below its outer loops up to a depth."""
    return prod(extent_of(loop) or 1 for loop in place_of(sch, block).loops[depth:])
