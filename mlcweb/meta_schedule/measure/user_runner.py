"""Builders and runners of a program's own, as TVM's users write them.

A builder makes an artifact of a program, known by a path; a runner takes paths, and gives futures
of times. In a search the two take the place of the workers: what such a runner says is believed,
nothing compares what its programs compute.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.arg_info import ArgInfo, TensorInfo
from mlcweb.meta_schedule.measure.artifact import Artifact, ModuleArtifact
from mlcweb.meta_schedule.measure.local_runner import LocalBuilder
from mlcweb.meta_schedule.measure.runner import Seconds
from mlcweb.meta_schedule.measure.trial_inputs import TrialInputs
from mlcweb.meta_schedule.strategy.search_strategy import RunnerResult
from mlcweb.runtime.build import build
from mlcweb.runtime.target import Target


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
