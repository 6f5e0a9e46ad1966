"""FuseTIR: extents that functions are given, and buffers that are read twice."""

import numpy as np

import mlcweb as tvm
from mlcweb import relax, topi
from mlcweb.relax_vm import ShapeTuple
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

FUSE = relax.transform.FuseTIR()


@I.ir_module
class Shifted:
    @T.prim_func(private=True)
    def shift(A: T.Buffer((T.int64(4),), "float32"), B: T.Buffer((T.int64(4),), "float32"),
              n: T.int64):  # fmt: skip
        for i in range(T.int64(4)):
            with T.block("B"):
                v = T.axis.spatial(T.int64(4), i)
                B[v] = A[v] + T.Cast("float32", n)

    @R.function(private=True)
    def fused(x: R.Tensor((4,), "float32"), sizes: R.Shape(["n", 7])) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": True})
        n = T.int64()
        cls = Shifted
        with R.dataflow():
            a = R.emit_te(topi.add, x, x)
            gv = R.call_tir(cls.shift, (a,), R.Tensor((4,), "float32"), tir_vars=R.shape([n]))
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32"), sizes: R.Shape(["m", 7])) -> R.Tensor((4,), "float32"):
        m = T.int64()
        cls = Shifted
        with R.dataflow():
            a = cls.fused(x, sizes)
            gv = cls.fused(a, R.shape([m * 2, 7]))
            R.output(gv)
        return gv


def test_extents_of_shapes_that_are_passed():
    mod = FUSE(Shifted)
    calls = [binding.value for binding in mod["main"].body.blocks[0].bindings]
    assert [str(call.args[2]) for call in calls] == ["R.shape([m])", "R.shape([m * 2])"]
    vm = relax.VirtualMachine(relax.build(mod, target="numpy"), tvm.cpu())
    x = np.arange(4, dtype="float32")
    result = vm["main"](tvm.nd.array(x), ShapeTuple([3, 7]))
    np.testing.assert_array_equal(result.numpy(), 4 * x + 12)


@I.ir_module
class Twice:
    @T.prim_func(private=True)
    def both(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"),
             C: T.Buffer((4,), "float32"), D: T.Buffer((4,), "float32")):  # fmt: skip
        for i in range(4):
            with T.block("D"):
                v = T.axis.spatial(4, i)
                D[v] = A[v] + B[v] * C[3 - v]

    @R.function(private=True)
    def fused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": True})
        cls = Twice
        with R.dataflow():
            gv = R.call_tir(cls.both, (x, x, x), R.Tensor((4,), "float32"))
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Twice
        with R.dataflow():
            gv = cls.fused(x)
            R.output(gv)
        return gv


def test_a_region_of_a_buffer_is_read_once():
    assert "T.reads(x[v], x[3 - v])" in FUSE(Twice)["fused"].script()
