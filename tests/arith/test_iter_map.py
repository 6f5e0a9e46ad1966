"""Iterator maps: what is affine, what is bijective, and the normal form of indices."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import Analyzer, estimate_region_upper_bound
from mlcweb.arith.iter_expr import sum_to_expr
from mlcweb.arith.iter_map import (
    BIJECTIVE,
    NO_CHECK,
    SURJECTIVE,
    detect_iter_map,
    is_iter_map,
    iter_map_simplify,
)
from mlcweb.tir import Cast, IntImm, Var, const
from mlcweb.tir.buffer import Range
from mlcweb.tir.substitute import variables_in
from tests.arith.expressions import Chance, Names, assignments, evaluate
from tests.arith.infix import infix
from tests.strategies import examples

Loops = dict[str, object]


def simplified(
    texts: list[str], loops: Loops, predicate: str = "True", trivial: bool = True
) -> list[str]:
    names = Names()
    domains = names.domains({name: (0, extent) for name, extent in loops.items()})
    indices = [names.parse(text) for text in texts]
    found = iter_map_simplify(indices, domains, names.parse(predicate), SURJECTIVE, trivial)
    return [infix(index) for index in found]


def reasons(
    texts: list[str], loops: Loops, predicate: str = "True", level: str = SURJECTIVE
) -> list[str] | None:
    """The errors; None where the indices are an iterator map."""
    names = Names()
    domains = names.domains({name: (0, extent) for name, extent in loops.items()})
    indices = [names.parse(text) for text in texts]
    found = detect_iter_map(indices, domains, names.parse(predicate), level)
    assert (found.indices is None) == bool(found.errors)
    return found.errors or None


@pytest.mark.parametrize(
    ("texts", "loops", "expected"),
    [
        (["i // 8 * 64 + i // 4 % 2 * 32 + j"], {"i": 64, "j": 32}, ["i // 4 * 32 + j"]),
        (["i // 4 % 2", "i % 2"], {"i": 16}, ["i % 8 // 4", "i % 2"]),
        (["i // 64 * 64 + i % 32 // 8 * 16 + j * 8 + i % 8"], {"i": 128, "j": 2},
         ["i // 64 * 64 + i % 32 // 8 * 16 + j * 8 + i % 8"]),
        (["i * 4 + j * 2"], {"i": 3, "j": 2}, ["(i * 2 + j) * 2"]),
        (["i + j"], {"i": 1, "j": 2}, ["j"]),
        (["i // 3"], {"i": 10}, ["i // 3"]),
        (["(i + 1) // 3"], {"i": 10}, ["(i + 1) // 3"]),
        (["i // 2 % 3"], {"i": 8}, ["i % 6 // 2"]),
        (["i // 32"], {"i": 4}, ["0"]),
        (["i * 64 + j + n"], {"i": 4, "j": 64}, ["i * 64 + j + n"]),
        (["i // n", "i % n"], {"i": "n * 16"}, ["i // n", "i % n"]),
        (["i * n + j"], {"i": 16, "j": "n"}, ["i * n + j"]),
        (["(i + n * 8) // 8", "(i + n * 8) % 8"], {"i": 8}, ["n", "i"]),
        (["3 - i"], {"i": 4}, ["i * -1 + 3"]),
    ],
)  # fmt: skip
def test_normal_form_as_tvm(texts: list[str], loops: Loops, expected: list[str]) -> None:
    assert simplified(texts, loops) == expected


def test_unit_iterators_can_be_kept() -> None:
    loops = {"i": 8, "j": 1, "k": 4}
    assert simplified(["i * 4 + j * 4 + k"], loops, trivial=False) == ["i * 4 + j * 4 + k"]
    assert simplified(["i * 4 + j * 4 + k"], loops, trivial=True) == ["i * 4 + k"]
    assert simplified(["i + j"], {"i": 1, "j": 2}, trivial=False) == ["j + i"]


@pytest.mark.parametrize(
    ("texts", "loops", "predicate", "expected"),
    [
        (["i * 4 + j"], {"i": 3, "j": 4}, "i * 4 + j < 10", ["i * 4 + j"]),
        (["(j * 5 + i) * 8 + k"], {"i": 5, "j": 2, "k": 8}, "j * 5 + i < 7",
         ["(j * 5 + i) * 8 + k"]),
        (["(j * 5 + i) * 8 + k"], {"i": 5, "j": 2, "k": 8}, "(j * 5 + i) * 8 + k < 50",
         ["j * 40 + i * 8 + k"]),
        (["i * 4 + j"], {"i": 3, "j": 4}, "i * 4 + j >= 2", ["i * 4 + j + -2 + 2"]),
        (["i + 1"], {"i": 4}, "i >= 1", ["i - 1 + 2"]),
        (["(i * 8 + j) // 3", "(i * 8 + j) % 3"], {"i": 1, "j": 8}, "i * 8 + j < 6",
         ["j // 3", "j % 3"]),
        # The digits of the predicate are those of the indices, not i alone.
        (["k * 2 + (i * 6 + j) // 6", "(i * 6 + j) % 6"], {"k": 4, "i": 2, "j": 6},
         "k * 2 + (i * 6 + j) // 6 < 7", ["k * 2 + (i * 6 + j) // 6", "(i * 6 + j) % 6"]),
    ],
)  # fmt: skip
def test_predicates_bound_fused_iterators(
    texts: list[str], loops: Loops, predicate: str, expected: list[str]
) -> None:
    assert reasons(texts, loops, predicate) is None
    assert simplified(texts, loops, predicate) == expected


@pytest.mark.parametrize(
    ("texts", "loops", "predicate", "reason"),
    [
        (["i", "i"], {"i": 3}, "True", "overlap"),
        (["i * 4 + j"], {"i": 3, "j": 3}, "True", "no iterator steps by 3"),
        (["i * j"], {"i": 3, "j": 3}, "True", "product of two iterators: i * j"),
        (["i // 6", "i // 4"], {"i": 16}, "True", "overlap"),
        (["i // 3", "i % 3"], {"i": 10}, "True", "padded extent"),
        (["i % 16"], {"i": 4}, "True", "padded extent"),
        (["min(i, 3)"], {"i": 8}, "True", "Min is not affine"),
        (["i"], {"i": 5, "j": 2}, "j * 5 + i < 6", "occur apart"),
        (["i"], {"i": 4, "j": 4}, "Or(i < 2, j < 2)", "not a bound"),
        (["i"], {"i": 4}, "i >= 7", "never true"),
        (["i * 3 + j * 2"], {"i": 2, "j": 4}, "True", "overlap"),
        (["5 // i"], {"i": 4}, "True", "division by an iterator"),
        (["i * 6 + j * 2 + k"], {"i": 4, "j": 3, "k": 2}, "And(j * 2 + k < 5, i * 3 + j < 9)",
         "two sums that share"),
        (["j * 2 + k"], {"j": 3, "k": 2}, "And(j * 2 + k < 5, j + k < 2)", "occur apart"),
    ],
)  # fmt: skip
def test_what_is_no_iterator_map(
    texts: list[str], loops: Loops, predicate: str, reason: str
) -> None:
    (error,) = reasons(texts, loops, predicate) or [""]
    assert reason in error


@pytest.mark.parametrize(
    ("texts", "loops", "bijective"),
    [
        (["i // 4", "i % 4"], {"i": 16}, True),
        (["i % 4", "i // 4"], {"i": 16}, True),
        (["i * 8 + j"], {"i": 4, "j": 8}, True),
        (["j", "i"], {"i": 4, "j": 8}, True),
        (["3 - i"], {"i": 4}, True),
        (["(i * 8 + j) // 4", "j % 4"], {"i": 4, "j": 8}, False),
        (["(i * 8 + j) // 4", "(i * 8 + j) % 4"], {"i": 4, "j": 8}, True),
        (["i"], {"i": 4, "j": 8}, False),
        (["i"], {"i": 4, "j": 1}, True),
        (["i % 4"], {"i": 16}, False),
        (["i * 3 + j"], {"i": 2, "j": 4}, False),
        (["i // 3"], {"i": 10}, False),
    ],
)
def test_bijective(texts: list[str], loops: Loops, bijective: bool) -> None:
    assert (reasons(texts, loops, level=BIJECTIVE) is None) == bijective


def test_dependent_indices_pass_without_check() -> None:
    assert reasons(["i", "i"], {"i": 4}, level=NO_CHECK) is None


@pytest.mark.parametrize("divisor", [2, 3, 4, 5])
@pytest.mark.parametrize("base", range(-3, 13))
def test_digits_of_iterators_that_count_down(divisor: int, base: int) -> None:
    """They were digits of negative extents, and memory was made as small as these said."""
    for text in (f"({base} - i) // {divisor}", f"({base} - i) % {divisor}"):
        for text_of_loops in (text, text.replace("i", "j * 4 - k")):
            names = Names()
            domains = names.domains({"i": (0, 8), "j": (0, 2), "k": (0, 4)})
            index = names.parse(text_of_loops)
            values = {evaluate(index, at) for at in assignments(domains)}
            [touched] = estimate_region_upper_bound([Range(index, const(1))], domains)
            assert isinstance(touched.min_value, IntImm) and isinstance(touched.max_value, IntImm)
            assert touched.min_value.value <= min(values)
            assert max(values) <= touched.max_value.value
            [simple] = iter_map_simplify([index], domains, names.parse("True"), NO_CHECK, True)
            assert all(evaluate(simple, at) == evaluate(index, at) for at in assignments(domains))


@pytest.mark.parametrize("divisor", [-1, -2, -3, -4, -6, -16])
@pytest.mark.parametrize(
    "text", ["i", "i * 2 + 1", "i + j * 16", "11 - i", "i // -4", "(i * 2 + j) // 6"]
)
def test_divisions_by_negative_numbers(text: str, divisor: int) -> None:
    """7 // -4 is -2, and 7 % -4 is -1."""
    names = Names()
    domains = names.domains({"i": (0, 16), "j": (0, 3)})
    for level in (NO_CHECK, SURJECTIVE):
        for operator in ("//", "%"):
            index = names.parse(f"({text}) {operator} {divisor}")
            [simple] = iter_map_simplify([index], domains, names.parse("True"), level, True)
            assert all(evaluate(simple, at) == evaluate(index, at) for at in assignments(domains))


