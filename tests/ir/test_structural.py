"""Structural equality and hashing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlcweb import tir
from mlcweb.ir import (
    IRModule,
    StructuralMismatch,
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)  # fmt: skip
from mlcweb.runtime import nd
from mlcweb.script import parse
from mlcweb.tir import EQ, NE, Add, Evaluate, FloatImm, IntImm, PrimFunc, Var, const, decl_buffer

COPY = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0
"""


def same(left: Any, right: Any, **options: Any) -> bool:
    """Equality, checked both ways and against the hash."""
    result = structural_equal(left, right, **options)
    assert structural_equal(right, left, **options) is result
    if result and not options:
        assert structural_hash(left) == structural_hash(right)
    return result


def test_names_do_not_matter() -> None:
    renamed = COPY.replace("vi", "x").replace("A", "P").replace("for i ", "for k ")
    renamed = renamed.replace("(8, i)", "(8, k)").replace('"B"', '"other"')
    assert same(parse(COPY), parse(renamed))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A[vi] +", "A[7 - vi] +"), ("1.0", "2.0"), ("+ 1.0", "- 1.0"), ("spatial", "reduce"),
        ("range(8)", "T.parallel(8)"), ("B[vi] = A", "A[vi] = A"), ("A[vi]", "B[vi]"),
        ('"float32"', '"float64"'), ("            vi", "            T.block_attr({'a': 1})\n"
         "            vi"), ("range(8)", "T.serial(8, annotations={'a': 1})"),
        ("            B[vi]", "            T.writes(B[0:8])\n            B[vi]"),
    ],
)  # fmt: skip
def test_everything_else_matters(old: str, new: str) -> None:
    assert old in COPY
    assert not same(parse(COPY), parse(COPY.replace(old, new)))


def test_free_variables_are_themselves() -> None:
    i, j = Var("i"), Var("j")
    assert same(i + 1, i + 1)
    assert not same(i + 1, j + 1)
    assert same(i + 1, j + 1, map_free_vars=True)
    assert structural_hash(i + 1, True) == structural_hash(j + 1, True)
    assert not same(Add(i, j), Add(i, i), map_free_vars=True)
    assert not same(Add(i, i), Add(i, j), map_free_vars=True)
    assert not same(i, Var("i", "int64"), map_free_vars=True)


def test_constants() -> None:
    assert same(const(1), const(1))
    assert not same(const(1), const(1, "int64"))
    assert not same(IntImm("int32", 1), FloatImm("float32", 1.0))
    assert not same({"a": True}, {"a": 1})
    assert not same({"a": 1.0}, {"a": 1}) and not same({"a": 1}, {"a": 1.0})
    assert structural_hash({"a": 1.0}) != structural_hash({"a": 1})


def test_floats_are_the_same_where_no_program_can_tell_them_apart() -> None:
    """As in TVM 0.27: `T.float32(1) / x` tells zeros apart, and nothing tells NaNs apart."""
    assert same(const(float("nan")), const(-float("nan")))
    assert not same(const(float("nan")), const(0.0))
    assert not same(const(0.0), const(-0.0))
    assert not same({"a": [0.0]}, {"a": [-0.0]})
    times_zero = [parse(COPY.replace("+ 1.0", f"* {zero}")) for zero in ("0.0", "-0.0")]
    assert not same(*times_zero)


def test_conditions_written_with_equals_are_compared_as_conditions() -> None:
    x = Var("x", "int32")
    assert structural_equal(x % 16 == 0, EQ(x % 16, 0))
    assert structural_equal(NE(x, 0), x != 0)
    assert not structural_equal(x == 0, x == 1)


def test_attributes_compare_by_value() -> None:
    assert same({"a": [1, 2], "b": "x"}, {"b": "x", "a": (1, 2)})
    assert not same({"a": 1}, {"a": 1, "b": 2})
    assert not same({"a": 1}, {"b": 1})
    assert not same([1, 2], [1, 2, 3])
    assert not same([1], 1)


def test_arrays_compare_by_value() -> None:
    ones, twos = (nd.array(np.full(4, value, "float32")) for value in (1, 2))
    copy = nd.array(ones)
    assert same(ones, copy)
    assert structural_hash(ones) == structural_hash(copy)
    for other in (twos, nd.array(np.full((2, 2), 1, "float32")), nd.array(np.full(4, 1.0))):
        assert not same(ones, other)
        assert structural_hash(ones) != structural_hash(other)


