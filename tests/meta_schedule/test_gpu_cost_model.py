"""Cost models for GPUs: they rank schedules by what a GPU does with them."""

from typing import Any

import pytest

from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.cost_model import NumPyModel
from mlcweb.meta_schedule.cost_model.learned_model import rank
from mlcweb.meta_schedule.feature_extractor import FeatureExtractor, PerProgramFeature
from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult
from mlcweb.playground.gpu.hardware import multiprocessor
from mlcweb.playground.gpu.occupancy import occupancy
from mlcweb.playground.gpu.profile import profiles
from mlcweb.runtime.target import Target
from mlcweb.script import tir as T
from mlcweb.tir import Schedule
from tests.meta_schedule.matmul import Matmul, seconds, tiles

TAG = "nvidia/geforce-rtx-3090"


@T.prim_func
def product(
    A: T.Buffer((256, 256), "float32"),
    B: T.Buffer((256, 256), "float32"),
    C: T.Buffer((256, 256), "float32"),
):
    for i, j, k in T.grid(256, 256, 256):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiled() -> Schedule:
    """Tiles of 64 x 64 by 16 x 16 threads, with 8 columns of A and rows of B in shared memory."""
    sch = Schedule(product)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    into_memory = sch.cache_write(block, 0, "local")
    i0, i1, i2 = sch.split(i, [None, 16, 4])
    j0, j1, j2 = sch.split(j, [None, 16, 4])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(into_memory, j1)
    axes = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, axis in zip((i0, j0, i1, j1), axes, strict=True):
        sch.bind(loop, axis)
    for index in (0, 1):
        copy = sch.cache_read(block, index, "shared")
        sch.compute_at(copy, k0)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, y, x, lanes = sch.split(fused, [None, 16, 16, 2])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.vectorize(lanes)
    sch.decompose_reduction(block, k0)
    return sch


def test_one_model_learns_of_processors_and_of_gpus() -> None:
    model = NumPyModel()
    gpu = TuneContext(IRModule({"main": product}), target=Target(TAG), rand_state=1)
    cpu = TuneContext(Matmul, target="wasm", rand_state=1)
    candidates = []
    for seed in range(16):
        sch = Schedule(Matmul, seed=seed)
        tiles(sch)
        candidates.append(MeasureCandidate(sch))
    results = [RunnerResult((seconds(each.sch.mod),)) for each in candidates]
    model.update(cpu, candidates, results)
    kernel = [MeasureCandidate(tiled())]
    assert model.predict(gpu, kernel).tolist() == [0.0]
    model.update(gpu, [*kernel, MeasureCandidate(Schedule(product))], results[:2])
    other = TuneContext(Matmul, target=Target(TAG), rand_state=1)
    assert len(set(model.predict(other, [*kernel, candidates[0]]))) > 1


class OfLoops(PerProgramFeature):
    """Knows of GPUs what it knows of processors."""

    def extract_from(self, context: Any, candidates: Any) -> Any:
        return super().extract_from(TuneContext(context.mod, target="wasm"), candidates)


@pytest.mark.thorough
def test_schedules_are_ranked_by_what_a_gpu_does() -> None:
    context = TuneContext(
        IRModule({"main": product}),
        target=Target(TAG),
        space_generator="post-order-apply",
        rand_state=3,
    )
    space = context.space_generator
    traces = [each.trace for each in space.generate_design_space(context.mod)]
    (trace,) = (each for each in traces if "software_pipeline" not in str(each))
    candidates, times = [], []
    for seed in range(1, 2000):
        sch = Schedule(context.mod, seed=seed)
        type(trace)(trace.insts, {}).apply_to_schedule(sch, remove_postproc=True)
        if all(each.apply(sch) for each in space.postprocs or ()):
            candidates.append(MeasureCandidate(sch))
            times.append(modelled_seconds(sch))
        if len(times) == 64:
            break

    def share(extractor: FeatureExtractor) -> float:
        model = NumPyModel(extractor=extractor)
        for first in (0, 16):
            batch = slice(first, first + 16)
            model.update(context, candidates[batch], [RunnerResult((t,)) for t in times[batch]])
        return rank(model.predict(context, candidates[32:]).tolist(), times[32:]).clear

    assert share(PerProgramFeature()) > max(0.75, share(OfLoops()))


def modelled_seconds(sch: Schedule) -> float:
    """By exact counts: what takes most cycles, as far as enough warps and blocks hide them."""
    total = 0.0
    for kernel in profiles(sch.mod["main"], "main"):
        held = occupancy(
            kernel.launch.threads, kernel.shared_bytes, kernel.registers, multiprocessor(TAG)
        )
        blocks = max(held.blocks, 0.25)
        passes = sum(cost.passes for cost in kernel.counts if cost)
        cycles = max(2 * kernel.sectors, passes, (kernel.operations or 0) / 256)
        at_a_time = max(1, blocks) * 82
        full = kernel.launch.blocks / (-(-kernel.launch.blocks // at_a_time) * at_a_time)
        total += cycles / min(1, blocks * kernel.launch.warps / 16) / full / (82 * 1.7e9)
    return total
