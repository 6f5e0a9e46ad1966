"""Functions of TensorIR as operations on tensors."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.ir import TVMError
from mlcweb.script import tir as T


@T.prim_func
def row_sums(a: T.handle, b: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i, j in T.grid(n, m):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]
    for i in range(n):
        with T.block("half"):
            vi = T.axis.spatial(n, i)
            C[vi] = B[vi] / T.float32(2)


@T.prim_func
def double(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


@T.prim_func
def in_place(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("double"):
            vi = T.axis.spatial(4, i)
            A[vi] = A[vi] * T.float32(2)


@T.prim_func
def scaled(A: T.Buffer((4,), "float32"), s: T.float32, B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] * s


@pytest.mark.parametrize("target", ["interpreter", "llvm", "wasm"])
def test_functions_stand_among_expressions(target):
    x = te.placeholder((4, 6), "float32", "x")
    shifted = te.compute((4, 6), lambda i, j: x[i, j] + 1.0, "shifted")
    once = te.extern_primfunc([shifted], double)
    twice = te.extern_primfunc([once], double, name="twice")
    sums, halves = te.extern_primfunc([twice], row_sums, name="sums")
    y = te.compute((4,), lambda i: sums[i] - halves[i], "y")
    assert tuple(map(int, sums.shape)) == (4,) and once.op.name == "extern"
    kernel = tvm.build(te.create_prim_func([x, y]), target)
    data = np.arange(24, dtype="float32").reshape(4, 6)
    result = tvm.nd.empty((4,), "float32")
    kernel["main"](tvm.nd.array(data), result)
    np.testing.assert_allclose(result.numpy(), ((data + 1) * 4).sum(1) / 2)


def test_the_blocks_of_a_function_can_be_scheduled():
    x = te.placeholder((4, 6), "float32", "x")
    y = te.extern_primfunc([x], double)
    sch = tvm.tir.Schedule(te.create_prim_func([x, y]))
    i, j = sch.get_loops(sch.get_block("double"))
    sch.reorder(j, i)
    result = tvm.nd.empty((4, 6), "float32")
    data = np.arange(24, dtype="float32").reshape(4, 6)
    tvm.build(sch.mod, "interpreter")["main"](tvm.nd.array(data), result)
    np.testing.assert_array_equal(result.numpy(), data * 2)


def test_what_does_not_fit_is_refused():
    x, wrong = te.placeholder((4, 6), "float32"), te.placeholder((4, 7), "float32")
    with pytest.raises(ValueError, match='An extent of "A" is 6, not 7'):
        te.extern_primfunc([wrong], double)
    with pytest.raises(ValueError, match="2 dimensions of float32"):
        te.extern_primfunc([te.placeholder((4, 6), "float16")], double)
    with pytest.raises(TVMError, match=r"reads 1 buffer\(s\) that it does not write, A; 2 tensor"):
        te.extern_primfunc([x, x], double)
    with pytest.raises(TVMError, match='may read "A" before it writes it'):
        te.extern_primfunc([], in_place)
    with pytest.raises(TVMError, match="functions of buffers alone; s is none"):
        te.extern_primfunc([te.placeholder((4,), "float32")], scaled)


def test_one_output_is_a_tensor_however_its_shape_is_given():
    x = te.placeholder((4,), "float32")
    for shape in ((4,), [(4,)]):
        y = te.extern(shape, [x], lambda ins, outs: tvm.tir.call_extern("int32", "f", outs[0][0]))
        assert isinstance(y, te.Tensor)
