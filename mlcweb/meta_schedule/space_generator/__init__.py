"""Design spaces: the schedules of a program with their decisions open."""

from mlcweb.meta_schedule.space_generator.post_order_apply import PostOrderApply
from mlcweb.meta_schedule.space_generator.schedule_fn import ScheduleFn
from mlcweb.meta_schedule.space_generator.space_generator import (
    PySpaceGenerator,
    ScheduleFnType,
    SpaceGenerator,
)
from mlcweb.meta_schedule.space_generator.space_generator_union import SpaceGeneratorUnion

create = SpaceGenerator.create

__all__ = [
    "PostOrderApply",
    "PySpaceGenerator",
    "ScheduleFn",
    "ScheduleFnType",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
    "create",
]