def test_modules() -> None:
    function = parse(COPY)
    assert same(IRModule({"f": function, "g": function}), IRModule({"g": function, "f": function}))
    assert not same(IRModule({"f": function}), IRModule({"g": function}))
    assert not same(IRModule({"f": function}), IRModule({"f": function}, {"x": 1}))


def test_the_first_difference_is_told() -> None:
    with pytest.raises(StructuralMismatch) as caught:
        assert_structural_equal(parse(COPY), parse(COPY.replace("1.0", "2.0")))
    message = str(caught.value)
    path = "<root>.body.block.body.body.block.body.value.b.value"
    assert str(caught.value.path) == path
    left, right = message.split(f"\nand rhs at {path}:\n")
    assert left.startswith(f"StructuralEqual check failed, caused by lhs at {path}:\n")
    for program, number in ((left, "T.float32(1)"), (right, "T.float32(2)")):
        line, carets = program.splitlines()[-2:]
        assert carets == " " * line.index(number) + "^" * len(number)
    assert isinstance(caught.value, ValueError)
    assert_structural_equal(parse(COPY), parse(COPY))


def test_differences_of_annotations_are_told() -> None:
    noted = parse(
        COPY.replace("            vi", "            T.block_attr({'note': 1})\n            vi")
    )
    with pytest.raises(StructuralMismatch, match="annotations"):
        assert_structural_equal(noted, parse(COPY))


def test_hashes_are_numbers_of_64_bits_that_do_not_change() -> None:
    assert 0 <= structural_hash(parse(COPY)) < 2**64
    assert structural_hash(const(3)) == structural_hash(const(3))
    assert structural_hash(const(3)) != structural_hash(const(4))


def difference(left: object, right: object, map_free_vars: bool = False) -> tuple[str, ...] | None:
    """The paths to the first difference; the same, turned round, if the sides are."""
    paths = get_first_structural_mismatch(left, right, map_free_vars)
    turned = get_first_structural_mismatch(right, left, map_free_vars)
    assert paths == (turned and turned[::-1])
    return paths and tuple(map(str, paths))


def test_paths_to_the_first_difference() -> None:
    x, y, z = Var("x"), Var("y"), Var("z")
    body = Evaluate(x)
    assert difference(PrimFunc((x, y), body), PrimFunc((x, y, z), body)) == (
        "<root>.params[<missing element 2>]", "<root>.params[2]",
    )  # fmt: skip
    other = Var("y", "float32")
    assert difference(PrimFunc((x, y), body), PrimFunc((x, other), body)) == (
        "<root>.params[1].dtype", "<root>.params[1].dtype",
    )  # fmt: skip
    two = PrimFunc((x, y), Evaluate(x + x)), PrimFunc((y, x), Evaluate(y + x))
    assert difference(*two) == ("<root>.body.value.b", "<root>.body.value.b")
    square, long = decl_buffer((10, 10)), decl_buffer((10, 20))
    functions = [PrimFunc((x,), body, None, {x: buffer}) for buffer in (square, long)]
    assert difference(*functions) == ("<root>.buffer_map[x].shape[1].value",) * 2
    more = PrimFunc((x,), body, None, {x: square, y: long})
    assert difference(functions[0], more) == (
        "<root>.buffer_map[<missing entry y>]", "<root>.buffer_map[y]",
    )  # fmt: skip
    assert difference(functions[0], PrimFunc((x,), body, None, {x: decl_buffer((10, 10))})) is None
    modules = [IRModule({"f": PrimFunc((), Evaluate(const(n)))}) for n in (1, 2)]
    assert difference(*modules) == ('<root>.functions[I.GlobalVar("f")].body.value.value',) * 2
    more = IRModule({"f": PrimFunc((), Evaluate(const(1))), "g": two[0]})
    assert difference(modules[0], more) == (
        '<root>.functions[<missing entry I.GlobalVar("g")>]', '<root>.functions[I.GlobalVar("g")]',
    )  # fmt: skip


def test_equalities_written_as_such_are_conditions() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert structural_equal(tir.EQ(x, y), x == y)
    assert structural_equal(x == y, tir.EQ(x, y))
    assert structural_equal(x == y, x == y)
    assert structural_equal([x != y], [tir.NE(x, y)])
    assert structural_hash(x == y) == structural_hash(tir.EQ(x, y))
    assert not structural_equal(x == y, x != y)
    assert not structural_equal(x == y, y == x)
    assert not structural_equal(tir.EQ(x, y), x)
    assert_structural_equal(tir.Select(tir.EQ(x, y), x, y), tir.Select(x == y, x, y))
    with pytest.raises(ValueError, match="EQ"):
        assert_structural_equal(x == y, tir.NE(x, y))
