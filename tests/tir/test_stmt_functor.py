"""Going through programs and rewriting them by functions."""

import pytest

from mlcweb import tir
from mlcweb.ir import assert_structural_equal
from mlcweb.script import tir as T
from mlcweb.testing import assert_structural_equal_ignore_global_symbol
from mlcweb.tir import stmt_functor


@T.prim_func
def scale(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func
def scale_by_three(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] * T.float32(3)


def names(visit) -> list[str]:
    seen: list[str] = []
    visit(scale.body, lambda node: seen.append(type(node).__name__))
    return seen


def test_orders_of_visits():
    children_first = names(stmt_functor.post_order_visit)
    parents_first = names(stmt_functor.pre_order_visit)
    assert sorted(children_first) == sorted(parents_first)
    assert children_first[-1] == parents_first[0] == "For"
    assert children_first.index("Mul") < children_first.index("BufferStore")


def test_a_visit_leaves_out_what_is_below_false():
    seen = []

    def visit(node):
        seen.append(type(node).__name__)
        return not isinstance(node, tir.For)

    stmt_functor.pre_order_visit(scale.body, visit)
    assert seen == ["For"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_transform_replaces_nodes(after):
    def change(node):
        return tir.FloatImm("float32", 3.0) if node.value == 2.0 else None

    order = (None, change) if after else (change, None)
    body = stmt_functor.ir_transform(scale.body, *order, ["tir.FloatImm"])
    assert_structural_equal_ignore_global_symbol(scale.with_body(body), scale_by_three)


def test_a_transform_that_changes_nothing_gives_the_same_object():
    assert stmt_functor.ir_transform(scale.body, None, lambda node: None) is scale.body


def test_substitution():
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    assert_structural_equal(stmt_functor.substitute(i + j, {i: 4}), tir.const(4) + j, True)


def test_substitution_reaches_the_shapes_of_buffers():
    @T.prim_func
    def fill(n: T.int32):
        data = T.allocate([n], "float32")
        A = T.Buffer((n,), "float32", data=data)
        for i in range(n):
            A[i] = T.float32(1)

    n = fill.params[0]
    body = stmt_functor.substitute(fill.body, {n: 16})
    shapes = []
    stmt_functor.post_order_visit(
        body, lambda node: shapes.append(getattr(getattr(node, "buffer", None), "shape", None))
    )
    sizes = [int(extent) for shape in shapes if shape for extent in shape]
    assert len(sizes) > 1
    assert {*sizes} == {16}


def test_new_definitions():
    renewed = stmt_functor.renew_defs(scale)
    assert_structural_equal(renewed, scale)
    assert renewed.params[0] is not scale.params[0]


def test_new_definitions_of_launched_threads():
    @T.prim_func
    def launched(A: T.Buffer((8,), "float32")):
        thread = T.launch_thread("threadIdx.x", 8)
        A[thread] = T.float32(1)

    renewed = stmt_functor.renew_defs(launched)
    assert_structural_equal(renewed, launched)
    assert renewed.body.node.var is not launched.body.node.var
