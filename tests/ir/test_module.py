"""Modules and functions."""

from __future__ import annotations

import pickle

import pytest

from mlcweb.ir import DiagnosticError, GlobalVar, IRModule, assert_structural_equal
from mlcweb.ir.display import display_hook
from mlcweb.ir.module import the_function_name
from mlcweb.script import from_source, parse
from mlcweb.tir import Evaluate, PrimFunc, const


def function(**attrs: object) -> PrimFunc:
    return PrimFunc((), Evaluate(const(0)), attrs=attrs)


def test_functions_are_found_by_name_or_variable() -> None:
    f = function()
    module = IRModule({"f": f})
    assert module["f"] is module[GlobalVar("f")] is f
    assert "f" in module
    assert "g" not in module
    assert len(module) == 1
    with pytest.raises(ValueError, match='no function "g"; it has "f"'):
        module["g"]


def test_modules_change_only_by_their_three_ways() -> None:
    f, g = function(), function(x=1)
    module = IRModule({"f": f})
    copy = module.copy()
    module["g"] = g
    module.update_func(GlobalVar("f"), g)
    assert (copy["f"], len(copy)) == (f, 1)
    copy.update(module)
    assert copy["f"] is g
    del copy["f"]
    assert [var.name_hint for var in copy.get_global_vars()] == ["g"]


def test_attributes() -> None:
    f = function(a=1)
    assert f.with_attr("b", 2).attrs == {"a": 1, "b": 2}
    assert f.with_attr({"a": 3}).attrs == {"a": 3}
    assert f.without_attr("a").attrs == {}
    assert f.attrs == {"a": 1}
    assert IRModule().with_attr("k", 1).get_attr("k") == 1


def test_from_expr_uses_the_symbol() -> None:
    named = function(global_symbol="f")
    assert IRModule.from_expr(named)["f"] is named
    assert "main" in IRModule.from_expr(function())


def test_the_name_of_a_function_is_its_symbol() -> None:
    assert function(global_symbol="scale").__name__ == "scale"
    assert getattr(function(), "__name__", None) is None


def test_the_function_that_is_meant() -> None:
    one, two = IRModule({"f": function()}), IRModule({"f": function(), "main": function()})
    assert the_function_name(one, None) == "f"
    assert the_function_name(two, None) == "main"
    assert the_function_name(two, "f") == "f"
    with pytest.raises(DiagnosticError, match="Name one of the module's functions: f, g"):
        the_function_name(IRModule({"f": function(), "g": function()}), None)


def test_script_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    module = IRModule({"f": function(global_symbol="f")})
    assert str(module) == repr(module) == module.script()
    assert len(parse(module.script())) == 1
    module.show()
    assert capsys.readouterr().out == module.script() + "\n"
    shown: list[object] = []
    with display_hook(lambda value, title: shown.append(value)):
        module["f"].show()
    assert shown == [module["f"]]


def test_attributes_go_by_their_names_of_2026_too() -> None:
    func = function().with_attr({"tirx.noalias": True, "mine": 1})
    assert dict(func.attrs) == {"tir.noalias": True, "mine": 1}
    assert "tirx.noalias" in func.attrs and func.attrs["tirx.noalias"] is True
    assert func.attrs.get("tirx.noalias") is True and func.attrs.get("tirx.mine") is None
    assert pickle.loads(pickle.dumps(func)).attrs["tirx.noalias"] is True
    assert dict(func.without_attr("tirx.noalias").attrs) == {"mine": 1}


def test_a_module_is_the_same_as_itself_alone():
    module = IRModule()
    assert module.same_as(module) and not module.same_as(IRModule())


def test_functions_get_other_names() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.call_tir(Module.outer, (x,), R.Tensor((4,), "float32"))

    @T.prim_func
    def outer(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        Module.inner(A.data, B.data)

    @T.prim_func(private=True)
    def inner(a: T.ptr("float32"), b: T.ptr("float32")):
        A = T.decl_buffer(4, "float32", data=a)
        B = T.decl_buffer(4, "float32", data=b)
        for i in range(4):
            B[i] = A[i] + T.float32(1)
""")
    assert module.replace_global_vars({}) is module
    renamed = module.replace_global_vars(
        {"outer": "first", module.get_global_var("inner"): "second"}
    )
    text = module.script().replace("outer", "first").replace("inner", "second")
    assert_structural_equal(renamed, from_source(text))
    assert renamed["first"].attrs["global_symbol"] == "first"
    assert "global_symbol" not in renamed["second"].attrs
    for wrong, why in (({"outer": "inner"}, "Two functions"), ({"no": "one"}, "no function")):
        with pytest.raises(ValueError, match=why):
            module.replace_global_vars(wrong)
