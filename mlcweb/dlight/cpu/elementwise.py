"""Functions without reductions: one loop nest computes all."""

from __future__ import annotations

from mlcweb.dlight.base import ScheduleRule
from mlcweb.dlight.cpu.inlining import inline_spatial
from mlcweb.dlight.cpu.machine import is_compiled
from mlcweb.dlight.cpu.parallel import in_parallel
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule
from mlcweb.schedule.analysis.block_facts import is_spatial, place_of
from mlcweb.tir.function import PrimFunc


class Elementwise(ScheduleRule):
    """Inlines all blocks of a function that reduces nothing into the last. Vectors are made of its
    innermost loop when code is generated."""

    def is_target_available(self, target: Target) -> bool:
        return is_compiled(target)

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func)
        blocks = sch.get_child_blocks(sch.get_block("root"))
        if not all(is_spatial(place_of(sch, block).block) for block in blocks):
            return None
        for block in inline_spatial(sch):
            in_parallel(sch, sch.get_loops(block)[:-1])
        return sch
