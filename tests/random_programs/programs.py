"""Random programs: whole functions in TVMScript, small enough to run thousands of them.

A program has a few parameters, which hold numbers from the start, and stages that read what is
there and write a new buffer as a whole or a part of an old one. What its blocks promise is true:
the iterations of spatial axes do not meet, and those of reductions may be reordered.

Three of four programs are small, of few stages with short expressions: what time there is finds
more faults in many programs than in long ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tests.random_programs.values import (
    FLOATS,
    INDEX_TYPES,
    INTEGERS,
    UNSIGNED,
    Array,
    Index,
    Size,
    Values,
)

SHAPES = ((8,), (16,), (7,), (4, 4), (3, 5), (8, 4), (2, 3, 4), (1, 6), (32,))
DTYPES = (*INTEGERS, "int32", "int32", "float32", "float32", "float32", "float64", "float16")


@dataclass(frozen=True)
class RandomProgram:
    """A program, and the arrays to run it on."""

    text: str
    parameters: tuple[Array, ...]
    exact: bool
    seed: int

    def inputs(self) -> list[np.ndarray[Any, Any]]:
        random = np.random.default_rng(self.seed)
        return [_numbers(array, self.exact, random) for array in self.parameters]


def _numbers(array: Array, exact: bool, random: np.random.Generator) -> np.ndarray[Any, Any]:
    low = 0 if array.dtype in UNSIGNED else -8
    numbers = random.integers(low, 9, array.shape).astype(array.dtype)
    if array.dtype in FLOATS and not exact:
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.1, 6e4], array.dtype)
        chosen = random.random(array.shape) < 0.3
        numbers[chosen] = random.choice(special, int(chosen.sum()))
    if array.dtype in INTEGERS and array.dtype not in INDEX_TYPES:
        ends = np.array([np.iinfo(array.dtype).min, np.iinfo(array.dtype).max], array.dtype)
        chosen = random.random(array.shape) < 0.2
        numbers[chosen] = random.choice(ends, int(chosen.sum()))
    return numbers


class Axis(NamedTuple):
    """An axis of a block: its variable, domain and binding."""

    kind: str
    variable: Index
    binding: str

    def line(self) -> str:
        name, low, high = self.variable
        domain = f"({low}, {high + 1})" if low else str(high + 1)
        return f"{name} = T.axis.{self.kind}({domain}, {self.binding})"


class Nest(NamedTuple):
    """The loops around a block, as text and as indices, and the block's axes and predicate."""

    headers: list[str]
    loops: list[Index]
    axes: list[Axis]
    predicate: str


