"""Which task gets the next round, and the loop that gives it one."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from mlcweb.ir import TVMError
from mlcweb.meta_schedule import watching
from mlcweb.meta_schedule.cost_model import CostModel
from mlcweb.meta_schedule.database import Database
from mlcweb.meta_schedule.gc_frozen import gc_frozen
from mlcweb.meta_schedule.local_runner import OpenRunner
from mlcweb.meta_schedule.measuring import reason_of
from mlcweb.meta_schedule.runner import RunnerClosed
from mlcweb.meta_schedule.task_scheduler.task import Task, build_for
from mlcweb.meta_schedule.trial import Trial
from mlcweb.meta_schedule.trial_inputs import random_inputs
from mlcweb.meta_schedule.tune_context import TuneContext
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
        from mlcweb.meta_schedule.task_scheduler import KINDS

        if kind not in KINDS:
            raise ValueError(f'Unknown task scheduler "{kind}"; there are {", ".join(KINDS)}')
        return KINDS[kind](**options)
