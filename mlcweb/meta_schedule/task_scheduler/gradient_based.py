"""The task from which most is to be gained.

The gain is estimated as Ansor does (Zheng et al., OSDI 2020, section 6): by what a task gained in
its last rounds, and by what it would gain if its time fell with the number of its rounds.
"""

from __future__ import annotations

import random

from mlcweb.meta_schedule.task_scheduler.task import Task
from mlcweb.meta_schedule.task_scheduler.task_scheduler import TaskScheduler


class GradientBased(TaskScheduler):
    """After one round for each task, the task with the largest weighted gain.

    Args:
        alpha: the share of the estimate that the last rounds have.
        window_size: how many of the last rounds.
        seed: for the choice among tasks that gain nothing; -1 takes one from the system.
    """

    def __init__(self, *, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        self.alpha = alpha
        self.window_size = window_size
        self._rng = random.Random(None if seed == -1 else seed)

    def next_task_id(self) -> int:
        alive = [n for n, task in enumerate(self.tasks) if not task.terminated]
        if not alive:
            raise ValueError("All tasks have ended")
        fresh = [number for number in alive if not self.tasks[number].history]
        if fresh:
            return fresh[0]
        gains = {number: self._gain(self.tasks[number]) for number in alive}
        largest = max(gains.values())
        return self._rng.choice([number for number in alive if gains[number] == largest])

    def _gain(self, task: Task) -> float:
        """Seconds of the whole model that one more round may save."""
        history = task.history
        if history[-1] == float("inf"):
            # Nothing ran yet: one program that does is the most that there is to gain.
            return float("inf") if task.trials < 2 * task.failed else 0.0
        rounds = len(history)
        back = history[-1 - self.window_size] if rounds > self.window_size else history[0]
        span = min(self.window_size, rounds - 1)
        falling = (back - history[-1]) / span if span and back != float("inf") else 0.0
        ahead = history[-1] / rounds
        return task.weight * (self.alpha * falling + (1 - self.alpha) * ahead)
