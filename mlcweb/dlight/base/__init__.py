"""The pass that applies rules, what a rule is, and what rules have in common."""

from mlcweb.dlight.base.common_schedules import (
    main_and_epilogue,
    try_inline,
    try_inline_contiguous_spatial,
    unroll,
)
from mlcweb.dlight.base.schedule_rule import ScheduleRule
from mlcweb.dlight.base.transform import ApplyDefaultSchedule
from mlcweb.dlight.base.utils import (
    auto_vectorize,
    get_bytes,
    get_extent,
    max_threads_per_block,
    suggest_threads_per_block,
)

__all__ = [
    "ApplyDefaultSchedule",
    "ScheduleRule",
    "auto_vectorize",
    "get_bytes",
    "get_extent",
    "main_and_epilogue",
    "max_threads_per_block",
    "suggest_threads_per_block",
    "try_inline",
    "try_inline_contiguous_spatial",
    "unroll",
]
