"""A database without records: a function schedules every program that it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.database.tuning_record import TuningRecord
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule


class ScheduleFnDatabase(MemoryDatabase):
    """`schedule_fn` changes the schedule that it is given, and says by False that it has none."""

    def __init__(
        self, schedule_fn: Callable[[Schedule], Any], module_equality: str = "structural"
    ) -> None:
        super().__init__(module_equality)
        self.schedule_fn = schedule_fn

    def query_tuning_record(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> TuningRecord | None:
        schedule = self.query_schedule(mod, target, workload_name)
        if schedule is None:
            return None
        return TuningRecord(schedule.trace, self.commit_workload(mod), (0.0,), target)

    def query_schedule(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> Schedule | None:
        schedule = Schedule(mod)
        return None if self.schedule_fn(schedule) is False else schedule
