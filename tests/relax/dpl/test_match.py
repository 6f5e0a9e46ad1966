"""What patterns match."""

import pytest

from mlcweb import relax
from mlcweb.relax import TensorStructInfo as Tensor
from mlcweb.relax.analysis import get_var2val
from mlcweb.relax.dpl import (
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    wildcard,
)  # fmt: skip
from mlcweb.relax.dpl.pattern import FunctionPattern, has_attr, has_dtype, reject
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

x = relax.Var("x", Tensor((4, 4), "float32"))
y = relax.Var("y", Tensor((4, 4), "float32"))
add, mul = is_op("relax.add"), is_op("relax.multiply")


@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.add(a, w)
            c = R.nn.relu(b)
            t = (c, a)
            u = t[1]
            d = R.call_tir(Module.double, (u,), R.Tensor((4, 4), "float32"))
            e = R.call_dps_packed("lib.f", (d, x), R.Tensor((4, 4), "float32"))
            R.output(e)
        g = R.call_packed("lib.g", e, w, sinfo_args=R.Tensor((4, 4), "float32"))
        return g


VALUES = get_var2val(Module["main"])
BOUND = {var.name_hint: value for var, value in VALUES.items()}


@pytest.mark.parametrize(
    ("pattern", "expr"),
    [
        (wildcard(), x),
        (is_var("x"), x),
        (is_var(), x),
        (is_const(), relax.const(1.0)),
        (is_expr(relax.op.add(x, y)), relax.op.add(x, y)),
        (add(wildcard(), is_var("y")), relax.op.add(x, y)),
        (add(is_var("y"), wildcard()), relax.op.add(x, y)),  # either order
        (add(wildcard(), wildcard()) | mul(wildcard(), wildcard()), relax.op.multiply(x, y)),
        (add(is_var("x"), is_var("y")) & has_dtype("float32"), relax.op.add(x, y)),
        (~mul(wildcard(), wildcard()), relax.op.add(x, y)),
        (reject(is_const()), x),
        (wildcard().has_shape((4, 4)).has_dtype("float32"), x),
        (wildcard().has_struct_info(Tensor(ndim=2, dtype="float32")), x),
        (is_shape((4, 4)), relax.ShapeExpr((4, 4))),
        (is_tuple([is_var("x"), wildcard()]), relax.Tuple((x, y))),
        (is_tuple([is_var("y"), is_var("x")], unordered=True), relax.Tuple((x, y))),
        (
            is_tuple_get_item(is_tuple([wildcard(), wildcard()]), 1),
            relax.TupleGetItem(relax.Tuple((x, y)), 1),
        ),
        (is_op("relax.nn.softmax")(wildcard()).has_attr({"axis": -1}), relax.op.nn.softmax(x)),
        (has_attr({"axis": -1}), relax.op.nn.softmax(x)),
        (is_op("relax.add")(varg_default_wildcard=True), relax.op.add(x, y)),
        (FunctionPattern([wildcard(), wildcard()], wildcard()), Module["main"]),
        (is_gv("double"), Module.get_global_var("double")),
    ],
)  # fmt: skip
def test_matches(pattern, expr):
    assert pattern.match(expr)


@pytest.mark.parametrize(
    ("pattern", "expr"),
    [
        (is_var("y"), x),
        (is_dfv(), x),
        (is_const(), x),
        (add(wildcard(), wildcard()), relax.op.multiply(x, y)),
        (add(wildcard()), relax.op.add(x, y)),
        (is_op("relax.subtract")(is_var("y"), wildcard()), relax.op.subtract(x, y)),
        (~add(wildcard(), wildcard()), relax.op.add(x, y)),
        (wildcard().has_shape((4, 5)), x),
        (wildcard().has_dtype("int32"), x),
        (is_tuple([is_var("y"), is_var("x")]), relax.Tuple((x, y))),
        (is_op("relax.nn.softmax")(wildcard()).has_attr({"axis": 0}), relax.op.nn.softmax(x)),
        (is_op("relax.nn.softmax")(wildcard()).has_attr({"other": 0}), relax.op.nn.softmax(x)),
    ],
)
def test_does_not_match(pattern, expr):
    assert not pattern.match(expr)


def test_one_pattern_is_one_value():
    same = wildcard()
    assert add(same, same).match(relax.op.add(x, x))
    assert not add(same, same).match(relax.op.add(x, y))
    assert add(same, same.dup()).match(relax.op.add(x, y))


def test_backtracking_tries_the_other_order():
    left = wildcard()
    pattern = add(left, mul(left, wildcard()))
    assert pattern.match(relax.op.add(relax.op.multiply(y, x), x))
    assert pattern.extract_matched_expr(relax.op.add(relax.op.multiply(y, x), x))[left] is x


def test_variables_stand_for_their_values():
    pattern = is_op("relax.nn.relu")(add(is_op("relax.matmul")(wildcard(), wildcard()), wildcard()))
    assert not pattern.match(BOUND["c"])
    assert pattern.match(BOUND["c"], VALUES)
    fused = make_fused_bias_activation_pattern("relax.matmul", True, "relax.nn.relu")
    found = fused.extract_matched_expr(BOUND["c"], VALUES)
    assert found[fused] is BOUND["c"]
    assert found[fused.args[0]] is BOUND["b"]


def test_calls_of_functions():
    field = is_tuple_get_item(is_tuple([wildcard(), is_op("relax.matmul")(wildcard(), wildcard())]))
    assert is_call_tir("double").match(BOUND["d"])
    assert is_call_tir("double", [field]).match(BOUND["d"], VALUES)
    assert not is_call_tir("other").match(BOUND["d"])
    packed = is_call_dps_packed("lib.f", [is_call_tir("double"), is_var("x")])
    assert packed.match(BOUND["e"], VALUES)
    assert not is_call_dps_packed("lib.f", [wildcard()]).match(BOUND["e"], VALUES)
    assert is_call_packed("lib.g").match(BOUND["g"])
    assert is_call_packed("lib.g", [packed, wildcard()]).match(BOUND["g"], VALUES)
    assert not is_call_packed("lib.h").match(BOUND["g"])


def test_a_field_that_a_tuple_does_not_have():
    with pytest.raises(IndexError, match=r"2 field\(s\), no field 2"):
        is_tuple([wildcard(), wildcard()])[2]
