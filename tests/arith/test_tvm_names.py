"""The analyses under TVM's names. What TVM 0.27 answers to the same calls is noted as data."""

from __future__ import annotations

import random

import pytest

from mlcweb import arith, tir
from mlcweb.arith import IterMapExpr, IterMark, IterSplitExpr, IterSumExpr
from mlcweb.ir import structural_equal
from mlcweb.tir.arithmetic import const, floordiv, floormod
from mlcweb.tir.buffer import Range
from tests.arith.expressions import evaluate

X, Y, Z = (tir.Var(name, "int32") for name in "xyz")
L = tir.Var("l", "int64")


def domain(low: int, extent: int) -> Range:
    return Range(const(low), const(extent))


def text(value: IterMapExpr | IterMark | tir.PrimExpr) -> str:
    if isinstance(value, IterSumExpr):
        return f"[{', '.join(map(text, value.args))}] + {value.base}"
    if isinstance(value, IterSplitExpr):
        source, lower, extent = text(value.source), value.lower_factor, value.extent
        return f"({source} // {lower} % {extent} * {value.scale})"
    if isinstance(value, IterMark):
        return f"{{{text(value.source)} < {value.extent}}}"
    return str(value)


class TestAnalyzer:
    def test_simplifies_in_three_ways(self) -> None:
        analyzer = arith.Analyzer()
        assert str(analyzer.simplify(X * 2 + X * 3)) == "x * 5"
        assert str(analyzer.rewrite_simplify(floordiv(X * 8 + 3, 8))) == "x"
        assert str(analyzer.canonical_simplify(floormod(X * 8 + 3, 8) + X - X)) == "3"

    @pytest.mark.parametrize(
        ("expression", "simplified"),
        [
            (X + Y - Y, "x"),
            (Y + (X - Y), "x"),
            (X - (X + Y), "0 - y"),
            (X + 1 - (Y + 1), "x - y"),
            (X * 2 + Y - X * 2, "y"),
            (X * Y - Y * X, "0"),
            (X + X, "x * 2"),
            (X * 3 + X, "x * 4"),
        ],
    )
    def test_the_rewriting_rules_alone_cancel(
        self, expression: tir.PrimExpr, simplified: str
    ) -> None:
        assert str(arith.Analyzer().rewrite_simplify(expression)) == simplified

    @pytest.mark.parametrize(
        ("expression", "simplified"),
        [
            (tir.Broadcast(X, 4) + tir.Broadcast(Y, 4), "T.Broadcast(x + y, 4)"),
            (tir.Ramp(X, 1, 4) + tir.Ramp(Y, 2, 4), "T.Ramp(x + y, 3, 4)"),
            (tir.Ramp(X, 2, 4) - tir.Ramp(Y, 2, 4), "T.Broadcast(x - y, 4)"),
            (tir.Broadcast(L, 4) + tir.Ramp(const(0, "int64"), 1, 4), "T.Ramp(l, T.int64(1), 4)"),
            (
                tir.Broadcast(L, 4) - tir.Ramp(L, Y, 4),
                'T.Ramp(T.int64(0), T.int64(0) - T.Cast("int64", y), 4)',
            ),
            (tir.Ramp(X, 1, 4) * tir.Broadcast(const(2), 4), "T.Ramp(x * 2, 2, 4)"),
            (floordiv(tir.Ramp(X * 4, 1, 4), tir.Broadcast(const(4), 4)), "T.Broadcast(x, 4)"),
            (floordiv(tir.Ramp(X, 8, 4), tir.Broadcast(const(4), 4)), "T.Ramp(x // 4, 2, 4)"),
            (floormod(tir.Ramp(X * 4, 1, 4), tir.Broadcast(const(4), 4)), "T.Ramp(0, 1, 4)"),
            (tir.truncdiv(tir.truncdiv(X, 3), 2), "T.Div(x, 6)"),
            (tir.truncdiv(X * 4, 2), "x * 2"),
            (X - tir.truncdiv(X, 4) * 4, "T.truncmod(x, 4)"),
            (tir.truncmod(X * 10, 2), "0"),
            (tir.min(X, Y) * tir.max(X, Y), "x * y"),
            (tir.min(tir.max(X, Y), tir.min(X, Y)), "T.min(x, y)"),
            (tir.max(tir.min(X, Y), tir.min(X, Z)), "T.min(T.max(y, z), x)"),
            (floordiv(tir.min(X * 6, Y), 2), "T.min(x * 3, y // 2)"),
            (tir.EQ(X * Y, 0), "x == 0 or y == 0"),
            (tir.And(tir.NE(X, 2), tir.EQ(X, 3)), "x == 3"),
            (tir.Or(tir.NE(X, 2), tir.EQ(X, 3)), "x != 2"),
            (tir.LT(3, floordiv(X, 2)), "7 < x"),
            (tir.GE(X * 2, 5), "3 <= x"),
            (tir.Select(X > 1, Y, Z) - tir.Select(X > 1, Z, Y), "T.Select(1 < x, y - z, z - y)"),
            (tir.clz(const(8)), "28"),
            (tir.ceil(tir.log2(const(9, "float64"))), "T.float64(4)"),
        ],
    )
    def test_rules_of_vectors_choices_and_quotients(
        self, expression: tir.PrimExpr, simplified: str
    ) -> None:
        assert str(arith.Analyzer().simplify(expression)) == simplified

    def test_an_equality_that_python_makes_is_simplified(self) -> None:
        assert str(arith.Analyzer().simplify(X + 1 == 3)) == "x == 2"

    def test_updates_are_joined_unless_they_override(self) -> None:
        analyzer = arith.Analyzer()
        analyzer.update(X, arith.ConstIntBound(1, 4))
        analyzer.update(X, arith.ConstIntBound(0, 3))
        assert tuple(analyzer.const_int_bound(X + 3)) == (4, 6)
        analyzer.update(X, arith.ConstIntBound(7, 8), override=True)
        assert tuple(analyzer.const_int_bound(X + 3)) == (10, 11)
        analyzer.update(X, arith.ModularSet(4, 1))
        assert tuple(analyzer.modular_set(X * 3)) == (12, 3)

    def test_a_constraint_on_a_remainder_lasts_as_long_as_its_scope(self) -> None:
        analyzer = arith.Analyzer()
        with analyzer.constraint_scope(floormod(X, 4) == 2):
            assert tuple(analyzer.modular_set(X + 1)) == (4, 3)
        assert tuple(analyzer.modular_set(X + 1)) == (1, 0)

    def test_int_set_over_given_and_over_bound_variables(self) -> None:
        analyzer = arith.Analyzer()
        found = analyzer.int_set(X * 2 - 3, {X: arith.IntervalSet(1, 5)})
        assert [str(end) for end in found] == ["-1", "7"]
        analyzer.bind(X, domain(0, 4))
        assert [str(end) for end in analyzer.int_set(X + 1)] == ["1", "4"]

    def test_a_clone_learns_by_itself(self) -> None:
        analyzer = arith.Analyzer()
        analyzer.bind(X, domain(0, 4))
        clone = analyzer.clone()
        clone.bind(Y, domain(0, 2))
        assert clone.can_prove(X < 4)
        assert clone.can_prove(Y < 2)
        assert not analyzer.can_prove(Y < 2)

    def test_sets(self) -> None:
        assert not arith.IntervalSet(0, 9).is_nothing()
        assert arith.IntervalSet(1, 0).is_nothing()
        assert arith.IntervalSet(None, None).is_everything()
        assert [str(end) for end in arith.IntSet.single_point(3)] == ["3", "3"]
        assert [str(end) for end in arith.IntSet.vector(tir.Ramp(X, const(2), 4))] == ["x", "x + 6"]


