"""Functions as values: closures made by LambdaLift or by hand, run by the virtual machine."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

X = np.arange(6, dtype="float32").reshape(2, 3)


@I.ir_module
class ByHand:
    @R.function(private=True)
    def inner(z: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor(
        (2, 3), "float32"
    ):
        return R.subtract(z, y)

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        f = R.make_closure(ByHand.inner, (y,))
        r = R.invoke_pure_closure(f, (x,), sinfo_args=(R.Tensor((2, 3), "float32"),))
        return r

    @R.function
    def given(y: R.Tensor((2, 3), "float32")):
        f = R.make_closure(ByHand.inner, (y,))
        return f


def machine(mod: tvm.ir.IRModule) -> relax.VirtualMachine:
    return relax.VirtualMachine(relax.build(mod), tvm.cpu())


def test_what_a_closure_takes_comes_last() -> None:
    result = machine(ByHand)["main"](tvm.nd.array(X), tvm.nd.array(3 * X))
    np.testing.assert_array_equal(result.numpy(), -2 * X)


def test_a_closure_is_called_from_outside() -> None:
    vm = machine(ByHand)
    closure = vm["given"](tvm.nd.array(X))
    result = vm.invoke_closure(closure, tvm.nd.array(5 * X))
    np.testing.assert_array_equal(result.numpy(), 4 * X)


@I.ir_module
class Counting:
    @R.function
    def main(x: R.Tensor((), "int32"), k: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        @R.function
        def count(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            done: R.Tensor((), "bool") = R.greater(i, R.const(10, "int32"))
            if done:
                r: R.Tensor((), "int32") = i
            else:
                n = R.add(i, k)
                r: R.Tensor((), "int32") = count(n)
            return r

        return count(x)


@pytest.mark.parametrize("lifted", [False, True])
def test_a_function_that_captures_and_calls_itself(lifted: bool) -> None:
    mod = relax.transform.LambdaLift()(Counting) if lifted else Counting
    scalars = [tvm.nd.array(np.array(value, "int32")) for value in (1, 4)]
    assert machine(mod)["main"](*scalars).numpy() == 13


def test_a_lifted_function_with_effects_is_called_as_one(capsys: pytest.CaptureFixture) -> None:
    @I.ir_module
    class Printing:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
            @R.function(pure=False)
            def inner(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                R.print(format="inside")
                return R.add(y, z)

            return inner(x)

    mod = relax.transform.LambdaLift()(Printing)
    assert "R.invoke_closure(" in mod.script()
    one = tvm.nd.array(np.ones(2, "float32"))
    np.testing.assert_array_equal(machine(mod)["main"](one, one).numpy(), [2, 2])
    assert capsys.readouterr().out.strip() == "inside"


def test_a_lifted_function_takes_the_extents_from_around_it() -> None:
    @I.ir_module
    class Filling:
        @R.function
        def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor((), "float32")) -> R.Tensor(
            ("n", "m"), "float32"
        ):
            n, m = T.int64(), T.int64()

            @R.function
            def filled(value: R.Tensor((), "float32")):
                return R.broadcast_to(value, R.shape([n, m]))

            @R.function
            def doubled(z: R.Tensor((n, m), "float32")):
                return R.add(z, z)

            gv = R.match_cast(filled(y), R.Tensor((n, m), "float32"))
            gv1 = doubled(x)
            return R.add(gv, gv1)

    mod = relax.transform.LambdaLift()(Filling)
    assert relax.analysis.well_formed(mod)
    extents = mod["main_filled"].params[1:]
    assert [param.name_hint for param in extents] == ["n", "m"]
    assert (
        mod["main_doubled"].params[0].struct_info.values[0]
        is not Filling["main"].params[0].struct_info.values[0]
    )
    five = tvm.nd.array(np.array(5, "float32"))
    np.testing.assert_array_equal(machine(mod)["main"](tvm.nd.array(X), five).numpy(), 2 * X + 5)
