"""Each identity, for random numbers: both sides have one value wherever its condition holds."""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator
from typing import Any

import pytest

from mlcweb.arith import Analyzer, same_expression
from mlcweb.arith.matching import all_patterns, applied
from mlcweb.tir.arithmetic import const
from tests.arith.expressions import Names, truncdiv

TEXTS = sorted({pattern.text for pattern in all_patterns()})

FUNCTIONS: dict[str, Any] = {
    "min": min,
    "max": max,
    "abs": abs,
    "tdiv": truncdiv,
    "tmod": lambda a, b: a - b * truncdiv(a, b),
    "div": operator.floordiv,
    "mod": operator.mod,
    "nonneg": lambda *values: min(values) >= 0,
    "same": lambda x, y, z, w: x - y == z - w,
}


def parts(text: str) -> tuple[str, str, str]:
    statement, _, condition = text.partition(" if ")
    left, _, right = statement.partition("->")
    return left.strip(), right.strip(), condition or "True"


def numbers(text: str, tries: int) -> Iterator[dict[str, int]]:
    """Random numbers for the letters for which the condition holds and nothing is divided by 0."""
    rng = random.Random(text)
    left, right, condition = (compile(part, text, "eval") for part in parts(text))
    for _ in range(tries):
        scope = {name: rng.randint(-12, 12) for name in "xyzw"}
        scope |= {
            name: rng.choice([-9, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 12]) for name in "cdekl"
        }
        if rng.random() < 0.5:
            scope["d"] = scope["c"] * rng.randint(-3, 3)
        if rng.random() < 0.5:
            scope["c"] = scope["d"] * rng.randint(-3, 3)
        if rng.random() < 0.5:
            scope["c"] = rng.choice([-scope["d"], scope["d"] - 1])
        if rng.random() < 0.5:
            scope["e"] = scope["c"] * scope["d"]
        if rng.random() < 0.5:
            scope["w"], scope["z"] = scope["y"] + 3, scope["x"] + 3
        if rng.random() < 0.5:
            scope["w"], scope["z"] = scope["x"] - 5, scope["y"] - 5
        try:
            if eval(condition, FUNCTIONS, scope):
                eval(left, FUNCTIONS, scope), eval(right, FUNCTIONS, scope)
                yield scope
        except ZeroDivisionError:
            continue


@pytest.mark.parametrize("text", TEXTS)
def test_both_sides_have_one_value(text: str) -> None:
    left, right, _ = (compile(part, text, "eval") for part in parts(text))
    count = 0
    for scope in numbers(text, 2000):
        assert eval(left, FUNCTIONS, scope) == eval(right, FUNCTIONS, scope), scope
        count += 1
    assert count >= 10


@pytest.mark.parametrize("text", [text for text in TEXTS if "same(" not in text])
def test_is_found(text: str) -> None:
    """What its left side says for some numbers is rewritten, by it or by one before it."""
    left, _, condition = parts(text)
    names = Names()
    names |= {"div": operator.floordiv, "mod": operator.mod}
    names |= {"tdiv": names["truncdiv"], "tmod": names["truncmod"]}
    analyzer = Analyzer(names.domains(dict.fromkeys("xyzw", (40, 50))))
    scopes = (scope for scope in numbers(text, 400) if scope["c"] > 0 or "nonneg" not in condition)
    scope = max(scopes, key=lambda scope: min(abs(scope[name]) for name in "cdekl"))
    names |= {name: const(scope[name]) for name in "cdekl"}
    expression = names.parse(_with_functions(left))
    found = applied(expression, analyzer)
    changed = found is not None and not same_expression(found, expression)
    assert changed, f"{expression} with {scope}"


def _with_functions(left: str) -> str:
    """The text with its conditions made by functions: Python turns `0 <= x` round."""
    for name, sign in (("And", " and "), ("EQ", " == "), ("LE", " <= "), ("LT", " < ")):
        if sign in left:
            return "{}({}, {})".format(name, *map(_with_functions, left.split(sign)))
    return left
