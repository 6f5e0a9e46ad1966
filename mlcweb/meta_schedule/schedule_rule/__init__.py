"""Schedule rules: what `PostOrderApply` may do to each block of a program."""

from mlcweb.meta_schedule.space.multi_level_tiling import (
    MultiLevelTiling, MultiLevelTilingWideVector, MultiLevelTilingWithIntrin, ReuseType,
)  # fmt: skip
from mlcweb.meta_schedule.space.reduce_in_lanes import FuseRows, ReduceInLanes
from mlcweb.meta_schedule.space.register_tiling import RegisterTiling
from mlcweb.meta_schedule.space.rules import (
    AddRFactor, ApplyCustomRule, AutoInline, InlineConstantScalars, ParallelizeVectorizeUnroll,
    PyScheduleRule, RandomComputeLocation, ScheduleRule,
)  # fmt: skip
from mlcweb.meta_schedule.space.tensor_core_tiling import MultiLevelTilingTensorCore
from mlcweb.meta_schedule.space.thread_rules import AutoBind, CrossThreadReduction
from mlcweb.meta_schedule.space.vector_lanes import VectorLanes

create = ScheduleRule.create
