"""Tasks in turn."""

from __future__ import annotations

from mlcweb.meta_schedule.task_scheduler.task_scheduler import TaskScheduler


class RoundRobin(TaskScheduler):
    """Each task that has not ended gets a round, then each again."""

    def __init__(self) -> None:
        self._last = -1

    def next_task_id(self) -> int:
        for step in range(1, len(self.tasks) + 1):
            number = (self._last + step) % len(self.tasks)
            if not self.tasks[number].terminated:
                self._last = number
                return number
        raise ValueError("All tasks have ended")