def test_structure_of_a_fused_index() -> None:
    names = Names()
    domains = names.domains({"i": (0, 4), "j": (0, 8)})
    found = detect_iter_map([names.parse("(i * 8 + j) * 2 + 5")], domains).indices
    assert found is not None
    (index,) = found
    ((split, scale),) = index.items()
    assert infix(index.constant) == "5"
    assert (infix(split.extent), infix(scale)) == ("32", "2")
    splits = split.source.source.terms
    assert [part.source.source for part in splits] == [names["i"], names["j"]]
    assert [infix(scale) for scale in splits.values()] == ["8", "1"]


@examples(300)
@given(st.integers(0, 10**9), st.booleans())
def test_indices_keep_their_values(seed: int, trivial: bool) -> None:
    chance, names = Chance(seed), Names()
    indices = [names.parse(chance.index(2)) for _ in range(chance.rng.randint(1, 3))]
    predicate = names.parse(chance.predicate())
    domains = names.domains(chance.domains)
    found = iter_map_simplify(indices, domains, predicate, SURJECTIVE, trivial)
    for values in assignments(domains, 150):
        if evaluate(predicate, values):
            for old, new in zip(indices, found, strict=True):
                assert evaluate(old, values) == evaluate(new, values)


@examples(300)
@given(st.integers(0, 10**9))
def test_accepted_maps_are_what_they_claim(seed: int) -> None:
    """A bijective map takes different iterations to different indices; a surjective one reaches
    every combination of the values it says."""
    chance, names = Chance(seed), Names()
    indices = [names.parse(chance.index(2)) for _ in range(chance.rng.randint(1, 2))]
    domains = names.domains(chance.domains)
    if len(list(assignments(domains, 5000))) >= 5000:
        return
    images = [
        tuple(evaluate(index, values) for index in indices) for values in assignments(domains, 5000)
    ]
    if detect_iter_map(indices, domains, True, BIJECTIVE).indices is not None:
        assert len(set(images)) == len(images)
    found = detect_iter_map(indices, domains).indices
    if found is not None:
        extents = 1
        for index in found:
            for split in index.terms:
                extents *= int(split.extent)
        assert len(set(images)) == extents