class TestIterMap:
    @pytest.mark.parametrize(
        ("index", "expected"),
        [
            (X, "[({[({x < 8} // 1 % 8 * 1)] + 0 < 8} // 1 % 8 * 1)] + 0"),
            (X * 2 + 1, "[({[({x < 8} // 1 % 8 * 1)] + 0 < 8} // 1 % 8 * 2)] + 1"),
            (floordiv(X, 4), "[({[({x < 8} // 4 % 2 * 1)] + 0 < 2} // 1 % 2 * 1)] + 0"),
            (
                X * 4 + Y,
                "[({[({x < 8} // 1 % 8 * 4), ({y < 4} // 1 % 4 * 1)] + 0 < 32} // 1 % 32 * 1)] + 0",
            ),
        ],
    )
    def test_what_is_found_has_the_shape_that_tvm_gives_it(
        self, index: tir.PrimExpr, expected: str
    ) -> None:
        domains = {X: domain(0, 8), Y: domain(0, 4)}
        (found,) = arith.detect_iter_map([index], domains).indices
        assert text(found) == expected
        assert structural_equal(arith.normalize_iter_map_to_expr(found), index)

    def test_reasons_are_told_where_nothing_is_found(self) -> None:
        found = arith.detect_iter_map([X * X], {X: domain(0, 8)})
        assert found.indices == []
        assert len(found.errors) == 1
        level = arith.IterMapLevel.Bijective
        assert not arith.detect_iter_map(
            [X], {X: domain(0, 8), Y: domain(0, 4)}, True, level
        ).indices

    def test_padding(self) -> None:
        indices = [floordiv(X, 3), floormod(X, 3)]
        found = arith.detect_iter_map(indices, {X: domain(0, 8)}, check_level="nocheck")
        assert str(found.padding_predicate) == "8 <= x"
        found = arith.detect_iter_map(indices, {X: domain(0, 9)})
        assert str(found.padding_predicate) == "T.bool(False)"

    def test_sums_have_the_largest_scale_first(self) -> None:
        domains = {X: domain(0, 8), Y: domain(0, 2)}
        found = arith.normalize_to_iter_sum(Y + X * 4 + 3, domains)
        assert text(found) == "[({x < 8} // 1 % 8 * 4), ({y < 2} // 1 % 2 * 1)] + 3"

    def test_what_is_not_affine_is_in_the_base_of_a_sum(self) -> None:
        domains = {X: domain(0, 8), Y: domain(0, 2)}
        assert text(arith.normalize_to_iter_sum(X * Y, domains)) == "[] + x * y"
        found = arith.normalize_to_iter_sum(tir.max(Y, Z) + X * 4, domains)
        assert text(found) == "[({x < 8} // 1 % 8 * 4)] + T.max(y, z)"

    def test_digits_of_one_iterator_are_one(self) -> None:
        index = floordiv(X, 4) * 4 + Y * 2 + floormod(X, 4)
        found = arith.normalize_to_iter_sum(index, {X: domain(0, 8), Y: domain(0, 2)})
        assert text(found) == "[({y < 2} // 1 % 2 * 2), ({x < 8} // 1 % 8 * 1)] + 0"

    def test_division_by_a_subspace(self) -> None:
        divided = arith.subspace_divide([X, Y], {X: domain(0, 4), Y: domain(0, 8)}, [Y])
        extents = [[str(mark.extent) for mark in row] for row in divided]
        assert extents == [["4", "1"], ["1", "8"], ["T.bool(True)", "T.bool(True)"]]
        assert arith.subspace_divide([X + Y], {X: domain(0, 4), Y: domain(0, 8)}, [X]) == []

    def test_inverse(self) -> None:
        a = tir.Var("a", "int32")
        found = arith.detect_iter_map([X * 4 + Y], {X: domain(2, 8), Y: domain(0, 4)})
        inverse = arith.inverse_affine_iter_map(found.indices, [a])
        analyzer = arith.Analyzer()
        assert analyzer.can_prove_equal(inverse[X], floordiv(a, 4))
        assert analyzer.can_prove_equal(inverse[Y], floormod(a, 4))


