"""Rewriting what patterns match, call by call and over several bindings."""

import pytest

from mlcweb import relax
from mlcweb.ir import TVMError, assert_structural_equal
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.relax.dpl import (
    PatternContext,
    is_call_dps_packed,
    is_op,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from mlcweb.script import relax as R

matmul, relu, add = is_op("relax.matmul"), is_op("relax.nn.relu"), is_op("relax.add")


def test_a_call_becomes_another():
    @R.function
    def before(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.multiply(x, y)
            b = R.add(a, y)
            c = R.add(b, b)
            R.output(c)
        return c

    @R.function
    def expected(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            b = R.ewise_fma(x, y, y)
            c = R.add(b, b)
            R.output(c)
        return c

    left, right, other = wildcard(), wildcard(), wildcard()
    pattern = add(is_op("relax.multiply")(left, right), other)

    def rewriter(expr, found):
        return relax.op.ewise_fma(found[left], found[right], found[other])

    after = rewrite_call(pattern, rewriter, before)
    refuse_ill_formed(after)
    assert_structural_equal(
        after.without_attr("global_symbol"), expected.without_attr("global_symbol")
    )


def test_a_part_is_the_expression_that_a_variable_is_bound_to():
    """As in TVM; in what the rewriter returns, it is the variable again."""

    @R.function
    def before(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            pair = (R.exp(x), y)
            first = pair[0]
            total = R.call_dps_packed(
                "scaled", (first, y, R.str("plain")), out_sinfo=R.Tensor((4,), "float32")
            )
            c = R.nn.relu(total)
            d = R.add(c, first)
            R.output(d)
        return d

    @R.function
    def expected(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            pair = (R.exp(x), y)
            first = pair[0]
            c = R.call_dps_packed(
                "scaled", (first, y, R.str("relu")), out_sinfo=R.Tensor((4,), "float32")
            )
            d = R.subtract(c, first)
            R.output(d)
        return d

    call, other = is_op("relax.call_dps_packed")(varg_default_wildcard=True), wildcard()

    def activated(expr, matchings):
        function, arguments = matchings[call].args
        assert function.global_symbol == "scaled" and arguments[2].value == "plain"
        return relax.call_dps_packed(
            "scaled",
            [*arguments.fields[:2], relax.StringImm("relu")],
            out_sinfo=matchings[call].struct_info,
        )

    def subtracted(expr, matchings):
        assert isinstance(matchings[call], relax.Call)
        assert isinstance(matchings[other], relax.TupleGetItem)
        return relax.op.subtract(matchings[call], matchings[other])

    after = rewrite_call(relu(call), activated, before)
    after = rewrite_call(add(call, other), subtracted, after)
    refuse_ill_formed(after)
    assert_structural_equal(
        after.without_attr("global_symbol"), expected.without_attr("global_symbol")
    )


def test_what_a_part_matched_is_used_by_its_variable():
    @R.function
    def before(x: R.Tensor((4, 4), "float32")):
        a = R.exp(x)
        b = R.add(a, a)
        return b

    @R.function
    def expected(x: R.Tensor((4, 4), "float32")):
        a = R.exp(x)
        b = R.multiply(a, R.const(2, "float32"))
        return b

    same = wildcard()
    two = relax.const(2, "float32")
    after = rewrite_call(
        add(same, same), lambda _, found: relax.op.multiply(found[same], two), before
    )
    assert_structural_equal(
        after.without_attr("global_symbol"), expected.without_attr("global_symbol")
    )


def test_nothing_matches():
    @R.function
    def func(x: R.Tensor((4, 4), "float32")):
        a = R.exp(x)
        return a

    assert rewrite_call(relu(wildcard()), lambda expr, found: expr, func) is func
    with PatternContext() as context:
        wildcard() ^ relu(wildcard())
    assert rewrite_bindings(context, lambda found, values: {}, func) is func


def test_a_rewriter_must_return_an_expression():
    @R.function
    def func(x: R.Tensor((4, 4), "float32")):
        a = R.exp(x)
        return a

    with pytest.raises(TVMError, match="returns an expression, not 3"):
        rewrite_call(is_op("relax.exp")(wildcard()), lambda expr, found: 3, func)


@R.function
def attention(
    x: R.Tensor((4, 8), "float32"),
    q: R.Tensor((8, 2), "float32"),
    k: R.Tensor((8, 2), "float32"),
):
    with R.dataflow():
        a = R.matmul(x, q)
        b = R.matmul(x, k)
        c = R.nn.relu(a)
        d = R.add(c, b)
        R.output(d)
    return d


BLOCK = attention.body.blocks[0]


def names(found, *patterns):
    return [found[pattern].name_hint for pattern in patterns]


def test_patterns_over_several_bindings():
    with PatternContext() as context:
        x, q, k = wildcard(), wildcard(), wildcard()
        first, second = matmul(x, q), matmul(x, k)
        first ^ relu(wildcard())
    found = context.match_dfb(BLOCK)
    assert names(found, x, q, k, first, second) == ["x", "q", "k", "a", "b"]


def test_a_chain_of_uses():
    with PatternContext() as context:
        chain = matmul(wildcard(), wildcard()) ^ relu(wildcard()) ^ add(wildcard(), wildcard())
    assert len(chain) == 3
    assert names(context.match_dfb(BLOCK), *chain.patterns) == ["a", "c", "d"]
    with PatternContext() as context:
        matmul(wildcard(), wildcard()) ^ relu(wildcard()) ^ is_op("relax.exp")(wildcard())
    assert context.match_dfb(BLOCK) is None


def test_used_by_nothing_else():
    @R.function
    def func(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.nn.relu(a)
            c = R.add(a, b)
            R.output(c)
        return c

    exp = is_op("relax.exp")
    with PatternContext() as context:
        exp(wildcard()) >> relu(wildcard())
    assert context.match_dfb(func.body.blocks[0]) is None
    with PatternContext() as context:
        assert PatternContext.current() is context
        exp(wildcard()) ^ relu(wildcard())
    assert context.match_dfb(func.body.blocks[0]) is not None


def test_matmuls_of_one_input_become_one():
    with PatternContext() as context:
        x, q, k = wildcard(), wildcard(), wildcard()
        first, second = matmul(x, q), matmul(x, k)
        q.same_shape_as(k)

    def rewriter(found, values):
        both = relax.op.concat([found[q], found[k]], axis=1)
        whole = relax.op.matmul(found[x], both)
        return {
            found[first]: relax.op.strided_slice(whole, [1], [0], [2]),
            found[second]: relax.op.strided_slice(whole, [1], [2], [4]),
        }

    after = rewrite_bindings(context, rewriter, attention)
    refuse_ill_formed(after)
    ops = [b.value.op.name for block in after.body.blocks for b in block.bindings]
    assert sorted(ops) == [
        "relax.add", "relax.concat", "relax.matmul", "relax.nn.relu", "relax.strided_slice",
        "relax.strided_slice",
    ]  # fmt: skip


def test_uses_said_outside_of_a_context_bind_no_context():
    pair = matmul(wildcard(), wildcard()) >> relu(wildcard())
    assert len(pair) == 2
    wildcard().same_shape_as(wildcard())
    with PatternContext() as context:
        relu(wildcard()) ^ add(wildcard(), wildcard())
    assert not set(pair.patterns) & set(context.patterns())


def test_two_users_are_not_the_only_one():
    @R.function
    def func(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.nn.relu(a)
            c = R.sin(a)
            d = R.add(b, c)
            R.output(d)
        return d

    block = func.body.blocks[0]
    for only, matches in ((False, True), (True, False)):
        with PatternContext() as context:
            exp, sin = is_op("relax.exp")(wildcard()), is_op("relax.sin")(wildcard())
            for user in (relu(wildcard()), sin):
                exp.only_used_by(user) if only else exp.used_by(user)
        assert (context.match_dfb(block) is not None) is matches


def test_the_index_of_a_use_counts_variables_in_tuples_and_no_constants():
    @R.function
    def func(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.subtract(R.const(1.0, "float32"), a)
            c = R.concat((y, b))
            d = R.call_dps_packed("twice", (c, c), R.Tensor((8,), "float32"))
            R.output(d)
        return d

    def matched(producer, consumer, *indices):
        with PatternContext() as context:
            for index in indices:
                producer.only_used_by(consumer, index=index)
        return context.match_dfb(func.body.blocks[0]) is not None

    exp, subtract = is_op("relax.exp")(wildcard()), is_op("relax.subtract")(wildcard(), wildcard())
    concat, packed = is_op("relax.concat")(wildcard()), is_call_dps_packed("twice")
    assert [matched(exp, subtract, index) for index in (0, 1)] == [True, False]
    assert [matched(subtract, concat, index) for index in (0, 1)] == [False, True]
    assert matched(concat, packed, 0, 1)
    assert not matched(concat, packed, 2)
