"""Visitors and mutators of Relax."""

from mlcweb import relax
from mlcweb.ir import assert_structural_equal
from mlcweb.relax.expr_functor import mutator, visitor
from mlcweb.script import relax as R


def test_the_operator_of_a_call_is_visited_first() -> None:
    seen: list[str] = []

    class Logs:
        def visit_op_(self, op):
            seen.append(op.name)
            return op

        def visit_var_(self, var):
            seen.append(var.name_hint)
            return var

    x = relax.Var("x", R.Tensor((4,), "float32"))
    call = relax.BlockBuilder().normalize(relax.op.add(x, x))
    visitor(type("Visitor", (Logs, relax.PyExprVisitor), {}))().visit_expr(call)
    assert seen == ["relax.add", "x", "x"]
    again = mutator(type("Mutator", (Logs, relax.PyExprMutator), {}))().visit_expr(call)
    assert seen == ["relax.add", "x", "x"] * 2
    assert_structural_equal(again, call)