class TestPatterns:
    def test_linear_equations(self) -> None:
        assert [str(c) for c in arith.detect_linear_equation(X * 4 + Y * 6 + 7, [X])] == [
            "4",
            "y * 6 + 7",
        ]
        assert arith.detect_linear_equation(X * 4 * (X + 1), [X]) == []

    def test_clips(self) -> None:
        clips = arith.detect_clip_bound(tir.all(X * 2 < 7, X * 3 >= 4), [X])
        assert [str(end) for end in clips] == ["2", "3"]
        assert arith.detect_clip_bound(X * Y < 3, [X, Y]) == []
        assert [str(end) for end in arith.detect_clip_bound(tir.EQ(X, const(4)), [X])] == ["4", "4"]

    @pytest.mark.parametrize(
        ("condition", "ends"),
        [
            (X + 3 < Y, ("None", "-2")),
            (X * 2 >= Y, ("5", "None")),
            (X + 1 <= 10, ("None", "9")),
            (10 <= X * 4, ("3", "None")),
        ],
    )
    def test_bounds_hold_whatever_relaxed_variables_are(
        self, condition: tir.PrimExpr, ends: tuple[str, str]
    ) -> None:
        relaxed = {Y: arith.IntervalSet(2, 10)}
        found = arith.deduce_bound(X, condition, relaxed, relaxed)
        assert tuple(str(end) for end in found) == ends


