"""Errors say which argument, which function, which binding."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import DiagnosticError
from mlcweb.ir.op import Op
from mlcweb.runtime.arguments import ArgumentTypeError, ArgumentValueError
from mlcweb.script import from_source
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from tests.relax_vm.programs import (
    MyModule,
    MyModuleWithExternCall,
    image,
    on_device,
    vm_of,
    weights,
)

VM = vm_of(MyModule)
ARGUMENTS = [tvm.nd.array(image()), *on_device(weights()).values()]


def replaced(position, value):
    return [value if index == position else old for index, old in enumerate(ARGUMENTS)]


def test_number_of_arguments():
    with pytest.raises(TypeError) as raised:
        VM["main"](*ARGUMENTS[:2])
    assert str(raised.value) == '"main" takes 5 argument(s) (x, w0, b0, w1, b1) but got 2'


def test_no_ndarray():
    with pytest.raises(ArgumentTypeError) as raised:
        VM["main"](*replaced(2, np.zeros(128, "float32")))
    assert str(raised.value) == (
        'argument 2 ("b0") of "main" should be R.Tensor((n,), dtype="float32"), but is a '
        "numpy.ndarray; pass tvm.nd.array(x)"
    )


def test_element_type():
    with pytest.raises(ArgumentTypeError, match=r'2 \("b0"\).*shape \(128,\) and type float64'):
        VM["main"](*replaced(2, tvm.nd.array(np.zeros(128))))


def test_a_shape_is_asked_for_by_name():
    @R.function
    def f(x: R.Tensor((4,), "float32"), s: R.Shape((2, 2))) -> R.Tensor((2, 2), "float32"):
        return R.reshape(x, R.shape([2, 2]))

    vm = relax.VirtualMachine(relax.build(f), tvm.cpu())
    x = tvm.nd.array(np.arange(4, dtype="float32"))
    with pytest.raises(TypeError) as raised:
        vm["f"](x, 9)
    assert str(raised.value) == (
        'argument 1 ("s") of "f" should be R.Shape([2, 2]), but is 9; pass a ShapeTuple, or a '
        "tuple of integers"
    )
    assert vm["f"](x, (2, 2)).numpy().tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_symbolic_extent():
    with pytest.raises(ArgumentValueError) as raised:
        VM["main"](*replaced(2, tvm.nd.array(np.zeros(127, "float32"))))
    assert str(raised.value) == (
        'argument 2 ("b0") of "main" should be R.Tensor((n,), dtype="float32"), where n is 128 as '
        'argument 1 ("w0") of "main" has it, but is a tensor of shape (127,) and type float32'
    )
    # The right arguments still work.
    assert VM["main"](*ARGUMENTS).shape == (1, 10)


def test_computed_extent():
    @tvm.script.ir_module
    class Computed:
        @R.function
        def main(x: R.Tensor(("n * 2",), "float32"), y: R.Tensor(("n",), "float32")):
            return y

    vm = vm_of(Computed)
    vm["main"](tvm.nd.empty((6,)), tvm.nd.empty((3,)))
    with pytest.raises(ArgumentValueError, match=r"where n \* 2 is 8, but is a tensor"):
        vm["main"](tvm.nd.empty((6,)), tvm.nd.empty((4,)))


def test_missing_function():
    with pytest.raises(AttributeError, match='no function "nain"; there are "main", "relu0"'):
        VM["nain"]


def test_missing_registered_function():
    executable = relax.build(MyModuleWithExternCall)
    with pytest.raises(tvm.TVMError, match=r'calls "env\.linear", which is neither'):
        relax.VirtualMachine(executable, tvm.cpu())


@pytest.fixture
def broken():
    def register(function):
        tvm.register_func("test.broken", function, override=True)

        @tvm.script.ir_module
        class Broken:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                with R.dataflow():
                    lv7 = R.call_dps_packed("test.broken", (x,), R.Tensor((4,), "float32"))
                    R.output(lv7)
                return lv7

            @R.function(pure=False)
            def packed(x: R.Tensor((4,), "float32")):
                lv = R.call_packed("test.broken", x, sinfo_args=R.Tensor((4,), "float32"))
                return lv

        return vm_of(Broken)

    yield register
    tvm.runtime.remove_global_func("test.broken")


def test_an_exception_of_python_tells_the_binding(broken):
    def divide(x, out):
        raise ZeroDivisionError("by zero")

    vm = broken(divide)
    with pytest.raises(ZeroDivisionError) as raised:
        vm["main"](tvm.nd.empty((4,)))
    (note,) = raised.value.__notes__
    assert note.startswith('In the function "main": lv7')
    assert 'R.call_dps_packed("test.broken", (x,)' in note
    # The machine can be used again.
    tvm.register_func("test.broken", lambda x, out: out.copyfrom(x), override=True)
    np.testing.assert_array_equal(vm["main"](tvm.nd.array(np.ones(4, "float32"))).numpy(), 1)


def test_what_a_function_may_not_give(broken):
    vm = broken(lambda x: x.numpy())
    with pytest.raises(TypeError, match=r'"test\.broken" gave a numpy\.ndarray.*from_dlpack'):
        vm["packed"](tvm.nd.empty((4,)))


def test_a_call_that_does_not_fit_the_kernel_tells_the_binding():
    @tvm.script.ir_module
    class Misfit:
        @T.prim_func
        def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi]

        @R.function
        def main(x: R.Tensor((5,), "float32")):
            with R.dataflow():
                wrong = R.call_dps_packed("copy", (x,), R.Tensor((4,), "float32"))
                R.output(wrong)
            return wrong

    with pytest.raises(ArgumentValueError, match=r"A\.shape\[0\] == 4") as raised:
        vm_of(Misfit)["main"](tvm.nd.empty((5,)))
    assert 'In the function "main": wrong' in raised.value.__notes__[0]


def test_operators_that_nothing_lowers(monkeypatch):
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        return y

    mod = tvm.IRModule({"main": main})
    with pytest.raises(DiagnosticError) as raised:
        relax.build(mod, relax_pipeline=None)
    assert str(raised.value).startswith(
        "relax.add is not lowered to a function of TensorIR: nothing is known of how to run it, in "
        'the function "main": y'
    )


def test_only_executables_run():
    with pytest.raises(tvm.TVMError, match=r"runs what relax\.build gives"):
        relax.VirtualMachine(MyModule, tvm.cpu())
    with pytest.raises(tvm.TVMError, match="no device rocm:0"):
        relax.VirtualMachine(relax.build(MyModule), tvm.device("rocm"))


def test_numbers_of_a_kernel_in_a_shape_of_unknown_rank():
    module = from_source(
        """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fill(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32"), n: T.int64):
        for i in range(4):
            b[i] = a[i]
"""
    )
    info = relax.TensorStructInfo((4,), "float32")
    x = relax.Var("x", info)
    shape = relax.Var("s", relax.ShapeStructInfo(ndim=-1))
    callee = module.get_global_var("fill")
    call = relax.Call(Op.get("relax.call_tir"), (callee, relax.Tuple([x]), shape), None, (info,))
    result = relax.Var("y", info)
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(result, call)])], result)
    module["main"] = relax.Function([x, shape], body, None, True, {"global_symbol": "main"})
    with pytest.raises(DiagnosticError, match="It must be known how many numbers s has"):
        relax.build(module, "numpy")
