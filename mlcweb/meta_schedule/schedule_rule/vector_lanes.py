"""How many elements are computed at a time where each is computed by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlcweb.meta_schedule.schedule_rule.block_facts import (
    TILING_STRUCTURE,
    extent_of,
    is_root,
    is_spatial,
    place_of,
)  # fmt: skip
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.expr import BufferLoad
from mlcweb.tir.stmt import BufferStore

LANES_NOTE = "meta_schedule.lanes"
"""The annotation with the lanes of a block, or of all that are below a root block and have none of
their own."""


@dataclass(eq=False)
class VectorLanes(ScheduleRule):
    """Notes by chance how many lanes `VectorizeInnermost` makes: on each spatial block that
    computes something, and on the root block for those that copy.

    Args:
        lanes: the numbers to choose from.
    """

    lanes: list[int] = field(default_factory=lambda: [4, 8, 16, 32])

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if is_root(place) or _computes_rows(place):
            share = 1.0 / len(self.lanes)
            chosen = sch.sample_categorical(self.lanes, [share] * len(self.lanes))
            sch.annotate(block, LANES_NOTE, chosen)
        return [sch]


def _computes_rows(place: BlockPlace) -> bool:
    """Whether a spatial block makes more than copies, of more than a few elements."""
    found, loops = place.block, place.loops
    if not is_spatial(found) or TILING_STRUCTURE in found.annotations or not loops:
        return False
    if not isinstance(found.body, BufferStore) or isinstance(found.body.value, BufferLoad):
        return False
    return (extent_of(loops[-1]) or 1) > 1
