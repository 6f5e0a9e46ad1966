"""The keywords and attributes that TVM renamed in 2026 mean what they did under the old names."""

import pytest

from mlcweb import relax
from mlcweb.ir import GlobalVar, assert_structural_equal
from mlcweb.relax import TensorStructInfo

INFO = TensorStructInfo((2, 3), "float32")


@pytest.mark.parametrize("kind", [relax.Var, relax.DataflowVar])
def test_variables(kind: type[relax.Var]) -> None:
    assert kind("x", ty=INFO).struct_info is INFO
    assert kind("x", INFO).ty is INFO


def test_functions() -> None:
    x = relax.Var("x", ty=INFO)
    func = relax.Function([x], x, ret_ty=INFO)
    assert func.ret_ty is func.ret_struct_info is INFO
    assert relax.ExternFunc("f", ty=INFO).ty is INFO


@pytest.mark.parametrize("name", ["call_tir", "call_dps_packed", "call_pure_packed", "call_packed"])
def test_calls(name: str) -> None:
    build, x = getattr(relax.op, name), relax.Var("x", INFO)
    callee = GlobalVar("f") if name == "call_tir" else "f"
    old, new = ("sinfo_args", "ty_args") if "packed" in name[-12:] else ("out_sinfo", "out_ty")
    if name == "call_dps_packed":
        old, new = "out_sinfo", "out_ty"
    call = build(callee, x, **{new: INFO})
    assert_structural_equal(call, build(callee, x, **{old: INFO}), map_free_vars=True)
    assert call.ty_args == call.sinfo_args
    assert_structural_equal(call.ty, INFO)