def ends(found: arith.IntervalSet) -> tuple[str, str]:
    return str(found.min_value), str(found.max_value)


NOTHING = ("pos_inf", "neg_inf")


class TestDeducedBounds:
    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (floordiv(X, 8) > 3, ("32", "pos_inf")),
            (floordiv(X, 8) <= 3, ("neg_inf", "31")),
            (floordiv(X, -8) > 3, ("neg_inf", "-32")),
            (floordiv(X, -8) < 3, ("-23", "pos_inf")),
            (tir.EQ(floordiv(X, 8), 3), NOTHING),
            (tir.EQ(10, X), ("10", "10")),
            (tir.EQ(5 * X, -10), ("-2", "-2")),
            (tir.EQ(4 * X, Y), NOTHING),
            (tir.EQ(X - Z, Y), ("y + z", "y + z")),
            (floormod(X, 16) < 10, NOTHING),
            (tir.max(5, X * 4) < 0, NOTHING),
            (X * 2 - X > Y, NOTHING),
            (X + Y, NOTHING),
        ],
    )
    def test_through_sums_products_and_quotients(
        self, condition: tir.PrimExpr, expected: tuple[str, str]
    ) -> None:
        assert ends(arith.deduce_bound(X, condition, {}, {})) == expected

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (Y * 3 + floordiv(X, 8) < 63, ("neg_inf", "359")),
            (Y * 3 + floordiv(X, 8) >= 63, ("456", "pos_inf")),
            ((Y * 3 + X * -4) * 4 < 63, ("1", "pos_inf")),
            (tir.EQ(X, Y), NOTHING),
            (X * Y > 3, NOTHING),
        ],
    )
    def test_for_all_values_of_relaxed_variables(
        self, condition: tir.PrimExpr, expected: tuple[str, str]
    ) -> None:
        relaxed = {Y: arith.IntervalSet(2, 6)}
        assert ends(arith.deduce_bound(X, condition, relaxed, relaxed)) == expected

    @pytest.mark.parametrize("seed", range(60))
    def test_what_is_deduced_satisfies_the_condition(self, seed: int) -> None:
        rng = random.Random(seed)
        left: tir.PrimExpr = X
        for _ in range(3):
            number = const(rng.choice([-5, -3, -2, 2, 3, 7]))
            left = rng.choice(
                [left + number, left - Y, Y * 2 - left, left * number, floordiv(left, number)]
            )
        order = rng.choice([tir.LT, tir.LE, tir.GT, tir.GE])
        condition = order(left, const(rng.randint(-20, 20)))
        relaxed = {Y: arith.IntervalSet(-2, 3)}
        low, high = arith.deduce_bound(X, condition, {}, relaxed)
        if low is None and high is None:
            return
        near = int(low if low is not None else high)
        steps = range(30) if low is not None else range(-29, 1)
        for x in (near + step for step in steps):
            for y in range(-2, 4):
                assert evaluate(condition, {X: x, Y: y})


