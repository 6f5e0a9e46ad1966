"""Programs whose accesses the tests look at."""

from mlcweb.ir import IRModule
from mlcweb.playground.access.cache import Cache, simulate
from mlcweb.playground.access.recording import Recording, record
from mlcweb.playground.access.sentences import AccessProfile
from mlcweb.playground.access.small import smaller
from mlcweb.playground.access.strides import strides
from mlcweb.playground.compared import Derivation
from mlcweb.schedule import Schedule
from mlcweb.script import from_source
from tests.programs import matmul


def tiled(factor: int, original: IRModule | None = None) -> Derivation:
    """The schedule of the course's chapter on automatic program optimisation: `j` is split and
    its inner part goes innermost."""
    module = original or matmul()
    schedule = Schedule(module)
    block = schedule.get_block("C")
    i, j, k = schedule.get_loops(block)
    j_0, j_1 = schedule.split(j, factors=[None, factor])
    schedule.reorder(i, j_0, k, j_1)
    schedule.decompose_reduction(block, k)
    return Derivation(schedule.trace, module, schedule.mod)


def small_recording(made: Derivation | IRModule, most: int) -> Recording:
    """The accesses of `main` with sizes up to `most`."""
    if isinstance(made, IRModule):
        return record(smaller(made, "main", most, None).module, "main")
    return record(smaller(made.result, "main", most, made).module, "main")


def ordered_matmul(loops: str) -> IRModule:
    """A matrix product of 4x4 without blocks, with its loops in some order."""
    module = from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
             C: T.Buffer((4, 4), "float32")):
        for {loops} in T.grid(4, 4, 4):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]
""")
    assert isinstance(module, IRModule)
    return module


def profile(made: Derivation | IRModule, cache: Cache, most: int = 16) -> AccessProfile:
    """A small program through a cache."""
    recording = small_recording(made, most)
    outcome = simulate(
        recording.addresses, recording.writes, recording.site, len(recording.sites), cache
    )
    return AccessProfile("the program", recording, strides(recording), cache, outcome)
