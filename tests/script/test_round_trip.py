"""What prints parses back to the same program, for random programs and random expressions."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir import IRModule, assert_structural_equal, structural_hash
from mlcweb.script import parse, script
from mlcweb.tir import IntImm, PrimExpr, PrimFunc, Select, Var, arithmetic, decl_buffer, intrinsics
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from tests.strategies import modules, prim_funcs


@given(prim_funcs())
def test_function_round_trip(function: PrimFunc) -> None:
    text = script(function)
    again = parse(text)
    assert_structural_equal(again, function)
    assert script(again) == text
    assert structural_hash(again) == structural_hash(function)


@given(modules())
def test_module_round_trip(module: IRModule) -> None:
    again = parse(script(module))
    assert_structural_equal(again, module)


I_VAR, J_VAR, L_VAR = Var("i"), Var("j"), Var("l", "int64")
F_BUFFER, N_BUFFER = decl_buffer((8, 8), "float32", "F"), decl_buffer((8,), "int32", "N")


def _raw(*classes: Any) -> Any:
    """Nodes built without folding, so that every shape of tree is printed."""
    return lambda pair: pair[0](pair[1], pair[2])


def _integers() -> st.SearchStrategy[PrimExpr]:
    leaves = st.one_of(
        st.sampled_from([I_VAR, J_VAR]),
        st.integers(-(2**31), 2**31 - 1).map(lambda value: IntImm("int32", value)),
        st.sampled_from([I_VAR, J_VAR]).map(lambda v: E.BufferLoad(N_BUFFER, (v,))),
    )
    classes = (E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod, E.Div, E.Mod, E.Min, E.Max)

    def extend(inner: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
        pairs = st.tuples(st.sampled_from(classes), inner, inner)
        bitwise = st.sampled_from(
            [arithmetic.bitwise_and, arithmetic.bitwise_or, arithmetic.bitwise_xor,
             arithmetic.shift_left, arithmetic.shift_right]
        )  # fmt: skip
        variables = st.sampled_from([I_VAR, J_VAR])
        return st.one_of(
            pairs.map(lambda p: p[0](p[1], p[2])),
            st.tuples(bitwise, variables, inner).map(lambda p: p[0](p[1], p[2] + I_VAR)),
            inner.map(lambda a: arithmetic.bitwise_not(a)),
            inner.map(lambda a: E.Cast("int32", E.Cast("int64", a))),
        )

    return st.recursive(leaves, extend, max_leaves=12)


def _conditions(integers: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
    comparisons = st.sampled_from((E.EQ, E.NE, E.LT, E.LE, E.GT, E.GE))
    leaves = st.tuples(comparisons, integers, integers).map(lambda p: p[0](p[1], p[2]))

    def extend(inner: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
        connectives = st.sampled_from((E.And, E.Or, E.EQ))
        return st.one_of(
            st.tuples(connectives, inner, inner).map(lambda p: p[0](p[1], p[2])),
            inner.map(E.Not),
        )

    return st.recursive(leaves, extend, max_leaves=5)


def _floats(conditions: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
    numbers = st.floats(width=32).map(lambda value: E.FloatImm("float32", value))
    loads = st.sampled_from([E.BufferLoad(F_BUFFER, (I_VAR, J_VAR + 1))])
    calls = st.sampled_from([intrinsics.exp, intrinsics.absolute, intrinsics.sigmoid])

    def extend(inner: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
        classes = st.sampled_from((E.Add, E.Sub, E.Mul, E.Div, E.Min, E.Max))
        return st.one_of(
            st.tuples(classes, inner, inner).map(lambda p: p[0](p[1], p[2])),
            st.tuples(calls, inner).map(lambda p: p[0](p[1])),
            st.tuples(conditions, inner, inner).map(lambda p: Select(*p)),
            st.tuples(conditions, inner, inner).map(lambda p: intrinsics.if_then_else(*p)),
        )

    return st.recursive(st.one_of(numbers, loads), extend, max_leaves=8)


INTEGERS = _integers()
CONDITIONS = _conditions(INTEGERS)


def _function(value: PrimExpr) -> PrimFunc:
    handles = Var("f", "handle"), Var("n", "handle")
    return PrimFunc(
        (*handles, I_VAR, J_VAR, L_VAR),
        S.Evaluate(value),
        buffer_map={handles[0]: F_BUFFER, handles[1]: N_BUFFER},
        attrs={"global_symbol": "main"},
    )


@given(st.one_of(INTEGERS, CONDITIONS, _floats(CONDITIONS)))
def test_expression_round_trip(value: PrimExpr) -> None:
    function = _function(value)
    assert_structural_equal(parse(script(function)), function)


def test_views_say_whose_memory_they_look_at() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    V = T.decl_buffer((32,), "int8", data=A.data)
    for i in range(2):
        W = T.decl_buffer((4,), "int32", data=A.data, elem_offset=i * 4)
        W[0] = T.Cast("int32", V[i])
"""
    function = parse(text)
    assert script(function).splitlines()[2:] == text.splitlines()[1:]
    assert_structural_equal(parse(script(function)), function)


def test_the_type_of_an_offset_is_kept() -> None:
    """TVM 0.27 writes an offset of 0 where its type is not that of the shape."""
    text = """
@T.prim_func
def main(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    B = T.decl_buffer((n,), data=A.data, elem_offset=0)
    B[0] = T.float32(1)
"""
    function = parse(text)
    assert script(function).splitlines()[2:] == text.splitlines()[1:]
    assert_structural_equal(parse(script(function)), function)
