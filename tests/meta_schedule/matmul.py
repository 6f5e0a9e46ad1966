"""A matrix product to tune, a space for it, and runners with a clock of their own."""

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.cost_model.loop_nests import nests_of
from mlcweb.meta_schedule.measure.artifact import Artifact, ModuleArtifact, TrialInputs
from mlcweb.meta_schedule.measure.runner import Seconds
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.tir import Schedule


@I.ir_module
class Matmul:
    @T.prim_func
    def main(
        A: T.Buffer((32, 32), "float32"),
        B: T.Buffer((32, 32), "float32"),
        C: T.Buffer((32, 32), "float32"),
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def columns(sch: Schedule) -> Schedule:
    """The stochastic schedule of the course's fourth chapter."""
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch


def tiles(sch: Schedule) -> None:
    """Several thousand programs."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, sch.sample_perfect_tile(i, 3, 32))
    j0, j1, j2 = sch.split(j, sch.sample_perfect_tile(j, 3, 32))
    k0, k1 = sch.split(k, sch.sample_perfect_tile(k, 2, 32))
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)


class FakeRunner:
    """A machine that likes certain tiles: the time of a program follows from its loops."""

    workers = 2

    def __init__(self, workload: TrialInputs | None = None) -> None:
        self.measured: list[IRModule] = []

    async def build(self, module: IRModule, target: str) -> Artifact:
        return ModuleArtifact(module, "main", target)

    async def begin(self, reference: Artifact) -> Seconds:
        return (1.0,)

    async def measure(self, artifact: Artifact) -> Seconds:
        assert isinstance(artifact, ModuleArtifact)
        self.measured.append(artifact.module)
        return (seconds(artifact.module),) * 2

    def close(self) -> None:
        pass


def seconds(module: IRModule) -> float:
    """A landscape with one best program: tiles of 4 by 8 in the middle, 4 steps of k."""
    extents = [loop.extent for loop in nests_of(module)[-1].loops]
    wanted = (2, 2, 4, 2, 8, 4, 4, 8)
    distance = sum(
        abs(extent.bit_length() - want.bit_length())
        for extent, want in zip(extents, wanted, strict=False)
    )
    return 1e-3 * 1.3**distance
