"""The course's own cells, run one file per chapter as they stand, with `import tvm`.

`cells/*.txt` hold the code of the documents with the line breaks that their typesetting put in
taken out again, the style tag back in `code2html`'s format string, and the last loop of
`lnumpy_mm_relu_v3` back in the loop it belongs to.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import compat
from mlcweb.playground import cell
from mlcweb.script import tir as T

HERE = Path(__file__).parent


@pytest.fixture
def run_cells(capsys, monkeypatch):
    """Runs a file of cells as the page does; returns the result and what was printed."""
    # A cell takes the place of the main program; the test's own comes back afterwards.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def run(name):
        result = cell.execute((HERE / "cells" / f"{name}.txt").read_text(), f"{name}.py")
        assert result.ok, result.error
        return result, capsys.readouterr().out

    compat.install()
    yield run
    compat.uninstall()


def test_chapter_4_up_to_the_random_search(run_cells):
    result, printed = run_cells("chapter4")
    assert "Time cost of MyModule: " in printed
    assert re.search(r"Time cost of MyModule=>schedule_mm: \d+\.\d+ ms", printed)
    attempts = re.findall(r"=====Attempt (\d), time-cost: (\d+\.\d+) ms====", printed)
    assert [number for number, _ in attempts] == ["0", "1", "2", "3", "4"]
    assert printed.count("b8 = sch.decompose_reduction(block=b0, loop=l3)") >= 7
    assert "sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=" in printed
    assert set(result.search_functions) >= {"stochastic_schedule_mm"}
    assert result.traces


def test_chapter_2(run_cells):
    result, printed = run_cells("chapter2")
    assert re.search(r"Time cost of MyModule \d\S* sec", printed)
    assert re.search(r"Time cost of transformed mod_transformed \d\S* sec", printed)
    last = result.modules[-1].source
    assert "for i, j_0 in T.grid(128, 16):" in last
    assert 'with T.block("C"):' in last


def test_chapter_2_exercises(run_cells):
    result, _ = run_cells("chapter2_exercises")
    assert "for i_0 in T.parallel(2):" in result.modules[-1].source
    assert "for j in T.vectorized(4):" in result.modules[-1].source


def test_types_have_the_names_that_the_course_prints():
    sch = tvm.tir.Schedule(MyConv)
    loop = sch.get_loops(sch.get_block("C"))[1]
    assert str(type(MyConv)) == "<class 'mlcweb.ir.module.IRModule'>"
    assert str(type(MyConv["conv"])) == "<class 'mlcweb.tir.function.PrimFunc'>"
    assert str(type(tvm.nd.empty((1,)))) == "<class 'mlcweb.runtime.ndarray.NDArray'>"
    assert str(type(sch.sample_perfect_tile(loop, n=2)[0])) == "<class 'mlcweb.tir.expr.Var'>"


@tvm.script.ir_module
class MyBroadcastAdd:
    @T.prim_func
    def add(
        A: T.Buffer((4, 4), "int64"),
        B: T.Buffer((4,), "int64"),
        C: T.Buffer((4, 4), "int64"),
    ):
        T.func_attr({"global_symbol": "add", "tir.noalias": True})
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vj]


def test_exercise_1_broadcast_add():
    a, b = np.arange(16).reshape(4, 4), np.arange(4, 0, -1).reshape(4)
    c = tvm.nd.array(np.empty((4, 4), dtype=np.int64))
    tvm.build(MyBroadcastAdd, target="llvm")["add"](tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_array_equal(c.numpy(), [[4] * 4, [8] * 4, [12] * 4, [16] * 4])


N, CI, H, W, CO, K = 1, 1, 8, 8, 2, 3
OUT_H, OUT_W = H - K + 1, W - K + 1


@tvm.script.ir_module
class MyConv:
    @T.prim_func
    def conv(
        A: T.Buffer((N, CI, H, W), "int64"),
        B: T.Buffer((CO, CI, K, K), "int64"),
        C: T.Buffer((N, CO, OUT_H, OUT_W), "int64"),
    ):
        T.func_attr({"global_symbol": "conv", "tir.noalias": True})
        for b, k, i, j, di, dj, q in T.grid(N, CO, OUT_H, OUT_W, K, K, CI):
            with T.block("C"):
                vb, vk, vi, vj, vdi, vdj, vq = T.axis.remap("SSSSRRR", [b, k, i, j, di, dj, q])
                with T.init():
                    C[vb, vk, vi, vj] = T.int64(0)
                C[vb, vk, vi, vj] += A[vb, vq, vi + vdi, vj + vdj] * B[vk, vq, vdi, vdj]


def test_exercise_2_convolution():
    data = np.arange(N * CI * H * W).reshape(N, CI, H, W)
    weight = np.arange(CO * CI * K * K).reshape(CO, CI, K, K)
    out = tvm.nd.array(np.empty((N, CO, OUT_H, OUT_W), dtype=np.int64))
    tvm.build(MyConv, target="llvm")["conv"](tvm.nd.array(data), tvm.nd.array(weight), out)
    # The first and last rows of the two channels that the course prints.
    assert out.numpy()[0, 0, 0].tolist() == [474, 510, 546, 582, 618, 654]
    assert out.numpy()[0, 0, 5].tolist() == [1914, 1950, 1986, 2022, 2058, 2094]
    assert out.numpy()[0, 1, 0].tolist() == [1203, 1320, 1437, 1554, 1671, 1788]
    assert out.numpy()[0, 1, 5].tolist() == [5883, 6000, 6117, 6234, 6351, 6468]


@tvm.script.ir_module
class MyBmmRelu:
    @T.prim_func
    def bmm_relu(
        A: T.Buffer((16, 128, 128), "float32"),
        B: T.Buffer((16, 128, 128), "float32"),
        C: T.Buffer((16, 128, 128), "float32"),
    ):
        T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((16, 128, 128), dtype="float32")
        for n, i, j, k in T.grid(16, 128, 128, 128):
            with T.block("Y"):
                vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
                with T.init():
                    Y[vn, vi, vj] = T.float32(0)
                Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
        for n, i, j in T.grid(16, 128, 128):
            with T.block("C"):
                vn, vi, vj = T.axis.remap("SSS", [n, i, j])
                C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))


@tvm.script.ir_module
class TargetModule:
    @T.prim_func
    def bmm_relu(
        A: T.Buffer((16, 128, 128), "float32"),
        B: T.Buffer((16, 128, 128), "float32"),
        C: T.Buffer((16, 128, 128), "float32"),
    ) -> None:
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


def test_exercise_3_the_printed_target_of_bmm_relu():
    sch = tvm.tir.Schedule(MyBmmRelu)
    Y = sch.get_block("Y", func_name="bmm_relu")
    C = sch.get_block("C", func_name="bmm_relu")
    b, i, j, k = sch.get_loops(Y)
    j0, j1 = sch.split(j, factors=[None, 8])
    k0, k1 = sch.split(k, factors=[None, 4])
    sch.reorder(b, i, j0, k0, k1, j1)
    sch.reverse_compute_at(C, j0)
    sch.parallel(b)
    sch.vectorize(sch.get_loops(C)[-1])
    sch.unroll(k1)
    init = sch.decompose_reduction(Y, k0)
    sch.vectorize(sch.get_loops(init)[-1])
    tvm.ir.assert_structural_equal(sch.mod, TargetModule)
    rng = np.random.default_rng(0)
    a, b = (rng.random((16, 128, 128), dtype="float32") for _ in range(2))
    c = tvm.nd.empty((16, 128, 128))
    tvm.build(sch.mod, target="llvm")["bmm_relu"](tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), np.maximum(a @ b, 0), rtol=1e-5)
