"""Assertions that say which error they are, on all targets."""

from __future__ import annotations

import pytest

import mlcweb as tvm
from mlcweb import tir
from mlcweb.codegen.errors import AssertionFailed
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", "wasm", "llvm"]
ERRORS = {"RuntimeError": RuntimeError, "ValueError": ValueError, "TypeError": TypeError}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ERRORS)
def test_an_assertion_names_its_error(target: str, kind: str) -> None:
    func = from_source(f"""
@T.prim_func
def main(n: T.int32):
    assert n == 4, ("{kind}", ["Expected ", "4"])
""")
    main = tvm.build(func, target)["main"]
    main(4)
    with pytest.raises(ERRORS[kind], match="Expected 4") as caught:
        main(8)
    assert isinstance(caught.value, AssertionFailed)


def test_the_error_is_printed_and_read_back() -> None:
    n = tir.Var("n", "int32")
    check = tir.AssertStmt(tir.StringImm("ValueError"), n > 0, [tir.StringImm("n is too small")])
    func = tir.PrimFunc([n], tir.SeqStmt([check, tir.Evaluate(0)]))
    assert 'T.Assert(n > 0, "n is too small", error_kind="ValueError")' in func.script()
    tvm.ir.assert_structural_equal(func, from_source(func.script()))
    assert check.kind.value == "ValueError"
    last = tir.PrimFunc([n], check)
    assert 'assert n > 0, ("ValueError", ["n is too small"])' in last.script()
    tvm.ir.assert_structural_equal(last, from_source(last.script()))


def test_other_errors_make_other_programs() -> None:
    n = tir.Var("n", "int32")
    one, other = (
        tir.AssertStmt(n > 0, "message", tir.Evaluate(0), kind)
        for kind in ("ValueError", "TypeError")
    )
    assert not tvm.ir.structural_equal(one, other)
