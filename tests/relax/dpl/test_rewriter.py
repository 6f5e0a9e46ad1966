"""Rules as objects. TVM 0.27 prints the same programs, but for types that it forgets."""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Sequential
from mlcweb.relax.dpl import PatternMatchingRewriter, is_op, wildcard
from mlcweb.runtime.device import cpu
from mlcweb.runtime.nd import array
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from mlcweb.tir import Evaluate, PrimFunc


@I.ir_module
class Model:
    @R.function
    def main(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")):
        with R.dataflow():
            C = R.add(A, A)
            D = R.add(R.add(C, C), B)
            E = R.multiply(D, B)
            R.output(E)
        return E


@R.rewriter
class Doubled:
    @R.function
    def pattern(x: R.Tensor):
        y = R.add(x, x)
        return y

    @R.function
    def replacement(x: R.Tensor):
        y = R.multiply(x, R.const(2.0, "float32"))
        return y


@R.rewriter
class Fused:
    @R.function
    def pattern(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        s = R.add(x, y)
        p = R.multiply(s, y)
        return p

    @R.function
    def replacement(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        s = R.exp(x)
        d = R.add(s, s)
        return R.subtract(d, y)


@I.ir_module
class Projections:
    @R.function
    def main(
        s: R.Tensor((16,), "float32"),
        A: R.Tensor((8, 16), "float32"),
        B: R.Tensor((4, 16), "float32"),
    ):
        a = R.matmul(A, s)
        b = R.matmul(B, s)
        return R.concat([b, a])


@R.rewriter
class OneMatmul:
    @R.function
    def pattern(
        lhs: R.Tensor(("n", "k"), "float32"),
        rhs: R.Tensor(("m", "k"), "float32"),
        s: R.Tensor(("k",), "float32"),
    ):
        a = R.matmul(lhs, s)
        b = R.matmul(rhs, s)
        return (a, b)

    @R.function
    def replacement(
        lhs: R.Tensor(("n", "k"), "float32"),
        rhs: R.Tensor(("m", "k"), "float32"),
        s: R.Tensor(("k",), "float32"),
    ):
        n, m = T.int64(), T.int64()
        both = R.matmul(R.concat([lhs, rhs]), s)
        a: R.Tensor((n,), "float32") = R.strided_slice(both, axes=[0], begin=[0], end=[n])
        b: R.Tensor((m,), "float32") = R.strided_slice(both, axes=[0], begin=[n], end=[n + m])
        return (a, b)


def operators(mod) -> list[str]:
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return [binding.value.op.name.removeprefix("relax.") for binding in bindings]


def run(mod):
    a, b = (np.arange(4, dtype="float32") + i for i in (0, 3))
    vm = relax.VirtualMachine(relax.build(mod, "numpy"), cpu())
    return a, b, vm["main"](array(a), array(b)).numpy()


def test_a_rule_of_two_functions_is_applied_until_nothing_matches():
    assert operators(Doubled(Model)) == ["multiply", "multiply", "add", "multiply"]
    a, b, result = run(Doubled(Model))
    np.testing.assert_allclose(result, (4 * a + b) * b)


def test_what_a_replacement_computes_has_variables_of_its_own():
    new = Fused(Model)
    assert operators(new) == ["add", "add", "exp", "add", "subtract"]
    a, b, result = run(new)
    np.testing.assert_allclose(result, 2 * np.exp(4 * a) - b, rtol=1e-5)


def test_rules_together_reach_what_each_other_makes():
    both = (Doubled | Fused)(Model)
    assert operators(both) == ["multiply", "multiply", "exp", "multiply", "subtract"]
    x, y, z = wildcard(), wildcard(), wildcard()
    add = PatternMatchingRewriter.from_pattern(
        is_op("relax.add")(x, x), lambda expr, found: R.subtract(found[x], found[x])
    )
    subtract = PatternMatchingRewriter.from_pattern(
        is_op("relax.subtract")(y, z), lambda expr, found: R.divide(found[y], found[z])
    )
    main = (add | subtract)(Model["main"])
    assert operators({"main": main}) == ["divide", "divide", "add", "multiply"]


def test_what_is_no_rule_is_refused():
    with pytest.raises(KeyError, match="needs a function pattern"):
        PatternMatchingRewriter.from_module(Model)
    with pytest.raises(TypeError, match="function replacement of a rule is"):
        PatternMatchingRewriter.from_module(
            IRModule({"pattern": Model["main"], "replacement": PrimFunc((), Evaluate(0))})
        )
    with pytest.raises(ValueError, match="must have the same signature"):
        PatternMatchingRewriter.from_module(
            IRModule({"pattern": Model["main"], "replacement": Projections["main"]})
        )
    with pytest.raises(ValueError, match="main is publicly exposed"):
        PatternMatchingRewriter.from_module(
            IRModule(dict.fromkeys(("pattern", "replacement", "main"), Model["main"]))
        )
    x, y = wildcard(), wildcard()
    endless = PatternMatchingRewriter.from_pattern(
        is_op("relax.add")(x, y), lambda expr, found: R.add(found[y], found[x])
    )
    with pytest.raises(TVMError, match="What the rule makes matches it again"):
        endless(Model)


def test_fields_of_a_tuple_are_found_one_by_one_and_extents_are_any():
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape, "float32") for shape in ((16,), (8, 16), (4, 16))]
    new = OneMatmul(Projections)
    assert operators(new) == ["concat", "matmul", "strided_slice", "strided_slice", "concat"]
    vm = relax.VirtualMachine(relax.build(new, "numpy"), cpu())
    s, a, b = values
    expected = np.concatenate([b @ s, a @ s])
    np.testing.assert_allclose(vm["main"](*map(array, values)).numpy(), expected, rtol=1e-5)


def test_a_tuple_is_not_put_together_after_a_field_was_used():
    @R.function
    def func(s: R.Tensor((16,), "float32"), A: R.Tensor((16, 16), "float32")):
        a = R.matmul(A, s)
        c = R.matmul(A, a)
        b = R.matmul(A, s)
        return R.concat([a, b, c])

    assert OneMatmul(func) is func


def test_no_match_reaches_over_side_effects():
    @R.function(pure=False)
    def func(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        s = R.add(x, y)
        R.print(s, format="{}")
        p = R.multiply(s, y)
        return p

    assert Fused(func) is func


def test_a_rule_brings_the_functions_that_it_calls():
    @R.rewriter
    class Calling:
        @R.function
        def pattern(x: R.Tensor((4,), "float32")):
            return R.add(x, x)

        @R.function
        def replacement(x: R.Tensor((4,), "float32")):
            return Calling.double(x)

        @R.function(private=True)
        def double(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.multiply(x, R.const(2.0, "float32"))

        @R.function(private=True)
        def unused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

    new = Sequential([Calling])(Model)
    assert sorted(var.name_hint for var in new.functions) == ["double", "main"]
    a, b, result = run(new)
    np.testing.assert_allclose(result, (4 * a + b) * b)

    taken = IRModule({"main": Model["main"], "double": Projections["main"]})
    renamed = Calling(taken)
    assert sorted(var.name_hint for var in renamed.functions) == ["double", "double_1", "main"]
    a, b, result = run(renamed)
    np.testing.assert_allclose(result, (4 * a + b) * b)
