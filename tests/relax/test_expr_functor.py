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


def test_parameters_that_become_others_are_others_in_the_body() -> None:
    @mutator
    class Widened(relax.PyExprMutator):
        def visit_var_def_(self, var: relax.Var) -> relax.Var:
            if var.name_hint != "x":
                return var
            return relax.Var("wide", relax.TensorStructInfo((8, 4), "float32"))

    @R.function(private=True)
    def before(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32")):
        y = R.matmul(x, w)
        return R.add(y, y)

    @R.function(private=True)
    def expected(wide: R.Tensor((8, 4), "float32"), w: R.Tensor((4, 3), "float32")):
        y = R.matmul(wide, w)
        return R.add(y, y)

    assert_structural_equal(Widened().visit_expr(before), expected)
    assert Widened._cls is Widened
