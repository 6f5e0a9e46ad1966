"""Schedule rules: what `PostOrderApply` may do to each block of a program."""

from mlcweb.meta_schedule.schedule_rule.add_rfactor import AddRFactor
from mlcweb.meta_schedule.schedule_rule.apply_custom_rule import ApplyCustomRule
from mlcweb.meta_schedule.schedule_rule.auto_inline import AutoInline, InlineConstantScalars
from mlcweb.meta_schedule.schedule_rule.fuse_rows import FuseRows
from mlcweb.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling, ReuseType
from mlcweb.meta_schedule.schedule_rule.parallel_vectorize_unroll import (
    ParallelizeVectorizeUnroll,
)
from mlcweb.meta_schedule.schedule_rule.random_compute_location import RandomComputeLocation
from mlcweb.meta_schedule.schedule_rule.reduce_in_lanes import ReduceInLanes
from mlcweb.meta_schedule.schedule_rule.register_tiling import RegisterTiling
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule, PyScheduleRule
from mlcweb.meta_schedule.schedule_rule.vector_lanes import VectorLanes

create = ScheduleRule.create

__all__ = [
    "AddRFactor",
    "ApplyCustomRule",
    "AutoInline",
    "FuseRows",
    "InlineConstantScalars",
    "MultiLevelTiling",
    "ParallelizeVectorizeUnroll",
    "PyScheduleRule",
    "RandomComputeLocation",
    "ReduceInLanes",
    "RegisterTiling",
    "ReuseType",
    "ScheduleRule",
    "VectorLanes",
    "create",
]
