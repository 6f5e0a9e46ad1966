"""Which of several programs gets the next round of a search, and the loop that gives it one."""

from __future__ import annotations

import random
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

from mlcweb.ir import TVMError
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.events import Begun, Event, Round
from mlcweb.meta_schedule.history import History
from mlcweb.meta_schedule.measure.artifact import random_inputs
from mlcweb.meta_schedule.measure.measuring import reason_of
from mlcweb.meta_schedule.runner import BatchRunner, OpenRunner
from mlcweb.meta_schedule.search import Budget, TaskRecord
from mlcweb.meta_schedule.search_strategy.search_strategy import RunnerResult
from mlcweb.meta_schedule.tune_context import TuneContext
from mlcweb.meta_schedule.utils import gc_frozen
from mlcweb.runtime.host.waiting import wait_for

Listener = Callable[["TaskScheduler", "int | None", "Event | None"], None]
"""Told of each event with the number of its task; of the beginning and the end of all with None."""

_listeners: list[Listener] = []


@contextmanager
def listening(*listeners: Listener) -> Iterator[None]:
    """While active, `listeners` hear the events of all schedulers."""
    _listeners.extend(listeners)
    try:
        yield
    finally:
        for listener in listeners:
            _listeners.remove(listener)


class TaskScheduler(ABC):
    """Interleaves searches, round by round, until all trials are spent or all have come to their
    end.

    Attributes:
        tasks: the tasks of the present search.
    """

    tasks: Sequence[TaskRecord] = ()
    max_trials_global = 0
    measure_callbacks: Sequence[Any] = ()

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
        early_stopping: int | None = None,
    ) -> None:
        """Prepare a search over tasks."""
        self.max_trials_global = max_trials_global
        per_task = max_trials_global if max_trials_per_task is None else max_trials_per_task
        records = []
        for context, weight in _weighted(tasks, task_weights):
            assert context.mod is not None
            runner = None
            try:
                runner = open_runner(random_inputs(context.mod))
                records.append(
                    TaskRecord(
                        context,
                        runner,
                        History(database, context.mod),
                        weight=weight,
                        trials=min(per_task, max_trials_global),
                        per_round=num_trials_per_iter,
                        cost_model=cost_model,
                        early_stopping=early_stopping,
                    )
                )
            except (TVMError, ValueError) as error:
                if runner is not None:
                    runner.close()
                self._leave_out(context, error, len(tasks))
        if not records:
            raise ValueError("None of the tasks can be tuned")
        self.tasks = records

    def _leave_out(self, context: TuneContext, error: Exception, tasks: int) -> None:
        """One task that cannot be tuned does not end the search over the others."""
        if tasks == 1:
            raise error
        warnings.warn(f'"{context.task_name}" is not tuned: {reason_of(error)}', stacklevel=3)

    async def events(
        self, max_seconds: float | None = None
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """The events of all tasks, each with the number of its task; at the end of the trials the
        best few of each task are confirmed.

        Args:
            max_seconds: seconds after which no trial begins.
        """
        budget = Budget(self.max_trials_global, max_seconds)
        streams = [task.events(budget) for task in self.tasks]
        with gc_frozen():
            while any(not task.terminated for task in self.tasks) and not budget.is_spent:
                number = self.next_task_id()
                if number == -1:
                    budget.trials = 0
                    break
                async for event in self._round(number, streams[number]):
                    yield number, event
            for number, task in enumerate(self.tasks):
                if task.baseline is None:
                    task.end()
                    continue
                async for event in streams[number]:
                    yield number, event

    async def _round(self, number: int, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """The events of a task up to the end of its next round, or, where that runs as a whole, its
        beginning, so that rounds of several tasks may run beside each other; or to its own end."""
        task = self.tasks[number]
        last = Begun if task.by_rounds else Round
        try:
            async for event in events:
                yield event
                if isinstance(event, last):
                    return
        except Exception as error:
            if task.baseline is not None:
                raise
            self._leave_out(task.context, error, len(self.tasks))

    async def run(self, max_seconds: float | None = None) -> None:
        """Search to the end, and tell listeners."""
        try:
            self._tell(None, None)
            async with aclosing(self.events(max_seconds)) as events:
                async for number, event in events:
                    self._tell(number, event)
        finally:
            for task in self.tasks:
                task.close()
            self._tell(None, None)

    def _tell(self, number: int | None, event: Event | None) -> None:
        for listener in tuple(_listeners):
            listener(self, number, event)

    def tune(
        self,
        tasks: Sequence[TuneContext],
        task_weights: Sequence[float],
        max_trials_global: int,
        max_trials_per_task: int,
        num_trials_per_iter: int,
        builder: Any,
        runner: Any,
        measure_callbacks: Sequence[Any] = (),
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Search with a builder and a runner that are asked for each candidate and nothing else,
        and callbacks that do all the rest: `AddToDatabase` keeps records, `UpdateCostModel` teaches
        the model. `tune_tasks` searches with fewer measurements.

        Args:
            max_trials_global: after so many candidates no more rounds begin.
            max_trials_per_task: candidates of one task, at most.
            num_trials_per_iter: candidates in a round, at most.
            builder: builds candidates.
            runner: runs what was built.
            measure_callbacks: called with the scheduler, the number of the task, its candidates
                and what became of them.
            database: where the search strategies look for what was fast.
            cost_model: predicts what is fast.

        Raises:
            ValueError: there are no tasks, or not as many weights.
        """
        self.database = self.database_ = MemoryDatabase() if database is None else database
        self.cost_model = self.cost_model_ = cost_model
        self.measure_callbacks = list(measure_callbacks)
        self.max_trials_global = max_trials_global
        records = []
        for number, (context, weight) in enumerate(_weighted(tasks, task_weights)):
            assert context.mod is not None
            records.append(
                TaskRecord(
                    context,
                    BatchRunner(builder, runner, keeps_files=True),
                    History(self.database, context.mod, outcomes={}),
                    weight=weight,
                    trials=max_trials_per_task,
                    per_round=num_trials_per_iter,
                    cost_model=cost_model,
                    tell=partial(self._call_back, number),
                )
            )
        self.tasks = records
        wait_for(self.run())

    def _call_back(self, number: int, *measured: Any) -> None:
        for callback in self.measure_callbacks:
            callback.apply(self, number, *measured)

    def touch_task(self, task_id: int) -> None:
        """Hear whether a task has results: nothing happens, since all are waited for."""
        return

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Wait for the round of a task that runs; what became of its candidates."""
        return self.tasks[task_id].join()

    def terminate_task(self, task_id: int) -> None:
        """No more candidates of a task are asked for."""
        self.tasks[task_id].end()

    @property
    def tasks_(self) -> Sequence[Any]:
        """The tasks, by TVM's name."""
        return self.tasks

    def _outer(self) -> TaskScheduler:
        """The scheduler, as TVM's subclasses reach what they are derived from."""
        return self

    @property
    def total_trials(self) -> int:
        return sum(task.trials for task in self.tasks)

    @staticmethod
    def create(kind: str = "gradient", **options: Any) -> TaskScheduler:
        """A scheduler by name: "gradient" or "round-robin"."""
        if kind not in KINDS:
            raise ValueError(f'Unknown task scheduler "{kind}"; there are {", ".join(KINDS)}')
        return KINDS[kind](**options)


class PyTaskScheduler(TaskScheduler):
    """What schedulers of a program's own are subclasses of, in TVM."""

    def next_task_id(self) -> int:
        raise ValueError(f"next_task_id is not defined in {type(self).__name__}")


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
        fresh = [number for number in alive if not self.tasks[number].round_bests]
        if fresh:
            # Those first of which no round runs yet.
            return min(fresh, key=lambda number: self.tasks[number].runner_futures is not None)
        gains = {number: self._gain(self.tasks[number]) for number in alive}
        largest = max(gains.values())
        return self._rng.choice([number for number in alive if gains[number] == largest])

    def _gain(self, task: TaskRecord) -> float:
        """Seconds of the whole model that one more round may save."""
        history = task.round_bests
        if history[-1] == float("inf"):
            # Nothing ran yet: one program that does is the most that there is to gain.
            return float("inf") if task.trials < 2 * task.failed else 0.0
        rounds = len(history)
        back = history[-1 - self.window_size] if rounds > self.window_size else history[0]
        span = min(self.window_size, rounds - 1)
        falling = (back - history[-1]) / span if span and back != float("inf") else 0.0
        ahead = history[-1] / rounds
        return task.weight * (self.alpha * falling + (1 - self.alpha) * ahead)


def _weighted(
    tasks: Sequence[TuneContext], weights: Sequence[float]
) -> list[tuple[TuneContext, float]]:
    """The tasks of a search with their weights. ValueError where there are none, or not as many
    weights."""
    if not tasks:
        raise ValueError("There are no tasks to tune")
    if len(tasks) != len(weights):
        raise ValueError(f"There are {len(tasks)} tasks but {len(weights)} weights")
    return list(zip(tasks, weights, strict=True))


KINDS: dict[str, type[TaskScheduler]] = {
    "gradient": GradientBased,
    "round-robin": RoundRobin,
}
"""The schedulers by the names that `TaskScheduler.create` takes."""

create = TaskScheduler.create
