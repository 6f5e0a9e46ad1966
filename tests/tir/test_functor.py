"""Classes that walk through TensorIR and rewrite it."""

from __future__ import annotations

from typing import Any

import pytest

from mlcweb import IRModule, tir
from mlcweb.script import tir as T
from mlcweb.tir import functor


@T.prim_func
def scaled(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")) -> None:
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            if vi < 5:
                B[vi] = A[vi] * T.float32(2) + T.exp(A[vi])


def test_a_visitor_finds_the_method_of_each_node_in_order() -> None:
    seen: list[str] = []

    @functor.visitor
    class Seen(tir.PyStmtExprVisitor):
        def visit_for_(self, op: Any) -> None:
            seen.append(f"for {op.loop_var.name}")
            super().visit_for_(op)

        def visit_block_(self, op: Any) -> None:
            seen.append(f"block {op.name_hint}")
            self.visit_stmt(op.body)

        def visit_buffer_load_(self, op: Any) -> None:
            seen.append(op.buffer.name)

        def visit_call_(self, op: Any) -> None:
            seen.append(op.op.name)
            super().visit_call_(op)

        def visit_lt_(self, op: Any) -> None:
            seen.append("<")

    Seen().visit_stmt(scaled.body)
    assert seen == ["block root", "for i", "block B", "<", "A", "tir.exp", "A"]


def test_a_mutator_rewrites_and_keeps_what_does_not_change() -> None:
    @functor.mutator
    class Doubling(tir.PyStmtExprMutator):
        def visit_mul_(self, op: Any) -> Any:
            return tir.Mul(self.visit_expr(op.a), op.b + op.b)

    class Nothing(tir.PyStmtExprMutator):
        def visit_float_imm_(self, op: Any) -> Any:
            return op

    assert Nothing().visit_stmt(scaled.body) is scaled.body
    doubled = scaled.with_body(Doubling().visit_stmt(scaled.body))
    assert "A[vi] * T.float32(4)" in IRModule({"main": doubled}).script()


def test_a_decorator_refuses_a_class_of_another_kind() -> None:
    with pytest.raises(TypeError, match="must be a subclass of PyStmtExprMutator"):
        functor.mutator(functor.PyStmtExprVisitor)
