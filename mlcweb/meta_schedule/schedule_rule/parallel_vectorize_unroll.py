"""Parallel, vectorized and unrolled loops, which a post-processor makes when all is decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlcweb.meta_schedule.schedule_rule.block_facts import is_in_spatial_function, is_root, place_of
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.schedule import BlockRV, Schedule

PARALLEL = "meta_schedule.parallel"
VECTORIZE = "meta_schedule.vectorize"
UNROLL_EXPLICIT = "meta_schedule.unroll_explicit"
UNROLL_IMPLICIT = "meta_schedule.unroll_implicit"


@dataclass(eq=False)
class ParallelizeVectorizeUnroll(ScheduleRule):
    """Notes on the root block how far `RewriteParallelVectorizeUnroll` may go.

    Args:
        max_jobs_per_core: the most parallel iterations for each core; none if -1.
        max_vectorize_extent: the most lanes; none if -1.
        unroll_max_steps: bounds of unrolling to choose from; no unrolling if None.
        unroll_explicit: unroll in the lowered program, rather than leave it to a later compiler.
    """

    max_jobs_per_core: int = 16
    max_vectorize_extent: int = 16
    unroll_max_steps: list[int] | None = field(default=None)
    unroll_explicit: bool = True

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if not is_root(place):
            return [sch]
        if self.max_jobs_per_core != -1:
            sch.annotate(block, PARALLEL, self.max_jobs_per_core * self.cores)
        if self.max_vectorize_extent != -1:
            sch.annotate(block, VECTORIZE, self.max_vectorize_extent)
        steps = self.unroll_max_steps
        if steps and not is_in_spatial_function(sch, place):
            chosen = sch.sample_categorical(steps, [1.0 / len(steps)] * len(steps))
            key = UNROLL_EXPLICIT if self.unroll_explicit else UNROLL_IMPLICIT
            sch.annotate(block, key, chosen)
        return [sch]
