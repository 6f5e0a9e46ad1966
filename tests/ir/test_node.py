"""Nodes: fields, identity, immutability, spans, printing hooks."""

from __future__ import annotations

import linecache

import pytest

from mlcweb.ir import InternalError, Node, Span, TVMError
from mlcweb.ir.array import ArrayOf
from mlcweb.ir.node import attribute, child, definition, hint, node, reference, replace
from mlcweb.ir.visitor import children
from mlcweb.tir import Add, IntImm, Var
from mlcweb.tir.substitute import substitute


@node
class Sample(Node):
    left: Node | None
    name: str = hint()
    bound: Node = definition()
    where: Node = reference()
    data: dict = attribute(default_factory=dict)
    items: ArrayOf[Node] = child(default=())


def test_asking_for_the_class_of_a_node_takes_python_no_method() -> None:
    """`isinstance` takes three times as long where classes have a type of their own."""
    assert type(Node) is type(Sample) is type(type(Var("i", "int32"))) is type


def test_roles_of_fields() -> None:
    assert Sample.child_fields == ("left", "items")
    assert Sample.role_of_field["bound"] == "definition"
    assert "name" not in Sample.structural_fields


def test_children_are_what_a_node_contains() -> None:
    one, two, three = (IntImm("int32", n) for n in (1, 2, 3))
    sample = Sample(one, "x", two, two, {"a": two}, (three, one))
    assert list(children(sample)) == [one, three, one]
    assert list(children(Sample(None, "x", two, two))) == []


def test_nodes_are_equal_by_identity() -> None:
    first, second = Var("i"), Var("i")
    assert first == first
    assert first != second
    assert len({first, second}) == 2
    assert first.same_as(first)


def test_fields_are_set_once() -> None:
    var = Var("i")
    with pytest.raises(AttributeError, match=r"Var\.name is set once and never changed"):
        var.name = "j"


def test_replace_keeps_the_rest_and_the_span() -> None:
    span = Span("a.py", 1, 2, 1, 5)
    add = Add(Var("i"), Var("j"), span=span)
    other = replace(add, b=IntImm("int32", 3))
    assert (other.a, other.span, str(other)) == (add.a, span, "i + 3")


def test_replace_knows_the_fields() -> None:
    with pytest.raises(TypeError, match="c"):
        replace(Add(Var("i"), Var("j")), c=Var("k"))


def test_copies_are_of_the_class_of_a_node() -> None:
    class Total(Add):
        __slots__ = ()

    total = Total(Var("i"), Var("j"))
    assert type(replace(total, a=Var("k"))) is Total
    assert type(substitute(total, {total.a: Var("k")})) is Total


def test_what_need_not_be_a_node_is_no_child_if_it_is_none() -> None:
    one, two = IntImm("int32", 1), IntImm("int32", 2)
    assert list(children(Sample("text", "x", one, two, items=[two]))) == [two]


def test_a_span_renders_its_line() -> None:
    linecache.cache["demo.py"] = (0, None, ["x = 1\n", "    y = x + z\n"], "demo.py")
    span = Span("demo.py", 2, 12, 2, 13)
    assert str(span) == "demo.py:2:13"
    assert span.render() == (
        "  --> demo.py:2:13\n"
        "    2 |     y = x + z\n"
        "      |             ^"
    )  # fmt: skip
    assert Span("missing.py", 9, 0, 9, 1).render() == "  --> missing.py:9:1"


def test_a_span_of_several_lines_renders_what_it_has_of_each() -> None:
    text = (
        "y = f(\n    a\n    + g(b,\n\n        c),\n    d)\nfor i in range(4):\n    x\n"
        + "    z\n" * 9
    )
    linecache.cache["lines.py"] = (0, None, text.splitlines(keepends=True), "lines.py")
    assert Span("lines.py", 2, 4, 5, 10).render() == (
        "  --> lines.py:2:5\n"
        "    2 |     a\n"
        "      |     ^\n"
        "    3 |     + g(b,\n"
        "      |     ^^^^^^\n"
        "    4 | \n"
        "    5 |         c),\n"
        "      |         ^^"
    )
    # Of a loop the header is what it is.
    assert Span("lines.py", 7, 0, 8, 5).render() == (
        "  --> lines.py:7:1\n"
        "    7 | for i in range(4):\n"
        "      | ^^^^^^^^^^^^^^^^^^"
    )  # fmt: skip
    long = Span("lines.py", 8, 4, 17, 5).render().splitlines()
    assert long[-2:] == ["      |     ^", "      | …"]
    assert len(long) == 1 + 2 * 8 + 1


def test_errors_carry_message_and_place() -> None:
    span = Span("missing.py", 9, 0, 9, 1)
    error = TVMError("wrong", span)
    assert (error.message, error.span) == ("wrong", span)
    assert str(error) == "wrong\n  --> missing.py:9:1"
    assert isinstance(InternalError("x"), RuntimeError)
