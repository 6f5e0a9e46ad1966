"""Task schedulers: which of several programs is tuned next."""

from mlcweb.meta_schedule.task_scheduler.gradient_based import GradientBased
from mlcweb.meta_schedule.task_scheduler.round_robin import RoundRobin
from mlcweb.meta_schedule.task_scheduler.task import Task
from mlcweb.meta_schedule.task_scheduler.task_scheduler import TaskScheduler

KINDS: dict[str, type[TaskScheduler]] = {
    "gradient": GradientBased,
    "round-robin": RoundRobin,
}
"""The schedulers by the names that `TaskScheduler.create` takes."""

create = TaskScheduler.create