class TestIntervalSets:
    def test_infinite_ends(self) -> None:
        low = arith.IntervalSet(arith.neg_inf(), 0)
        assert low.min_value is arith.neg_inf()
        assert ends(arith.IntervalSet(None, None)) == ("neg_inf", "pos_inf")
        assert arith.IntervalSet.nothing().is_nothing()
        assert ends(arith.Analyzer().int_set(X - Y, {X: low})) == ("neg_inf", "0 - y")

    def test_union_is_no_larger_than_the_sets(self) -> None:
        union = arith.union_lower_bound
        low, high = arith.IntervalSet(None, 0), arith.IntervalSet(1, None)
        assert ends(union([low, high])) == ("neg_inf", "pos_inf")
        assert ends(union([low, arith.IntervalSet.nothing()])) == ("neg_inf", "0")
        assert ends(union([arith.IntervalSet(0, 3), arith.IntervalSet(4, 9)])) == ("0", "9")
        assert ends(union([arith.IntervalSet(0, 3), arith.IntervalSet(5, 9)])) == ("0", "3")

    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            (tir.truncdiv(X, 2), ("-1", "5")),
            (tir.truncmod(X, 10), ("-9", "9")),
            (tir.truncmod(X + 3, 10), ("0", "9")),
        ],
    )
    def test_division_towards_zero(
        self, expression: tir.PrimExpr, expected: tuple[str, str]
    ) -> None:
        found = arith.Analyzer().int_set(expression, {X: arith.IntervalSet(-3, 10)})
        assert ends(found) == expected

    def test_constraints_narrow_what_is_bound(self) -> None:
        analyzer = arith.Analyzer({X: domain(0, 40)})
        with analyzer.constraint_scope(X < 10):
            assert ends(analyzer.int_set(X + Y)) == ("y", "y + 9")


class TestExtensions:
    @pytest.mark.parametrize(
        ("extension", "expression", "simplified"),
        [
            ("ConvertBooleanToAndOfOrs", tir.Or(tir.And(X < 1, Y < 2), Z < 3),
             "(x < 1 or z < 3) and (y < 2 or z < 3)"),
            ("ApplyConstraintsToBooleanBranches", tir.And(X < 5, tir.Or(Y < 3, X < 10)), "x < 5"),
            ("ApplyConstraintsToBooleanBranches", tir.Or(X < 5, X < 10), "x < 10"),
            ("ApplyConstraintsToBooleanBranches", tir.Or(tir.NE(X, 5), X < 3), "x != 5"),
        ],
    )  # fmt: skip
    def test_of_conditions(self, extension: str, expression: tir.PrimExpr, simplified: str) -> None:
        analyzer = arith.Analyzer()
        assert str(analyzer.rewrite_simplify(expression)) == str(expression)
        analyzer.enabled_extensions = arith.Extension[extension]
        assert str(analyzer.rewrite_simplify(expression)) == simplified

    @pytest.mark.parametrize("scale", [1, 59, 8192])
    def test_products_against_sums(self, scale: int) -> None:
        analyzer = arith.Analyzer({X: domain(1, 4095), Y: domain(1, 4095)})
        condition = X * Y * scale < (Y + X) * (2048 * scale)
        assert not analyzer.can_prove(condition)
        analyzer = analyzer.clone()
        analyzer.enabled_extensions = arith.Extension.ComparisonOfProductAndSum
        assert analyzer.can_prove(condition)
        assert not analyzer.can_prove(X * Y * scale < (Y + X) * (2047 * scale))


class TestComparisonOperators:
    def test_equality_is_a_condition_where_an_expression_is_wanted(self) -> None:
        assert str(tir.if_then_else(X == 0, 1, 2)) == "T.if_then_else(x == 0, 1, 2)"
        assert str(tir.all(X != 1, 3 == Y)) == "x != 1 and y == 3"

    def test_and_identity_where_python_wants_a_truth_value(self) -> None:
        assert X == X
        assert not X == Y  # noqa: SIM201
        assert X != Y
        assert [Y, X].index(X) == 1
        assert const(3) == 3
        assert const(3) != const(4)
        assert X != None  # noqa: E711


def test_structure_of_iterator_expressions_is_compared() -> None:
    def one(extent: int, lower: int = 1) -> IterSumExpr:
        mark = IterMark(X, extent)
        return IterSumExpr([IterSplitExpr(mark, lower, extent // lower, 3)], Y + 1)

    assert structural_equal(one(12, 4), one(12, 4))
    assert not structural_equal(one(12, 4), one(12, 2))
    assert not structural_equal(one(12), one(8))
    assert not structural_equal(IterMark(X, 12), IterMark(Y, 12))
    assert not structural_equal(one(12), one(12).args[0])


def test_there_is_no_z3() -> None:
    analyzer = arith.Analyzer()
    assert analyzer.is_z3_enabled is False
    with pytest.raises(RuntimeError, match=r"without Z3.*get_smtlib2"):
        analyzer.get_smtlib2()
    with pytest.raises(RuntimeError, match="set_z3_rlimit"):
        analyzer.set_z3_rlimit(0)
