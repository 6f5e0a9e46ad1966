"""Walking and rewriting."""

from __future__ import annotations

from mlcweb.ir.visitor import Mutator, Visitor, on, post_order_visit, walk
from mlcweb.script import parse
from mlcweb.tir import Add, BufferLoad, IntImm, Mul, Var, const

i, j = Var("i"), Var("j")
TREE = Add(Mul(i, const(2)), Mul(j, const(3)))


def test_walk_visits_parents_first_in_field_order() -> None:
    assert [type(node).__name__ for node in walk(TREE)] == [
        "Add", "Mul", "Var", "IntImm", "Mul", "Var", "IntImm",
    ]  # fmt: skip


def test_post_order_visits_children_first() -> None:
    seen: list[str] = []
    post_order_visit(TREE, lambda node: seen.append(str(node)))
    assert seen == ["i", "2", "i * 2", "j", "3", "j * 3", "i * 2 + j * 3"]


class Counter(Visitor):
    def __init__(self) -> None:
        self.names: list[str] = []

    @on(Var)
    def variable(self, var: Var) -> None:
        self.names.append(var.name)


class ProductsOnly(Counter):
    @on(Add)
    def skip(self, add: Add) -> None:
        self.visit(add.b)


def test_a_visitor_handles_what_it_marks_and_walks_through_the_rest() -> None:
    counter = Counter()
    counter.visit(TREE)
    assert counter.names == ["i", "j"]


def test_handlers_are_inherited_and_do_not_leak_to_the_parent() -> None:
    products = ProductsOnly()
    products.visit(TREE)
    assert products.names == ["j"]
    assert Add not in Counter.table


class Increment(Mutator):
    @on(IntImm)
    def constant(self, value: IntImm) -> IntImm:
        return IntImm(value.dtype, value.value + 1) if value.value == 3 else value


def test_a_mutator_keeps_what_does_not_change() -> None:
    changed = Increment().rewrite(TREE)
    assert str(changed) == "i * 2 + j * 4"
    assert changed.a is TREE.a
    assert Increment().rewrite(TREE.a) is TREE.a


def test_a_mutator_rewrites_statements() -> None:
    function = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = A[3]
""")
    body = function.body
    changed = Increment().rewrite(body)
    assert str(changed) == "for i in range(8):\n    A[i] = A[4]"
    assert changed.span is body.span
    loads = [node for node in walk(changed) if isinstance(node, BufferLoad)]
    assert len(loads) == 1
