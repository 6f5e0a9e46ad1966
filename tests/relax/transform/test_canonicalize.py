"""CanonicalizeBindings, where constants, several names of one value, and declared types meet."""

from mlcweb import relax
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.script import relax as R
from mlcweb.script import tir as T


def canonical(func):
    return relax.transform.CanonicalizeBindings()(IRModule({"main": func}))["main"]


def check(before, expected):
    expected = expected.with_attr("global_symbol", before.attrs["global_symbol"])
    assert_structural_equal(canonical(before), expected)


def test_constants_stand_where_their_variables_stood():
    @R.function
    def before(x: R.Tensor((), "int32")):
        with R.dataflow():
            one, two = R.const(1), R.const(2)
            three = R.add(one, two)
            R.output(one, three)
        pair = (x, R.const(5))
        five = pair[1]
        return (R.add(one, x), three, five)

    @R.function
    def expected(x: R.Tensor((), "int32")):
        with R.dataflow():
            one, two = R.const(1), R.const(2)
            three = R.add(R.const(1), R.const(2))
            R.output(one, three)
        pair = (x, R.const(5))
        five = R.const(5)
        sum_ = R.add(R.const(1), x)
        return (sum_, three, R.const(5))

    check(before, expected)


def test_a_value_with_several_names_has_the_first():
    @R.function
    def before(x: R.Tensor((), "int32")):
        with R.dataflow():
            pair = (x, R.add(x, x))
            first = pair
            total = R.add(first[0], pair[1])
            second = pair
            R.output(first, second, total)
        return (first, second, total)

    @R.function
    def expected(x: R.Tensor((), "int32")):
        with R.dataflow():
            twice = R.add(x, x)
            first = (x, twice)
            total = R.add(x, twice)
            R.output(first, total)
        return (first, first, total)

    check(before, expected)


def test_a_value_that_changes_says_what_its_variable_is():
    @R.function
    def before(x: R.Tensor(("n", 4), "int32")):
        y = x
        changed: R.Tensor(dtype="int32", ndim=2) = R.add(y, y)
        same: R.Tensor(dtype="int32", ndim=2) = R.multiply(x, x)
        return (changed, same)

    @R.function
    def expected(x: R.Tensor(("n", 4), "int32")):
        n = T.int64()
        changed: R.Tensor((n, 4), "int32") = R.add(x, x)
        same: R.Tensor(dtype="int32", ndim=2) = R.multiply(x, x)
        return (changed, same)

    check(before, expected)
