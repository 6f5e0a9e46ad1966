"""Arithmetic on shapes: broadcasting, axes counted from the end, positions in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias

from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic
from mlcweb.tir.expr import IntImm, PrimExpr
from mlcweb.tir.intrinsics import if_then_else

Shape = tuple[PrimExpr, ...]

Extent: TypeAlias = "int | PrimExpr"

Numbers: TypeAlias = "Extent | Sequence[Extent]"
"""One constant for all axes, or one for each."""

Padding: TypeAlias = "str | Numbers"
"""Widths, all before and then all behind where there are twice as many as axes; "VALID", "SAME"."""

Axes: TypeAlias = "int | Sequence[int] | None"
"""One axis, or several; None: all."""

Scalar: TypeAlias = "PrimExpr | bool | int | float"
"""A number, or an expression of one."""

Operand: TypeAlias = "Tensor | Scalar"

ShapeLike: TypeAlias = "Extent | Sequence[Extent]"
"""What `as_shape` takes."""


def as_shape(shape: ShapeLike) -> Shape:
    """Extents as expressions; a single extent is a shape of one dimension."""
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(arithmetic.convert(extent) for extent in dims)


def constant(value: Any) -> int | None:
    """The integer that an extent is, None where it is symbolic."""
    if isinstance(value, IntImm):
        return value.value
    return value if isinstance(value, int) else None


def axis_names(count: int) -> list[str]:
    """What TVM calls the loops over the axes of a result."""
    return [f"ax{i}" for i in range(count)]


def size(shape: Sequence[PrimExpr]) -> PrimExpr:
    """The number of elements."""
    one = arithmetic.const(1, shape[0].dtype if shape else "int32")
    return reduce(arithmetic.multiply, shape, one)


def simplified(extent: PrimExpr) -> PrimExpr:
    """An extent in its shortest form: n for n + 2 - 3 + 1."""
    return extent if isinstance(extent, IntImm) else Analyzer().simplify(extent)


def same_extent(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two extents are known to be equal."""
    return a is b or Analyzer().can_prove_equal(a, b)


def show(shape: Sequence[PrimExpr]) -> str:
    """A shape as a reader writes it: (4, n)."""
    inside = ", ".join(map(_extent_text, shape))
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def _extent_text(extent: PrimExpr) -> str:
    number = constant(extent)
    return str(number) if number is not None else repr(extent)


def broadcast(operator: str, *shapes: Sequence[PrimExpr]) -> Shape:
    """The common shape of operands, by NumPy's rules.

    Raises: DiagnosticError that names the operator, the shapes and the dimension.
    """
    rank = max(map(len, shapes))
    result: list[PrimExpr] = []
    for place in range(-rank, 0):
        extents = [shape[place] for shape in shapes if len(shape) >= -place]
        wide = [extent for extent in extents if constant(extent) != 1]
        chosen = wide[0] if wide else extents[0]
        if not all(same_extent(chosen, other) for other in wide[1:]):
            raise DiagnosticError(
                f"{operator}: the shapes {' and '.join(map(show, shapes))} do not broadcast: "
                f"dimension {place} (from the end) is "
                f"{' and '.join(_extent_text(extent) for extent in extents)}"
            )
        result.append(chosen)
    return tuple(result)


def broadcast_index(
    shape: Sequence[PrimExpr], index: Sequence[PrimExpr], result: Sequence[PrimExpr]
) -> list[PrimExpr]:
    """Where the element for `index` of a broadcast result is in an operand of `shape`."""
    skipped = len(index) - len(shape)
    return [
        arithmetic.const(0, i.dtype) if constant(extent) == 1 and constant(wide) != 1 else i
        for extent, i, wide in zip(shape, index[skipped:], result[skipped:], strict=True)
    ]


def axis_of(operator: str, axis: Any, ndim: int) -> int:
    """An axis counted from the front.

    Raises: DiagnosticError where there is no such axis.
    """
    number = constant(axis)
    if number is None or not -ndim <= number < ndim:
        raise DiagnosticError(f"{operator}: axis {axis} of a tensor with {ndim} dimension(s)")
    return number % ndim


def axes_of(operator: str, axis: Axes, ndim: int) -> list[int]:
    """Axes counted from the front, ascending; all of them for None.

    Raises: DiagnosticError where there is no such axis, or one is named twice.
    """
    return sorted(axes_in_order(operator, axis, ndim))


