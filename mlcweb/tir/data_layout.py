"""Layouts of tensors by the letters of their axes, "NCHW" or "NCHW16c", and ways between them.

A capital letter is an axis; a number and the small letter are its inner part, of so many elements:
in "NCHW16c" C counts blocks of 16 channels. Inner parts in brackets are one axis: "OIHW[4o4i]".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlcweb.ir.errors import InternalError
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import IterVar

_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])|\[((?:\d+[a-z])+)\]")
_INNER = re.compile(r"(\d+)([a-z])")


class LayoutError(InternalError, ValueError):
    """A name that is no layout, or extents of another."""


@dataclass(frozen=True, slots=True)
class LayoutAxis:
    """An axis: its name in the layout, and the inner parts that it is made of, each a letter
    (a capital one) and a number of elements; none for an axis that a capital letter names."""

    name: str
    parts: tuple[tuple[str, int], ...] = ()


class Layout:
    """A layout, by its name.

    Args:
        name: such as "NCHW16c".
        dtype: the integer type of the axes' variables and extents.

    Raises: LayoutError (an InternalError) where the name is no layout.
    """

    def __init__(self, name: str, dtype: str = "int32") -> None:
        if not isinstance(dtype, str) or not dtypes.is_integer(dtype):
            raise TypeError(f"Axes are counted by integers, not by {dtype!r}")
        self.name = name
        self.dtype = dtype
        self._axes = list(_read(name))
        self.factors: dict[str, int] = {}
        for letter, size in (part for axis in self._axes for part in axis.parts):
            if letter in self.factors or letter not in self.letters or size < 1:
                raise LayoutError(
                    f'"{name}" is no layout: an inner part "{size}{letter.lower()}" belongs to an '
                    f"axis {letter}, once"
                )
            self.factors[letter] = size

    @property
    def letters(self) -> list[str]:
        """The capital letters, in order."""
        return [axis.name for axis in self._axes if not axis.parts]

    @property
    def axes(self) -> list[IterVar]:
        """The axes as iterators. Of one that a capital letter names, the extent is a variable."""
        return [self._iterator(axis) for axis in self._axes]

    def _iterator(self, axis: LayoutAxis) -> IterVar:
        size = 1
        for _, number in axis.parts:
            size *= number
        zero = arithmetic.const(0, self.dtype)
        extent = arithmetic.const(size, self.dtype) if axis.parts else Var(axis.name, self.dtype)
        return IterVar(Range.from_min_extent(zero, extent), Var(axis.name, self.dtype))

    def __len__(self) -> int:
        return len(self._axes)

    def __contains__(self, axis: str) -> bool:
        inner = {letter.lower() for letter in self.factors}
        return axis in inner or any(layout_axis.name == axis for layout_axis in self._axes)

    def __getitem__(self, index: int) -> str:
        return self._axes[index].name

    def index_of(self, axis: str) -> int:
        """The position of an axis, named as in the layout ("C", "16c"); -1 where there is none."""
        names = [layout_axis.name for layout_axis in self._axes]
        return names.index(axis) if axis in names else -1

    def factor_of(self, axis: str) -> int:
        """The number of elements of the inner part of an axis; -1 where it has none."""
        return self.factors.get(axis.upper(), -1)

    def gathered(self, values: Sequence[PrimExpr], what: str = "extents") -> dict[str, PrimExpr]:
        """What the extents (or indices) of all axes come to for each capital letter: with extents,
        the product of an axis and its inner part."""
        if len(values) != len(self):
            raise LayoutError(f"The layout {self.name} has {len(self)} axes, not {len(values)}")
        outer: dict[str, PrimExpr] = {}
        inner: dict[str, PrimExpr] = {}
        for axis, value in zip(self._axes, values, strict=True):
            if not axis.parts:
                outer[axis.name] = value
            for place, (letter, size) in reversed(list(enumerate(axis.parts))):
                inner[letter] = value if place == 0 else arithmetic.floormod(value, size)
                value = arithmetic.floordiv(value, size)
        for letter, size in self.factors.items():
            outer[letter] = outer[letter] * size
            if what == "indices":
                outer[letter] = outer[letter] + inner[letter]
        return outer

    def spread(self, totals: Mapping[str, PrimExpr], what: str = "extents") -> list[PrimExpr]:
        """The extents (or indices) of all axes, from those of each capital letter."""
        results: list[PrimExpr] = []
        for axis in self._axes:
            if not axis.parts:
                total, size = totals[axis.name], self.factors.get(axis.name, 1)
                if size > 1 and what == "extents":
                    total = total + (size - 1)
                results.append(arithmetic.floordiv(total, size) if size > 1 else total)
                continue
            value: PrimExpr = arithmetic.const(int(what == "extents"), self.dtype)
            for letter, size in axis.parts:
                value = value * size
                if what == "indices":
                    value = value + arithmetic.floormod(totals[letter], size)
            results.append(value)
        return results

    def __repr__(self) -> str:
        return f"Layout({self.name})"


def _read(name: str) -> list[LayoutAxis]:
    axes: list[LayoutAxis] = []
    end = 0
    for match in _AXIS.finditer(name):
        if match.start() != end:
            break
        end = match.end()
        text = match.group().strip("[]")
        parts = [(letter.upper(), int(size)) for size, letter in _INNER.findall(text)]
        axes.append(LayoutAxis(text, tuple(parts)))
    if end != len(name):
        raise LayoutError(
            f'"{name}" is no layout: axes are capital letters, inner parts a number and a small '
            'letter, as in "NCHW16c"'
        )
    return axes


class BijectiveLayout:
    """The way from one layout to another of the same axes, and back."""

    def __init__(self, src_layout: Layout, dst_layout: Layout) -> None:
        self.src_layout = src_layout
        self.dst_layout = dst_layout

    def forward_shape(self, shape: Sequence[PrimExpr | int]) -> list[PrimExpr]:
        """The shape in the second layout of a tensor of a shape in the first. An axis that is no
        whole number of blocks is padded to one."""
        return _converted(self.src_layout, self.dst_layout, shape, "extents")

    def backward_shape(self, shape: Sequence[PrimExpr | int]) -> list[PrimExpr]:
        """As `forward_shape`, from the second layout to the first."""
        return _converted(self.dst_layout, self.src_layout, shape, "extents")

    def forward_index(self, index: Sequence[PrimExpr | int]) -> list[PrimExpr]:
        """Where the second layout has the element that the first has at an index."""
        return _converted(self.src_layout, self.dst_layout, index, "indices")

    def backward_index(self, index: Sequence[PrimExpr | int]) -> list[PrimExpr]:
        """As `forward_index`, from the second layout to the first."""
        return _converted(self.dst_layout, self.src_layout, index, "indices")

    def __repr__(self) -> str:
        return f"BijectiveLayout({self.src_layout.name}, {self.dst_layout.name})"


def _converted(
    old: Layout, new: Layout, values: Sequence[PrimExpr | int], what: str
) -> list[PrimExpr]:
    exprs = [arithmetic.convert(value) for value in values]
    return new.spread(old.gathered(exprs, what), what)


def layout(layout_str: str, dtype: str = "int32") -> Layout | None:
    """The layout of a name; None for "" and "__undef__", which say that it is not known."""
    return None if layout_str in ("", "__undef__") else Layout(layout_str, dtype)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout | None:
    """The way between two layouts; None where they do not have the same axes."""
    both = [one if isinstance(one, Layout) else layout(one) for one in (src_layout, dst_layout)]
    source, target = both
    if source is None or target is None or sorted(source.letters) != sorted(target.letters):
        return None
    return BijectiveLayout(source, target)
