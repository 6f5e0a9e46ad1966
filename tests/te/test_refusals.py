"""Tensor expressions that there are none of; the classes are those of TVM 0.27."""

import pytest

from mlcweb import te, tir
from mlcweb.ir import InternalError

n = te.var("n")
A = te.placeholder((n, n), name="A")
k = te.reduce_axis((0, n), "k")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: te.compute((n,), lambda i, j: A[i, j]), TypeError),
        (lambda: te.compute((n,), lambda i: A[i]), ValueError),
        (lambda: te.compute((n,), lambda i: None), TypeError),
        (lambda: te.compute((n,), lambda i: te.sum(A[i, k], axis=k) + 1), InternalError),
        (lambda: te.compute((n,), lambda i: te.sum(A[i, k])), TypeError),
        (lambda: te.create_prim_func([te.compute((n,), lambda i: A[i, i])]), InternalError),
    ],
)
def test_classes_of_errors(make, error):
    with pytest.raises(error):
        make()


def test_a_scope_inside_of_a_scope():
    with te.tag_scope("a"), pytest.raises(ValueError, match="inside of that"):
        te.tag_scope("b").__enter__()


def test_operands_of_reducers_are_called_as_in_tvm():
    body = te.compute((n,), lambda i: te.max(A[i, k], axis=k)).op.body[0]
    assert "lambda x, y: T.max(x, y)" in body.script()


def test_values_of_parameters_are_folded():
    x, z = te.var("x"), te.var("z")
    func = tir.PrimFunc([x], tir.Evaluate(x * z + 1 - x))
    assert str(func.specialize({x: 1}).body) == "T.evaluate(z + 1 - 1)"
    assert str(func.specialize({x: 0}).body) == "T.evaluate(1)"
