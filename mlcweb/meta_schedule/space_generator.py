"""Design spaces: the schedules of a program with their decisions open."""

from mlcweb.meta_schedule.space.generator import (
    PostOrderApply,
    PySpaceGenerator,
    ScheduleFn,
    ScheduleFnType,
    SpaceGenerator,
    SpaceGeneratorUnion,
)

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
