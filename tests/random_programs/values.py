"""Random expressions, as the text of TVMScript: every operand has its type written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "float32", "float64")
INDEX_TYPES = ("int32", "int64")
"""Their arithmetic is taken never to overflow, so that it must not."""


class Size(int):
    """An extent that programs call by a name: it counts as the number that it is in the run."""

    name: str
    more: int

    def __new__(cls, value: int, name: str, more: int = 0) -> Size:
        size = super().__new__(cls, value)
        size.name, size.more = name, more
        return size

    def __add__(self, other: int) -> Size:
        return Size(int(self) + other, self.name, self.more + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Size:
        return self + -other

    def __str__(self) -> str:
        sign = "-" if self.more < 0 else "+"
        return f"{self.name} {sign} {abs(self.more)}" if self.more else self.name

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return f"({self!s})" if self.more else self.name


class Index(NamedTuple):
    """An integer variable with its least and its greatest value."""

    name: str
    low: int
    high: int


@dataclass(frozen=True)
class Array:
    """A buffer of the program, or a view of the memory of the one that is called `viewed`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str = "global"
    viewed: str = ""

    @property
    def memory(self) -> str:
        """The name of the array that owns the memory."""
        return self.viewed or self.name


class Values:
    """Draws values from the arrays and indices in sight.

    `exact`: floats are whole numbers, whose sums do not depend on their order. `small`: few
    operators. `types`: those that values are cast from.
    """

    def __init__(
        self, random: Random, arrays: Sequence[Array], indices: Sequence[Index], exact: bool,
        small: bool, loaded: list[Array], types: Sequence[str] = (*INTEGERS, *FLOATS),
    ) -> None:  # fmt: skip
        self.random = random
        self.arrays = arrays
        self.indices = indices
        self.exact = exact
        self.leaves = 0.5 if small else 0.15
        self.loaded = loaded
        self.types = types

    def index(self, extent: int) -> str:
        """An index of a dimension, in bounds."""
        random = self.random
        if not self.indices or random.random() < 0.08:
            return str(random.randrange(extent))
        if random.random() < 0.25:
            return self.linear_index(extent)
        name, low, high = random.choice(self.indices)
        forms = [f"({name} + {random.randrange(1, 5)}) % {extent}"]
        if low >= 0 and high < extent:
            forms += [name] * 4
        if low >= 0 and high // 2 < extent:
            forms.append(f"{name} // 2")
        if high - low < extent:
            forms += [f"{high} - {name}", f"{name} - {low}" if low else name]
        other = random.choice(self.indices).name
        forms.append(f"({name} * {random.randrange(1, 4)} + {other}) % {extent}")
        numbers = [array for array in self.arrays if array.dtype in ("int8", "uint8", "int32")]
        if numbers and random.random() < 0.15:
            array = random.choice(numbers)
            self.loaded.append(array)
            places = ", ".join(self.plain_index(extent) for extent in array.shape)
            return f'T.Cast("int32", {array.name}[{places}]) % {extent}'
        return random.choice(forms)

    def linear_index(self, extent: int) -> str:
        """A sum of indices with factors, counted up or down."""
        random = self.random
        top = random.randrange(min(3, extent))
        text = str(top)
        for name, low, high in self.indices:
            factor = random.choice((0, 0, 1, 1, 2, 5))
            if factor and low >= 0 and top + factor * high < extent:
                text, top = f"{text} + {name} * {factor}", top + factor * high
        return random.choice([text, text, f"({text}) // 2", f"{top} - ({text})"])

    def plain_index(self, extent: int) -> str:
        fitting = [n for n, low, high in self.indices if low >= 0 and high < extent]
        return self.random.choice(fitting) if fitting else str(self.random.randrange(extent))

    def element(self, array: Array) -> str:
        """An element of an array; often the one that the indices in order give."""
        self.loaded.append(array)
        here = self.indices[: len(array.shape)]
        fits = len(here) == len(array.shape) and all(
            index.low >= 0 and index.high < extent
            for index, extent in zip(here, array.shape, strict=True)
        )
        if fits and self.random.random() < 0.4:
            return f"{array.name}[{', '.join(index.name for index in here)}]"
        return f"{array.name}[{', '.join(map(self.index, array.shape))}]"

    def constant(self, dtype: str) -> str:
        random = self.random
        if dtype in FLOATS and not self.exact and random.random() < 0.4:
            special = random.choice(["'nan'", "'inf'", "-0.0", "0.0", "0.1", "-2.5"])
            return f"T.{dtype}({special})"
        return f"T.{dtype}({random.randrange(0 if dtype in UNSIGNED else -4, 6)})"

    def leaf(self, dtype: str) -> str:
        random = self.random
        chance = random.random()
        if chance < 0.12 and self.indices:
            return f'T.Cast("{dtype}", {random.choice(self.indices).name})'
        same = [array for array in self.arrays if array.dtype == dtype]
        if same and chance < 0.75:
            return self.element(random.choice(same))
        if self.arrays and chance < 0.9:
            array = random.choice(self.arrays)
            return self.cast(dtype, self.element(array), array.dtype)
        return self.constant(dtype)

    def cast(self, dtype: str, text: str, source: str) -> str:
        if dtype == source:
            return text
        cast = f'T.Cast("{dtype}", {text})'
        return self.small(dtype, cast) if dtype in INDEX_TYPES else cast

    def small(self, dtype: str, text: str) -> str:
        """The value, kept in a range in which nothing overflows."""
        return f"({text}) % T.{dtype}(97)" if dtype in INDEX_TYPES else text

    def value(self, dtype: str, depth: int = 2) -> str:
        """An expression of a type."""
        random = self.random
        if depth == 0 or random.random() < self.leaves:
            return self.leaf(dtype)
        a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        forms = [
            f"{a} + {b}", f"{a} - {b}", f"{a} + {b}",
            f"T.max({a}, {b})", f"T.min({a}, {b})",
            f"T.Select({self.condition(depth)}, {a}, {b})",
            f"T.if_then_else({self.condition(depth)}, {a}, {b})",
            self.guarded(dtype, a),
            self.cast(dtype, self.value(other := random.choice(self.types), 1), other),
        ]  # fmt: skip
        if dtype in INDEX_TYPES:
            forms.append(f"{a} * T.{dtype}({random.randrange(-2, 4)})")
        else:
            forms.append(f"{a} * {b}")
        if dtype in INTEGERS:
            forms += self.integer_forms(dtype, a, b)
        elif not self.exact:
            forms += [f"{a} / T.abs({b})", f"T.sqrt(T.abs({a}))"]
        return f"({random.choice(forms)})"

    def integer_forms(self, dtype: str, a: str, b: str) -> list[str]:
        divisor = f"T.{dtype}({self.random.randrange(1, 8)})"
        operators = [f"{a} // {divisor}", f"{a} % {divisor}"]
        operators += [f"T.truncdiv({a}, {divisor})", f"T.truncmod({a}, {divisor})"]
        same = [array for array in self.arrays if array.dtype == dtype]
        c = self.element(self.random.choice(same)) if same else f"T.{dtype}(3)"
        form = self.random.choice(["{0} // {1}", "{0} % {1}", "T.truncdiv({0}, {1})"])
        guarded = f"T.if_then_else({c} > T.{dtype}(0), {form.format(a, c)}, {b})"
        bits = [f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})"]
        shift = f"T.{dtype}({self.random.randrange(0, 3)})"
        shifts = [f"T.shift_left({a}, {shift})", f"T.shift_right({a}, {shift})"]
        return [*map(self.random.choice, (operators, operators, bits, shifts)), guarded]

    def guarded(self, dtype: str, otherwise: str) -> str:
        """A load that is out of bounds but for the condition around it."""
        same = [array for array in self.arrays if array.dtype == dtype]
        if not same or not self.indices:
            return otherwise
        array = self.random.choice(same)
        name = self.random.choice(self.indices).name
        shift, extent = self.random.randrange(1, 3), array.shape[0]
        self.loaded.append(array)
        rest = "".join(f", {self.index(extent)}" for extent in array.shape[1:])
        inside = f"{shift} <= {name} and {name} < {extent + shift}"
        return f"T.if_then_else({inside}, {array.name}[{name} - {shift}{rest}], {otherwise})"

    def condition(self, depth: int = 1) -> str:
        random = self.random
        sign = random.choice(["<", "<=", ">", ">=", "==", "!="])
        if self.indices and random.random() < 0.5:
            name, low, high = random.choice(self.indices)
            return f"{name} {sign} {random.randrange(low, high + 2)}"
        dtype = random.choice([array.dtype for array in self.arrays] or ["int32"])
        one = f"{self.leaf(dtype)} {sign} {self.leaf(dtype)}"
        if depth > 1 and random.random() < 0.3:
            joined = f"({one}) {random.choice(['and', 'or'])} ({self.condition(1)})"
            return joined
        return one
