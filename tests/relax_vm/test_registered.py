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


@I.ir_module
class Reshaped:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
        y = R.add(x, x)
        z = R.call_pure_packed(
            "vm.builtin.reshape", y, R.shape([6]), sinfo_args=(R.Tensor((6,), "float32"),)
        )
        return R.add(z, z)


@pytest.mark.parametrize("kind", ["llvm", "wasm", "cuda", "webgpu", "opencl"])
def test_a_reshaped_tensor_stays_on_its_device(kind):
    device = tvm.cpu() if kind in ("llvm", "wasm") else tvm.device(kind)
    machine = relax.VirtualMachine(relax.build(Reshaped, kind), device)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    result = machine["main"](tvm.nd.array(x, device))
    np.testing.assert_array_equal(result.numpy(), 4 * x.reshape(-1))
    assert result.device == device


def builtin(name):
    return tvm.get_global_func(f"vm.builtin.{name}")


def test_extents_go_through_a_heap():
    builder = relax.ExecBuilder()
    with builder.function("main", num_inputs=1):
        heap, shape, result = builder.r(1), builder.r(2), builder.r(3)
        builder.emit_call(
            "vm.builtin.alloc_shape_heap", [builder.vm_state(), builder.imm(2)], dst=heap
        )
        stores = [builder.imm(item) for item in (2, 1, 0, 1, 1)]  # into the heap at 0 and 1
        where = builder.convert_constant("x")
        builder.emit_call("vm.builtin.match_shape", [builder.r(0), heap, *stores, where])
        loads = [builder.imm(item) for item in (3, 1, 1, 0, 1, 1, 0)]  # heap[1], 1, heap[0]
        builder.emit_call("vm.builtin.make_shape", [heap, *loads], dst=shape)
        builder.emit_call("vm.builtin.reshape", [builder.r(0), shape], dst=result)
        builder.emit_ret(result)
    machine = relax.VirtualMachine(builder.get(), tvm.cpu())
    x = np.arange(12, dtype="float32").reshape(2, 6)
    result = machine["main"](tvm.nd.array(x)).numpy()
    np.testing.assert_array_equal(result, x.reshape(6, 1, 2))
    with pytest.raises(ValueError, match=r"x should have 2 dimension"):
        machine["main"](tvm.nd.array(x.reshape(-1)))


def test_extents_are_compared_and_numbers_come_from_the_heap():
    heap = tvm.nd.array(np.array([4, 5]))
    x = tvm.nd.array(np.zeros((4, 3)))
    builtin("match_shape")(x, heap, 2, 3, 0, 1, 1, "x")
    assert heap.numpy().tolist() == [4, 3]
    assert builtin("make_shape")(heap, 2, 0, 7, 1, 1) == (7, 3)
    assert builtin("make_prim_value")(heap, 1, 0) == 4
    builtin("match_prim_value")(4, heap, 3, 0, "n")
    for details in ((0, 5, 2, 0), (3, 1, 2, 0)):
        with pytest.raises(ValueError, match="x, dimension 0, should be"):
            builtin("match_shape")(x, heap, 2, *details, "x")
    with pytest.raises(ValueError, match="n should be 3, but is 9"):
        builtin("match_prim_value")(9, heap, 0, 3, "n")


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("prim_value", (3, "int64"), (3.5, "int64")),
        ("prim_value", (True, "bool"), ("a", "bool")),
        ("string", ("a",), (3,)),
        ("func", (print,), (3,)),
    ],
)
def test_checks_of_kinds(name, right, wrong):
    check = builtin(f"check_{name}_info")
    check(*right, "x")
    with pytest.raises(TypeError, match="x should be a"):
        check(*wrong, "x")


def test_python_functions_by_name():
    builtin("register_py_func")("test.twice", lambda x: tvm.nd.array(2 * x.numpy()))
    x = tvm.nd.array(np.arange(3.0))
    assert builtin("get_py_func")("test.twice")(x).numpy().tolist() == [0, 2, 4]
    assert builtin("call_py_func")("test.twice", (x,)).numpy().tolist() == [0, 2, 4]
    builtin("clear_py_func_registry")()
    with pytest.raises(ValueError, match=r"test\.twice"):
        builtin("get_py_func")("test.twice")


def test_tensors_go_to_a_device():
    x = tvm.nd.array(np.arange(3.0))
    assert builtin("to_device")(x, 1, 0) is x
    moved = builtin("to_device")(x, tvm.device("webgpu").device_type, 0)
    assert moved.device == tvm.device("webgpu") and moved.numpy().tolist() == [0, 1, 2]
