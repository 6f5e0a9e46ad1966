"""Functions that only call kernels take the short way, and give the same."""

import threading

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir.array import Array
from mlcweb.runtime.arguments import ArgumentTypeError, ArgumentValueError
from mlcweb.runtime.host.engine import available
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from tests.relax_vm.programs import vm_of

pytestmark = pytest.mark.skipif(not available(), reason="there is no engine of WebAssembly")


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.matmul(b, w)
            R.output(c)
        return c

    @R.function
    def two(x: R.Tensor((4, 4), "float32")):
        a = R.add(x, x)
        b = R.multiply(x, x)
        return (b, a, x)


@I.ir_module
class Checked:
    @T.prim_func
    def halves(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(0.5)

    @T.prim_func
    def picked(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                assert A[vi] < T.float32(8), "too large"
                B[vi] = A[vi]

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Checked
        a = R.call_tir(cls.halves, (x,), out_sinfo=R.Tensor((4,), "float32"))
        b = R.call_tir(cls.picked, (a,), out_sinfo=R.Tensor((4,), "float32"))
        return b


def arrays(*shapes):
    random = np.random.default_rng(3)
    return [random.standard_normal(shape).astype("float32") for shape in shapes]


def takes_fast_path(function):
    """Whether the next call takes the short way."""
    return function.__call__ != function._called


def test_results_are_new_at_every_call():
    vm = vm_of(Model)
    x, w = arrays((2, 4), (4, 4))
    given = tvm.nd.array(x), tvm.nd.array(w)
    first, second = vm["main"](*given), vm["main"](*given)
    assert takes_fast_path(vm["main"])
    assert first.address != second.address
    expected = np.maximum(x @ w, 0) @ w
    for result in (first, second):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_other_arrays_and_other_shapes():
    vm = vm_of(Model)
    for round in range(3):
        for n in (1, 3, 0):
            x, w = arrays((n, 4), (4, 4))
            result = vm["main"](tvm.nd.array(x + round), tvm.nd.array(w))
            np.testing.assert_allclose(
                result.numpy(), np.maximum((x + round) @ w, 0) @ w, rtol=1e-4, atol=1e-4
            )


def test_tuples_and_arguments_come_out():
    vm = vm_of(Model)
    (x,) = arrays((4, 4))
    given = tvm.nd.array(x)
    for _ in range(2):
        results = vm["two"](given)
        assert isinstance(results, Array)
        square, double, same = results
        np.testing.assert_allclose(square.numpy(), x * x, rtol=1e-6)
        np.testing.assert_allclose(double.numpy(), x + x, rtol=1e-6)
        assert same is given


def test_the_same_array_twice():
    vm = vm_of(Model)
    (x,) = arrays((4, 4))
    given = tvm.nd.array(x)
    for _ in range(2):
        result = vm["main"](given, given).numpy()
        np.testing.assert_allclose(result, np.maximum(x @ x, 0) @ x, rtol=1e-4, atol=1e-5)


def test_wrong_arguments_after_right_ones():
    vm = vm_of(Model)
    x, w = (tvm.nd.array(a) for a in arrays((2, 4), (4, 4)))
    vm["main"](x, w)
    for wrong in ((x,), (x, w, w), (x, x), (x.numpy(), w), (x, None)):
        with pytest.raises((ArgumentTypeError, ArgumentValueError)):
            vm["main"](*wrong)
    vm["main"](x, w)


def test_a_failure_tells_which_kernel_it_was():
    vm = vm_of(Checked)
    good, bad = (tvm.nd.array(np.full(4, value, "float32")) for value in (2, 20))
    vm["main"](good)
    for _ in range(2):
        with pytest.raises(AssertionError, match="too large") as failure:
            vm["main"](bad)
        assert "R.call_tir(picked" in failure.value.__notes__[0].replace("cls.", "")
    assert vm["main"](good).numpy().tolist() == [1, 1, 1, 1]


def test_borrowed_memory_takes_the_long_way():
    vm = vm_of(Model)
    x, w = arrays((2, 4), (4, 4))
    for _ in range(2):
        result = vm["main"](tvm.nd.from_dlpack(x), tvm.nd.array(w))
        np.testing.assert_allclose(result.numpy(), np.maximum(x @ w, 0) @ w, rtol=1e-4, atol=1e-5)


def test_profiles_count_every_kernel_also_afterwards():
    vm = vm_of(Model)
    x, w = (tvm.nd.array(a) for a in arrays((2, 4), (4, 4)))
    for _ in range(2):
        vm["main"](x, w)
    report = vm.profile("main", x, w)
    assert sum(record.count for record in report.records) >= 2


def test_threads_do_not_meet():
    vm = vm_of(Model)
    w = arrays((4, 4))[0]
    device_w = tvm.nd.array(w)
    wrong = []

    def work(seed):
        x = np.full((5, 4), seed, "float32")
        given, expected = tvm.nd.array(x), np.maximum(x @ w, 0) @ w
        for _ in range(200):
            found = vm["main"](given, device_w).numpy()
            if not np.allclose(found, expected, rtol=1e-4, atol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_that_does_more_does_not_take_the_fast_path():
    @tvm.register_func("test.fast_path.double", override=True)
    def double(x):
        return tvm.nd.array(x.numpy() * 2)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        a = R.call_packed("test.fast_path.double", x, sinfo_args=R.Tensor((4,), "float32"))
        return R.add(a, x)

    vm = relax.VirtualMachine(relax.build(main), tvm.cpu())
    for _ in range(2):
        result = vm["main"](tvm.nd.array(np.ones(4, "float32")))
        assert result.numpy().tolist() == [3, 3, 3, 3]
    assert not takes_fast_path(vm["main"])
