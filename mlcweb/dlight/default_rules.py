"""The rules whose schedule a function has by default, for each kind of target."""

from __future__ import annotations

from mlcweb.dlight.base import ApplyDefaultSchedule
from mlcweb.dlight.cpu import Elementwise, Matmul, Reduction
from mlcweb.dlight.gpu import Fallback
from mlcweb.ir.module import IRModule
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS


def with_default_schedules(mod: IRModule, target: Target) -> IRModule:
    """A module with the schedules of the first rule for a target that knows a function; the module
    itself where none knows any."""
    processor = (Matmul(), Reduction(), Elementwise())
    rules = (Fallback(),) if target.kind.name in DEVICE_KINDS else processor
    with target:
        return ApplyDefaultSchedule(*rules)(mod)
