"""One store over a whole iteration space, as one statement on arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlcweb.arith.rules_integer import factors
from mlcweb.codegen.numpy.arrays import ArrayExpressions, ArrayText, IndexPart
from mlcweb.codegen.numpy.evaluate import NotConstant
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import find_nodes
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S

_REDUCERS: dict[type, tuple[str, str]] = {
    E.Add: ("np.add", "+"), E.Mul: ("np.multiply", "*"), E.Min: ("np.minimum", ""),
    E.Max: ("np.maximum", ""), E.And: ("np.logical_and", "&"), E.Or: ("np.logical_or", "|"),
}  # fmt: skip
"""Operations whose order does not matter (but for rounding): NumPy's function, and its operator."""

Reduction = tuple[type, E.PrimExpr]


def reduction_of(store: S.BufferStore) -> Reduction | None:
    """The operation and the operand, where a store is ``X[i] = X[i] op operand``."""
    value: Any = store.value
    if type(value) not in _REDUCERS or finds_its_place(store):
        return None
    if store.buffer.dtype == "float16" and type(value) in (E.Add, E.Mul):
        return None  # NumPy would sum in float32; the program rounds after each step.
    for old, operand in ((value.a, value.b), (value.b, value.a)):
        if is_same_element(old, store) and not reads(operand, store):
            return type(value), operand
    return None


def is_same_element(value: E.PrimExpr, store: S.BufferStore) -> bool:
    return (
        isinstance(value, E.BufferLoad)
        and value.buffer is store.buffer
        and all(structural_equal(a, b) for a, b in zip(value.indices, store.indices, strict=True))
    )


def reads(value: E.PrimExpr, store: S.BufferStore) -> bool:
    """Whether an expression reads the memory that a store writes."""
    return any(n.buffer.data is store.buffer.data for n in find_nodes(value, E.BufferLoad))


def finds_its_place(store: S.BufferStore) -> bool:
    """Whether the indices of a store read the memory that it writes."""
    return any(reads(index, store) for index in store.indices)