class Draft:
    """A program being drawn."""

    def __init__(self, random: Random, symbolic: bool = False) -> None:
        self.random = random
        self.exact = random.random() < 0.7
        self.small = random.random() < 0.75
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0
        self.loaded: list[Array] = []
        self.written: list[tuple[Array, str]] = []
        self.symbolic = symbolic
        self.sizes: dict[int, Size] = {}
        self.parameters = [self.new_array("P") for _ in range(random.randrange(2, 5))]
        if symbolic:
            self.parameters = [self.with_sizes(array) for array in self.parameters]
        self.arrays = list(self.parameters)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def inside(self, *headers: str) -> Iterator[None]:
        for header in headers:
            self.line(header)
            self.depth += 1
        yield
        self.depth -= len(headers)

    def new_array(self, prefix: str = "Y", **options: Any) -> Array:
        shape: tuple[int, ...] = self.random.choice(SHAPES)
        if self.sizes:
            shape = tuple(self.sizes.get(n, n) if self.chance(0.7) else n for n in shape)
        return Array(self.fresh(prefix), shape, self.random.choice(DTYPES), **options)

    def with_sizes(self, array: Array) -> Array:
        """The array with symbols for some of its extents; equal extents are often one symbol."""
        shape: list[int] = []
        for extent in array.shape:
            if self.chance(0.4):
                shape.append(extent)
            elif extent in self.sizes and self.chance(0.8):
                shape.append(self.sizes[extent])
            else:
                shape.append(self.sizes.setdefault(extent, Size(extent, self.fresh("n"))))
        return replace(array, shape=tuple(shape))

    def allocate(self, array: Array) -> None:
        options = f', scope="{array.scope}"' if array.scope != "global" else ""
        constant = not any(isinstance(extent, Size) for extent in array.shape)
        if self.symbolic and constant and self.chance(0.3):
            strides = [1]
            for extent in reversed(array.shape[1:]):
                strides.insert(0, strides[0] * extent + self.random.randrange(3))
            options += f", strides={strides}"
        self.line(f'{array.name} = T.alloc_buffer({array.shape}, "{array.dtype}"{options})')

    def values(self, indices: Sequence[Index], *, without: Sequence[Array] = ()) -> Values:
        """What values are made of; without the arrays in the memory of some."""
        hidden = {array.memory for array in without}
        arrays = [array for array in self.arrays if array.memory not in hidden]
        if self.sizes and self.chance(0.2):
            size = self.random.choice(list(self.sizes.values()))
            indices = [*indices, Index(size.name, int(size), int(size))]
        return Values(self.random, arrays, indices, self.exact, self.small, self.loaded)

    def target(self, old: float = 0.4) -> tuple[Array, bool]:
        """What a stage writes: a new buffer, or one that holds numbers already; and whether it is
        new, so that all of it has to be written."""
        if self.chance(old):
            return self.random.choice([a for a in self.arrays if not a.viewed]), False
        array = self.new_array()
        self.allocate(array)
        return array, True

    def loop(self, low: int, extent: int, parallel: bool) -> tuple[str, Index]:
        name = self.fresh("i")
        kind = "T.serial"
        if parallel and self.chance(0.15):
            kind = self.random.choice(["T.parallel", "T.vectorized", "T.unroll"])
            if isinstance(extent, Size):
                kind = "T.parallel"  # the others need numbers
        header = f"for {name} in {kind}({low}, {low + extent}):"
        return (header if low else f"for {name} in {kind}({extent}):"), Index(
            name, low, low + extent - 1
        )

    def nest(self, extents: Sequence[int], kinds: Sequence[str]) -> Nest:
        """Loops and the axes that are bound to them, in many ways."""
        nest = Nest([], [], [], "")
        if len(extents) > 1 and set(kinds) == {"spatial"} and self.chance(0.12):
            return self.fused(extents)
        parts: list[list[tuple[str, Index]]] = []
        predicates = []
        for extent, kind in zip(extents, kinds, strict=True):
            styles = ["plain"] * 4 + ["offset", "split", "shifted"]
            style = self.random.choice(styles + ["reversed"] * (kind == "spatial"))
            begin = self.random.randrange(1, 4) if style in ("offset", "shifted") else 0
            variable = Index(self.fresh("v"), 0, extent - 1)
            parallel = kind == "spatial"
            if style == "split" and extent > 1:
                factor = self.random.randrange(2, extent + 1)
                count = -(-extent // factor)
                pair = [self.loop(0, count, parallel), self.loop(0, factor, parallel)]
                binding = f"{pair[0][1].name} * {factor} + {pair[1][1].name}"
                parts.append(pair)
                if count * factor > extent:
                    predicates.append(f"{binding} < {extent}")
            else:
                header, index = self.loop(begin, extent, parallel)
                parts.append([(header, index)])
                binding = index.name
                if style == "offset":
                    binding = f"{index.name} - {begin}"
                elif style == "reversed":
                    binding = f"{extent - 1} - {index.name}"
                elif style == "shifted":
                    variable = Index(variable.name, begin, begin + extent - 1)
            nest.axes.append(Axis(kind, variable, binding))
        # Loops in any order, but those of reductions, whose first iteration is the init's.
        while any(parts):
            queue = self.random.choice([part for part in parts if part])
            if self.chance(0.7):
                queue = next(part for part in parts if part)
            reductions = [p for p, k in zip(parts, kinds, strict=True) if p and k != "spatial"]
            if any(queue is part for part in reductions):
                queue = reductions[0]
            header, index = queue.pop(0)
            nest.headers.append(header)
            nest.loops.append(index)
        return nest._replace(predicate=" and ".join(predicates))

    def fused(self, extents: Sequence[int]) -> Nest:
        header, index = self.loop(0, prod(extents), True)
        nest, below = Nest([header], [index], [], ""), prod(extents)
        for extent in extents:
            below //= extent
            binding = (
                f"{index.name} // {below} % {extent}" if below > 1 else f"{index.name} % {extent}"
            )
            nest.axes.append(Axis("spatial", Index(self.fresh("v"), 0, extent - 1), binding))
        return nest

    def plain_nest(self, extents: Sequence[int]) -> Nest:
        """A loop for each axis."""
        nest = Nest([], [], [], "")
        for extent in extents:
            header, index = self.loop(0, extent, True)
            nest.headers.append(header)
            nest.loops.append(index)
            variable = Index(self.fresh("v"), 0, extent - 1)
            nest.axes.append(Axis("spatial", variable, index.name))
        return nest

    def block(self, nest: Nest, body: Callable[[], None], where: str = "") -> None:
        """The loops and the block in them."""
        predicate = " and ".join(part for part in (nest.predicate, where) if part)
        with self.inside(*nest.headers, f'with T.block("{self.fresh("B")}"):'):
            for axis in nest.axes:
                self.line(axis.line())
            if predicate:
                self.line(f"T.where({predicate})")
            here, reads, writes = len(self.lines), len(self.loaded), len(self.written)
            body()
            if self.chance(0.12):
                self.declare(here, self.loaded[reads:], self.written[writes:])

    def declare(
        self, here: int, loaded: Sequence[Array], written: Sequence[tuple[Array, str]]
    ) -> None:
        """T.reads of whole buffers, as it was once printed also of what a reduction updates, and
        T.writes, of elements where that can be said outside of the block's loops."""
        places: dict[Array, set[str]] = {}
        for array, place in written:
            places.setdefault(array, set()).add(place)
        known = " ".join(self.lines[:here])
        reads = [_whole(array) for array in dict.fromkeys([*loaded, *places])]
        writes = [
            f"{array.name}[{min(options)}]"
            if len(options) == 1 and all(name in known for name in _NAME.findall(min(options)))
            else _whole(array)
            for array, options in places.items()
        ]
        pad = "    " * self.depth
        self.lines[here:here] = [
            f"{pad}T.reads({', '.join(reads)})",
            f"{pad}T.writes({', '.join(writes)})",
        ]

    def stored(self, array: Array, place: str, value: str, running: bool = False) -> None:
        """A store. Where values build on each other (`running`), they are kept small."""
        if running and array.dtype in INDEX_TYPES:
            value = f"({value}) % T.{array.dtype}(97)"
        self.written.append((array, place))
        self.line(f"{array.name}[{place}] = {value}")

    def finish(self, array: Array, new: bool) -> None:
        if new:
            self.arrays.append(array)


_NAME = re.compile(r"[a-z]+\d+")


def _whole(array: Array) -> str:
    return f"{array.name}[{', '.join(f'0:{extent}' for extent in array.shape)}]"


def place_of(indices: Sequence[Index]) -> str:
    """An element whose indices are those of axes, which may begin above zero."""
    return ", ".join(f"{i.name} - {i.low}" if i.low else i.name for i in indices)


def return_unread(draft: Draft) -> None:
    """Make parameters of the new buffers that nothing reads."""
    read = {array.name for array in draft.loaded}
    for array in draft.arrays:
        if array not in draft.parameters and not array.viewed and array.name not in read:
            draft.lines = [text for text in draft.lines if f" {array.name} = T.alloc" not in text]
            draft.parameters.append(array)


def _matched(draft: Draft, array: Array) -> list[str]:
    """A parameter, with symbols for what is known of its layout."""
    symbols, layout = [], ""
    if draft.chance(0.3):
        symbols = [draft.fresh("s") for _ in array.shape]
        layout = f", strides=[{', '.join(symbols)}]"
    if draft.chance(0.3):
        symbols.append(draft.fresh("o"))
        layout += f", elem_offset={symbols[-1]}, offset_factor=1"
    matched = f'T.match_buffer({array.name.lower()}, {array.shape}, "{array.dtype}"{layout})'
    lines = [*(f"{symbol} = T.int32()" for symbol in symbols), f"{array.name} = {matched}"]
    return [f"    {line}" for line in lines]


def text_of(draft: Draft) -> str:
    if draft.symbolic:
        parameters = ", ".join(f"{a.name.lower()}: T.handle" for a in draft.parameters)
        lines = [*(f"    {size.name} = T.int32()" for size in draft.sizes.values())]
        lines += [line for array in draft.parameters for line in _matched(draft, array)]
        lines += draft.lines
    else:
        parameters = ", ".join(
            f'{a.name}: T.Buffer({a.shape}, "{a.dtype}")' for a in draft.parameters
        )
        lines = draft.lines
    if draft.chance(0.4):
        lines = ['    T.func_attr({"tir.noalias": True})', *lines]
    return "\n".join(["@T.prim_func", f"def main({parameters}):", *lines]) + "\n"
