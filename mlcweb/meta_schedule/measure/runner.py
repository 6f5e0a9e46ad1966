"""The seam between searching and measuring, and measuring in this very thread.

A search asks a `Runner` for times, several at once, and does not know where they come from: worker
processes natively, light workers in a page.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.measure.artifact import (
    Artifact,
    ModuleArtifact,
    NativeArtifact,
    TrialInputs,
    WasmArtifact,
    build_artifact,
)
from mlcweb.runtime.benchmark import FLUSH, STEPS_PER_BATCH, flush_caches, long_enough
from mlcweb.runtime.build import build
from mlcweb.runtime.host import clock, clock_step
from mlcweb.runtime.host.engine import available, engine
from mlcweb.runtime.module import Module
from mlcweb.runtime.ndarray import NDArray
from mlcweb.runtime.speed_calibration import SpeedCalibration, Timed, calibration_timer
from mlcweb.runtime.target import Target
from mlcweb.tir.function import prim_funcs

if TYPE_CHECKING:
    import numpy as np


Contents = tuple["np.ndarray", ...]
"""The content of each buffer of a program."""

Seconds = tuple[float, ...]
"""Seconds per call: one number for each batch that counts. Where the speed of the machine was timed
beside them, those are the calibrated times of the batches in the quietest third of the time."""


class RunnerClosed(TVMError):
    """The runner was closed, or the search stopped, before this measurement was done."""


class NotMeasured(TVMError):
    """Why a builder or a runner of a program's own has no times, in its own words."""


EARLY_STOP_FACTOR = 3.0
"""A program this many times slower than the best is not worth more than its first calls:
two natively, some more in a page, whose browser first runs what it has translated in haste."""


MIN_BATCHES = 5

ZERO_BATCHES = 100
"""Batches that may take no time by the clock before one is believed."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How a kernel is timed: `batches` of calls, each at least `min_ms` long, but
    no more than `MIN_BATCHES` where they take more than `enough_ms`; a kernel whose first calls
    all take longer than `early_stop_s` seconds not at all beyond those. `cold`: each batch is one
    call, before which caches are emptied of all arguments but the first, as within a model.

    Many short batches tell more than a few long ones: between two disturbances there is room for
    some of them.
    """

    batches: int = 9
    min_ms: float = 1.0
    early_stop_s: float = math.inf
    enough_ms: float = 20.0
    cold: bool = False

    @property
    def fewest(self) -> int:
        """The batches that are made in any case."""
        return min(self.batches, MIN_BATCHES)

    def beside(self, best: float) -> Timing:
        """How a kernel is timed where the best takes `best` seconds. A call that is no longer than
        a batch tells too little, and saves nothing."""
        return replace(self, early_stop_s=max(EARLY_STOP_FACTOR * best, self.min_ms * 1e-3))


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """How a program is timed, with the names of `time_evaluator`.

    Attributes:
        number: calls in a batch, at least.
        repeat: batches, of which those in the quietest third of the time count.
        min_repeat_ms: the shortest batch, in milliseconds.
        enable_cpu_cache_flush: whether caches are emptied of all arguments but the first before
            each batch, which in a search is one call. Not in a page.
    """

    number: int = 1
    repeat: int = 9
    min_repeat_ms: float = 1.0
    enable_cpu_cache_flush: bool = False

    @property
    def timing(self) -> Timing:
        return Timing(self.repeat, self.min_repeat_ms, cold=self.enable_cpu_cache_flush)

    @property
    def f_preproc(self) -> str:
        """What `time_evaluator` calls before each batch."""
        return FLUSH if self.enable_cpu_cache_flush else ""


