"""Parts of which layout rules are made: what an operator does when axes lie in another order.

The order (0, 2, 3, 1) of a tensor says that its axis 1 was axis 2 before, and so on: an image whose
layout was NCHW is NHWC. The layout of a tuple is a list of layouts. Of values without axes that are
known (shapes, tensors of unknown rank) the layout is None.

A rule (`layout=` of `operator`) is asked with the layouts that the arguments of a call have, the
first of them known, and decides those it wants, and that of the result, with the attributes that
say the same of it. Operators without a rule get what they were written for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mlcweb.relax.expr import Call, Expr, RelaxExpr
from mlcweb.relax.op import infer
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

Order: TypeAlias = tuple[int, ...]
Layout: TypeAlias = "Order | list[Layout] | None"


@dataclass
class Decision:
    """The layouts of the arguments and of the result of a call, and what changes of it."""

    arguments: list[Layout]
    result: Layout
    attrs: Mapping[str, object] = field(default_factory=dict)
    replaced: dict[int, Expr] = field(default_factory=dict)
    """Arguments that become another expression, by their position."""


LayoutRule: TypeAlias = Callable[[Call, Sequence[Layout]], "Decision | None"]
"""What to do with a call whose arguments have these layouts; None to leave it."""


def initial(info: StructInfo | None) -> Layout:
    """The layout of a value that was not converted."""
    if isinstance(info, TensorStructInfo):
        return None if info.ndim == -1 else tuple(range(info.ndim))
    if isinstance(info, TupleStructInfo):
        return [initial(field) for field in info.fields]
    return None


def initial_of(value: RelaxExpr) -> Layout:
    """As `initial`, of an expression."""
    return initial(value.struct_info) if isinstance(value, Expr) else None


def renamed(layout: str, order: Order) -> str:
    """The letters of the axes of a tensor that lay as `layout` and now lie in an order."""
    return "".join(layout[axis] for axis in order)


def renumbered(order: Order, axes: list[int]) -> Order:
    """The order of a tensor that has only some of the axes that an order names."""
    kept = sorted(axes)
    return tuple(kept.index(axis) for axis in order if axis in kept)


def data_order(layouts: Sequence[Layout]) -> Order:
    """The order of the first argument, a tensor."""
    first = layouts[0]
    assert isinstance(first, tuple)
    return first


def axes_of(call: Call, name: str, rank: int) -> list[int] | None:
    """The axes that an attribute names, counted from the front; None if it names none."""
    axes: Sequence[int] | None = infer.attribute(call, name)
    return None if axes is None else [int(axis) % rank for axis in axes]


def moved(call: Call, name: str, order: Order) -> int:
    """Where the axis that an attribute names lies in an order."""
    return order.index(infer.attribute(call, name) % len(order))


def as_data(call: Call, layouts: Sequence[Layout], **attrs: object) -> Decision:
    """The result lies as the first argument; the other arguments stay."""
    rest = [initial_of(arg) for arg in call.args[1:]]
    return Decision([layouts[0], *rest], layouts[0], attrs)


def along_axis(call: Call, layouts: Sequence[Layout]) -> Decision | None:
    """As `as_data`, of what an operator does along its attribute `axis`."""
    if infer.attribute(call, "axis") is None:
        return None  # the flat tensor: the order of its elements matters
    return as_data(call, layouts, axis=moved(call, "axis", data_order(layouts)))


def together(call: Call, layouts: Sequence[Layout]) -> Decision | None:
    """Arguments of one rank all lie as the first that was converted."""
    orders = [layout for layout in layouts if isinstance(layout, tuple)]
    if len({len(order) for order in orders}) != 1 or len(orders) < len(layouts):
        return None
    order = next((each for each in orders if each != tuple(sorted(each))), orders[0])
    axis = {} if "axis" not in (call.attrs or {}) else {"axis": moved(call, "axis", order)}
    return Decision([order for _ in layouts], order, axis)


@dataclass(frozen=True)
class Lettered:
    """The rule of operators whose attributes name layouts by letters: those of the first arguments,
    and, last, of the result."""

    names: tuple[str, ...]
    arguments: int = 1
    """How many arguments have a layout."""
    may_be_wanted: bool = True
    """Whether the user may say in which layout it computes."""

    def __call__(self, call: Call, layouts: Sequence[Layout]) -> Decision:
        orders = [data_order(layouts)] * len(self.names)
        for position, layout in enumerate(layouts[: self.arguments]):
            if isinstance(layout, tuple):
                orders[position] = layout
        both = zip(self.names, orders, strict=True)
        attrs = {name: renamed(infer.attribute(call, name), order) for name, order in both}
        return self.decision(call, orders, attrs)

    def decision(
        self, call: Call, orders: Sequence[Order], attrs: Mapping[str, object]
    ) -> Decision:
        """What comes of the orders and the texts of the layouts that the attributes name."""
        rest = [initial_of(arg) for arg in call.args[self.arguments :]]
        return Decision([*orders[: self.arguments], *rest], orders[-1], attrs)
