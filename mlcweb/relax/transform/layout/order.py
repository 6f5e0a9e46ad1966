"""Layouts of values: in which order the axes of a tensor lie.

The order (0, 2, 3, 1) of a tensor says that its axis 1 was axis 2 before, and so on: an image whose
layout was NCHW is NHWC. The layout of a tuple is a list of layouts. Of values without axes that are
known (shapes, tensors of unknown rank) the layout is None.
"""

from __future__ import annotations

from typing import TypeAlias

from mlcweb.relax import expr as E
from mlcweb.relax.op.manipulate import permute_dims
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

Order: TypeAlias = tuple[int, ...]
Layout: TypeAlias = "Order | list[Layout] | None"


def initial(info: StructInfo | None) -> Layout:
    """The layout of a value that was not converted."""
    if isinstance(info, TensorStructInfo):
        return None if info.ndim == -1 else tuple(range(info.ndim))
    if isinstance(info, TupleStructInfo):
        return [initial(field) for field in info.fields]
    return None


def initial_of(value: E.RelaxExpr) -> Layout:
    """As `initial`, of an expression."""
    return initial(value.struct_info) if isinstance(value, E.Expr) else None


def order_of(layout: str, wanted: str) -> Order:
    """The order of a tensor whose axes the letters of `layout` name, when it lies as `wanted`."""
    return tuple(layout.index(letter) for letter in wanted)


def renamed(layout: str, order: Order) -> str:
    """The letters of the axes of a tensor that lay as `layout` and now lie in an order."""
    return "".join(layout[axis] for axis in order)


def renumbered(order: Order, axes: list[int]) -> Order:
    """The order of a tensor that has only some of the axes that an order names."""
    kept = sorted(axes)
    return tuple(kept.index(axis) for axis in order if axis in kept)


def converted(value: E.Value, here: Layout, wanted: Layout) -> E.Value:
    """A value that lies as `here` says, as `wanted`."""
    if here == wanted or here is None or wanted is None:
        return value
    if isinstance(here, tuple) and isinstance(wanted, tuple):
        return permute_dims(value, [here.index(axis) for axis in wanted])
    assert isinstance(here, list) and isinstance(wanted, list)
    return E.Tuple([
        converted(E.TupleGetItem(value, index), *both)
        for index, both in enumerate(zip(here, wanted, strict=True))
    ])  # fmt: skip
