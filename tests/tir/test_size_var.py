"""`tir.SizeVar`: a variable of a class of its own, which is never negative."""

import pytest

from mlcweb import te, tir
from mlcweb.arith import Analyzer, ConstIntBound
from mlcweb.ir.structural import assert_structural_equal
from mlcweb.script import from_source

n, m = tir.SizeVar("n", "int32"), tir.Var("m", "int32")


def test_its_class():
    assert isinstance(n, tir.SizeVar) and isinstance(n, tir.Var)
    assert not isinstance(m, tir.SizeVar) and tir.SizeVar != tir.Var
    assert te.SizeVar is tir.SizeVar and isinstance(te.size_var("s", "int64"), te.SizeVar)
    assert te.size_var().name == "size"


@pytest.mark.parametrize(
    ("size", "other", "simplified"),
    [
        (tir.max(n, 0), tir.max(m, 0), n),
        (tir.truncdiv(n * 4 + 3, 4), tir.truncdiv(m * 4 + 3, 4), n),
        (tir.abs(n), tir.abs(m), n),
    ],
)
def test_the_analyzer_knows_that_it_is_not_negative(size, other, simplified):
    assert Analyzer().simplify(size) is simplified
    assert not isinstance(Analyzer().simplify(other), tir.Var)


def test_bounds():
    analyzer = Analyzer()
    assert analyzer.const_int_bound(n) == (0, ConstIntBound.POS_INF)
    assert analyzer.can_prove(n + 1 > 0) and not analyzer.can_prove(m + 1 > 0)
    analyzer.bind(n, ConstIntBound(4, 11))
    assert analyzer.const_int_bound(n) == (4, 11)


def test_a_script_keeps_it():
    A = te.placeholder((te.size_var("n"),), name="A")
    func = te.create_prim_func([A, te.compute(A.shape, lambda i: A[i] + 1, name="B")])
    text = func.script()
    assert "n = T.int32(is_size_var=True)" in text
    again = from_source(text)
    assert_structural_equal(func, again)
    extent = next(iter(again.buffer_map.values())).shape[0]
    assert isinstance(extent, tir.SizeVar) and again.script() == text
    assert "n = T.int32()" in func.script(dialect="s_tir")