class Runner(Protocol):
    """Builds programs, runs them on a workload, and times them.

    A program that traps, hangs, runs out of memory or takes its worker with it raises from its own
    `measure` alone, and a runner that is still open takes the next.
    """

    workers: int
    """How many programs are measured at one time."""

    async def build(self, module: IRModule, target: str) -> Artifact:
        """Compile the workload's function of a module, as `build_artifact` does."""
        ...

    async def begin(self, reference: Artifact) -> Seconds:
        """Run and time the unscheduled program. What it computes is what all others must."""
        ...

    async def measure(self, artifact: Artifact) -> Seconds:
        """Run a program once, check what it computed, and time it.

        Raises:
            WrongResult: it computed something else than the unscheduled program.
            TimeoutError: it took longer than a trial may.
            RunnerClosed: the runner was closed before it was done.
        """
        ...

    def close(self) -> None:
        """End the workers; what they were at raises `RunnerClosed`."""
        ...


def run_here(artifact: Artifact, workload: TrialInputs, timing: Timing) -> tuple[Timed, Contents]:
    """Run a program in this thread, check what it computed, and time it.

    Returns:
        The times, and the content of the buffers after the first call.
    """
    taken = workload.arranged(artifact.layouts)
    if isinstance(artifact, WasmArtifact):
        arguments, run, time = _prepare_wasm(artifact, taken, timing)
    elif isinstance(artifact, NativeArtifact):
        arguments, run, time = _prepare_native(artifact, taken, timing)
    else:
        arguments, run, time = _prepare_module(artifact, taken, timing)
    first = _seconds(run)
    results = tuple(argument.numpy() for argument in arguments)
    taken.check(results)
    results = workload.restored(results, artifact.layouts)
    if first > timing.early_stop_s:
        # Once more: something else may have run meanwhile.
        second = min(first, _seconds(run))
        if second > timing.early_stop_s:
            return Timed((second,)), results
    return time(), results


def _seconds(run: Callable[[], Any]) -> float:
    start = clock()
    run()
    return clock() - start


class _Prepared(NamedTuple):
    """The arrays of a program, what runs it once, and what times it."""

    arguments: list[NDArray]
    run: Callable[[], Any]
    time: Callable[[], Timed]


def _prepare_wasm(artifact: WasmArtifact, workload: TrialInputs, timing: Timing) -> _Prepared:
    host = engine()
    instance = host.instantiate(artifact.code)
    scratch = host.allocate(artifact.scratch_bytes)
    arguments = workload.arrays()
    types = ["i32"] * (len(arguments) + 1)
    run = instance.function(artifact.function, types)
    repeat = instance.timer(artifact.repeated, ["i32", *types])

    def call(function: Callable[..., Any], *first: int) -> Any:
        return function(*first, *map(host.address_of, arguments), scratch.address)

    in_batches = partial(_in_batches, partial(call, repeat), timing, arguments)
    return _Prepared(arguments, partial(call, run), in_batches)


def _prepare_native(artifact: NativeArtifact, workload: TrialInputs, timing: Timing) -> _Prepared:
    from mlcweb.runtime.host.llvm_engine import Stopped, load
    from mlcweb.runtime.host.llvm_target import address_of, trap_of

    instance = load(artifact.code, artifact.processor)
    arguments = workload.arrays()
    types = ["ptr"] * len(arguments)
    run = instance.function(artifact.function, types)
    repeat = instance.timer(artifact.repeated, types)
    addresses = [address_of(argument) for argument in arguments]

    def call(function: Callable[..., Any], *first: int) -> Any:
        try:
            return function(*first, *addresses)
        except Stopped as stopped:
            raise trap_of(artifact.function, stopped) from None

    in_batches = partial(_in_batches, partial(call, repeat), timing, arguments)
    return _Prepared(arguments, partial(call, run), in_batches)


