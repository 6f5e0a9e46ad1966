"""What programs call of TVM's virtual machine by name, and what is checked when they return."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.runtime.arguments import ArgumentDtypeError
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T


@I.ir_module
class Shapes:
    @R.function
    def main(x: R.Tensor((6,), "float32"), shape: R.Tensor((2,), "int64")) -> R.Tensor(ndim=2):
        m, n = T.int64(), T.int64()
        extents = R.call_pure_packed(
            "vm.builtin.tensor_to_shape", shape, sinfo_args=(R.Shape(ndim=2),)
        )
        _ = R.match_cast(extents, R.Shape([m, n]))
        y = R.call_pure_packed("vm.builtin.copy", x, sinfo_args=(R.Tensor((6,), "float32"),))
        z = R.call_pure_packed(
            "vm.builtin.reshape", y, R.shape([m, n]), sinfo_args=(R.Tensor((m, n), "float32"),)
        )
        return z


def test_shapes_from_tensors():
    machine = relax.VirtualMachine(relax.build(Shapes), tvm.cpu())
    x = np.arange(6, dtype="float32")
    result = machine["main"](tvm.nd.array(x), tvm.nd.array(np.array([2, 3])))
    np.testing.assert_array_equal(result.numpy(), x.reshape(2, 3))
    with pytest.raises(ValueError, match=r"cannot be reshaped to \(2, 4\): it has 6"):
        machine["main"](tvm.nd.array(x), tvm.nd.array(np.array([2, 4])))


def test_checks_by_name():
    check = tvm.get_global_func("vm.builtin.check_tensor_info")
    tensor = tvm.nd.array(np.zeros((2, 2), "float32"))
    check(tensor, 2, "float32", "x")
    check(tensor, -1, "x")
    for bad, error in (((1, "float32"), "ndim 1"), ((2, "int32"), "dtype int32")):
        with pytest.raises(ValueError, match=error):
            check(tensor, *bad, "x")
    with pytest.raises(TypeError, match="x should be a tensor"):
        check((), 2, "float32", "x")


@I.ir_module
class Declared:
    @R.function
    def main(x: R.Tensor(("n", "m"), "int32"), y: R.Object) -> R.Tensor(("m", "n"), "float32"):
        return y


def test_the_declared_result_is_checked():
    machine = relax.VirtualMachine(relax.build(Declared), tvm.cpu())
    x = tvm.nd.array(np.zeros((1, 2), "int32"))
    y = tvm.nd.array(np.zeros((2, 1), "float32"))
    assert machine["main"](x, y).shape == (2, 1)
    with pytest.raises(ValueError, match=r'the return value of "main" should be.*m is 2'):
        machine["main"](x, tvm.nd.array(np.zeros((1, 2), "float32")))
    with pytest.raises(ArgumentDtypeError, match=r'the return value of "main".*type int32'):
        machine["main"](x, tvm.nd.array(np.zeros((2, 1), "int32")))
