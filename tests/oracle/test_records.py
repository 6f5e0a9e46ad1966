"""Records of each kind of instruction: TVM loads ours, and we load TVM's."""

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import Trace
from mlcweb.schedule.instruction import KINDS
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.oracle.cases import in_newer_spelling
from tests.random_schedules import PRODUCT, product_of_tiles
from tests.schedule.case_files import module

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]

CHAIN = """
@T.prim_func
def main(A: T.Buffer((18, 16), "float32"), b: T.Buffer((16,), "float32"),
         D: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((18, 16))
    C = T.alloc_buffer((16, 16))
    for i, j in T.grid(18, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + b[vj]
"""

SUM = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"),
         b: T.Buffer((16,), "float32"), D: T.Buffer((16, 16), "float32")):
    C = T.alloc_buffer((16, 16))
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + b[vj]
"""

UPDATE = """
@T.prim_func
def main(A: T.Buffer((9,), "float32"), D: T.Buffer((16, 16), "float32"),
         P: T.Buffer((11,), "float32"), G: T.Buffer((16,), "float32")):
    with T.block("D"):
        T.reads(D[0:16, 0:16])
        T.writes(D[0:16, 0:16])
        T.evaluate(T.call_extern("int32", "f", D.data))
    for i in range(11):
        with T.block("P"):
            vi = T.axis.spatial(11, i)
            P[vi] = T.if_then_else(1 <= vi and vi < 10, A[vi - 1], T.float32(0))
    for i in range(16):
        with T.block("G"):
            vi = T.axis.spatial(16, i)
            G[vi] = A[vi // 2] + A[vi // 4]
"""

CASES = {
    "GetBlock": (CHAIN, "sch.get_block('B')"),
    "GetLoops": (CHAIN, "sch.get_loops(sch.get_block('B'))"),
    "GetChildBlocks": (CHAIN, "sch.get_child_blocks(sch.get_block('root'))"),
    "GetProducers": (CHAIN, "sch.get_producers(sch.get_block('D'))"),
    "GetConsumers": (CHAIN, "sch.get_consumers(sch.get_block('B'))"),
    "GetOutputBlocks": (CHAIN, "sch.get_output_blocks(sch.get_block('root'))"),
    "Split": (CHAIN, "i, j = sch.get_loops(B); sch.split(i, [None, 4], disable_predication=False)"),
    "LoopPartition": (CHAIN, "i, j = sch.get_loops(B); sch.loop_partition(i, [2, None])"),
    "Fuse": (CHAIN, "sch.fuse(*sch.get_loops(B))"),
    "Reorder": (CHAIN, "sch.reorder(*reversed(sch.get_loops(B)))"),
    "Merge": (CHAIN, "sch.merge(sch.get_loops(C)[0], sch.get_loops(D)[0])"),
    "AddUnitLoop": (CHAIN, "sch.add_unit_loop(B)"),
    "Parallel": (CHAIN, "sch.parallel(sch.get_loops(B)[0])"),
    "Vectorize": (CHAIN, "sch.vectorize(sch.get_loops(B)[1])"),
    "Unroll": (CHAIN, "sch.unroll(sch.get_loops(B)[1])"),
    "Bind": (CHAIN, "sch.bind(sch.get_loops(B)[1], 'threadIdx.x')"),
    "ReorderBlockIterVar": (CHAIN, "sch.reorder_block_iter_var(B, [1, 0])"),
    "CacheRead": (CHAIN, "sch.cache_read(C, 0, 'local')"),
    "CacheWrite": (CHAIN, "sch.cache_write(C, 0, 'local')"),
    "CacheIndex": (UPDATE, "sch.cache_index(G, 'global', 0)"),
    "CacheInplace": (UPDATE, "sch.cache_inplace(D, 0, 'local')"),
    "ReadAt": (CHAIN, "sch.read_at(sch.get_loops(C)[0], C, 0, 'shared')"),
    "WriteAt": (CHAIN, "sch.write_at(sch.get_loops(C)[0], C, 0, 'shared')"),
    "ComputeAt": (CHAIN, "sch.compute_at(B, sch.get_loops(C)[0])"),
    "ReverseComputeAt": (CHAIN, "sch.reverse_compute_at(D, sch.get_loops(C)[0])"),
    "ComputeInline": (CHAIN, "sch.compute_inline(B)"),
    "ReverseComputeInline": (CHAIN, "sch.reverse_compute_inline(D)"),
    "ReIndex": (CHAIN, "sch.reindex(D, ('write', 0))"),
    "ReindexCacheRead": (CHAIN, "sch.reindex_cache_read(D, 0, 'local', lambda i, j: (j, i))"),
    "ReindexCacheWrite": (CHAIN, "sch.reindex_cache_write(D, 0, 'local', lambda i, j: (j, i))"),
    "DecomposeReduction": (SUM, "sch.decompose_reduction(C, sch.get_loops(C)[2])"),
    "RFactor": (SUM, "sch.rfactor(sch.get_loops(C)[2], 0)"),
    "FuseReductionEpilogue": (SUM, "sch.fuse_reduction_epilogue(C, D)"),
    "PadEinsum": (SUM, "sch.pad_einsum(C, [1, 32, 1])"),
    "DecomposePadding": (UPDATE, "sch.decompose_padding(P, sch.get_loops(P)[0])"),
    "Blockize": (CHAIN, "sch.blockize(sch.get_loops(B)[1])"),
    "Tensorize": (
        SUM,
        "i, j, k = sch.get_loops(C); sch.decompose_reduction(C, i); "
        "pairs = [sch.split(loop, [8, 2]) for loop in (i, j, k)]; "
        "sch.reorder(*[a for a, _ in pairs], *[b for _, b in pairs]); "
        f"sch.tensorize(pairs[0][1], '{PRODUCT}')",
    ),
    "Annotate": (CHAIN, "sch.annotate(B, 'note', [1, 'text'])"),
    "Unannotate": (CHAIN, "sch.annotate(B, 'note', 1); sch.unannotate(B, 'note')"),
    "EnterPostproc": (CHAIN, "sch.enter_postproc()"),
    "TransformLayout": (CHAIN, "sch.transform_layout(B, ('write', 0), lambda i, j: (j, i))"),
    "TransformBlockLayout": (CHAIN, "sch.transform_block_layout(B, lambda i, j: (j, i))"),
    "SetScope": (CHAIN, "sch.set_scope(B, 0, 'shared')"),
    "StorageAlign": (CHAIN, "sch.storage_align(B, 0, 0, 32, 8)"),
    "UnsafeSetDType": (CHAIN, "sch.unsafe_set_dtype(B, 0, 'float64')"),
    "RollingBuffer": (
        CHAIN,
        "sch.reverse_compute_inline(D); "
        "sch.compute_at(B, sch.get_loops(C)[0]); sch.rolling_buffer(B, 0)",
    ),
    "AnnotateBufferAccess": (
        CHAIN,
        "sch.annotate_buffer_access(B, 0, 'read', lambda i, j: [(i, i + 2), (j, j + 1)])",
    ),
    "UnsafeHideBufferAccess": (CHAIN, "sch.unsafe_hide_buffer_access(D, 'read', [1])"),
    "SampleCategorical": (CHAIN, "sch.sample_categorical([1, 2], [0.5, 0.5], decision=1)"),
    "SamplePerfectTile": (CHAIN, "sch.sample_perfect_tile(sch.get_loops(B)[0], n=2)"),
    "SamplePartitionedTile": (
        CHAIN,
        "sch.sample_partitioned_tile(sch.get_loops(C)[0], 2, 1, 4)",
    ),
    "SampleComputeLocation": (CHAIN, "sch.sample_compute_location(B, decision=0)"),
}
ONLY_OURS = {"SetAxisSeparator"}
"""What TVM 0.27 has no longer."""


def body(name):
    program, steps = CASES[name]
    blocks = [block for block in "BCDPG" if f'T.block("{block}")' in program]
    lines = [f"{block} = sch.get_block('{block}')" for block in blocks]
    return "\n".join((*lines, *steps.split("; ")))


def question(name):
    program = module(CASES[name][0])
    sch = Schedule(program, seed=1)
    exec(body(name), {"sch": sch})
    steps = in_newer_spelling(body(name)).replace("\n", "\n    ")
    description, implementation = product_of_tiles("vk, vj")
    return {
        "module": program.script(dialect="s_tir"),
        "schedule": f"def apply(sch):\n    {steps}\n",
        "intrinsics": {PRODUCT: [f.script(dialect="s_tir") for f in (description, implementation)]},
        "seed": 1,
        "result": sch.mod.script(dialect="s_tir"),
        "trace": sch.trace.text("  ", dialect="s_tir"),
        "record": sch.trace.as_json(dialect="s_tir"),
    }


def test_each_kind_is_here():
    ours = {kind.name for kind in KINDS.values() if kind.dialect == "tir"}
    assert set(CASES) | ONLY_OURS == ours


@pytest.mark.parametrize("name", CASES)
def test_record(ask_tvm, name):
    """TVM has compared what our record gives with what it makes itself."""
    asked = question(name)
    answer = ask_tvm(asked)
    assert "failed" not in answer, answer["failed"]
    assert "error" not in answer
    loaded = Schedule(module(CASES[name][0]))
    Trace.apply_json_to_schedule(answer["record"], loaded)
    assert_structural_equal(loaded.mod, from_source(asked["result"]))
