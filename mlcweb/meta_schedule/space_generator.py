"""Design spaces: the schedules of a program with their decisions open."""

from mlcweb.meta_schedule.space.generator import (
    PySpaceGenerator,
    ScheduleFn,
    ScheduleFnType,
    SpaceGenerator,
    SpaceGeneratorUnion,
)
from mlcweb.meta_schedule.space.post_order_apply import PostOrderApply

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