class StoreText:
    """Writes a store over the space of `expressions`. Every iteration is independent, or the store
    is a reduction."""

    def __init__(self, store: S.BufferStore, expressions: ArrayExpressions) -> None:
        self.store = store
        self.expressions = expressions
        self.sizes = expressions.space.sizes
        self.parts = expressions.index_parts(store.buffer, store.indices)
        self.target = expressions.element(store.buffer, store.indices)
        self.summed = [a for a in range(len(self.sizes)) if a not in self.target.axes]

    def text(self, reduction: Reduction | None) -> str:
        """The statement. Raises `NotConstant` where it has no array form."""
        distinct = self.distinct()
        if distinct and not self.summed:
            return self.assignment()
        if reduction is None:
            raise NotConstant("elements are written more than once")
        operation, operand = reduction
        if not distinct:
            return self.scattered(operation, operand)
        total = self.total(operation, operand)
        return self.updated(operation, self.expressions.aligned(total, self.target.axes))

    def assignment(self) -> str:
        reduction = reduction_of(self.store)
        if reduction is not None and _REDUCERS[reduction[0]][1]:
            operation, operand = reduction
            value = self.expressions.text(operand)
            return self.updated(operation, self.expressions.aligned(value, self.target.axes))
        value = self.expressions.text(self.store.value)
        return f"{self.target.text} = {_bare(self.expressions.aligned(value, self.target.axes))}"

    def updated(self, operation: type, value: str) -> str:
        name, symbol = _REDUCERS[operation]
        if symbol:
            return f"{self.target.text} {symbol}= {_bare(value)}"
        return f"{self.target.text} = {name}({self.target.text}, {_bare(value)})"

    def distinct(self) -> bool:
        """Whether different points along the target's axes are different elements."""
        axes = [axis for part in self.parts for axis in part.axes]
        if len(axes) == len(set(axes)) and all(part.step or not part.axes for part in self.parts):
            return True
        numbers = _element_numbers(self.parts, self.target.axes, self.sizes)
        return np.unique(numbers).size == numbers.size

    def scattered(self, operation: type, operand: E.PrimExpr) -> str:
        """An update in which elements occur more than once."""
        axes = tuple(sorted(self.target.axes))
        value = self.expressions.aligned(self.total(operation, operand), axes)
        shape = tuple(self.sizes[axis] for axis in axes)
        texts = [self.expressions.gathered(part, axes, i) for i, part in enumerate(self.parts)]
        name = self.expressions.scalars.names[self.store.buffer]
        function = _REDUCERS[operation][0]
        return f"{function}.at({name}, ({', '.join(texts)},), np.broadcast_to({value}, {shape}))"

    def total(self, operation: type, operand: E.PrimExpr) -> ArrayText:
        """The operand reduced over the axes that the target does not have."""
        out = self.target.axes
        if operation is E.Add:
            parts = [self.expressions.text(factor) for factor in factors(operand)]
            covered = {axis for part in parts for axis in part.axes}
            if len(parts) > 1 and covered.issuperset(self.summed):
                return self.contraction(parts, out)
        value = self.expressions.text(operand)
        return self.reduced(operation, value, operand.dtype)

    def reduced(self, operation: type, value: ArrayText, dtype: str) -> ArrayText:
        function = _REDUCERS[operation][0]
        kept = tuple(axis for axis in value.axes if axis in self.target.axes)
        positions = [i for i, axis in enumerate(value.axes) if axis not in self.target.axes]
        missing = math.prod(self.sizes[a] for a in self.summed if a not in value.axes)
        text = value.atom
        if positions:
            where = str(positions[0]) if len(positions) == 1 else str(tuple(positions))
            text = f"{function}.reduce({value.text}, axis={where}, dtype={text_of_type(dtype)})"
        if missing > 1 and operation is E.Add:
            text = f"{text} * {_number(missing, dtype)}"
        elif missing > 1 and operation is E.Mul:
            text = f"{text} ** {missing}"
        return ArrayText(text, kept)

    def contraction(self, parts: list[ArrayText], out: tuple[int, ...]) -> ArrayText:
        """The sum of a product, as a matrix product of two factors."""
        parts = sorted(parts, key=lambda f: math.prod(self.sizes[a] for a in f.axes))
        while len(parts) > 2:
            merged = self.expressions.combine("{} * {}", *parts[:2])
            parts = sorted([*parts[2:], merged], key=lambda f: len(f.axes))
        x, y = parts
        order = (*out, *self.summed)
        if _rank(y, order) < _rank(x, order):
            x, y = y, x
        out = tuple(axis for axis in out if axis in x.axes or axis in y.axes)
        self.expressions.union(ArrayText("", out))
        if len(out) == 2 and len(self.summed) == 1:
            row, column, inner = *out, self.summed[0]
            if set(x.axes) == {row, inner} and set(y.axes) == {inner, column}:
                left, right = (
                    self.expressions.aligned(x, (row, inner)),
                    self.expressions.aligned(y, (inner, column)),
                )
                return ArrayText(f"{left} @ {right}", out)
        letters = {axis: chr(ord("a") + axis) for axis in range(len(self.sizes))}
        terms = ["".join(letters[axis] for axis in axes) for axes in (x.axes, y.axes, out)]
        if len(out) + len(self.summed) > 26:
            raise NotConstant("too many axes")
        spec = f"{terms[0]},{terms[1]}->{terms[2]}"
        return ArrayText(f'contract("{spec}", {x.text}, {y.text})', out)


def _rank(value: ArrayText, order: tuple[int, ...]) -> int:
    return min((order.index(axis) for axis in value.axes), default=len(order))


def _element_numbers(parts: list[IndexPart], axes: tuple[int, ...], sizes: list[int]) -> Any:
    number: Any = 0
    for part in parts:
        if part.axes:
            shape = [part.grid.shape[part.axes.index(a)] if a in part.axes else 1 for a in axes]
            grid = part.grid.reshape(shape) - int(part.grid.min())
            number = number * (int(grid.max()) + 1) + grid
    return np.broadcast_to(number, [sizes[axis] for axis in axes])


def _bare(text: str) -> str:
    """Text without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]


def text_of_type(dtype: str) -> str:
    return "np.bool_" if dtypes.is_bool(dtype) else f"np.{dtype}"


def _number(value: int, dtype: str) -> str:
    """A count as a number of the type in which it multiplies, which may have to wrap around."""
    if dtypes.is_integer(dtype):
        value = dtypes.wrap_integer(value, dtype)
    return f"{text_of_type(dtype)}({value})"
