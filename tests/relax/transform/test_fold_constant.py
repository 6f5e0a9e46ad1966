"""FoldConstant: where it computes, and what becomes of shapes that constants hold."""

import numpy as np

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

FOLD = relax.transform.FoldConstant()


def test_operators_are_folded_in_dataflow_blocks_alone():
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            inside = R.add(R.const([1.0, 2.0]), R.const([3.0, 5.0]))
            gv = R.add(x, inside)
            R.output(gv)
        outside = R.add(R.const([1.0, 2.0]), R.const([3.0, 5.0]))
        return (gv, outside)

    block, rest = FOLD(IRModule({"main": main}))["main"].body.blocks
    (sum_,) = (binding.value for binding in block.bindings)
    np.testing.assert_array_equal(sum_.args[1].data.numpy(), [4, 7])
    assert_structural_equal(rest.bindings[0].value, main.body.blocks[1].bindings[0].value)


def test_a_shape_that_a_constant_holds_is_known():
    @R.function
    def main(x: R.Tensor((24,), "float32")):
        with R.dataflow():
            twice = R.add(R.const([2, 3], "int64"), R.const([2, 3], "int64"))
            shape: R.Shape(ndim=2) = R.tensor_to_shape(twice)
            gv: R.Tensor(ndim=2, dtype="float32") = R.reshape(x, shape)
            R.output(gv)
        return gv

    @R.function
    def expected(x: R.Tensor((24,), "float32")) -> R.Tensor((4, 6), "float32"):
        R.func_attr({"global_symbol": "main"})
        with R.dataflow():
            gv = R.reshape(x, R.shape([4, 6]))
            R.output(gv)
        return gv

    assert_structural_equal(FOLD(IRModule({"main": main}))["main"], expected)


def test_shapes_stand_where_their_variables_stood():
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            shape = R.shape([n, 1])
            gv = R.reshape(x, shape)
            R.output(gv)
        return gv

    (reshape,) = FOLD(IRModule({"main": main}))["main"].body.blocks[0].bindings
    assert isinstance(reshape.value.args[1], relax.ShapeExpr)


@I.ir_module
class PlusOne:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.add(x, R.ones(R.shape([]), "float32"))


def test_constants_are_computed_here_whatever_a_module_is_built_for():
    device = tvm.device("webgpu")
    machine = relax.VirtualMachine(relax.build(PlusOne, "webgpu"), device)
    result = machine["main"](tvm.nd.array(np.zeros(4, "float32"), device))
    np.testing.assert_array_equal(result.numpy(), np.ones(4))
