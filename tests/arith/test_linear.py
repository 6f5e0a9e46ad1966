"""Linear forms, and sums of digits of expressions."""

from mlcweb.arith.digits import Digit, write
from mlcweb.arith.equality import Interning
from mlcweb.arith.linear import LinearForm
from mlcweb.tir import BufferLoad, Var, decl_buffer
from tests.arith.infix import infix


def test_sums_add_equal_terms_and_leave_out_zeros():
    total = LinearForm({"x": 8, "y": 2}, 5, "int32")
    other = LinearForm({"y": 1, "z": 3}, 1, "int32")
    difference = total.plus(other, -2)
    assert (difference.terms, difference.constant) == ({"x": 8, "z": -6}, 3)
    assert (total.terms, other.terms) == ({"x": 8, "y": 2}, {"y": 1, "z": 3})
    assert total.times(0).terms == {}
    assert total.times(-1).plus(total).terms == {}


def test_a_form_is_its_quotient_times_the_divisor_plus_its_rest():
    total = LinearForm({"x": 8, "y": 6, "z": -4}, 10, "int32")
    quotient, rest = total.separate(4)
    assert (quotient.terms, quotient.constant) == ({"x": 2, "z": -1}, 0)
    assert (rest.terms, rest.constant) == ({"y": 6}, 10)
    again = quotient.times(4).plus(rest)
    assert (again.terms, again.constant) == (total.terms, total.constant)
    assert total.with_constant(8).separate(4)[0].constant == 2


def test_changed_coefficients_that_become_zero_are_left_out():
    total = LinearForm({"x": 8, "y": 6}, 1, "int32")
    changed = total.map(lambda number: number - 6)
    assert (changed.terms, changed.constant) == ({"x": 2}, -5)
    assert total.without("x").terms == {"y": 6}


def test_neighbouring_digits_are_written_as_one():
    x, y = Var("x", "int32"), Var("y", "int32")
    digits = {Digit(x, 8, None): 8, Digit(y, 1, None): 1, Digit(x, 2, 8): 2, Digit(x, 1, 2): 1}
    assert infix(write(LinearForm(digits, 0, "int32"))) == "x + y"
    # 3 is no multiple of 2: the digits do not meet.
    apart = {Digit(x, 3, None): 6, Digit(x, 2, 3): 4}
    assert infix(write(LinearForm(apart, 0, "int32"))) == "x // 3 * 6 + x % 3 // 2 * 4"


def test_expressions_that_are_written_alike_are_interned_as_one_object():
    x, interned = Var("x", "int32"), Interning()
    a = decl_buffer((8,), "float32")
    first = interned(BufferLoad(a, (x * 4 + 1,)))
    assert interned(BufferLoad(a, (x * 4 + 1,))) is first
    assert interned(BufferLoad(a, (x * 4 + 2,))) is not first
    assert interned(Var("x", "int32") * 4) is not interned(x * 4)
