"""Expressions for the tests of `arith`: from text, by chance, and evaluated by Python."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Range
from mlcweb.tir.intrinsics import if_then_else

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": arithmetic.minimum, "max": arithmetic.maximum, "And": arithmetic.logical_and,
    "Or": arithmetic.logical_or, "Not": arithmetic.logical_not, "Select": arithmetic.select,
    "truncdiv": arithmetic.truncdiv, "truncmod": arithmetic.truncmod, "EQ": arithmetic.equal,
    "NE": arithmetic.not_equal, "LT": arithmetic.less, "LE": arithmetic.less_equal,
    "if_then_else": if_then_else,
    **{
        dtype: lambda value, dtype=dtype: arithmetic.cast(dtype, value)
        for dtype in INTEGERS
    },
}  # fmt: skip

Domains = dict[str, tuple[Any, Any]]
"""(min, extent) of variables by name; numbers or texts."""


class Names(dict[str, Any]):
    """The functions and variables of texts; a variable is made when it is first named."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS)

    def __missing__(self, name: str) -> E.Var:
        self[name] = E.Var(name, "int32")
        return self[name]

    def parse(self, text: Any) -> E.PrimExpr:
        return arithmetic.convert(eval(str(text), {"__builtins__": {}}, self))

    def domains(self, domains: Mapping[str, tuple[Any, Any]]) -> dict[E.Var, Range]:
        return {
            self[name]: Range(self.parse(low), self.parse(extent))
            for name, (low, extent) in domains.items()
        }


def truncdiv(a: Any, b: Any) -> Any:
    """Division that rounds towards zero; that of floats does not round."""
    if isinstance(a, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    E.Add: lambda a, b: a + b, E.Sub: lambda a, b: a - b, E.Mul: lambda a, b: a * b,
    E.FloorDiv: lambda a, b: a // b, E.FloorMod: lambda a, b: a % b,
    E.Div: truncdiv, E.Mod: lambda a, b: a - b * truncdiv(a, b),
    E.Min: min, E.Max: max, E.LT: lambda a, b: a < b, E.LE: lambda a, b: a <= b,
    E.GT: lambda a, b: a > b, E.GE: lambda a, b: a >= b, E.EQ: lambda a, b: a == b,
    E.NE: lambda a, b: a != b, E.And: lambda a, b: a and b, E.Or: lambda a, b: a or b,
}  # fmt: skip


def evaluate(expression: Any, values: Mapping[E.Var, int]) -> Any:
    """The value of an expression where its variables have `values`."""
    if isinstance(expression, E.Var):
        return values[expression]
    if isinstance(expression, E.IntImm):
        return bool(expression.value) if expression.dtype == "bool" else expression.value
    if isinstance(expression, E.FloatImm):
        return expression.value
    if isinstance(expression, E.Not):
        return not evaluate(expression.a, values)
    if isinstance(expression, (E.Select, E.Call)):
        parts = (
            expression.args
            if isinstance(expression, E.Call)
            else (expression.condition, expression.true_value, expression.false_value)
        )
        return evaluate(parts[1] if evaluate(parts[0], values) else parts[2], values)
    if isinstance(expression, E.Cast):
        return dtypes.wrap_integer(evaluate(expression.value, values), expression.dtype)
    a, b = evaluate(expression.a, values), evaluate(expression.b, values)
    value = _OPERATIONS[type(expression)](a, b)
    if dtypes.is_integer(expression.dtype):
        return dtypes.wrap_integer(value, expression.dtype)
    return value


def assignments(domains: Mapping[E.Var, Range], limit: int = 400) -> Iterator[dict[E.Var, int]]:
    """All values of the variables (constant domains), or `limit` of them by chance."""
    ranges = [range(int(d.min), int(d.min) + int(d.extent)) for d in domains.values()]
    total = 1
    for values in ranges:
        total *= len(values)
    if total <= limit:
        for values in itertools.product(*ranges):
            yield dict(zip(domains, values, strict=True))
        return
    rng = random.Random(0)
    for _ in range(limit):
        yield {v: rng.choice(r) for v, r in zip(domains, ranges, strict=True)}


