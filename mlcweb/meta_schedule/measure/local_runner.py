"""How programs are measured, as an argument: `builder=` and `runner=` of the tuning functions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.arg_info import ArgInfo, TensorInfo
from mlcweb.meta_schedule.measure.artifact import Artifact, ModuleArtifact, TrialInputs
from mlcweb.meta_schedule.measure.runner import Runner, Seconds, Timing
from mlcweb.meta_schedule.strategy.search_strategy import RunnerResult
from mlcweb.runtime.build import build
from mlcweb.runtime.host import in_browser
from mlcweb.runtime.target import Target

if TYPE_CHECKING:
    from mlcweb.meta_schedule.measure.process_pool import ProcessPool


OpenRunner = Callable[[TrialInputs], Runner]
"""Makes the runner of a task."""


class Runners(Protocol):
    """Makes the runner of each task of a search, and ends with it: `LocalRunner` and its like."""

    def open(self, workload: TrialInputs) -> Runner:
        """A runner for one program."""
        ...

    def close(self) -> None:
        """End what the runners share."""
        ...


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """How a program is timed, with the names of `time_evaluator`.

    Attributes:
        number: calls in a batch, at least.
        repeat: batches, of which those in the quietest third of the time count.
        min_repeat_ms: the shortest batch, in milliseconds.
        enable_cpu_cache_flush: whether caches are emptied between batches; they cannot be here.
    """

    number: int = 1
    repeat: int = 9
    min_repeat_ms: float = 1.0
    enable_cpu_cache_flush: bool = False

    def __post_init__(self) -> None:
        if self.enable_cpu_cache_flush:
            raise ValueError("enable_cpu_cache_flush: caches cannot be emptied here; leave it out")

    @property
    def timing(self) -> Timing:
        return Timing(self.repeat, self.min_repeat_ms)


@dataclass(frozen=True, slots=True)
class LocalBuilder:
    """Programs are built on this machine.

    Attributes:
        max_workers: processes that build; they are those that measure.
    """

    max_workers: int | None = None
    timeout_sec: float = 30.0


class LocalRunner:
    """Programs are measured on this machine: in worker processes, or workers of the page. The same
    workers serve one task after another.

    Args:
        timeout_sec: seconds that one trial may take.
        max_workers: programs measured at one time; by default what suits this machine or page.
    """

    def __init__(
        self,
        timeout_sec: float = 10.0,
        evaluator_config: EvaluatorConfig | None = None,
        max_workers: int | None = None,
    ) -> None:
        self.timeout_sec = timeout_sec
        self.timing = (evaluator_config or EvaluatorConfig()).timing
        self.max_workers = max_workers
        self._pool: ProcessPool | None = None

    def open(self, workload: TrialInputs) -> Runner:
        """A runner for one program."""
        if in_browser():
            from mlcweb.meta_schedule.measure.page_runner import open_page_runner

            return open_page_runner(workload, self.max_workers, self.timeout_sec, self.timing)
        from mlcweb.meta_schedule.measure.process_pool import ProcessPool, ProcessRunner

        workers = self.max_workers or native_workers()
        if self._pool is None:
            self._pool = ProcessPool(workers, timeout_s=self.timeout_sec)
        return ProcessRunner(workload, workers=workers, timing=self.timing, pool=self._pool)

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


def native_workers() -> int:
    """How many programs are measured at one time where nobody says: two, on more than one core."""
    return min(2, os.cpu_count() or 1)


@dataclass(slots=True, eq=False)
class BuilderInput:
    """A program to build."""

    mod: IRModule
    target: Target
    params: Any = None


@dataclass(slots=True, eq=False)
class BuilderResult:
    """Where the artifact is, or why there is none."""

    artifact_path: str | None
    error_msg: str | None = None


class Builder:
    """Builds programs; subclasses define `build`."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """A result for each program."""
        raise NotImplementedError(f"{type(self).__name__}.build")

    @staticmethod
    def create(kind: str = "local", **options: Any) -> LocalBuilder:
        """The builder "local"."""
        if kind != "local":
            raise ValueError(f'Unknown builder "{kind}"; there is "local"')
        return LocalBuilder(**options)


PyBuilder = Builder
"""What builders of a program's own are subclasses of, in TVM."""


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


class UserRunner:
    """Runs artifacts; subclasses define `run`."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> Sequence[RunnerFuture]:
        """A future for each artifact."""
        raise NotImplementedError(f"{type(self).__name__}.run")


PyRunner = UserRunner
"""What runners of a program's own are subclasses of, in TVM."""


class _LocalFiles(Builder):
    """Builds files that `runtime.load_module` reads."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        results = []
        for item in build_inputs:
            path = Path(self.folder.name) / f"{self.count}.wasm"
            self.count += 1
            build(item.mod, target=item.target).export_library(str(path))
            results.append(BuilderResult(str(path)))
        return results


class UserRunners:
    """Lets a search measure with a runner, and build with a builder, of a program's own."""

    def __init__(self, runner: UserRunner, builder: Builder | None) -> None:
        self.runner = runner
        self.builder = builder or _LocalFiles()

    def open(self, workload: TrialInputs) -> _Measured:
        """A runner for one program."""
        infos = [TensorInfo(str(a.dtype), tuple(a.shape)) for a in workload.inputs]
        return _Measured(self.runner, self.builder, infos)

    def close(self) -> None:
        """Nothing is shared."""


class _Measured:
    workers = 1

    def __init__(self, runner: UserRunner, builder: Builder, infos: Sequence[ArgInfo]) -> None:
        self.runner, self.builder, self.infos = runner, builder, infos

    async def build(self, module: IRModule, target: str) -> ModuleArtifact:
        return ModuleArtifact(module, "main", target)

    async def begin(self, reference: Artifact) -> Seconds:
        return await self.measure(reference)

    async def measure(self, artifact: Artifact) -> Seconds:
        assert isinstance(artifact, ModuleArtifact)
        target = Target(artifact.target)
        (built,) = self.builder.build([BuilderInput(artifact.module, target)])
        if built.error_msg is not None:
            raise TVMError(built.error_msg)
        path = str(built.artifact_path)
        (future,) = self.runner.run([RunnerInput(path, target.kind.name, self.infos)])
        result = future.result()
        if result.error_msg is not None or not result.run_secs:
            raise TVMError(result.error_msg or "The runner gave no times")
        return tuple(float(seconds) for seconds in result.run_secs)

    def close(self) -> None:
        """Nothing goes on."""
