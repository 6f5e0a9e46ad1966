"""How many elements are computed at a time where each is computed by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlcweb.meta_schedule.schedule_rule.block_facts import is_root, place_of
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.tir.schedule import BlockRV, Schedule

LANES_NOTE = "meta_schedule.lanes"
"""The annotation of a root block with the lanes of what is below it."""


@dataclass(eq=False)
class VectorLanes(ScheduleRule):
    """Notes on the root block, by chance, how many lanes `VectorizeInnermost` makes.

    Args:
        lanes: the numbers to choose from.
    """

    lanes: list[int] = field(default_factory=lambda: [4, 8, 16, 32])

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if is_root(place_of(sch, block)):
            share = 1.0 / len(self.lanes)
            chosen = sch.sample_categorical(self.lanes, [share] * len(self.lanes))
            sch.annotate(block, LANES_NOTE, chosen)
        return [sch]
