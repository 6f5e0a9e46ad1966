"""Rules as objects. TVM 0.27 prints the same programs, but for types that it forgets."""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir.errors import TVMError
from mlcweb.relax.dpl import PatternMatchingRewriter, is_op, wildcard
from mlcweb.runtime.device import cpu
from mlcweb.runtime.nd import array
from mlcweb.script import ir as I
from mlcweb.script import relax as R


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
    with pytest.raises(TVMError, match="has the functions pattern and replacement"):
        PatternMatchingRewriter.from_module(Model)
    x, y = wildcard(), wildcard()
    endless = PatternMatchingRewriter.from_pattern(
        is_op("relax.add")(x, y), lambda expr, found: R.add(found[y], found[x])
    )
    with pytest.raises(TVMError, match="What the rule makes matches it again"):
        endless(Model)
