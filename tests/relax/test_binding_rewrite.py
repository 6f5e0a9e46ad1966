"""Dataflow blocks that are changed binding by binding."""

import pytest

from mlcweb import TVMError, relax
from mlcweb.ir import assert_structural_equal
from mlcweb.relax.analysis import name_to_binding
from mlcweb.script import ir as I
from mlcweb.script import relax as R


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            b = R.multiply(a, a)
            c = R.exp(b)
            d = R.negative(a)
            R.output(d)
        return d


MAIN = Chain["main"]


def rewriting() -> tuple[relax.DataflowBlockRewrite, dict[str, relax.Var]]:
    block = MAIN.body.blocks[0]
    names = {name: found[0].var for name, found in name_to_binding(MAIN).items()}
    return relax.DataflowBlockRewrite(block, MAIN), names


def names(rewrite: relax.DataflowBlockRewrite) -> list[str]:
    assert rewrite.mutated_dfb() is rewrite.mutated_root_fn().body.blocks[0]
    return [binding.var.name_hint for binding in rewrite.mutated_dfb().bindings]


def test_bindings_are_added_at_the_end() -> None:
    rewrite, _ = rewriting()
    rewrite.add(relax.op.sin(MAIN.params[0]), name="s", is_dfvar=True)
    rewrite.add(MAIN.params[0])
    assert names(rewrite) == ["a", "b", "c", "d", "s", "gv"]
    added = rewrite.mutated_dfb().bindings
    assert isinstance(added[-2].var, relax.DataflowVar)
    assert not isinstance(added[-1].var, relax.DataflowVar)
    assert [b.var.name_hint for b in MAIN.body.blocks[0].bindings] == ["a", "b", "c", "d"]
    assert "R.sin" in rewrite.mutate_irmodule(Chain).script()
    with pytest.raises(TVMError, match='"s" already'):
        rewrite.add(MAIN.params[0], name="s")


def test_what_nothing_uses_is_removed() -> None:
    rewrite, variables = rewriting()
    with pytest.raises(TVMError, match='"b" is used'):
        rewrite.remove_unused(variables["b"])
    rewrite.remove_unused(variables["c"])
    assert names(rewrite) == ["a", "b", "d"]
    rewrite, _ = rewriting()
    rewrite.remove_all_unused()
    assert names(rewrite) == ["a", "d"]


def test_a_variable_that_is_not_there() -> None:
    rewrite, _ = rewriting()
    with pytest.raises(TVMError, match='"other" is not bound'):
        rewrite.remove_unused(relax.Var("other"))
    rewrite.remove_unused(relax.Var("other"), allow_undef=True)
    assert rewrite.mutated_root_fn() is MAIN


def test_uses_are_replaced() -> None:
    rewrite, variables = rewriting()
    rewrite.replace_all_uses(variables["a"], variables["b"])
    rewrite.remove_unused(variables["c"])

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            b = R.multiply(a, a)
            d = R.negative(b)
            R.output(d)
        return d

    assert_structural_equal(rewrite.mutated_root_fn(), main)


def test_an_empty_block_disappears() -> None:
    @R.function(private=True)
    def idle(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = x
            R.output(a)
        return x

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x

    rewrite = relax.DataflowBlockRewrite(idle.body.blocks[0], idle)
    rewrite.remove_all_unused()
    assert_structural_equal(rewrite.mutated_root_fn(), expected)


def test_a_block_of_another_function_is_refused() -> None:
    with pytest.raises(TVMError, match="not one of the function's"):
        relax.DataflowBlockRewrite(relax.DataflowBlock([]), MAIN)
