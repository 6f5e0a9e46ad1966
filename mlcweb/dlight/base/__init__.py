"""The pass that applies rules, what a rule is, and what rules have in common."""

from mlcweb.dlight.base.common_schedules import try_inline
from mlcweb.dlight.base.schedule_rule import ScheduleRule
from mlcweb.dlight.base.transform import ApplyDefaultSchedule

__all__ = ["ApplyDefaultSchedule", "ScheduleRule", "try_inline"]