@pytest.mark.parametrize(("extent", "fits"), [(48, True), (2**32, False)])
def test_casts_that_keep_all_values_are_seen_through(extent: int, fits: bool) -> None:
    i = Var("i", "int64")
    domains = {i: Range(const(0, "int64"), const(extent, "int64"))}
    indices = [Cast("int32", i // const(8, "int64")), i % const(8, "int64")]
    whole = [Cast("int32", i)]
    assert detect_iter_map(indices, domains, True, BIJECTIVE).indices is not None
    assert (detect_iter_map(whole, domains, True, BIJECTIVE).indices is not None) is fits
    simple = iter_map_simplify([Cast("int32", i // const(8, "int64")) * 8 + 1], domains)
    assert [index.dtype for index in simple] == ["int32"]


@examples(300)
@given(st.integers(0, 10**9))
def test_iterators_by_themselves_need_no_analysis(seed: int) -> None:
    """The short answer, which leaves them out, is that of the whole map."""
    chance, names = Chance(seed), Names()
    iterators = list(chance.domains)
    chosen = chance.rng.sample(iterators, chance.rng.randint(1, len(iterators)))
    indices = [names.parse(text) for text in (*chosen, chance.index(1), "3")]
    chance.rng.shuffle(indices)
    predicate = chance.rng.choice([True, names.parse(chance.predicate())])
    domains = names.domains(chance.domains)
    for level in (BIJECTIVE, SURJECTIVE):
        found = detect_iter_map(indices, domains, predicate, level).indices
        assert is_iter_map(indices, domains, predicate, level) is (found is not None)


@examples(300)
@given(st.integers(0, 10**9))
def test_what_its_own_loops_run_one_to_one_all_loops_run_independently(seed: int) -> None:
    chance, names = Chance(seed), Names()
    indices = [names.parse(chance.index(chance.rng.randrange(3))) for _ in range(2)]
    domains = names.domains(chance.domains)
    used = variables_in(*indices)
    own = {variable: domain for variable, domain in domains.items() if variable in used}
    if is_iter_map(indices, own, check_level=BIJECTIVE):
        assert is_iter_map(indices, domains, check_level=SURJECTIVE)


@pytest.mark.parametrize(
    ("texts", "loops", "predicate", "is_box"),
    [
        (["i * 4 + j"], {"i": 3, "j": 4}, "i * 4 + j < 10", True),
        (["i + j"], {"i": 4, "j": 2}, "j < 1", True),
        (["k * 4 + i * 3 + j"], {"k": 3, "i": 2, "j": 3}, "i * 3 + j < 4", True),
        (["k * 4 + i * 3 + j"], {"k": 3, "i": 2, "j": 3}, "And(i * 3 + j < 4, k < 2)", True),
        (["i"], {"i": 4, "j": 4}, "i * 4 + j < 7", False),
        (["11 - (i * 4 + j)"], {"i": 3, "j": 4}, "True", True),
        (["(i * 4 + j) // 3"], {"i": 3, "j": 4}, "i * 4 + j < 10", True),
        (["i // 3"], {"i": 10}, "True", True),
    ],
)
def test_whether_a_predicate_leaves_a_box(
    texts: list[str], loops: Loops, predicate: str, is_box: bool
) -> None:
    names = Names()
    domains = names.domains({name: (0, extent) for name, extent in loops.items()})
    indices = [names.parse(text) for text in texts]
    found = detect_iter_map(indices, domains, names.parse(predicate))
    assert found.indices is not None
    assert found.is_box == is_box


@examples(400)
@given(st.integers(0, 10**9))
def test_a_box_has_all_combinations_of_its_values(seed: int) -> None:
    chance, names = Chance(seed), Names()
    indices = [names.parse(chance.index(2)) for _ in range(chance.rng.randint(1, 2))]
    predicate = names.parse(chance.predicate())
    domains = names.domains(chance.domains)
    found = detect_iter_map(indices, domains, predicate)
    if found.indices is None or not found.is_box or len(list(assignments(domains, 5000))) >= 5000:
        return
    images = {
        tuple(evaluate(index, values) for index in indices)
        for values in assignments(domains, 5000)
        if evaluate(predicate, values)
    }
    runs = []
    for index in found.indices:
        run = {int(index.constant)}
        for split, scale in index.items():
            run = {n + k * int(scale) for n in run for k in range(int(split.extent))}
        runs.append(run)
    assert images == set(product(*runs))


def test_numbers_that_the_analyzer_knows_are_written() -> None:
    names = Names()
    domains = names.domains({"i": (0, 32)})
    analyzer = Analyzer(domains)
    analyzer.bind(names["n"], const(8))
    index = names.parse("i % n")
    (simple,) = iter_map_simplify([index], domains, True, SURJECTIVE, True, analyzer)
    assert infix(simple) == "i % 8"
    assert iter_map_simplify([index], domains, True, SURJECTIVE) == [index]


@pytest.mark.parametrize(
    ("texts", "extent", "accepted"),
    [
        (["i // 3 % 5", "i % 3"], 26, True),  # 26 values that follow each other have all 15 pairs
        (["i // 3 % 5", "i % 3"], 15, True),
        (["i // 3 % 5", "i % 3"], 14, False),
        (["i // 4 % 8", "i % 4"], 45, True),
        (["i // 3", "i % 3"], 26, False),  # 8 and 2 never meet
    ],
)
def test_digits_of_an_iterator_that_has_to_be_rounded_up(
    texts: list[str], extent: int, accepted: bool
) -> None:
    assert (reasons(texts, {"i": extent}) is None) == accepted


@examples(200)
@given(st.integers(0, 10**9))
def test_digits_of_rounded_iterators_are_what_they_claim(seed: int) -> None:
    chance, names = Chance(seed), Names()
    divisor, modulus, other, shift = (
        chance.rng.choice(choice) for choice in ((2, 3, 4, 6), (2, 3, 5, 8), (2, 4, 5), (0, 0, 7))
    )
    extent = chance.rng.randint(1, 48)
    digits = [
        f"(i + {shift}) % {divisor}",
        f"(i + {shift}) // {divisor}",
        f"(i + {shift}) // {divisor} % {modulus}",
        f"(i + {shift}) // {divisor} // {modulus}",
        f"(i + {shift}) // {divisor} // {modulus} % {other}",
        f"(i + {shift}) % {divisor * modulus} // {divisor}",
    ]
    texts = chance.rng.sample(digits, chance.rng.randint(1, 3))
    indices = [names.parse(text) for text in texts]
    domains = names.domains({"i": (0, extent)})
    sums = detect_iter_map(indices, domains).indices
    if sums is None:
        return
    rewritten = [sum_to_expr(index, Analyzer()) for index in sums]
    images = set()
    for values in assignments(domains, 100):
        image = tuple(evaluate(index, values) for index in indices)
        assert image == tuple(evaluate(index, values) for index in rewritten)
        images.add(image)
    assert len(images) == prod(int(split.extent) for index in sums for split in index.terms)
