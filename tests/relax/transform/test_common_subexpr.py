"""What EliminateCommonSubexpr takes for the same, and where it looks."""

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import assert_structural_equal
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import relax as R
from mlcweb.script import tir as T


def check(before, expected, **options):
    after = relax.transform.EliminateCommonSubexpr(**options)(tvm.IRModule({"main": before}))
    refuse_ill_formed(after)
    assert_structural_equal(after["main"], expected)


def test_functions_inside_of_others():
    @R.function(private=True)
    def before(x: R.Tensor((), "float32")):
        @R.function
        def inner(y: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            a = R.exp(y)
            b = R.exp(y)
            return R.add(a, b)

        return R.add(inner(x), inner(x))

    @R.function(private=True)
    def expected(x: R.Tensor((), "float32")):
        @R.function
        def inner(y: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            a = R.exp(y)
            b = a
            return R.add(a, a)

        c = inner(x)
        d = c
        return R.add(c, c)

    check(before, expected)


def test_a_result_of_a_dataflow_block_holds_the_value_outside():
    @R.function(private=True)
    def before(x: R.Tensor((3,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(x)
            c = R.add(a, b)
            R.output(b, c)
        d = R.exp(x)
        return (b, c, d)

    @R.function(private=True)
    def expected(x: R.Tensor((3,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = a
            c = R.add(a, a)
            R.output(b, c)
        d = b
        return (b, c, b)

    check(before, expected)


def test_casts_to_the_same():
    @R.function(private=True)
    def before(x: R.Tensor(ndim=1, dtype="float32")):
        a = R.match_cast(x, R.Tensor((4,), "float32"))
        b = R.match_cast(x, R.Tensor((4,), "float32"))
        n = T.int64()
        c = R.match_cast(x, R.Tensor((n,), "float32"))
        m = T.int64()
        d = R.match_cast(x, R.Tensor((m,), "float32"))
        return (a, b, c, d)

    @R.function(private=True)
    def expected(x: R.Tensor(ndim=1, dtype="float32")):
        a = R.match_cast(x, R.Tensor((4,), "float32"))
        b = a
        n = T.int64()
        c = R.match_cast(x, R.Tensor((n,), "float32"))
        m = T.int64()
        d = R.match_cast(x, R.Tensor((m,), "float32"))
        return (a, a, c, d)

    check(before, expected)
