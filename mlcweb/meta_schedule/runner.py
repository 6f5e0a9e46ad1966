"""How programs are measured, as an argument: `builder=` and `runner=` of the tuning functions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from mlcweb.ir import IRModule
from mlcweb.ir.module import the_function_name
from mlcweb.meta_schedule.arg_info import ArgInfo, TensorInfo
from mlcweb.meta_schedule.builder import (
    Builder,
    BuilderInput,
    BuilderResult,
    Hook,
    LocalBuilder,
)
from mlcweb.meta_schedule.measure.artifact import (
    Artifact,
    ModuleArtifact,
    TrialInputs,
    random_contents,
    with_param_layouts,
)
from mlcweb.meta_schedule.measure.dask_runner import DaskRunner as DaskRunner
from mlcweb.meta_schedule.measure.runner import EvaluatorConfig, NotMeasured, Seconds
from mlcweb.meta_schedule.measure.runner import Runner as TaskRunner
from mlcweb.meta_schedule.search_strategy.search_strategy import RunnerResult
from mlcweb.meta_schedule.utils import get_global_func_with_default_on_worker as hook_or
from mlcweb.meta_schedule.utils import remove_build_dir
from mlcweb.runtime.device import Device, device
from mlcweb.runtime.host import in_browser
from mlcweb.runtime.library import load_module
from mlcweb.runtime.module import Module
from mlcweb.runtime.ndarray import NDArray, empty
from mlcweb.runtime.target import Target

if TYPE_CHECKING:
    from mlcweb.meta_schedule.measure.process_pool import ProcessPool


OpenRunner = Callable[[TrialInputs], TaskRunner]
"""Makes the runner of a task."""


class Runners(Protocol):
    """Makes the runner of each task of a search, and ends with it: `LocalRunner` and its like."""

    def open(self, workload: TrialInputs) -> TaskRunner:
        """A runner for one program."""
        ...

    def close(self) -> None:
        """End what the runners share."""
        ...


def native_workers() -> int:
    """How many programs are measured at one time where nobody says: two, on more than one core."""
    return min(2, os.cpu_count() or 1)


@dataclass(slots=True, eq=False)
class RunnerInput:
    """An artifact to run, on a kind of device, with arguments of these kinds."""

    artifact_path: str
    device_type: str
    args_info: Sequence[ArgInfo]


class RunnerFuture:
    """A measurement under way: a pair of functions, or a subclass with the two methods."""

    def __init__(
        self,
        f_done: Callable[[], bool] | None = None,
        f_result: Callable[[], RunnerResult] | None = None,
    ) -> None:
        self._done = f_done
        self._result = f_result

    def done(self) -> bool:
        """Whether the result is there."""
        return self._done is None or self._done()

    def result(self) -> RunnerResult:
        """The result, which is waited for."""
        if self._result is None:
            raise NotImplementedError(f"{type(self).__name__}.result")
        return self._result()


PyRunnerFuture = RunnerFuture
"""What futures of a program's own are subclasses of, in TVM."""


class PyRunner:
    """Runs artifacts; subclasses, which are a program's own, define `run`."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> Sequence[RunnerFuture]:
        """A future for each artifact."""
        raise NotImplementedError(f"{type(self).__name__}.run")


Runner = PyRunner


class LocalRunnerFuture(RunnerFuture):
    """A measurement that is done: its seconds, or why there are none."""

    def __init__(
        self, res: Sequence[float] | None = None, error_message: str | None = None
    ) -> None:
        super().__init__()
        self.res = res
        self.error_message = error_message

    def result(self) -> RunnerResult:
        return RunnerResult(None if self.res is None else tuple(self.res), self.error_message)


class LocalRunner(PyRunner):
    """Programs are measured on this machine: in a search by worker processes, or workers of the
    page, which serve one task after another; by `run` in this process.

    Args:
        timeout_sec: seconds that one trial of a search may take.
        max_workers: programs measured at one time; by default what suits this machine or page.
        cooldown_sec: seconds to wait after each program of `run`.
        alloc_repeat: sets of arguments that each program is measured on.
        f_alloc_argument: makes the sets of arguments of a device, what `ArgInfo.as_json` says of
            each, and their number: a function, or the name of a registered one.
        f_run_evaluator: the seconds of a module, a device, an `EvaluatorConfig` and those sets.
        f_cleanup: called after each program.
        initializer: called first, to register the functions that are given by name.
    """

    def __init__(
        self,
        timeout_sec: float = 10.0,
        evaluator_config: EvaluatorConfig | None = None,
        max_workers: int | None = None,
        *,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_alloc_argument: Hook = None,
        f_run_evaluator: Hook = None,
        f_cleanup: Hook = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        if initializer is not None:
            initializer()
        self.timeout_sec = timeout_sec
        self.evaluator_config = evaluator_config or EvaluatorConfig()
        self.max_workers = max_workers
        self.cooldown_sec = cooldown_sec
        self.alloc_repeat = alloc_repeat
        self.f_alloc_argument = f_alloc_argument
        self.f_run_evaluator = f_run_evaluator
        self.f_cleanup = f_cleanup
        self._pool: ProcessPool | None = None

    @property
    def is_default(self) -> bool:
        """Whether a search may measure as it does by itself."""
        hooks = (self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup)
        return all(hook is None for hook in hooks) and self.alloc_repeat == 1

    def open(self, workload: TrialInputs) -> TaskRunner:
        """A runner for one program."""
        timing = self.evaluator_config.timing
        if in_browser():
            if timing.cold:
                raise ValueError("enable_cpu_cache_flush: a page cannot empty caches; leave it out")
            from mlcweb.meta_schedule.measure.page_runner import open_page_runner

            return open_page_runner(workload, self.max_workers, self.timeout_sec, timing)
        from mlcweb.meta_schedule.measure.process_pool import ProcessPool, ProcessRunner

        workers = self.max_workers or native_workers()
        if self._pool is None:
            self._pool = ProcessPool(workers, timeout_s=self.timeout_sec)
        return ProcessRunner(workload, workers=workers, timing=timing, pool=self._pool)

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Measure artifacts one after the other; the futures are done. What fails says why."""
        return [LocalRunnerFuture(*self._seconds(item)) for item in runner_inputs]

    def _seconds(self, item: RunnerInput) -> tuple[list[float] | None, str | None]:
        allocate = hook_or(self.f_alloc_argument, allocate_arguments)
        evaluate = hook_or(self.f_run_evaluator, run_evaluator)
        try:
            module = load_module(item.artifact_path)
            dev = device(item.device_type, 0)
            infos = [info.as_json() for info in item.args_info]
            arguments = allocate(dev, infos, self.alloc_repeat)
            seconds = evaluate(module, dev, self.evaluator_config, arguments)
            return [float(second) for second in seconds], None
        except Exception as error:  # one program that cannot be run stops no other
            return None, f"LocalRunner: An exception occurred\n{error}"
        finally:
            if (cleanup := hook_or(self.f_cleanup, None)) is not None:
                cleanup()
            time.sleep(self.cooldown_sec)


