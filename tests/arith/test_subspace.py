"""Dividing indices into what outer and inner loops make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import Analyzer
from mlcweb.arith.iter_expr import IterMark, mark_to_expr
from mlcweb.arith.subspace import subspace_divide
from mlcweb.ir.visitor import walk
from mlcweb.tir.expr import Var
from tests.arith.expressions import Chance, Names, assignments, evaluate
from tests.arith.infix import infix
from tests.strategies import examples


def text(mark: IterMark) -> str:
    return f"{infix(mark_to_expr(mark, Analyzer()))} : {infix(mark.extent)}"


def divided(texts: list[str], loops: dict[str, int], inner: str, predicate: str = "True"):
    names = Names()
    domains = names.domains({name: (0, extent) for name, extent in loops.items()})
    bindings = [names.parse(text) for text in texts]
    found = subspace_divide(
        bindings, domains, [names[name] for name in inner], names.parse(predicate)
    )
    if found is None:
        return None
    pairs = [(text(outer), text(within)) for outer, within in found.divisions]
    return pairs, infix(found.outer_predicate), infix(found.inner_predicate)


@pytest.mark.parametrize(
    ("texts", "loops", "inner", "expected"),
    [
        (["z * 12 + y * 3 + x + c"], {"z": 3, "y": 4, "x": 3}, "x",
         [("z * 4 + y : 12", "x + c : 3")]),
        (["z * 12 + y * 3 + x"], {"z": 3, "y": 4, "x": 3}, "yx", [("z : 3", "y * 3 + x : 12")]),
        (["i * 16 + j", "k * 16 + l"], {"i": 8, "j": 16, "k": 4, "l": 16}, "jl",
         [("i : 8", "j : 16"), ("k : 4", "l : 16")]),
        (["i * 16 + j", "k * 16 + l"], {"i": 8, "j": 16, "k": 4, "l": 16}, "kl",
         [("i * 16 + j : 128", "0 : 1"), ("0 : 1", "k * 16 + l : 64")]),
        (["j + 3", "i"], {"i": 8, "j": 16}, "j", [("0 : 1", "j + 3 : 16"), ("i : 8", "0 : 1")]),
        (["(z * 16 + y * 4 + x) // 4", "(z * 16 + y * 4 + x) % 4"], {"z": 3, "y": 4, "x": 4}, "x",
         [("z * 4 + y : 12", "0 : 1"), ("0 : 1", "x : 4")]),
        # Digits of a fused iterator are those of the part that they lie in, multiplied or not.
        (["k * 2 + (i * 6 + j) // 6", "(i * 6 + j) // 3 % 2", "(i * 6 + j) % 3 * 3 + l"],
         {"k": 4, "i": 2, "j": 6, "l": 3}, "jl",
         [("k * 2 + i : 8", "0 : 1"), ("0 : 1", "j // 3 : 2"), ("0 : 1", "j % 3 * 3 + l : 9")]),
    ],
)  # fmt: skip
def test_divisions_as_tvm(texts, loops, inner, expected) -> None:
    assert divided(texts, loops, inner) == (expected, "True", "True")


def test_predicate_stays_with_its_part() -> None:
    loops = {"i": 8, "j": 16, "k": 4}
    bound = "i * 16 + j < 100"
    assert divided(["i * 16 + j", "k"], loops, "k", bound) == (
        [("i * 16 + j : 100", "0 : 1"), ("0 : 1", "k : 4")],
        bound,
        "True",
    )
    assert divided(["i * 16 + j", "k"], loops, "ijk", bound) == (
        [("0 : 1", "i * 16 + j : 100"), ("0 : 1", "k : 4")],
        "True",
        bound,
    )


def test_predicate_of_an_iterator_with_several_digits_is_said_once() -> None:
    texts = ["k * 5 + (i * 3 + j) // 2", "(i * 3 + j) % 2"]
    loops = {"k": 2, "i": 4, "j": 3}
    assert divided(texts, loops, "ij", "i * 3 + j < 10") == (
        [("k : 2", "(i * 3 + j) // 2 : 5"), ("0 : 1", "(i * 3 + j) % 2 : 2")],
        "True",
        "i * 3 + j < 10",
    )


@pytest.mark.parametrize(
    ("texts", "loops", "inner", "predicate"),
    [
        (["z * 4 + y"], {"z": 3, "y": 4}, "z", "True"),
        (["i * 16 + j"], {"i": 8, "j": 16}, "j", "i * 16 + j < 100"),
        (["i * 8 + j * 2"], {"i": 4, "j": 4}, "j", "True"),
        (["i", "i"], {"i": 4}, "i", "True"),
    ],
)
def test_what_cannot_be_divided(texts, loops, inner, predicate) -> None:
    assert divided(texts, loops, inner, predicate) is None


@examples(300)
@given(st.integers(0, 10**9))
def test_parts_make_the_binding(seed: int) -> None:
    chance, names = Chance(seed), Names()
    bindings = [names.parse(chance.index(2)), names.parse(chance.fused())][
        chance.rng.randrange(2) :
    ]
    domains = names.domains(chance.domains)
    inner = {variable for variable in domains if chance.rng.random() < 0.5}
    found = subspace_divide(bindings, domains, inner)
    if found is None:
        return
    for binding, (outer, within) in zip(bindings, found.divisions, strict=True):
        around, inside = mark_to_expr(outer, Analyzer()), mark_to_expr(within, Analyzer())
        assert not any(part in inner for part in walk(around) if isinstance(part, Var))
        assert all(part in inner for part in walk(inside) if isinstance(part, Var))
        for values in assignments(domains, 100):
            made = evaluate(around, values) * int(within.extent) + evaluate(inside, values)
            assert made == evaluate(binding, values)
