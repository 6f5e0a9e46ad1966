"""TVM's path to what measures the programs of a search."""

from mlcweb.meta_schedule.measure.dask_runner import DaskRunner
from mlcweb.meta_schedule.measure.local_runner import (
    EvaluatorConfig,
    LocalRunner,
    LocalRunnerFuture,
    PyRunner,
    PyRunnerFuture,
    RunnerFuture,
    RunnerInput,
)
from mlcweb.meta_schedule.search_strategy.search_strategy import RunnerResult

Runner = PyRunner

__all__ = [
    "DaskRunner",
    "EvaluatorConfig",
    "LocalRunner",
    "LocalRunnerFuture",
    "PyRunner",
    "PyRunnerFuture",
    "Runner",
    "RunnerFuture",
    "RunnerInput",
    "RunnerResult",
]
