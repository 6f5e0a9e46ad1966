"""Conditions as an `and` of `or`s, and that they stay what they are."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import Analyzer
from mlcweb.ir import assert_structural_equal
from mlcweb.ir.transform import PassContext
from mlcweb.lower.conjunctive_form import and_of_ors
from mlcweb.lower.transform import Simplify
from mlcweb.script import from_source
from mlcweb.tir import PrimExpr, Var, all, any, const
from mlcweb.tir.substitute import substitute

i, j, k = Var("i"), Var("j"), Var("k")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (any(i == 0, all(j == 1, k == 2)), "(i == 0 or j == 1) and (i == 0 or k == 2)"),
        (all(any(i == 0, k == 20), any(i == 0, k != 30)), "i == 0 or k == 20"),
        (all(any(i == 0, j == 10, k == 20), any(j == 10, k != 30, i == 0)),
         "j == 10 or k == 20 or i == 0"),
        (all(k == 20, all(any(i == 0, j == 10), k != 30)), "(i == 0 or j == 10) and k == 20"),
        (any(i == 20, any(j == 0, i != 30)), "j == 0 or i != 30"),
        (all(any(i == 0, j == 1), any(j == 1, i == 0)), "i == 0 or j == 1"),
    ],
)  # fmt: skip
def test_forms_of_tvm(condition: PrimExpr, text: str) -> None:
    assert str(and_of_ors(condition, Analyzer().simplify)) == text


def test_the_option_of_the_pass() -> None:
    before, after = (
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "bool")):
    T.evaluate({condition})
""")
        for condition in (
            "(A[0] or A[1]) and (A[1] or (A[0] and A[2] and A[3]))",
            "(A[0] or A[1]) and (A[1] or A[2]) and (A[1] or A[3])",
        )
    )
    with PassContext(config={"tir.Simplify": {"convert_boolean_to_and_of_ors": True}}):
        assert_structural_equal(Simplify()(before), after)


TERMS = st.sampled_from([i == 0, i != 1, i < 2, j == 0, j > 1, i < j])
CONDITIONS = st.recursive(
    TERMS.map(lambda term: all(term)),
    lambda parts: st.builds(lambda op, a, b: op(a, b), st.sampled_from([all, any]), parts, parts),
    max_leaves=6,
)


@given(CONDITIONS)
def test_the_form_says_the_same(condition: PrimExpr) -> None:
    analyzer = Analyzer()
    form = and_of_ors(condition, analyzer.simplify)
    for a, b in product(range(-1, 4), repeat=2):
        values = {i: const(a), j: const(b)}
        both = [analyzer.simplify(substitute(each, values)) for each in (condition, form)]
        assert_structural_equal(*both)
