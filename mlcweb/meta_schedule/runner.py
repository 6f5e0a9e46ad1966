"""How programs are measured, as an argument: `builder=` and `runner=` of the tuning functions."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.arg_info import ArgInfo, TensorInfo
from mlcweb.meta_schedule.builder import (
    Builder,
    BuilderInput,
    Hook,
    LocalBuilder,
    hook_function,
)
from mlcweb.meta_schedule.measure.artifact import (
    Artifact,
    ModuleArtifact,
    TrialInputs,
    random_contents,
    with_param_layouts,
)
from mlcweb.meta_schedule.measure.dask_runner import DaskRunner as DaskRunner
from mlcweb.meta_schedule.measure.runner import EvaluatorConfig, Seconds
from mlcweb.meta_schedule.measure.runner import Runner as TaskRunner
from mlcweb.meta_schedule.search_strategy.search_strategy import RunnerResult
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
        allocate = hook_function(self.f_alloc_argument) or allocate_arguments
        evaluate = hook_function(self.f_run_evaluator) or run_evaluator
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
            if (cleanup := hook_function(self.f_cleanup)) is not None:
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
    )
    return [float(second) for args in repeated_args for second in evaluator(*args).results]


class UserRunner:
    """The runner of a task that measures with a runner, and builds with a builder, of a program's
    own."""

    workers = 1

    def __init__(self, runner: PyRunner, builder: Builder, workload: TrialInputs) -> None:
        self.runner, self.builder = runner, builder
        self.infos = [
            TensorInfo(dtype, tuple(content.shape))
            for dtype, content in zip(workload.dtypes, workload.inputs, strict=True)
        ]

    async def build(self, module: IRModule, target: str) -> ModuleArtifact:
        module, layouts = with_param_layouts(module, "main")
        return ModuleArtifact(module, "main", target, layouts=layouts)

    async def begin(self, reference: Artifact) -> Seconds:
        """The seconds of the program as it stands, infinite where the runner has none of it: TVM
        asks a runner for candidates alone."""
        try:
            return await self.measure(reference)
        except TVMError:
            return (float("inf"),)

    async def measure(self, artifact: Artifact) -> Seconds:
        assert isinstance(artifact, ModuleArtifact)
        target = Target(artifact.target)
        (built,) = self.builder.build([BuilderInput(artifact.module, target)])
        if built.error_msg is not None:
            raise TVMError(built.error_msg)
        path = str(built.artifact_path)
        infos = list(self.infos)
        for layout in artifact.layouts:
            infos[layout.number] = TensorInfo(infos[layout.number].dtype, layout.shape)
        (future,) = self.runner.run([RunnerInput(path, target.kind.name, infos)])
        result = future.result()
        if isinstance(self.builder, LocalBuilder) and self.builder.f_export is None:
            shutil.rmtree(Path(path).parent)
        if result.error_msg is not None or not result.run_secs:
            raise TVMError(result.error_msg or "The runner gave no times")
        return tuple(float(seconds) for seconds in result.run_secs)

    def close(self) -> None:
        """Nothing goes on."""
