"""Calls that write into their arguments, assertions, and results of unknown size."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import assert_structural_equal
from mlcweb.relax import TensorStructInfo, op
from mlcweb.relax.errors import ShapeError
from mlcweb.script import from_source
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from tests.relax_vm.programs import vm_of


@I.ir_module
class InPlace:
    @T.prim_func
    def added(
        A: T.Buffer((2, 3), "int32"), B: T.Buffer((2, 3), "int32"), C: T.Buffer((2, 3), "int32")
    ):
        """A becomes A + B, and C twice that."""
        for i, j in T.grid(2, 3):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + B[vi, vj]
                C[vi, vj] = A[vi, vj] * 2

    @R.function
    def main(x: R.Tensor((2, 3), "int32"), y: R.Tensor((2, 3), "int32")):
        cls = InPlace
        t = R.add(x, y)
        z = R.call_tir_inplace(
            cls.added,
            (t, y),
            [0, -1],
            out_sinfo=[R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")],
        )
        w = R.call_tir_inplace(
            "added",
            (z[0], y),
            inplace_indices=[0, -1],
            out_sinfo=[R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")],
        )
        return (w[0], w[1], z[1])

    @R.function
    def packed(x: R.Tensor((2, 3), "int32"), y: R.Tensor((2, 3), "int32")):
        t = R.add(x, y)
        w = R.call_inplace_packed(
            "test.inplace.add", t, y, inplace_indices=0, sinfo_args=R.Tensor((2, 3), "int32")
        )
        return w

    @R.function(pure=False)
    def checked(x: R.Tensor((2, 3), "int32"), ok: R.Tensor((), "bool")):
        R.assert_op(ok, x, format="not {}")
        return x

    @R.function
    def found(x: R.Tensor((2, 3), "int32")):
        n = T.int64()
        a = R.unique(x)
        b = R.match_cast(a, R.Tensor((n,), "int32"))
        c = R.add(b, b)
        d = R.nonzero(x)
        return (c, d)


X = np.arange(6, dtype="int32").reshape(2, 3)


def test_what_is_printed_is_read_back():
    assert_structural_equal(from_source(InPlace.script()), InPlace)


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_arguments_are_overwritten_but_not_those_of_the_function(target):
    vm = relax.VirtualMachine(relax.build(InPlace, target), tvm.cpu())
    for _ in range(3):
        x, y = tvm.nd.array(X), tvm.nd.array(X + 1)
        last, double, first = (result.numpy() for result in vm["main"](x, y))
        once = X + 2 * (X + 1)
        np.testing.assert_array_equal(first, 2 * once)
        np.testing.assert_array_equal(last, once + X + 1)
        np.testing.assert_array_equal(double, 2 * last)
        np.testing.assert_array_equal(x.numpy(), X)


@tvm.register_func("test.inplace.add", override=True)
def add(x, y):
    x.copyfrom(x.numpy() + y.numpy())
    return x


def test_a_registered_function_changes_its_argument():
    result = vm_of(InPlace)["packed"](tvm.nd.array(X), tvm.nd.array(X))
    np.testing.assert_array_equal(result.numpy(), 3 * X)


def test_an_assertion_stops_the_program():
    vm = vm_of(InPlace)
    x = tvm.nd.array(X)
    assert vm["checked"](x, tvm.nd.array(np.array(True))) is x
    with pytest.raises(AssertionError, match=r"not \[\[0 1 2\]"):
        vm["checked"](x, tvm.nd.array(np.array(False)))


def test_results_of_a_size_that_is_found():
    doubled, places = vm_of(InPlace)["found"](tvm.nd.array(X % 4))
    assert doubled.numpy().tolist() == [0, 2, 4, 6]
    np.testing.assert_array_equal(places.numpy(), np.stack(np.nonzero(X % 4)))


@pytest.mark.parametrize(
    ("places", "result", "message"),
    [
        ([0, 1], [(2, 3)], "must name a place for each of 1 result"),
        ([-1], [(2, 3)], "use call_tir"),
        ([7], [(2, 3)], "different ones of 2"),
        ([0], [(3, 2)], "the argument 0 is"),
    ],
)
def test_places_that_do_not_fit(places, result, message):
    infos = [TensorStructInfo(shape, "int32") for shape in result]
    x, y = (relax.Var(name, TensorStructInfo((2, 3), "int32")) for name in "xy")
    builder = relax.BlockBuilder(InPlace)
    with pytest.raises(ShapeError, match=message):
        builder.normalize(
            op.call_tir_inplace(InPlace.get_global_var("added"), (x, y), places, infos)
        )