def allocate_arguments(
    dev: Device, args_info: Sequence[Any], alloc_repeat: int
) -> list[list[NDArray]]:
    """Sets of arguments with random content, from what `ArgInfo.as_json` says of each."""
    infos = [ArgInfo.from_json(info) for info in args_info]
    tensors = [info for info in infos if isinstance(info, TensorInfo)]
    contents = random_contents([(info.shape, info.dtype) for info in tensors])
    return [
        [
            empty(info.shape, info.dtype, dev).copyfrom(content)
            for info, content in zip(tensors, contents, strict=True)
        ]
        for _ in range(alloc_repeat)
    ]


def run_evaluator(
    rt_mod: Module,
    dev: Device,
    evaluator_config: EvaluatorConfig,
    repeated_args: Sequence[Sequence[NDArray]],
) -> list[float]:
    """The seconds of each batch of a module's entry function, for all sets of arguments."""
    config = evaluator_config
    evaluator = rt_mod.time_evaluator(
        rt_mod.entry_name or "main",
        dev,
        number=config.number,
        repeat=config.repeat,
        min_repeat_ms=config.min_repeat_ms,
        f_preproc=config.f_preproc,
    )
    return [float(second) for args in repeated_args for second in evaluator(*args).results]


class BatchRunner:
    """The runner of a task that builds with a builder, and measures with a runner, of a program's
    own. Those take programs by rounds: what `begin_round` has begun to run, `measure` waits for.
    A program of no round is a round of its own.

    Args:
        keeps_files: whether the default files of a `LocalBuilder` stay when they have been run.
    """

    workers = 1

    def __init__(self, builder: Builder, runner: PyRunner, keeps_files: bool = False) -> None:
        self.builder, self.runner = builder, runner
        has_default_files = isinstance(builder, LocalBuilder) and builder.f_export is None
        self._removes_files = has_default_files and not keeps_files
        self._begun: list[tuple[IRModule, BuilderResult, RunnerFuture]] = []

    def begin_round(
        self, programs: Sequence[tuple[IRModule, Sequence[ArgInfo]]], target: str
    ) -> tuple[list[BuilderResult], list[RunnerFuture]]:
        """Build programs, and begin to run those that could be built, with these arguments."""
        device_type = Target(target).kind.name
        to_build, arguments = [], []
        for module, args_info in programs:
            program, layouts = with_param_layouts(module, the_function_name(module, None))
            to_build.append(BuilderInput(program, Target(target)))
            is_own = bool(args_info) and not layouts
            arguments.append(args_info if is_own else ArgInfo.from_entry_func(program))
        built = list(self.builder.build(to_build))
        inputs = [
            RunnerInput(str(result.artifact_path), device_type, args_info)
            for result, args_info in zip(built, arguments, strict=True)
            if result.error_msg is None
        ]
        running = iter(self.runner.run(inputs))
        futures = [
            LocalRunnerFuture(None, result.error_msg)
            if result.error_msg is not None
            else _asked_once(next(running))
            for result in built
        ]
        modules = [module for module, _ in programs]
        self._begun += zip(modules, built, futures, strict=True)
        return built, futures

    async def build(self, module: IRModule, target: str) -> ModuleArtifact:
        return ModuleArtifact(module, "main", target)

    async def begin(self, reference: Artifact) -> Seconds:
        """No time of the program as it stands: TVM asks a runner for candidates alone."""
        return (float("inf"),)

    async def measure(self, artifact: Artifact) -> Seconds:
        assert isinstance(artifact, ModuleArtifact)
        is_begun = [module is artifact.module for module, _, _ in self._begun]
        if not any(is_begun):
            self.begin_round([(artifact.module, ())], artifact.target)
            is_begun.append(True)
        _, built, future = self._begun.pop(is_begun.index(True))
        result = future.result()
        if self._removes_files and built.artifact_path is not None:
            remove_build_dir(built.artifact_path)
        if result.error_msg is not None or not result.run_secs:
            raise NotMeasured(result.error_msg or "The runner gave no times")
        return tuple(map(float, result.run_secs))

    def close(self) -> None:
        """Nothing goes on."""


def _asked_once(future: RunnerFuture) -> RunnerFuture:
    """A future whose result is there for several who ask."""
    return RunnerFuture(future.done, cache(future.result))
