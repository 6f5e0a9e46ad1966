"""What a rule for devices with threads is."""

from __future__ import annotations

from mlcweb.dlight.base import ScheduleRule
from mlcweb.runtime.target import Target


class GPUScheduleRule(ScheduleRule):
    """A rule for targets with the key "gpu"."""

    def is_target_available(self, target: Target) -> bool:
        return "gpu" in target.keys
