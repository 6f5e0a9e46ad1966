"""Schedules for a GPU are measured on it, or a line says on what."""

import asyncio

import numpy as np
import pytest

import mlcweb
from mlcweb import meta_schedule as ms
from mlcweb.meta_schedule.measure.artifact import (
    ModuleArtifact,
    WrongResult,
    build_artifact,
    random_inputs,
    reference_target,
)
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.runtime.build import reset_warnings
from mlcweb.runtime.host import gpu
from mlcweb.runtime.host.gpu import (
    GpuError,
    GpuLost,
    GpuTimeout,
    NoGpu,
    check_lost,
    gpu_device,
    why_no_gpu,
)
from mlcweb.tir import Schedule
from tests.meta_schedule import programs
from tests.meta_schedule.matmul import Matmul

BRIEF = Timing(batches=2, min_ms=0.0)


class DoublingGpu:
    """A GPU that doubles what it is given, whatever the kernel says; in the launch that `fails`, it
    is lost."""

    language = "webgpu"
    description = "fake"
    limits = dict.fromkeys(gpu.LIMITS, 1 << 20)
    features = frozenset()

    def __init__(self):
        self.lost = ""
        self.fails = False
        self.launches = 0

    def create_buffer(self, nbytes):
        return np.zeros(nbytes, "uint8")

    def destroy_buffer(self, buffer):
        pass

    def write(self, buffer, data):
        buffer[:] = data.reshape(-1).view("uint8")

    def read(self, buffer, nbytes):
        check_lost(self.lost)
        return buffer[:nbytes].copy()

    def create_pipeline(self, source, entry):
        return entry

    def create_bindings(self, pipeline, buffers, scalars):
        return [buffer.view("float32") for buffer, _ in buffers]

    def dispatch(self, launch):
        self.launches += 1
        self.lost = "It is lost." if self.fails else self.lost
        a, b = launch.bindings
        b[:] = 2 * a

    def wait(self):
        check_lost(self.lost)

    def time(self, launches, number):
        return 1.0 * number


@pytest.fixture
def opened(monkeypatch):
    """The GPUs that were opened: a new one after each that was lost."""
    devices = []

    def open_device(driver):
        devices.append(DoublingGpu())
        return devices[-1]

    monkeypatch.setattr(gpu, "_devices", {})
    monkeypatch.setattr(gpu, "_open_device", open_device)
    reset_warnings()
    return devices


def bound(module):
    sch = Schedule(module)
    block, thread = sch.split(sch.get_loops("B")[0], [None, 16])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    return sch.mod


def on_threads(sch):
    """A space of few and small kernels."""
    i, j, _ = sch.get_loops("C")
    block, thread = sch.split(i, sch.sample_perfect_tile(i, 2, 8))
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.y")
    sch.bind(j, "threadIdx.x")


def test_schedules_run_on_the_gpu_and_what_loses_it_fails_alone(opened, capsys):
    async def main():
        runner = ThreadRunner(random_inputs(programs.Double), BRIEF)
        on_processor = reference_target(programs.Double, "webgpu")
        await runner.begin(await runner.build(programs.Double, on_processor))
        artifact = await runner.build(bound(programs.Double), "webgpu")
        assert await runner.measure(artifact) == (1.0, 1.0)
        assert opened[-1].launches
        opened[-1].fails = True
        with pytest.raises(GpuLost, match="It is lost"):
            await runner.measure(artifact)
        assert len(await runner.measure(artifact)) == 2
        assert [bool(device.lost) for device in opened] == [True, False]
        with pytest.raises(mlcweb.TVMError, match="Did you forget to bind"):
            await runner.measure(await runner.build(programs.Double, "webgpu"))
        opened[-1].create_bindings = lambda *_: [np.zeros(64), np.zeros(64)]
        with pytest.raises(WrongResult):
            await runner.measure(artifact)

    asyncio.run(main())
    assert not capsys.readouterr().err


