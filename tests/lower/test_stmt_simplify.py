"""`tvm.tir.transform.Simplify` and its options."""

from typing import Any

import pytest

import mlcweb as tvm
from mlcweb.script import tir as T
from mlcweb.tir import transform


def simplified(func: Any, **options: bool) -> str:
    with tvm.transform.PassContext(config={"tir.Simplify": options}):
        text = transform.Simplify()(tvm.IRModule.from_expr(func))["main"].script()
    return text.split(":\n", 1)[1]


@T.prim_func(private=True)
def named_condition(A: T.Buffer((8,), "int32")):
    for i in range(8):
        low = i < 3
        if low or i >= 3:
            if i < 3:
                if low:
                    A[i] = 1


def test_conditions_are_proved_by_what_names_stand_for() -> None:
    assert simplified(named_condition).splitlines() == [
        "    for i in range(8):",
        "        low: T.bool = i < 3",
        "        if i < 3:",
        "            A[i] = 1",
    ]


@T.prim_func(private=True)
def named_numbers(A: T.Buffer((8,), "int32"), n: T.int32):
    half = n // 2
    for i in range(8):
        if half <= i:
            A[i] = half
            A[i] = A[i] + 0


def test_values_are_used_for_their_names_and_idle_stores_go() -> None:
    assert simplified(named_numbers).splitlines() == [
        "    half: T.int32 = n // 2",
        "    for i in range(8):",
        "        if n // 2 <= i:",
        "            A[i] = n // 2",
    ]


@T.prim_func(private=True)
def named_by_memory(A: T.Buffer((8,), "int32")):
    first = A[0]
    A[0] = 5
    A[1] = first


def test_what_is_read_from_memory_keeps_its_name() -> None:
    assert "A[1] = first" in simplified(named_by_memory)


@T.prim_func(private=True)
def view_at_a_name(P: T.handle("float32"), shift: T.int32):
    offset = shift
    A = T.decl_buffer((4,), "float32", elem_offset=offset, data=P)
    A[0] = T.float32(1)


def test_a_name_stays_that_says_where_a_buffer_is() -> None:
    assert "offset: T.int32 = shift" in simplified(view_at_a_name)


@T.prim_func(private=True)
def extents(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n * 8 - 1,), "float32")
    A[T.min(n, T.int64(1))] = T.float32(0)


def test_an_extent_is_not_negative() -> None:
    assert "A[T.int64(1)]" in simplified(extents)


@T.prim_func(private=True)
def both(A: T.Buffer((2,), "bool"), n: T.int32, m: T.int32):
    A[0] = n < m + 5 and n < m + 9
    A[1] = n < 3 or n < 7


def test_operands_of_and_and_or_by_each_other() -> None:
    before = ["    A[0] = n < m + 5 and n < m + 9", "    A[1] = n < 3 or n < 7"]
    assert simplified(both).splitlines() == before
    after = simplified(
        both, apply_constraints_to_boolean_branches=True, transitively_prove_inequalities=True
    )
    assert after.splitlines() == ["    A[0] = n < m + 5", "    A[1] = n < 7"]


@T.prim_func(private=True)
def triangle(A: T.Buffer((1,), "bool")):
    for i in range(50):
        for j in range(i + 1, 50):
            for k in range(j + 1, 50):
                A[0] = i < k


def test_loops_in_loops_order_their_variables_where_inequalities_are_chained() -> None:
    assert "A[0] = i < k" in simplified(triangle)
    chained = simplified(triangle, transitively_prove_inequalities=True)
    assert "A[0] = T.bool(True)" in chained


@T.prim_func(private=True)
def memory(A: T.Buffer((1,), "int32"), n: T.int32):
    if A[0] == n:
        A[0] = A[0] + 1
        if A[0] == n:
            A[0] = 0


def test_nothing_is_assumed_of_memory() -> None:
    assert simplified(memory).count("if A[0] == n:") == 2


@pytest.mark.parametrize("name", ["tir.Simplify", "tir.StmtSimplify", "tirx.StmtSimplify"])
def test_the_option_has_several_names(name: str) -> None:
    @T.prim_func(private=True)
    def chain(A: T.Buffer((1,), "bool"), i: T.int32, j: T.int32, k: T.int32):
        if i < j and j < k:
            A[0] = i < k

    mod = tvm.IRModule.from_expr(chain)
    with tvm.transform.PassContext(config={name: {"transitively_prove_inequalities": True}}):
        assert "A[0] = T.bool(True)" in transform.StmtSimplify()(mod)["main"].script()
    assert "A[0] = i < k" in transform.StmtSimplify()(mod)["main"].script()


def test_an_unknown_field_of_the_option_is_named() -> None:
    with pytest.raises(tvm.TVMError, match=r'"tir.Simplify" has transitively.*not quickly'):
        simplified(both, quickly=True)


@T.prim_func(private=True)
def one_iteration(A: T.Buffer((8,), "float32")):
    for i in T.serial(1, annotations={"pragma_auto_unroll_max_step": 16}):
        for j in range(8):
            A[i * 8 + j] = T.float32(1)


def test_a_loop_of_one_iteration_stays_with_its_annotations() -> None:
    assert simplified(one_iteration).splitlines() == [
        '    for i in T.serial(1, annotations={"pragma_auto_unroll_max_step": 16}):',
        "        for j in range(8):",
        "            A[j] = T.float32(1)",
    ]
