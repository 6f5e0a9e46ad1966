"""Which of several programs gets the next round of a search, and the loop that gives it one."""

from __future__ import annotations

import random
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from mlcweb.ir import TVMError
from mlcweb.meta_schedule import watching
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.measure.local_runner import OpenRunner
from mlcweb.meta_schedule.measure.measuring import reason_of
from mlcweb.meta_schedule.measure.runner import RunnerClosed
from mlcweb.meta_schedule.measure.trial_inputs import random_inputs
from mlcweb.meta_schedule.task import Task, build_for
from mlcweb.meta_schedule.trial import Trial
from mlcweb.meta_schedule.tune_context import TuneContext
from mlcweb.meta_schedule.utils import gc_frozen
from mlcweb.runtime.host import clock

Step = tuple[int, Trial]
"""The number of a task, and a trial of it that is done."""

Observer = Callable[["TaskScheduler", int | None], None]
"""Told of each trial (with its task's number), and of the beginning and the end (None)."""


class TaskScheduler(ABC):
    """Measures rounds of tasks until all trials are spent or all tasks have come to their end.

    Attributes:
        tasks: the tasks of the present search.
    """

    tasks: Sequence[Task] = ()
    max_trials_global = 0

    @abstractmethod
    def next_task_id(self) -> int:
        """Which of the tasks that have not ended gets the next round."""

    def begin(
        self,
        tasks: Sequence[TuneContext],
        task_weights: Sequence[float],
        *,
        max_trials_global: int,
        max_trials_per_task: int | None,
        num_trials_per_iter: int,
        open_runner: OpenRunner,
        database: Database,
        cost_model: CostModel | None,
    ) -> None:
        """Prepare a search over tasks."""
        if not tasks:
            raise ValueError("There are no tasks to tune")
        if len(tasks) != len(task_weights):
            raise ValueError(f"There are {len(tasks)} tasks but {len(task_weights)} weights")
        self.max_trials_global = max_trials_global
        per_task = max_trials_global if max_trials_per_task is None else max_trials_per_task
        made = []
        for context, weight in zip(tasks, task_weights, strict=True):
            assert context.mod is not None
            try:
                context.pre_tuning(
                    min(per_task, max_trials_global),
                    num_trials_per_iter,
                    database=database,
                    cost_model=cost_model,
                )
                runner = open_runner(random_inputs(context.mod))
            except (TVMError, ValueError) as error:
                self._leave_out(context, error, len(tasks))
                continue
            made.append(Task(context, weight, runner, database, build_for(context, runner)))
        if not made:
            raise ValueError("None of the tasks can be tuned")
        self.tasks = made

    def _leave_out(self, context: TuneContext, error: Exception, tasks: int) -> None:
        """One task that cannot be tuned does not end the search over the others."""
        if tasks == 1:
            raise error
        warnings.warn(f'"{context.task_name}" is not tuned: {reason_of(error)}', stacklevel=3)

    async def steps(
        self, early_stopping: int | None = None, max_seconds: float | None = None
    ) -> AsyncIterator[Step]:
        """All trials, as they are done; at last the best few of each task again.

        Args:
            early_stopping: trials without progress that end a task.
            max_seconds: no more trials are begun after so many seconds.
        """
        end = float("inf") if max_seconds is None else clock() + max_seconds
        try:
            with gc_frozen():
                async with aclosing(self._rounds(end, early_stopping)) as rounds:
                    async for step in rounds:
                        yield step
                for number, task in enumerate(self.tasks):
                    async for trial in task.confirm():
                        yield number, trial
        except RunnerClosed:
            return
        finally:
            for task in self.tasks:
                task.context.post_tuning()

    async def _rounds(self, end: float, early_stopping: int | None) -> AsyncGenerator[Step, None]:
        while any(not task.terminated for task in self.tasks) and clock() < end:
            left = self.max_trials_global - self.total_trials
            if left <= 0:
                break
            number = self.next_task_id()
            task = self.tasks[number]
            try:
                await task.begin()
            except RunnerClosed:
                raise
            except Exception as error:
                self._leave_out(task.context, error, len(self.tasks))
                task.terminated = True
                continue
            assert task.context.search_strategy is not None
            strategy = task.context.search_strategy
            strategy.max_trials = min(strategy.max_trials, strategy.proposed + left)
            async for trial in task.round(end):
                yield number, trial
            idle = task.trials - task.last_gain
            if early_stopping is not None and idle >= early_stopping:
                task.terminated = True

    async def tune_async(
        self,
        tasks: Sequence[TuneContext],
        task_weights: Sequence[float],
        *,
        observer: Observer | None = None,
        early_stopping: int | None = None,
        max_seconds: float | None = None,
        **options: Any,
    ) -> None:
        """Search to the end. The other options are those of `begin` and `steps`."""
        self.begin(tasks, task_weights, **options)
        try:
            if observer is not None:
                observer(self, None)
            watching.tell(self)
            async for number, trial in self.steps(early_stopping, max_seconds):
                if observer is not None:
                    observer(self, number)
                watching.tell(self, number, trial)
        finally:
            for task in self.tasks:
                task.runner.close()
            if observer is not None:
                observer(self, None)
            watching.tell(self)

    @property
    def total_trials(self) -> int:
        return sum(task.trials for task in self.tasks)

    @staticmethod
    def create(kind: str = "gradient", **options: Any) -> TaskScheduler:
        """A scheduler by name: "gradient" or "round-robin"."""
        if kind not in KINDS:
            raise ValueError(f'Unknown task scheduler "{kind}"; there are {", ".join(KINDS)}')
        return KINDS[kind](**options)


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


KINDS: dict[str, type[TaskScheduler]] = {
    "gradient": GradientBased,
    "round-robin": RoundRobin,
}
"""The schedulers by the names that `TaskScheduler.create` takes."""

create = TaskScheduler.create