def axes_in_order(operator: str, axis: Axes, ndim: int) -> list[int]:
    """As `axes_of`, in the order in which they are given."""
    if axis is None:
        return list(range(ndim))
    listed = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_of(operator, one, ndim) for one in listed]
    if len(set(axes)) != len(axes):
        raise DiagnosticError(f"{operator}: an axis is named twice in {list(listed)}")
    return axes


def ravel_index(index: Sequence[PrimExpr], shape: Sequence[PrimExpr]) -> PrimExpr:
    """The position in the flat, row-major array."""
    flat: PrimExpr | None = None
    for i, extent in zip(index, shape, strict=True):
        flat = i if flat is None else flat * extent + i
    return arithmetic.const(0) if flat is None else flat


def unravel_index(flat: PrimExpr, shape: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The indices of a position in the flat, row-major array."""
    indices: list[PrimExpr] = []
    for extent in reversed(shape):
        indices.append(flat % extent)
        flat = flat // extent
    return indices[::-1]


def need_rank(operator: str, tensor: Tensor, ndim: int, layout: str) -> None:
    """Refuses a tensor with another number of dimensions than `ndim`; `layout` names them."""
    if tensor.ndim != ndim:
        raise DiagnosticError(
            f'{operator}: "{tensor.name}" has the shape {show(tensor.shape)}; {layout} is expected'
        )


def slice_range(
    extent: Extent, begin: Extent, end: Extent, stride: Extent = 1, inbound: bool = False
) -> tuple[PrimExpr, PrimExpr]:
    """Where a slice of a dimension starts, and how many elements it has.

    Positions count and are cut as in a slice of Python; with `inbound` they are taken as they are.
    A symbolic stride may go either way, but is taken to be positive with `inbound`.
    """
    length, low, high, step = (arithmetic.convert(part) for part in (extent, begin, end, stride))
    low, high, step = (arithmetic.cast(length.dtype, part) for part in (low, high, step))
    numbers = [constant(part) for part in (length, low, high, step)]
    if not inbound and None not in numbers:
        size, first, last, by = (int(number or 0) for number in numbers)
        taken = range(*slice(first, last, by).indices(size))
        start, count = (arithmetic.const(n, length.dtype) for n in (taken.start, len(taken)))
        return start, count
    if inbound or numbers[3] is not None:
        return _directed(length, low, high, step, (numbers[3] or 1) < 0, inbound)
    ways = [_directed(length, low, high, step, backwards) for backwards in (True, False)]
    start, count = (if_then_else(step < 0, *both) for both in zip(*ways, strict=True))
    return Analyzer().simplify(start), Analyzer().simplify(count)


def _directed(
    length: PrimExpr,
    low: PrimExpr,
    high: PrimExpr,
    step: PrimExpr,
    backwards: bool,
    inbound: bool = False,
) -> tuple[PrimExpr, PrimExpr]:
    """What `slice_range` gives where it is known which way the slice goes."""
    sure = inbound or (not backwards and _in_order(constant(low), constant(high)))
    if not inbound:
        low, high = (_clipped(position, length, backwards) for position in (low, high))
    distance = low - high if backwards else high - low
    size = 0 - step if backwards else step
    count = Analyzer().simplify((distance + size - 1) // size)
    return low, count if sure else arithmetic.maximum(count, 0)


def _clipped(position: PrimExpr, length: PrimExpr, backwards: bool) -> PrimExpr:
    """A position of a slice as an index from 0 to `length` (from -1 to `length - 1` backwards)."""
    least = -1 if backwards else 0
    most = length - 1 if backwards else length
    number = constant(position)
    if number is None:
        from_end = if_then_else(position < 0, position + length, position)
        return arithmetic.minimum(arithmetic.maximum(from_end, least), most)
    if number < 0:
        return arithmetic.maximum(length + number, least)
    if number == 0 and not backwards:
        return position
    return most if number >= _ENDLESS else arithmetic.minimum(position, most)


_ENDLESS = 2**31 - 1
"""From here on, the end of a slice stands for the end of the tensor."""


def _in_order(low: int | None, high: int | None) -> bool:
    """Whether a slice from `low` to `high` has at least no negative number of elements."""
    return low is not None and high is not None and 0 <= low <= high