def _in_batches(
    time_batch: Callable[[int], float], timing: Timing, arguments: Sequence[NDArray]
) -> Timed:
    # Where there is no WebAssembly engine to calibrate with, times count as they are.
    calibrate = calibration_timer() if available() else None
    shortest = max(timing.min_ms * 1e-3, STEPS_PER_BATCH * clock_step())
    time_batch(1)
    number, spent = 1, 0.0
    results: list[float] = []
    calibration = [calibrate()] if calibrate else []
    while len(results) < (timing.fewest if spent * 1e3 > timing.enough_ms else timing.batches):
        if timing.cold:
            flush_caches(*arguments)
            seconds = time_batch(number)
        else:
            number, seconds = long_enough(time_batch, number, shortest, ZERO_BATCHES)
        results.append(seconds / number)
        spent += seconds
        if calibrate:
            calibration.append(calibrate())
    return Timed(tuple(results), tuple(calibration))


def _prepare_module(artifact: ModuleArtifact, workload: TrialInputs, timing: Timing) -> _Prepared:
    with artifact.context or nullcontext():
        if artifact.on_gpu:
            library = _build_on_gpu(artifact)
        else:
            library = build(artifact.module, target=artifact.target)
    dev, function = library.device, library[artifact.function]
    arguments = workload.arrays(dev)
    shortest, preproc = (0.0, FLUSH) if timing.cold else (timing.min_ms, "")
    evaluator = library.time_evaluator(
        function.name, dev, 1, timing.batches, shortest, f_preproc=preproc
    )

    def run() -> None:
        function(*arguments)
        dev.sync()

    return _Prepared(arguments, run, lambda: Timed(evaluator(*arguments).results))


def _build_on_gpu(artifact: ModuleArtifact) -> Module:
    """As `build` does, but an error where that would run the program elsewhere."""
    from mlcweb.runtime.gpu.kernel import build as build_kernels

    target = Target(artifact.target)
    kernels = build_kernels(prim_funcs(artifact.module), target.device_type)
    return Module(kernels, artifact.function, target.kind.name)


class CalibratingRunner(ABC):
    """What runners have in common: the workload, and what is known from the programs that were
    timed: how long the best took, and how fast the machine can be. There is one GPU for all workers
    of a runner."""

    workers = 1

    def __init__(self, workload: TrialInputs, timing: Timing | None = None) -> None:
        self.workload = workload
        self.timing = timing or Timing()
        self._gpu = asyncio.Lock()
        self._best = math.inf
        self._calibration = SpeedCalibration()

    @abstractmethod
    async def run(self, artifact: Artifact, timing: Timing, keep: bool) -> tuple[Timed, Contents]:
        """Run a program, check what it computed, and time it.

        Args:
            keep: whether the content of the buffers is asked for.
        """

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    async def build(self, module: IRModule, target: str) -> Artifact:
        return build_artifact(module, self.workload.function, target)

    async def begin(self, reference: Artifact) -> Seconds:
        timed, results = await self.run(reference, self.timing, True)
        self.workload = replace(self.workload, expected=results)
        # It is no measure for others.
        return self._calibration.corrected(timed)

    async def measure(self, artifact: Artifact) -> Seconds:
        async with self.undisturbed(artifact):
            timed, _ = await self.run(artifact, self.timing.beside(self._best), False)
        seconds = self._calibration.corrected(timed)
        self._best = min(self._best, statistics.median(seconds))
        return seconds

    def undisturbed(self, artifact: Artifact) -> AbstractAsyncContextManager[Any]:
        """Within this, no other program of the runner is on the device of `artifact`, where that is
        a GPU: launches of one would delay those of the other."""
        on_gpu = isinstance(artifact, ModuleArtifact) and artifact.on_gpu
        return self._gpu if on_gpu else nullcontext()


class ThreadRunner(CalibratingRunner):
    """A `Runner` in this thread: for programs that are known to come to an end."""

    _closed = False

    async def run(self, artifact: Artifact, timing: Timing, keep: bool) -> tuple[Timed, Contents]:
        if self._closed:
            raise RunnerClosed("The search was stopped")
        return run_here(artifact, self.workload, timing)

    def close(self) -> None:
        self._closed = True
