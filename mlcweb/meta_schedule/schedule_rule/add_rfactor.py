"""Reductions in parts that are independent of each other."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.meta_schedule.schedule_rule.block_facts import REDUCTION, needs_rfactor
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.schedule.iteration_order import loop_type
from mlcweb.tir.stmt import For

RANDOM_COMPUTE_PRODUCER = "meta_schedule.random_compute_producer"
"""The annotation of a block whose parts `RandomComputeLocation` moves too."""


@dataclass(eq=False)
class AddRFactor(ScheduleRule):
    """Splits a long reduction and makes the parts of its outer or inner loop in a block of their
    own, or leaves it as it is.

    Args:
        max_jobs_per_core: the most parallel iterations for each core; without end if -1.
        max_innermost_factor: the largest inner part; without end if None.
    """

    max_jobs_per_core: int = 16
    max_innermost_factor: int | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        jobs = self.max_jobs_per_core
        max_parallel = jobs * self.cores if jobs >= 0 else -1
        if not needs_rfactor(sch, block, max_parallel, self.cores):
            return [sch]
        original = sch.copy()
        fused, spatial = fuse_reduction_loops(sch, block)
        limit = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        factors = sch.sample_perfect_tile(fused, n=2, max_innermost_factor=limit)
        found = []
        for loop in sch.split(fused, factors):
            parts = sch.copy()
            try:
                made = parts.rfactor(loop, factor_axis=spatial)
            except ScheduleError:
                continue
            parts.get_loops(made)
            parts.annotate(block, RANDOM_COMPUTE_PRODUCER, 1)
            found.append(parts)
        return [*found, original]


def fuse_reduction_loops(sch: Schedule, block: BlockRV) -> tuple[LoopRV, int]:
    """Put the reduction loops of a block inside of its spatial ones and fuse them: their loop, and
    the number of spatial loops."""
    loops = sch.get_loops(block)
    spatial = [loop for loop in loops if _type(sch, loop) != REDUCTION]
    reduction = [loop for loop in loops if _type(sch, loop) == REDUCTION]
    if spatial + reduction != loops:
        sch.reorder(*spatial, *reduction)
    fused = sch.fuse(*reduction) if len(reduction) > 1 else reduction[0]
    return fused, len(spatial)


def _type(sch: Schedule, loop: LoopRV) -> object:
    found = sch.get(loop)
    assert isinstance(found, For)
    return loop_type(found)
