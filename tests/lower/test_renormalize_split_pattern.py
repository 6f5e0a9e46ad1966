"""RenormalizeSplitPattern: what TVM 0.27 makes of quotients and comparisons, and equal values."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule
from mlcweb.ir import assert_structural_equal
from mlcweb.lower import transform
from mlcweb.script import from_source

HEAD = """
@T.prim_func
def main(A: T.Buffer((12,), "int32"), n: T.int32):
    for a, b, x in T.grid(3, 4, 12):
        """


def program(statement: str) -> IRModule:
    return IRModule({"main": from_source(HEAD + statement)})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("(b * 32 + x) // 64", "(b + x // 32) // 2"),
        ("(a * 2048 + b * 32 + x) // 48", "(a * 128 + (b * 2 + x // 16)) // 3"),
        ("(b * 6 + 5) // 4", "(b * 3 + 2) // 2"),
        ("(b * 32 + x) // 32", "b + x // 32"),
        ("(b * 32 + x) % 64 // 4", "(b * 8 + x // 4) % 16"),
        ("(x + b * 32) // 64", "(x + b * 32) // 64"),
        ("(b * 32 + x) // 7", "(b * 32 + x) // 7"),
        ("(b * 32 + x) % 64 // 48", "(b * 32 + x) % 64 // 48"),
        ("(b * n + x) // n", "(b * n + x) // n"),
        ("b // 4 // 8", "b // 4 // 8"),
    ],
)
def test_quotients(value: str, expected: str) -> None:
    new = transform.RenormalizeSplitPattern()(program(f"A[x] = {value}"))
    assert_structural_equal(new, program(f"A[x] = {expected}"), map_free_vars=True)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("b * 32 + x < 64", "(b + x // 32) // 2 < 1"),
        ("b * 32 + x >= 64", "1 <= (b + x // 32) // 2"),
        ("x > 3", "3 < x"),
        ("not b < 4", "1 <= b // 4"),
        ("x <= 3", "x <= 3"),
        ("x < -4", "x < -4"),
        ("x == 4", "x == 4"),
    ],
)
def test_conditions(condition: str, expected: str) -> None:
    new = transform.RenormalizeSplitPattern()(program(f"if {condition}:\n            A[x] = 1"))
    other = program(f"if {expected}:\n            A[x] = 1")
    assert_structural_equal(new, other, map_free_vars=True)


@pytest.mark.parametrize("seed", range(60))
def test_random_quotients_keep_their_values(seed: int) -> None:
    random = Random(seed)

    def term() -> str:
        return random.choice(["a", "b", "x", "n", str(random.randint(-9, 9))])

    def value(depth: int) -> str:
        if depth == 0:
            return term()
        factor, divisor = random.randint(-4, 48), random.choice([1, 2, 3, 4, 6, 8, 12, 16, 48])
        inner = value(depth - 1)
        return random.choice(
            [
                f"({term()} * {factor} + {inner})",
                f"({term()} * {factor} + {term()} * {divisor} + {inner})",
                f"({inner}) // {divisor}",
                f"({inner}) % {divisor}",
                f"({inner}) % {divisor * 4} // {divisor}",
            ]
        )

    order = random.choice(["<", "<=", ">", ">="])
    source = (
        f"A[x] = ({value(4)}) % 1000\n        if {value(3)} {order} {random.randint(-9, 60)}:\n"
        f"            A[x] = A[x] - 1"
    )
    mod = program(source)
    new = transform.RenormalizeSplitPattern()(mod)
    n = random.randint(-20, 20)
    results = []
    for each in (mod, new):
        array = tvm.nd.array(np.zeros(12, "int32"))
        tvm.build(each, "interpreter")["main"](array, n)
        results.append(array.numpy().tolist())
    assert results[0] == results[1], new.script()
