"""Registered functions: Python's, compiled ones, and micro-kernels; also where memory is hidden."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir.array import Array
from mlcweb.relax_vm.packed import call_packed
from mlcweb.runtime import storage
from mlcweb.runtime.ndarray import NDArray
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from tests.relax_vm.programs import vm_of


@T.prim_func
def plus_one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.float32(1)


@tvm.script.ir_module
class Calls:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.call_dps_packed("test.f", (x,), R.Tensor((4,), "float32"))
            b = R.call_dps_packed("test.f", (a,), R.Tensor((4,), "float32"))
            R.output(b)
        return b

    @R.function(pure=False)
    def packed(x: R.Tensor((4,), "float32")):
        y = R.call_packed(
            "test.all",
            x,
            (x, R.const(1, "int32")),
            R.shape([2, 3]),
            R.prim_value(7),
            R.str("text"),
            R.dtype("float16"),
            sinfo_args=R.Tuple(R.Tensor((4,), "float32"), R.Prim("int64")),
        )
        first = y[0]
        return (first, y[1])


X = np.arange(4, dtype="float32")


@pytest.fixture(autouse=True)
def forget():
    yield
    for name in ("test.f", "test.all"):
        tvm.runtime.remove_global_func(name)


@pytest.mark.parametrize("kind", ["python", "compiled", "micro-kernel"])
def test_every_kind_of_function(kind):
    def f(x, out):
        np.from_dlpack(out)[:] = np.from_dlpack(x) + 1

    compiled = tvm.build(plus_one, "wasm")
    function = {"python": f, "compiled": compiled["plus_one"], "micro-kernel": plus_one}[kind]
    tvm.register_func("test.f", function, override=True)
    tvm.register_func("test.all", lambda *args: None, override=True)
    vm = vm_of(Calls)
    np.testing.assert_array_equal(vm["main"](tvm.nd.array(X)).numpy(), X + 2)


def test_what_a_function_returns_does_not_count_where_it_writes():
    def f(x, out):
        return np.add(np.from_dlpack(x), 2, out=np.from_dlpack(out))

    tvm.register_func("test.f", f, override=True)
    tvm.register_func("test.all", lambda *args: None, override=True)
    np.testing.assert_array_equal(vm_of(Calls)["main"](tvm.nd.array(X)).numpy(), X + 4)


def test_a_function_is_looked_up_when_it_is_called():
    tvm.register_func("test.f", lambda x, out: out.copyfrom(x), override=True)
    tvm.register_func("test.all", lambda *args: None, override=True)
    vm = vm_of(Calls)
    np.testing.assert_array_equal(vm["main"](tvm.nd.array(X)).numpy(), X)
    tvm.register_func("test.f", lambda x, out: out.copyfrom(x.numpy() * 3), override=True)
    np.testing.assert_array_equal(vm["main"](tvm.nd.array(X)).numpy(), 9 * X)


def test_what_functions_get_and_give():
    seen = []

    def function(*args):
        seen.extend(args)
        return [args[0], 5]

    tvm.register_func("test.f", lambda x, out: None, override=True)
    tvm.register_func("test.all", function, override=True)
    x = tvm.nd.array(X)
    assert vm_of(Calls)["packed"](x) == [x, 5]
    tensor, pair, shape, number, text, dtype = seen
    assert tensor is x
    assert isinstance(pair, Array)
    assert pair[0] is x
    assert pair[1].numpy() == 1
    assert (shape, number, text, dtype) == ((2, 3), 7, "text", "float16")


class HiddenStorage(storage.HostStorage):
    """Memory that Python may copy but not see, as in a page."""

    visible = False

    def view(self):
        raise tvm.TVMError("Python cannot see this memory")

    def read(self):
        return self._bytes.copy()


def hidden(values):
    data = HiddenStorage(values.copy().reshape(-1).view(np.uint8))
    return NDArray(values.shape, str(values.dtype), tvm.cpu(), data)


def test_hidden_memory_is_written_in_place_through_a_stand_in():
    x, out = hidden(X), hidden(np.zeros(4, "float32"))

    def f(x, out):
        np.add(np.from_dlpack(x), 1, out=np.from_dlpack(out))
        return out

    assert call_packed("f", f, [x, out]) is out
    np.testing.assert_array_equal(out.numpy(), X + 1)


def test_hidden_memory_by_copies_and_twice_the_same():
    x = hidden(X)

    def f(a, b):
        assert a is b
        a.copyfrom(a.numpy() * 2)
        np.from_dlpack(b)[0] = 9
        a[1] = 8

    call_packed("f", f, [x, x])
    np.testing.assert_array_equal(x.numpy(), [9, 8, 4, 6])


def test_what_a_function_makes_of_hidden_memory_stays_in_that_memory():
    x = hidden(X)

    def f(x):
        reshaped = NDArray((2, 2), x.dtype, x.device, x.storage)
        return reshaped, x._create_view((2,), None, 8)

    reshaped, last = call_packed("f", f, [x])
    x.copyfrom(X + 1)
    np.testing.assert_array_equal(reshaped.numpy(), (X + 1).reshape(2, 2))
    last.copyfrom(np.array([8, 9], "float32"))
    np.testing.assert_array_equal(x.numpy(), [1, 2, 8, 9])


def test_two_shapes_of_one_hidden_memory_are_lent_as_they_are():
    x = hidden(X)
    square, last = NDArray((2, 2), x.dtype, x.device, x.storage), x._create_view((1,), None, 12)

    def f(x, square, last):
        assert (x.shape, square.shape, last.shape) == ((4,), (2, 2), (1,))
        np.from_dlpack(x)[3] = 7
        np.from_dlpack(square)[0, 1] = np.from_dlpack(last)[0] + 1

    call_packed("f", f, [x, square, last])
    np.testing.assert_array_equal(x.numpy(), [0, 8, 2, 7])
    assert x.overlaps(last) and not x._create_view((3,)).overlaps(last)
