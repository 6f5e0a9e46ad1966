"""Programs that readers' work is compared with, as text: they are parsed when an exercise asks."""

from __future__ import annotations

from mlcweb.ir import IRModule
from mlcweb.schedule import Schedule
from mlcweb.script import from_source

_HEAD = "from tvm.script import ir as I\nfrom tvm.script import tir as T\n\n"

_MATRIX_PRODUCT = """
@I.ir_module
class Module:
    @T.prim_func
    def main(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

_BMM_RELU_TARGET = """
@I.ir_module
class Module:
    @T.prim_func
    def bmm_relu(
        A: T.Buffer((16, 128, 128), "float32"),
        B: T.Buffer((16, 128, 128), "float32"),
        C: T.Buffer((16, 128, 128), "float32"),
    ):
        T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
        Y = T.alloc_buffer([16, 128, 128], dtype="float32")
        for i0 in T.parallel(16):
            for i1, i2_0 in T.grid(128, 16):
                for ax0_init in T.vectorized(8):
                    with T.block("Y_init"):
                        n, i = T.axis.remap("SS", [i0, i1])
                        j = T.axis.spatial(128, i2_0 * 8 + ax0_init)
                        Y[n, i, j] = T.float32(0)
                for ax1_0 in T.serial(32):
                    for ax1_1 in T.unroll(4):
                        for ax0 in T.serial(8):
                            with T.block("Y_update"):
                                n, i = T.axis.remap("SS", [i0, i1])
                                j = T.axis.spatial(128, i2_0 * 8 + ax0)
                                k = T.axis.reduce(128, ax1_0 * 4 + ax1_1)
                                Y[n, i, j] = Y[n, i, j] + A[n, i, k] * B[n, k, j]
                for i2_1 in T.vectorized(8):
                    with T.block("C"):
                        n, i = T.axis.remap("SS", [i0, i1])
                        j = T.axis.spatial(128, i2_0 * 8 + i2_1)
                        C[n, i, j] = T.max(Y[n, i, j], T.float32(0))
"""


def matrix_product() -> IRModule:
    """C = A B on 128 x 128 elements, unscheduled."""
    return _parsed(_MATRIX_PRODUCT)


def tiled_product(jfactor: int) -> IRModule:
    """The matrix product as chapter 4 schedules it by hand."""
    schedule = Schedule(matrix_product())
    block = schedule.get_block("C")
    i, j, k = schedule.get_loops(block)
    j_0, j_1 = schedule.split(j, factors=[None, jfactor])
    schedule.reorder(i, j_0, k, j_1)
    schedule.decompose_reduction(block, k)
    return schedule.mod


def bmm_relu_target() -> IRModule:
    """What exercise 3 of chapter 2 asks for."""
    return _parsed(_BMM_RELU_TARGET)


def _parsed(text: str) -> IRModule:
    module = from_source(_HEAD + text)
    assert isinstance(module, IRModule)
    return module
