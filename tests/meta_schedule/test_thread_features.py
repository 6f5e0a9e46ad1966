"""Numbers of programs for GPUs: they equal what is counted by hand, and rank schedules."""

from typing import Any

import pytest

from mlcweb.ir import IRModule
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.cost_model import NumPyModel, thread_features
from mlcweb.meta_schedule.cost_model.learned_model import rank
from mlcweb.meta_schedule.cost_model.thread_features import passes, sectors
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


def launch(sch: Schedule) -> dict[str, float]:
    """The features of the launch as they were before the logarithm."""
    row = thread_features.features(sch.mod)
    named = dict(zip(thread_features.NAMES, row, strict=True))
    start = "launch "
    return {n[len(start) :]: round(2**v - 1, 4) for n, v in named.items() if n.startswith(start)}


def test_features_of_a_product_in_shared_memory() -> None:
    of = launch(tiled())
    assert (of["blocks"], of["threads"], of["virtual threads"]) == (16, 256, 1)
    assert of["work of a thread"] == 16 * 256 * 2
    # 8 warps of 16 blocks fetch A and B 32 times, two numbers a lane; each writes 16 times.
    fetches, writes = 2 * 16 * 8 * 32, 16 * 8 * 16
    assert of["global requests"] == fetches + writes
    # A warp fetches 8 rows of 32 bytes of A, 256 bytes of B; it writes to every fourth column.
    assert of["global sectors"] == 8 * fetches + 2 * 8 * writes
    assert of["global bytes"] == 32 * 8 * fetches + 32 * 4 * writes
    # Of A, 4 numbers for each step of k stay in a register while j runs; of B all 16 are read.
    assert of["shared requests"] == 16 * 8 * 32 * 8 * (4 + 16) + fetches
    assert of["shared stores of a thread"] == 2 * 32
    assert of["shared bytes of a block"] == 2 * 64 * 8 * 4
    assert of["own bytes of a thread"] == 16 * 4
    # 256 threads of 26 registers: threads are what limits it.
    assert (of["blocks at a time"], of["threads at a time"], of["rounds"]) == (8, 2048, 2)


def test_what_memory_does_with_a_warp() -> None:
    lanes = range(32)
    assert [sectors([4 * stride * lane for lane in lanes], 4) for stride in (0, 1, 2, 8, 32)] == [
        1, 4, 8, 32, 32,
    ]  # fmt: skip
    assert sectors([16 * lane for lane in lanes], 16) == 16
    assert [passes([4 * stride * lane for lane in lanes], 4) for stride in (0, 1, 2, 32, 33)] == [
        1, 1, 2, 32, 1,
    ]  # fmt: skip
    # With 16 bytes a lane a quarter of the warp is served at a time.
    assert passes([16 * lane for lane in lanes], 16) == 4


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

    assert share(PerProgramFeature()) > max(0.75, share(OfLoops()) + 0.05)


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
