"""Normalize says of each variable what it is; AttachGlobalSymbol and LambdaLift name functions."""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.ir.op import Op, register_op_attr
from mlcweb.relax import TensorStructInfo as Tensor
from mlcweb.relax_vm import VirtualMachine, build
from mlcweb.runtime.device import cpu
from mlcweb.runtime.ndarray import array
from mlcweb.script import from_source
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from mlcweb.testing.relax.transform import ApplyEmptyCppMutator

CALL_TIR = Op.get("relax.call_tir")
VECTOR = Tensor((4,), "float32")


def normalized(*bindings, result):
    x = relax.Var("x", VECTOR)
    block = relax.BindingBlock([bind(x) for bind in bindings])
    func = relax.Function([x], relax.SeqExpr([block], result), Tensor(ndim=1))
    return relax.transform.Normalize()(IRModule({"main": func}))["main"]


def test_variables_of_which_nothing_was_said():
    y, z, w = map(relax.Var, "yzw")
    cond = relax.const(True)
    func = normalized(
        lambda x: relax.VarBinding(y, relax.If(cond, relax.op.exp(x), relax.op.add(x, x))),
        lambda x: relax.MatchCast(z, y, VECTOR),
        lambda x: relax.VarBinding(w, relax.op.add(z, y)),
        result=w,
    )
    (block,) = func.body.blocks
    assert [binding.var.struct_info for binding in block.bindings] == [VECTOR] * 3
    branch, cast, total = block.bindings
    assert cast.value is branch.var and total.value.args == (cast.var, branch.var)
    assert func.body.body is total.var and y.struct_info is None
    assert relax.analysis.well_formed(func)


def test_the_result_is_said_as_well_as_it_is_known():
    y = relax.Var("y", VECTOR)
    func = normalized(lambda x: relax.VarBinding(y, relax.op.exp(relax.op.exp(x))), result=y)
    assert func.ret_struct_info == VECTOR


LIBRARY = """
@I.ir_module
class Module:
    I.module_attrs({"system_lib_prefix": "lib_"})

    @T.prim_func(private=True)
    def zero(x: T.Buffer((2,), "float32")):
        for i in range(2):
            x[i] = T.float32(0)

    @R.function(private=True)
    def main():
        gv = R.call_tir(Module.zero, (), R.Tensor((2,), "float32"))
        return gv
"""


def test_functions_of_a_library_begin_with_its_prefix():
    mod = relax.transform.AttachGlobalSymbol()(from_source(LIBRARY))
    names = {var.name_hint: func.attrs["global_symbol"] for var, func in mod.functions.items()}
    assert names == {"lib_zero": "lib_zero", "main": "main"}
    assert relax.analysis.well_formed(mod)
    (call,) = mod["main"].body.blocks[0].bindings
    assert call.value.args[0] == mod.get_global_var("lib_zero")


LOCAL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        @R.function
        def inner(y: R.Tensor((2,), "float32")):
            z = R.add(y, y)
            return z

        gv = inner(x)
        return gv

    @R.function
    def main_inner():
        return R.tuple()
"""


def test_a_lifted_function_takes_no_name_of_another():
    mod = relax.transform.LambdaLift()(from_source(LOCAL))
    assert {var.name_hint for var in mod.functions} == {"main", "main_inner", "main_inner_0"}
    assert mod["main"].body.blocks[0].bindings[0].value.op == mod.get_global_var("main_inner_0")


def test_a_call_without_a_name_gives_what_its_function_gives():
    mod = from_source("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        Module.say()
        return x

    @R.function(pure=False, private=True)
    def say() -> R.Tuple:
        R.print(format="hello")
        return R.tuple()
""")
    assert mod["main"].body.blocks[0].bindings[0].var.struct_info == R.Tuple()


@pytest.fixture
def padded():
    """An operator whose calls have a second argument, an empty tuple where none is written."""
    name = "own.padded"

    def infer(call, context):
        return call.args[0].struct_info

    def normalize(builder, call):
        return call if len(call.args) == 2 else relax.Call(call.op, [*call.args, relax.Tuple(())])

    rules = {"FInferType": infer, "FPurity": True, "FNormalize": normalize}
    for key, rule in rules.items():
        register_op_attr(name, key, rule)
    operator = Op.get(name)
    assert operator.get_attr("FInferStructInfo") is infer
    yield operator
    for key in rules:
        operator.reset_attr(key)
    assert not operator.has_attr("FInferStructInfo")


def test_calls_get_the_form_that_their_operator_asks_for(padded):
    @R.function(private=True, check_well_formed=False)
    def func(x: R.Tensor((4,), "float32")):
        return relax.Call(padded, [x])

    (block,) = func.body.blocks
    assert len(block.bindings[0].value.args) == 1, "scripts stay as they are written"
    assert not relax.analysis.well_formed(func)
    for change in (relax.transform.Normalize(), ApplyEmptyCppMutator()):
        new = change(IRModule({"main": func}))["main"]
        assert len(new.body.blocks[0].bindings[0].value.args) == 2
        assert relax.analysis.well_formed(new)


@I.ir_module(check_well_formed=False)
class Calls:
    @T.prim_func(private=True)
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32"), t: R.Tuple(R.Tensor((4,), "float32"))):
        cls = Calls
        args = (x,)
        a = relax.Call(CALL_TIR, [cls.double, args], sinfo_args=[VECTOR])
        b = relax.Call(CALL_TIR, [cls.double, t], sinfo_args=[VECTOR])
        return (a, b)


def test_functions_of_tensor_ir_are_called_with_tuples_in_the_call():
    assert not relax.analysis.well_formed(Calls)
    new = relax.transform.Normalize()(Calls)
    assert relax.analysis.well_formed(new)
    assert "R.call_tir(cls.double, (x,)," in new.script()
    x = np.arange(4, dtype="float32")
    machine = VirtualMachine(build(new), cpu())
    a, b = machine["main"](array(x), (array(x + 1),))
    np.testing.assert_array_equal(a.numpy(), 2 * x)
    np.testing.assert_array_equal(b.numpy(), 2 * x + 2)
