"""FuseOpsByPattern against TVM's results, which by_pattern.txt holds in the order of `PASSES`."""

import re
from pathlib import Path

import pytest

from mlcweb import relax
from mlcweb.ir import assert_structural_equal
from mlcweb.ir.errors import TVMError
from mlcweb.relax.dpl import is_const, is_op, wildcard
from mlcweb.relax.transform import FuseOpsByPattern, FusionPattern
from mlcweb.script import from_source

TEXTS = re.split(
    r"^# --- .+\n", (Path(__file__).parent / "by_pattern.txt").read_text(), flags=re.MULTILINE
)[1:]
BEFORE = from_source(TEXTS[0])


def matmul():
    return is_op("relax.matmul")(wildcard(), wildcard())


def matmul_bias():
    return is_op("relax.add")(matmul(), wildcard())


def matmul_bias_relu():
    return is_op("relax.nn.relu")(matmul_bias())


def scaled():
    return is_op("relax.add")(is_op("relax.multiply")(wildcard(), is_const()), is_const())


def used_twice(context):
    var = context.value_to_bound_var[context.matched_expr]
    return len(context.var_usages[var]) > 1


PASSES = [
    FuseOpsByPattern([("my.relu", matmul_bias_relu()), ("my.bias", matmul_bias())]),
    FuseOpsByPattern([("my.bias", matmul_bias()), ("my.relu", matmul_bias_relu())]),
    FuseOpsByPattern([("a.scaled", scaled())], bind_constants=False),
    FuseOpsByPattern([("a.scaled", scaled()), ("my.bias", matmul_bias())], annotate_codegen=True),
    FuseOpsByPattern([("a.exp", is_op("relax.exp")(wildcard()))]),
    FuseOpsByPattern([("a.mm", matmul(), {}, used_twice)]),
]


@pytest.mark.parametrize("number", range(len(PASSES)))
def test_groups(number):
    assert_structural_equal(PASSES[number](BEFORE), from_source(TEXTS[number + 1]))


def test_a_check_sees_the_named_parts():
    seen = []

    def check(context):
        seen.append((context.annotated_expr, [v.name_hint for v in context.matched_bindings]))
        return False

    left, right, bias = wildcard(), wildcard(), wildcard()
    product = is_op("relax.matmul")(left, right)
    whole = is_op("relax.add")(product, bias)
    parts = {"left": left, "product": product, "bias": bias}
    after = FuseOpsByPattern([FusionPattern("a.b", whole, parts, check)])(BEFORE)
    assert_structural_equal(after, BEFORE)
    named, bound = seen[0]
    assert [named["left"].name_hint, named["bias"].name_hint] == ["x", "b"]
    assert named["product"].op.name == "relax.matmul"
    assert sorted(bound) == ["a", "c"]


def test_attributes_for_the_new_function():
    pattern = FusionPattern("a.mm", matmul(), attrs_getter=lambda parts: {"named": len(parts)})
    after = FuseOpsByPattern([pattern])(BEFORE)
    assert after["fused_relax_matmul"].attrs["named"] == 0


def test_other_functions_are_left_alone():
    after = FuseOpsByPattern([("a.mm", matmul())], entry_functions=["other"])(BEFORE)
    assert [var.name_hint for var in after.functions] == ["main"]
    assert isinstance(after["main"], relax.Function)


def test_a_group_that_needs_what_is_computed_from_it_is_refused():
    module = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.exp(a)
            d = R.add(b, c)
            R.output(d)
        return d
""")
    pattern = is_op("relax.add")(is_op("relax.nn.relu")(matmul()), wildcard())
    with pytest.raises(TVMError, match=r"A cyclic dependency detected: .*\(c\), \(a, b, d\)"):
        FuseOpsByPattern([("my.sum", pattern)])(module)