def ask_oracle(python: str, questions: list[dict[str, Any]]) -> list[Any]:
    """The answers of the real TVM that the interpreter `python` has."""
    script = Path(__file__).with_name("oracle_answers.py")
    done = subprocess.run(
        [python, str(script)], input=json.dumps(questions), capture_output=True, text=True,
        check=True, cwd="/",
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


class Chance:
    """Random index expressions, as splitting, fusing and moving loops make them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        names = "ijkl"[: self.rng.randint(1, 4)]
        self.extents = {name: self.rng.choice([1, 2, 3, 4, 5, 8, 16, 32]) for name in names}
        self.domains: Domains = {name: (0, extent) for name, extent in self.extents.items()}

    def atom(self) -> str:
        return self.rng.choice(list(self.extents))

    def factor(self) -> int:
        return self.rng.choice([2, 3, 4, 5, 8, 16, 32, 64])

    def fused(self) -> str:
        """Loop variables fused into one index."""
        names = self.rng.sample(list(self.extents), self.rng.randint(1, len(self.extents)))
        text = names[0]
        for name in names[1:]:
            text = f"({text}) * {self.extents[name]} + {name}"
        return text

    def index(self, depth: int = 2) -> str:
        rng = self.rng
        choice = rng.randrange(9)
        if depth == 0 or choice == 0:
            return self.atom() if rng.random() < 0.6 else self.fused()
        inner = self.index(depth - 1)
        if choice in (1, 2):
            return f"({inner}) // {self.factor()}"
        if choice in (3, 4):
            return f"({inner}) % {self.factor()}"
        if choice == 5:
            return f"({inner}) * {self.factor()} + {self.index(depth - 1)}"
        if choice == 6:
            return f"({inner}) + {self.index(depth - 1)}"
        if choice == 7:
            return f"({inner}) + {rng.randint(-4, 9)}"
        factor = self.factor()
        return f"({inner}) // {factor} * {factor} + ({inner}) % {factor}"

    def narrow(self) -> str:
        """An index with arithmetic of a type that is left: it wraps."""
        rng = self.rng
        dtype = rng.choice(["int8", "uint8", "int16", "uint16", "uint32", "uint64"])
        a, b = (f"{dtype}({self.index(1)})" for _ in range(2))
        # The least value divided by -1 leaves its type, too.
        signed = not dtype.startswith("u")
        constant = f"{dtype}({-1 if signed and rng.random() < 0.2 else self.factor()})"
        if signed and rng.random() < 0.2:
            a = f"{a} * {dtype}({dtypes.min_value(dtype)})"
        value = rng.choice(
            [
                a,
                f"{a} + {b}",
                f"{a} - {b}",
                f"{a} * {constant}",
                f"truncdiv({a} - {b}, {constant})",
                f"truncmod({a} * {constant}, {constant})",
                f"({a} - {b}) // {constant}",
                f"({a} * {constant}) % {constant}",
                f"max({a} * {constant}, {b}) - {constant}",
            ]
        )
        # Arithmetic of indices is taken never to overflow, so they hold all values of the type.
        if dtype == "uint64":
            value = f"({value}) % {dtype}(1000003)"
        index = "int32" if dtype[-2:] in ("t8", "16") else "int64"
        return f"{index}({value}) {rng.choice(['', f'+ {self.atom()}', f'// {self.factor()}'])}"

    def arithmetic(self, depth: int = 3) -> str:
        """Any integer arithmetic, as it may stand in a program: divisors are not 0 if they are
        constants."""
        rng = self.rng
        if depth == 0:
            return self.atom() if rng.random() < 0.65 else str(rng.choice([1, 2, 3, 4, 8, -1, -2]))
        a, b = (self.arithmetic(depth - 1 if rng.random() < p else 0) for p in (0.8, 0.6))
        divisor = rng.choice(["2", "3", "4", "8", "8", "-2", self.atom()])
        return rng.choice(
            [
                f"({a}) + ({b})",
                f"({a}) - ({b})",
                f"({a}) * {self.arithmetic(0)}",
                f"({a}) // ({divisor})",
                f"({a}) % ({divisor})",
                f"truncdiv({a}, {divisor})",
                f"truncmod({a}, {divisor})",
                f"min({a}, {b})",
                f"max({a}, {b})",
            ]
        )

    def comparison(self) -> str:
        """Two values of any arithmetic compared."""
        rng = self.rng
        a, b = self.arithmetic(2), self.arithmetic(rng.choice([0, 0, 1, 2]))
        form = rng.choice(
            ["{} < {}", "{} <= {}", "{} > {}", "{} >= {}", "EQ({}, {})", "NE({}, {})"]
        )
        return form.format(f"({a})", f"({b})")

    def condition(self) -> str:
        operator = self.rng.choice(["<", "<", "<=", ">=", ">", "=="])
        bound = self.rng.choice([self.rng.randint(0, 70), self.index(1)])
        if operator == "==":
            return f"EQ({self.index()}, {bound})"
        return f"{self.index()} {operator} {bound}"

    def predicate(self) -> str:
        """A bound of fused loops, as a split that does not divide makes; often none."""
        rng = self.rng
        parts = []
        if rng.random() < 0.4:
            parts.append(f"{self.fused()} < {rng.randint(1, 40)}")
        if rng.random() < 0.1:
            parts.append(f"{self.fused()} >= {rng.randint(1, 10)}")
        if len(parts) == 2:
            return f"And({parts[0]}, {parts[1]})"
        return parts[0] if parts else "True"

    def region(self) -> list[tuple[str, int]]:
        """What a consumer at (x, y) reads: tiles, windows, strides, digits; (min, extent) pairs."""
        rng = self.rng
        result = []
        for _ in range(rng.randint(1, 3)):
            loop, free, factor = self.atom(), rng.choice("xy"), rng.choice([1, 2, 4, 8, 16])
            start = rng.choice(
                [
                    f"{free} * {self.extents[loop]} + {loop}",
                    f"({free} * {factor} + {loop}) * 2 + {self.atom()}",
                    f"{free} * {factor} + {loop} + {rng.randint(-2, 3)}",
                    f"{free} * {factor} + {loop} + {self.atom()}",
                    self.index(2),
                ]
            )
            if rng.random() < 0.2:
                start = f"{rng.choice(['min', 'max'])}({start}, {rng.randint(0, 31)})"
            result.append((start, rng.choice([1, 1, 1, 2, 4])))
        return result

    def expression(self) -> str:
        rng = self.rng
        choice = rng.randrange(12)
        if choice < 7:
            return self.index(3)
        if choice < 9:
            return self.condition()
        if choice == 9:
            return f"And({self.condition()}, {self.condition()})"
        return f"{rng.choice(['min', 'max'])}({self.index()}, {self.index()})"
