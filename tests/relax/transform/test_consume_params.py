"""LiftTransformParams with functions that let go of each weight once they have taken it."""

import numpy as np

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import assert_structural_equal
from mlcweb.ir.transform import PassContext
from mlcweb.script import from_source

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32"),
        b: R.Tensor((2,), "float32"), c: R.Tensor((2,), "float32"),
    ) -> R.Tensor((2, 2), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.permute_dims(w)
            w2 = R.add(wt, w)
            y = R.matmul(x, w2)
            z = R.add(y, b)
            R.output(z)
        return z
"""

TRANSFORM = """
@R.function
def main_transform_params(model_params: R.Tuple(R.Tensor((2, 2), dtype="float32"), \
R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32"))) \
-> R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2, 2), dtype="float32")):
    R.func_attr({"num_input": 0})
    with R.dataflow():
        w: R.Tensor((2, 2), dtype="float32") = model_params[0]
        R.call_pure_packed("vm.builtin.tuple_reset_item", model_params, T.int32(0), \
ty_args=(R.Tuple,))
        wt: R.Tensor((2, 2), dtype="float32") = R.permute_dims(w, axes=None)
        w1: R.Tensor((2, 2), dtype="float32") = w
        w2: R.Tensor((2, 2), dtype="float32") = R.add(wt, w1)
        b: R.Tensor((2,), dtype="float32") = model_params[1]
        R.call_pure_packed("vm.builtin.tuple_reset_item", model_params, T.int32(1), \
ty_args=(R.Tuple,))
        output_tuple: R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2, 2), dtype="float32")) \
= b, w2
        R.output(output_tuple)
    return output_tuple
"""
"""What TVM 0.27 makes of the program; its text leaves the type of the indices out."""


def lifted(consume: bool):
    options = {"relax.lift_transform_params.consume_params": consume}
    with PassContext(config=options):
        return relax.transform.LiftTransformParams()(from_source(PROGRAM))


def test_weights_are_taken_once_and_then_out_of_the_tuple() -> None:
    transform = lifted(consume=True)["main_transform_params"]
    assert_structural_equal(transform, from_source(TRANSFORM))
    assert "tuple_reset_item" not in lifted(consume=False).script()


def test_the_list_that_is_handed_over_is_emptied_of_what_was_needed() -> None:
    def transformed(consume: bool):
        vm = relax.VirtualMachine(relax.build(lifted(consume), "llvm"), tvm.cpu())
        arrays = [[[0, 1], [2, 3]], [4, 5], [6, 7]]
        weights = [tvm.nd.array(np.array(values, "float32")) for values in arrays]
        results = vm["main_transform_params"](weights)
        x = tvm.nd.array(np.array([[1, 0], [0, 2]], "float32"))
        return weights, results, vm["main"](x, *results)

    for consume in (True, False):
        weights, (b, w2), z = transformed(consume)
        assert [weight is None for weight in weights] == [consume, consume, False]
        assert b.numpy().tolist() == [4, 5]
        assert w2.numpy().tolist() == [[0, 3], [3, 6]]
        assert z.numpy().tolist() == [[4, 8], [10, 17]]