def test_of_devices_that_are_opened_at_one_time_one_counts(opened, monkeypatch):
    """Python goes on elsewhere while a page opens a device."""
    open_device, elsewhere = gpu._open_device, []

    def open_while_another_asks(driver):
        monkeypatch.setattr(gpu, "_open_device", open_device)
        elsewhere.append(gpu_device())
        return open_device(driver)

    monkeypatch.setattr(gpu, "_open_device", open_while_another_asks)
    assert gpu_device() is elsewhere[0]
    assert gpu_device() is elsewhere[0]


def test_a_device_that_did_not_answer_in_time_is_asked_for_again(opened, monkeypatch):
    open_device, asked = gpu._open_device, []

    def open_late(driver):
        asked.append(driver)
        if len(asked) < 3:
            raise GpuTimeout("it has not answered")
        return open_device(driver)

    monkeypatch.setattr(gpu, "_open_device", open_late)
    assert gpu_device() is None
    assert why_no_gpu() == "it has not answered"
    assert len(asked) == 1
    assert gpu_device() is None
    assert gpu_device() is opened[0]
    assert why_no_gpu() == ""
    assert len(asked) == 3


def test_what_another_gpu_cannot_run_is_an_error_and_not_simulated(opened):
    artifact = build_artifact(bound(programs.Copy), "main", "cuda -max_num_threads=512")
    assert isinstance(artifact, ModuleArtifact)
    assert artifact.on_gpu
    opened[-1].limits = {**opened[-1].limits, "maxComputeInvocationsPerWorkgroup": 8}
    runner = ThreadRunner(random_inputs(programs.Copy), BRIEF)
    with pytest.raises(GpuError, match="16 threads"):
        asyncio.run(runner.begin(artifact))


class RunnerElsewhere(ThreadRunner):
    """A runner that says nothing by itself, as that of a cluster."""

    async def build(self, module, target):
        return build_artifact(module, self.workload.function, target)


def searched(target):
    return ms.tune_tir(
        Matmul, target, work_dir=None, max_trials_global=3, num_trials_per_iter=3, seed=1,
        space=on_threads, strategy="replay-trace",
        runner=lambda workload: RunnerElsewhere(workload, BRIEF),
    )  # fmt: skip


def test_a_search_says_once_what_stands_in_for_the_gpu(opened, capsys):
    for _ in range(2):
        searched("cuda")
    said = 'target="cuda": schedules are measured as WGSL on WebGPU (fake)'
    assert capsys.readouterr().err.count(said) == 1


def test_without_a_gpu_the_processor_is_measured_which_is_said_once(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "_devices", {"webgpu": NoGpu("none is here")})
    reset_warnings()
    for _ in range(2):
        database = searched("webgpu")
        assert len(database.get_top_k(database.commit_workload(Matmul), 3)) == 3
    said = 'target="webgpu": no GPU measures schedules here (none is here). Their times are'
    assert capsys.readouterr().err.count(said) == 1


def test_the_unscheduled_program_runs_on_the_processor_unless_it_has_threads():
    assert reference_target(programs.Double, "webgpu") == "llvm"
    assert reference_target(bound(programs.Double), "webgpu") == "webgpu"
    assert reference_target(programs.Double, "numpy") == "numpy"


@pytest.mark.parametrize("kind", ["cuda", "opencl", "webgpu"])
def test_the_best_on_a_gpu_computes_the_same(kind):
    device = gpu_device(kind)
    if device is None or device.language != kind:
        pytest.skip(f"no {kind} here")
    database = searched(kind)
    (best,) = database.get_top_k(database.commit_workload(Matmul), 1)
    sch = Schedule(Matmul)
    best.trace.apply_to_schedule(sch, remove_postproc=False)
    a, b = np.random.default_rng(1).random((2, 32, 32), "float32")
    arrays = [mlcweb.nd.array(x, mlcweb.device(kind)) for x in (a, b, np.zeros_like(a))]
    mlcweb.build(sch.mod, target=kind)["main"](*arrays)
    np.testing.assert_allclose(arrays[2].numpy(), a @ b, rtol=1e-4)
