"""Expressions over a whole iteration space, as the text of NumPy expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlcweb.arith import conjunction
from mlcweb.codegen.interpreter.expressions import ExpressionText
from mlcweb.codegen.interpreter.operators import fill, form_of
from mlcweb.codegen.numpy.evaluate import Grid, NotConstant, evaluate
from mlcweb.codegen.numpy.points import TooLarge
from mlcweb.codegen.numpy.space import Space, separate
from mlcweb.ir.visitor import Dispatcher, find_nodes, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import logical_not, may_trap
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.operators import (
    NODE_OPERATORS,
    OPERATORS,
    Family,
    key_of,
    operands_of,
    operator_name,
)
from mlcweb.tir.substitute import substitute, variables_in

MAX_ELEMENTS = 1 << 24
"""Intermediate arrays have no more elements than this; larger spaces keep an outer loop."""

_ATOM = re.compile(r"[\w.]+(\([^()]*\)|\[[^\[\]]*\])?")


@dataclass(frozen=True, slots=True)
class ArrayText:
    """The text of an array; its dimensions run along these axes of the space, in this order."""

    text: str
    axes: tuple[int, ...] = ()

    @property
    def atom(self) -> str:
        return self.text if _ATOM.fullmatch(self.text) else f"({self.text})"


@dataclass(frozen=True, slots=True)
class IndexPart:
    """An index of one dimension of a buffer: a fixed text, plus a grid over some axes."""

    fixed: str
    axes: tuple[int, ...]
    grid: Grid
    low: int
    high: int

    @property
    def step(self) -> int:
        """The step of an index that a slice can stand for; 0 where none can."""
        if len(self.axes) != 1:
            return 0
        if len(self.grid) == 1:
            return 1
        steps = np.diff(self.grid)
        return int(steps[0]) if steps[0] > 0 and (steps == steps[0]).all() else 0

    @property
    def text(self) -> str:
        """A number or a slice."""
        if not self.axes:
            return self.fixed or str(int(self.grid))
        start, step = int(self.grid[0]), self.step
        stop = int(self.grid[-1]) + 1
        prefix = f"{self.fixed} + " if self.fixed else ""
        ends = f"{prefix}{start}:{prefix}{stop}"
        return ends if step == 1 else f"{ends}:{step}"


def index_text(texts: Iterable[str]) -> str:
    """What stands in the brackets of an access; an array without dimensions has the index ()."""
    return ", ".join(texts) or "()"


class ArrayExpressions(Dispatcher):
    """Writes expressions over a space. `scalars` writes what depends on no axis of it.

    `constants` collects the arrays that the text refers to by name. Expressions that have no array
    form raise `NotConstant`.
    """

    def __init__(self, scalars: ExpressionText, space: Space, constants: dict[str, Any]) -> None:
        self.scalars = scalars
        self.space = space
        self.constants = constants
        self.conditions: list[E.PrimExpr] = []
        self.varying = set(space.coordinates)
        self.based = {
            var: (c.base + var) for var, c in space.coordinates.items() if c.base is not None
        } | space.bases

    def text(self, expression: E.PrimExpr) -> ArrayText:
        if dtypes.lanes(expression.dtype) > 1:
            raise NotConstant("vector")
        if not self.depends(expression):
            return ArrayText(self.scalar(expression))
        handler = self.table.get(type(expression))
        if handler is None:
            raise NotConstant(type(expression).__name__)
        return handler(self, expression)

    def depends(self, expression: E.PrimExpr) -> bool:
        return any(node in self.varying for node in find_nodes(expression, E.Var))

    def scalar(self, expression: E.PrimExpr) -> str:
        """A value without axes, of exactly its type so that arrays keep theirs."""
        expression = substitute(expression, self.space.bases)
        if self.conditions and (may_trap(expression) or not self.is_in_bounds(expression)):
            raise NotConstant("computed only where a condition holds")
        text = self.scalars.text(expression)
        typed = dtypes.is_integer(expression.dtype)
        return f"np.{expression.dtype}({text})" if typed else text

    def is_in_bounds(self, expression: E.PrimExpr) -> bool:
        """Whether every element that is read is known to exist."""
        return all(
            self.scalars.ranges.in_bounds(node.buffer, node.indices)
            for node in find_nodes(expression, E.BufferLoad)
        )

    def constant(self, values: np.ndarray[Any, Any], hint: str) -> str:
        """The name of a constant array."""
        for name, array in self.constants.items():
            same = array.dtype == values.dtype and array.shape == values.shape
            if same and np.array_equal(array, values):
                return name
        name = self.scalars.names.fresh(hint)
        self.constants[name] = values
        return name

    def aligned(self, value: ArrayText, axes: Sequence[int]) -> str:
        """`value` with its dimensions in the order of `axes`, and dimensions of one for others."""
        if value.axes == tuple(axes) or not value.axes:
            return value.atom
        order = [value.axes.index(axis) for axis in axes if axis in value.axes]
        text = value.atom
        if order == [1, 0]:
            text = f"{text}.T"
        elif order != sorted(order):
            text = f"{text}.transpose({', '.join(map(str, order))})"
        if len(order) == len(axes):
            return text
        first = next(i for i, axis in enumerate(axes) if axis in value.axes)
        marks = [":" if axis in value.axes else "None" for axis in axes[first:]]
        return f"{text}[{', '.join(marks)}]" if "None" in marks else text

    def union(self, *values: ArrayText) -> tuple[int, ...]:
        axes = tuple(sorted({axis for value in values for axis in value.axes}))
        if len(axes) > 1 and math.prod(self.space.sizes[axis] for axis in axes) > MAX_ELEMENTS:
            raise TooLarge(axes)
        return axes

    def combine(self, form: str, *values: ArrayText) -> ArrayText:
        """An elementwise operation: `form` with the aligned operands filled in."""
        axes = self.union(*values)
        return ArrayText(form.format(*(self.aligned(value, axes) for value in values)), axes)

    @on(E.Var)
    def variable(self, var: E.Var) -> ArrayText:
        coordinate = self.space.coordinates[var]
        values = coordinate.values.astype(var.dtype)
        text = self.constant(values, f"{var.name}_values")
        if coordinate.base is not None:
            text = f"{self.scalar(coordinate.base)} + {text}"
        return ArrayText(text, (coordinate.axis,))

    @on(*NODE_OPERATORS)
    def operation(self, expression: E.PrimExpr) -> ArrayText:
        operands, form = operands_of(expression), form_of(expression)
        assert form is not None
        if OPERATORS[key_of(expression)].family is Family.CHOICE:
            return self.choice(*operands)
        template = fill(form.array, expression, ["{}"] * len(operands))
        return self.combine(template, *map(self.text, operands))

    def choice(self, condition: E.PrimExpr, yes: E.PrimExpr, no: E.PrimExpr) -> ArrayText:
        return self.combine(
            "np.where({}, {}, {})",
            self.text(condition),
            self.under(condition, yes),
            self.under(logical_not(condition), no),
        )

    def under(self, condition: E.PrimExpr, value: E.PrimExpr) -> ArrayText:
        """A value that counts only where a condition holds."""
        self.conditions.append(condition)
        try:
            return self.text(value)
        finally:
            self.conditions.pop()

    @on(E.Let)
    def let(self, expression: E.Let) -> ArrayText:
        return self.text(substitute(expression.body, {expression.var: expression.value}))

    @on(E.Call)
    def call(self, call: E.Call) -> ArrayText:
        if form_of(call) is None:
            raise NotConstant(operator_name(call))
        return self.operation(call)

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> ArrayText:
        try:
            return self.element(load.buffer, load.indices)
        except NotConstant:
            if self.conditions:
                raise
            return self.checked_element(load)

    def checked_element(self, load: E.BufferLoad) -> ArrayText:
        """Elements whose indices are only known, and checked, when the code runs."""
        name, indices = self.scalars.names[load.buffer], [self.text(i) for i in load.indices]
        site = self.scalars.new_site("Reading", load.buffer, load.span)
        form = f"{name}[at({site}, {name}, {', '.join(['{}'] * len(indices))})]"
        return self.combine(form, *indices)

    def element(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> ArrayText:
        """The elements of a buffer that an access touches over the space."""
        name = self.scalars.names[buffer]
        parts = self.index_parts(buffer, indices)
        axes = [axis for part in parts for axis in part.axes]
        if len(axes) == len(set(axes)) and all(part.step or not part.axes for part in parts):
            return ArrayText(f"{name}[{index_text(part.text for part in parts)}]", tuple(axes))
        order = tuple(sorted(set(axes)))
        texts = [self.gathered(part, order, axis) for axis, part in enumerate(parts)]
        if math.prod(self.space.sizes[axis] for axis in order) > MAX_ELEMENTS:
            raise TooLarge(order)
        return ArrayText(f"{name}[{index_text(texts)}]", order)

    def gathered(self, part: IndexPart, order: tuple[int, ...], dimension: int) -> str:
        """An index as an array that broadcasts over `order`."""
        if not part.axes:
            return part.text
        shape = [part.grid.shape[part.axes.index(a)] if a in part.axes else 1 for a in order]
        text = self.constant(part.grid.reshape(shape), f"index_{dimension}")
        return f"{part.fixed} + {text}" if part.fixed else text

    def index_parts(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> list[IndexPart]:
        """The indices of an access, all of them in bounds wherever they count."""
        shape = constant_shape(buffer)
        if shape is None:
            raise NotConstant(buffer.name)
        parts = [self.index_part(index) for index in indices]
        for position, (part, extent) in enumerate(zip(parts, shape, strict=True)):
            if part.low < 0 or part.high >= extent:
                parts[position] = self.confined(indices[position], part, extent)
        return parts

    def index_part(self, index: E.PrimExpr) -> IndexPart:
        fixed, local = separate(substitute(index, self.based), self.varying)
        low, high = map(int, self.scalars.ranges.interval(fixed)) if fixed is not None else (0, 0)
        if local is None:
            assert fixed is not None
            return IndexPart(self.scalars.text(fixed), (), 0, low, high)
        used = variables_in(local)
        axes = tuple(sorted({self.space.coordinates[var].axis for var in used}))
        grid = np.asarray(evaluate(local, {var: self.space.grid(var) for var in used}))
        grid = grid.reshape([grid.shape[axis] for axis in axes])
        text = self.scalars.operand(fixed) if fixed is not None else ""
        if not grid.size:
            return IndexPart(text, axes, grid, 0, -1)
        return IndexPart(text, axes, grid, low + int(grid.min()), high + int(grid.max()))

    def confined(self, index: E.PrimExpr, part: IndexPart, extent: int) -> IndexPart:
        """An index that leaves its bounds only where its value does not count, clipped to them."""
        if part.fixed or not self.conditions or not part.axes:
            raise NotConstant("out of bounds")
        condition = conjunction(self.conditions)
        grids = {var: self.space.grid(var) for var in self.varying}
        counts = evaluate(substitute(condition, self.based), grids)
        values = evaluate(substitute(index, self.based), grids)
        if np.any(counts & ((values < 0) | (values >= extent))):
            raise NotConstant("out of bounds")
        grid = np.clip(part.grid, 0, extent - 1)
        return IndexPart("", part.axes, grid, 0, extent - 1)
