"""Where an intrinsic fits a program, and which layout an access asks for."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.arith.index_map import IndexMap
from mlcweb.schedule import Schedule
from mlcweb.schedule.analysis.tensorize import (
    get_auto_tensorize_mapping_info,
    get_tensorize_loop_mapping,
    has_block,
    suggest_index_map,
)
from mlcweb.schedule.transform import tile_with_tensor_intrin
from mlcweb.script import tir as T
from mlcweb.testing import te_workload
from mlcweb.tir import Evaluate, For, ForKind, Var, decl_buffer
from mlcweb.tir.tensor_intrin import TensorIntrin

WMMA = "wmma_sync_16x16x16_f16f16f32"


def loops(**extents):
    return [
        For(Var(name, "int32"), 0, extent, ForKind.SERIAL, Evaluate(0))
        for name, extent in extents.items()
    ]


def test_a_layout_in_the_order_of_the_loops():
    i, j = nest = loops(i=6, j=8)
    a, b = i.loop_var, j.loop_var
    found = suggest_index_map(decl_buffer([12, 4]), [b // 4 * 6 + a, b % 4], nest, True)
    assert found is not None
    expected = IndexMap.from_func(lambda x, y: (x % 6, x // 6, y))
    assert found.is_equivalent_to(expected)
    places = [
        [int(each) for each in found.map_indices([x, y])] for x in range(12) for y in range(4)
    ]
    assert len({tuple(place) for place in places}) == 48


def test_digits_may_be_left_out():
    (i,) = nest = loops(i=24)
    a = i.loop_var
    found = suggest_index_map(decl_buffer([2, 3]), [a // 12, a % 3], nest, True)
    assert found is not None
    assert found.is_equivalent_to(IndexMap.from_func(lambda x, y: (x, y)))


def test_no_layout_where_elements_are_reached_by_several_sums():
    i, j = nest = loops(i=4, j=4)
    assert suggest_index_map(decl_buffer([8]), [i.loop_var + j.loop_var], nest, True) is None


def product(n, m, k):
    return te.create_prim_func(te_workload.matmul(n, m, k, in_dtype="float16", out_dtype="float32"))


def test_loops_of_a_product():
    sch = Schedule(product(32, 48, 64))
    block = sch.get_block("C")
    description = TensorIntrin.get(WMMA).desc
    around = sch.get_loops(block)
    for _ in range(2):
        info = get_tensorize_loop_mapping(sch, block, description)
        assert [sch.get(each) for each in info.loop_map] == [sch.get(each) for each in around[::-1]]
        numbers = [info.desc_loop_indexer[each] for each in info.loop_map.values()]
        assert (numbers, info.block_iter_paddings) == ([2, 1, 0], None)
        sch.reorder(around[2], around[0], around[1])


def test_paddings():
    sch = Schedule(product(30, 48, 65))
    description = TensorIntrin.get(WMMA).desc
    assert get_tensorize_loop_mapping(sch, sch.get_block("C"), description) is None
    info = get_tensorize_loop_mapping(sch, sch.get_block("C"), description, allow_padding=True)
    assert info.block_iter_paddings == [16, 1, 16]


@pytest.mark.parametrize("batch", [1, 3])
def test_iterators_of_a_convolution(batch):
    conv = te_workload.conv2d_nhwc(
        batch, 6, 6, 8, 16, 3, 1, 1, in_dtype="float16", out_dtype="float32"
    )
    sch = Schedule(te.create_prim_func(conv))
    description = TensorIntrin.get(WMMA).desc
    info = get_auto_tensorize_mapping_info(sch, sch.get_block("conv2d_nhwc"), description)
    (found,) = info.mappings
    assert found.is_equivalent_to(
        IndexMap.from_func(
            lambda n, h, w, c, rh, rw, rc: (n * 36 + h * 6 + w, c, rh * 24 + rw * 8 + rc)
        )
    )


def test_a_window_of_one_row_and_column_is_not_summed_over():
    """As in TVM, it stays apart: no index of the image depends on it."""
    conv = te_workload.conv2d_nhwc(1, 6, 6, 8, 16, 1, 1, 0, in_dtype="float16", out_dtype="float32")
    sch = Schedule(te.create_prim_func(conv))
    info = get_auto_tensorize_mapping_info(
        sch, sch.get_block("conv2d_nhwc"), TensorIntrin.get(WMMA).desc
    )
    (mapping,) = info.mappings
    assert mapping.is_equivalent_to(
        IndexMap.from_func(lambda n, h, w, c, rh, rw, rc: (rh, rw, n * 36 + h * 6 + w, c, rc))
    )


def test_a_sum_is_no_product():
    A = te.placeholder((16, 16), name="A", dtype="float16")
    k = te.reduce_axis((0, 16), name="k")
    B = te.compute((16,), lambda i: te.sum(A[i, k].astype("float32"), axis=k), name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    description = TensorIntrin.get(WMMA).desc
    assert get_auto_tensorize_mapping_info(sch, sch.get_block("B"), description) is None


@T.prim_func
def dense(
    A: T.Buffer((4, 8), "uint8"), B: T.Buffer((2, 2, 16, 4), "int8"), C: T.Buffer((4, 32), "int32")
):
    for i, j, k in T.grid(4, 32, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(
                B[vj // 16, vk // 4, vj % 16, vk % 4], "int32"
            )


def test_tiles_of_an_instruction():
    sch = Schedule(dense)
    block = sch.get_block("C")
    tile = tile_with_tensor_intrin(sch, block, "dot_16x4_vnni")
    around = sch.get_loops(block)
    assert [sch.get(loop).extent.value for loop in around] == [4, 2, 2, 16, 4]
    assert sch.get(tile) is sch.get(around[3])
    rng = np.random.default_rng(0)
    a = rng.integers(0, 9, (4, 8), dtype="uint8")
    b = rng.integers(-9, 9, (2, 2, 16, 4), dtype="int8")
    c = tvm.nd.empty((4, 32), "int32")
    tvm.build(sch.mod, target="interpreter")["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    flat = b.transpose(0, 2, 1, 3).reshape(32, 8).astype("int32")
    np.testing.assert_array_equal(c.numpy(), a.astype("int32") @ flat.T)


def test_a_tile_that_needs_padding():
    sch = Schedule(product(30, 32, 32))
    block = sch.get_block("C")
    assert tile_with_tensor_intrin(sch, block, WMMA) is None
    tile = tile_with_tensor_intrin(sch, block, WMMA, allow_padding=True)
    around = [sch.get(loop).extent.value for loop in sch.get_loops(block)]
    assert around == [2, 2, 2, 16, 16, 16]
    assert sch.get(tile) is sch.get(sch.get_loops(block)[3])


def test_blocks_by_name():
    @tvm.script.ir_module
    class Module:
        @T.prim_func
        def first(A: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("zero"):
                    vi = T.axis.spatial(8, i)
                    A[vi] = T.float32(0)

        @T.prim_func
        def second(A: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("one"):
                    vi = T.axis.spatial(8, i)
                    A[vi] = T.float32(1)

    sch = Schedule(Module)
    # TVM 0.27 looks in a function called "main" alone.
    assert not has_block(sch, "zero")
    sch.work_on("second")
    blocks = ("zero", "one", "root", "two")
    assert [has_block(sch, name) for name in blocks] == [False, True, True, False]
    with pytest.raises(TypeError, match="takes the name of a block"):
        has_block(sch, 5)
