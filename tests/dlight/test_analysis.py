"""What rules of users ask of blocks."""

from typing import Any

import pytest

import mlcweb as tvm
from mlcweb import dlight, tir
from mlcweb.dlight.analysis import normalize_prim_func
from mlcweb.dlight.base import ScheduleRule
from mlcweb.script import ir as I
from mlcweb.script import tir as T


@T.prim_func
def relu_of_product(
    A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 4), "float32"), D: T.Buffer((8, 4), "float32")
):
    C = T.alloc_buffer((8, 4))
    for i, j, k in T.grid(8, 4, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(8, 4):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


def test_blocks_with_a_loop_for_each_iterator():
    sch = tir.Schedule(relu_of_product)
    infos = normalize_prim_func(sch)
    assert infos is not None
    assert [(info.name, info.dom_kind(), info.dom()) for info in infos] == [
        ("C", "SSR", [8, 4, 16]),
        ("D", "SS", [8, 4]),
    ]
    assert [info.is_injective() for info in infos] == [False, True]
    assert [info.is_reduction() for info in infos] == [True, False]
    assert [info.is_elementwise(sch) for info in infos] == [False, True]
    sch.reorder(*reversed(infos[1].get_loops()))
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops("D")] == ["ax1", "ax0"]


def test_other_loops_are_no_normal_form():
    sch = tir.Schedule(relu_of_product)
    sch.split(sch.get_loops("D")[0], [None, 2])
    assert normalize_prim_func(sch) is None


def test_a_rule_of_a_function_that_looks_at_blocks():
    @ScheduleRule.from_callable("Tile")
    def tile(func: tir.PrimFunc, target: Any, tunable: bool) -> tir.Schedule | None:
        sch = tir.Schedule(func)
        infos = normalize_prim_func(sch)
        if infos is None or len(infos) != 1 or not infos[0].is_injective():
            return None
        outer, inner = sch.split(sch.fuse(*infos[0].get_loops()), [None, 8])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        return sch

    @I.ir_module
    class Module:
        @T.prim_func
        def add(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
            for i, j in T.grid(4, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)

        @T.prim_func
        def product(
            A: T.Buffer((8, 16), "float32"),
            B: T.Buffer((16, 4), "float32"),
            C: T.Buffer((8, 4), "float32"),
        ):
            for i, j, k in T.grid(8, 4, 16):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    with tvm.target.Target("cuda"):
        mod = dlight.ApplyDefaultSchedule(tile)(Module)
    assert "threadIdx.x" in mod["add"].script() and "thread" not in mod["product"].script()


@T.prim_func
def masked(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.where(i < 6)
            B[vi] = A[vi]


@pytest.mark.parametrize("owner", ["tir.schedule", "s_tir.schedule"])
def test_global_functions_that_rules_look_up(owner):
    def ask(name, *arguments):
        return tvm.get_global_func(f"{owner}.{name}")(*arguments)

    sch = tir.Schedule(relu_of_product)
    product, relu = sch.get_block("C"), sch.get_block("D")
    assert ask("GetSBlockRealize", sch, product).block is sch.get(product)
    assert [ask("IsReductionBlock", sch, b, sch.get_block("root")) for b in (product, relu)] == [
        True,
        False,
    ]
    assert [ask("GetLoopIterType", sch, loop) for loop in sch.get_loops(product)] == ["S", "S", "R"]
    assert ask("IsTrivialBinding", sch, product) and not ask("IsOutputBlock", sch, product)
    blocks, loops, iters, reduces = ask("NormalizePrimFunc", sch)
    assert [sch.get(block).name_hint for block in blocks] == ["C", "D"]
    assert [len(each) for each in loops] == [len(each) for each in iters] == [3, 2]
    assert reduces == [True, False]
    assert [ask("IsSpatialPrimFunc", f) for f in (relu_of_product, masked)] == [False, True]
    assert [ask("HasIfThenElse", f.body) for f in (relu_of_product, masked)] == [False, True]
    assert tvm.get_global_func(f"{owner}.Nothing", allow_missing=True) is None
