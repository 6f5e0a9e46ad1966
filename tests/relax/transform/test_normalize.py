"""Normalize says of each variable what it is; AttachGlobalSymbol and LambdaLift name functions."""

from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.relax import TensorStructInfo as Tensor
from mlcweb.script import from_source
from mlcweb.script import relax as R

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
