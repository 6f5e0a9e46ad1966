"""parallel, vectorize, unroll, bind, annotate, unannotate."""

import numpy as np
import pytest

from mlcweb.ir import InternalError, assert_structural_equal
from mlcweb.runtime import build, nd
from mlcweb.schedule.errors import BindingError, DataflowError
from mlcweb.script import from_source
from mlcweb.tir import ForKind, Schedule
from tests.programs import matmul


@pytest.fixture
def sch():
    return Schedule(matmul())


def test_loops_take_their_kinds(sch):
    i, j, k = sch.get_loops("C")
    sch.parallel(i)
    sch.vectorize(j)
    sch.unroll(k)
    assert [sch.get(loop).kind for loop in (i, j, k)] == [
        ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED,
    ]  # fmt: skip


def test_bind_records_the_thread_axis(sch):
    i, j, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    assert 'T.thread_binding(128, thread="blockIdx.x")' in sch.mod.script()
    assert sch.get(i).thread_binding.thread_tag == "blockIdx.x"


@pytest.mark.parametrize("primitive", ["parallel", "vectorize"])
def test_a_reduction_loop_is_refused(sch, primitive):
    k = sch.get_loops("C")[2]
    with pytest.raises(BindingError, match='iterator "vk" of block "C", which is a reduction'):
        getattr(sch, primitive)(k)


def test_bind_refuses_a_reduction_on_thread_blocks_and_unknown_axes(sch):
    i, _, k = sch.get_loops("C")
    with pytest.raises(BindingError):
        sch.bind(k, "blockIdx.x")
    with pytest.raises(InternalError, match='Unknown thread axis "lane"'):
        sch.bind(i, "lane")


def test_loops_on_one_axis_have_one_extent(sch):
    i, j, _ = sch.get_loops("C")
    unit = sch.add_unit_loop(j)
    sch.bind(unit, "threadIdx.x")
    for loop in (i, j):
        with pytest.raises(BindingError, match=r'"u", on "threadIdx[.]x" already, has 1'):
            sch.bind(loop, "threadIdx.x")
        sch.bind(loop, "threadIdx.y")


def test_the_update_of_a_decomposed_reduction_is_refused(sch):
    i, j, k = sch.get_loops("C")
    sch.decompose_reduction("C", k)
    with pytest.raises(DataflowError, match="do not have compact dataflow"):
        sch.vectorize(j)


def test_the_init_loops_of_a_decomposed_reduction_can_be_annotated(sch):
    init = sch.decompose_reduction("C", sch.get_loops("C")[0])
    i_init, j_init = sch.get_loops(init)
    sch.parallel(i_init)
    sch.vectorize(j_init)
    assert sch.get(j_init).kind == ForKind.VECTORIZED


def test_annotations_come_and_go(sch):
    before = sch.mod
    block = sch.get_block("C")
    sch.annotate(block, "note", "text")
    sch.annotate(block, "note", 2)
    assert sch.get(block).annotations == {"note": "text"}
    sch.unannotate(block, "note")
    assert_structural_equal(sch.mod, before)
    with pytest.raises(IndexError, match="Cannot find annotation key: note"):
        sch.unannotate(block, "note")


def test_an_annotation_takes_a_sampled_value(sch):
    loop = sch.get_loops("C")[0]
    value = sch.sample_categorical([0, 16], [0.5, 0.5], decision=1)
    sch.annotate(loop, "pragma_auto_unroll_max_step", value)
    assert sch.get(loop).annotations == {"pragma_auto_unroll_max_step": 16}
    assert sch.trace.as_python()[-1].endswith('ann_key="pragma_auto_unroll_max_step", ann_val=v4)')


def test_threads_reduce_over_a_part_of_loops_that_were_fused():
    sch = Schedule(
        from_source(
            """
@T.prim_func
def main(A: T.Buffer((64, 48), "float32"), B: T.Buffer((1,), "float32")):
    for n, i, j in T.grid(1, 64, 48):
        with T.block("B"):
            vn, vi, vj = T.axis.remap("SRR", [n, i, j])
            with T.init():
                B[vn] = T.float32(0)
            B[vn] = B[vn] + A[vi, vj]
"""
        )
    )
    _, i, j = sch.get_loops("B")
    # 64 threads run through one row and a part of the next.
    _, inner = sch.split(sch.fuse(i, j), [None, 64])
    sch.bind(inner, "threadIdx.x")
    a, b = np.random.default_rng(0).random((64, 48), "float32"), nd.array(np.zeros(1, "float32"))
    build(sch.mod, target="interpreter")["main"](nd.array(a), b)
    np.testing.assert_allclose(b.numpy(), [a.sum()], rtol=1e-4)


@pytest.mark.parametrize(
    ("indices", "shape", "is_bound"),
    [
        ("v // 14, v % 14", (14, 14), True),
        ("v // 98, v % 98 // 14, v % 14", (2, 7, 14), True),
        ("v // 14, v % 7", (14, 14), False),
        ("v // 98, v % 98 // 14, v % 7", (2, 7, 14), False),
    ],
)
def test_quotients_and_remainders_tell_threads_apart(indices, shape, is_bound):
    """Rows of 14, which tiles of 16 x 16 are stored to, divide nothing else here."""
    sch = Schedule(
        from_source(
            f"""
@T.prim_func
def main(A: T.Buffer((13, 2, 16, 16), "float32"), B: T.Buffer({(*shape, 32)}, "float32")):
    for i, j, k in T.grid(4, 26, 64):
        with T.block("B"):
            vi = T.axis.spatial(13, (i * 1664 + j * 64 + k) // 512)
            vj = T.axis.spatial(2, (i * 1664 + j * 64 + k) % 512 // 256)
            vk = T.axis.spatial(16, (i * 1664 + j * 64 + k) % 256 // 16)
            vl = T.axis.spatial(16, (i * 1664 + j * 64 + k) % 16)
            T.where((i * 1664 + j * 64 + k) // 512 * 16
                + (i * 1664 + j * 64 + k) % 256 // 16 < 196)
            B[{indices.replace("v", "(vi * 16 + vk)")}, vj * 16 + vl] = A[vi, vj, vk, vl]
"""
        )
    )
    loop = sch.get_loops("B")[1]
    if not is_bound:
        with pytest.raises(DataflowError, match="may not run at once"):
            sch.bind(loop, "threadIdx.y")
        return
    sch.bind(loop, "threadIdx.y")
    a = np.random.default_rng(0).random((13, 2, 16, 16), "float32")
    b = nd.array(np.zeros((*shape, 32), "float32"))
    build(sch.mod, target="simulated")["main"](nd.array(a), b)
    rows = a.transpose(0, 2, 1, 3).reshape(208, 32)[:196]
    np.testing.assert_array_equal(b.numpy(), rows.reshape(*shape, 32))
