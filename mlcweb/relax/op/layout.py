"""Parts of which layout rules are made: what an operator does when axes lie in another order.

The order (0, 2, 3, 1) of a tensor says that its axis 1 was axis 2 before, and so on: an image whose
layout was NCHW is NHWC. An axis may lie in blocks: then the order names it twice, once for the
blocks and once, as a `Block`, for the elements of each: (0, 1, 2, 3, Block(1, 4)) is NCHW4c.
The layout of a tuple is a list of layouts. Of values without axes that are known (shapes, tensors
of unknown rank) the layout is None.

A rule (`layout=` of `operator`) is asked with the layouts that the arguments of a call have, the
first of them known, and decides those it wants, and that of the result, with the attributes that
say the same of it. Operators without a rule get what they were written for; those whose rule is
neither `InBlocks` nor `Lettered` get no blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from mlcweb.relax import dims
from mlcweb.relax.expr import Call, Expr, RelaxExpr, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.tir.data_layout import Layout as NamedLayout


class Block(NamedTuple):
    """The elements within the blocks of an axis."""

    axis: int
    size: int


Order: TypeAlias = tuple[int | Block, ...]
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


def decided(rule: LayoutRule | None, call: Call, layouts: Sequence[Layout]) -> Decision | None:
    """What a rule decides, if there is one. One that knows of no blocks gets none."""
    if rule is None:
        return None
    knows = isinstance(rule, InBlocks) or (isinstance(rule, Lettered) and rule.in_blocks)
    if not knows and any(map(blocks_of, layouts)):
        layouts = [initial_of(arg) for arg in call.args]
    return rule(call, layouts)


def initial(info: StructInfo | None) -> Layout:
    """The layout of a value that was not converted."""
    if isinstance(info, TensorStructInfo):
        return None if info.ndim == -1 else tuple(range(info.ndim))
    if isinstance(info, TupleStructInfo):
        return [initial(field) for field in info.fields]
    return None


def info_of(value: RelaxExpr) -> StructInfo | None:
    """What is known of an argument."""
    return value.struct_info if isinstance(value, Expr) else None


def initial_of(value: RelaxExpr) -> Layout:
    """As `initial`, of an expression."""
    return initial(info_of(value))


def blocks_of(layout: Layout) -> list[Block]:
    """The axes that lie in blocks, of all tensors of a value."""
    if isinstance(layout, list):
        return [block for field in layout for block in blocks_of(field)]
    return [axis for axis in layout or () if isinstance(axis, Block)]


def axis_of(axis: int | Block) -> int:
    """The axis of the tensor as it was written, of one that an order names."""
    return axis.axis if isinstance(axis, Block) else axis


def whole_blocks(info: StructInfo | None, order: Order) -> bool:
    """Whether a tensor is known to be a whole number of blocks along each axis that lies in
    them."""
    values = info.values if isinstance(info, TensorStructInfo) else None
    blocks = blocks_of(order)
    if values is None:
        return not blocks
    return all(constant_int(dims.simplify(values[axis] % size)) == 0 for axis, size in blocks)


def renamed(layout: str, order: Order) -> str:
    """The letters of the axes of a tensor that lay as `layout` and now lie in an order."""
    here = NamedLayout(layout)
    names = [here[axis_of(axis)] for axis in order]
    return "".join(
        f"{axis.size}{name.lower()}" if isinstance(axis, Block) else name
        for axis, name in zip(order, names, strict=True)
    )


def renumbered(order: Order, axes: Sequence[int]) -> Order:
    """The order of a tensor that has only some of the axes that an order names."""
    numbers = {axis: number for number, axis in enumerate(sorted(axes))}
    return tuple(
        Block(numbers[axis.axis], axis.size) if isinstance(axis, Block) else numbers[axis]
        for axis in order
        if axis_of(axis) in numbers
    )


def data_order(layouts: Sequence[Layout]) -> Order:
    """The order of the first argument, a tensor."""
    first = layouts[0]
    assert isinstance(first, tuple)
    return first


def data_axes(layouts: Sequence[Layout]) -> tuple[int, ...]:
    """The same for rules that get no blocks."""
    return tuple(map(axis_of, data_order(layouts)))


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
class InBlocks:
    """A rule that also knows what to do where axes lie in blocks."""

    rule: LayoutRule

    def __call__(self, call: Call, layouts: Sequence[Layout]) -> Decision | None:
        return self.rule(call, layouts)


same = InBlocks(as_data)
"""The rule of operators element by element."""


@dataclass(frozen=True)
class Lettered:
    """The rule of operators whose attributes name layouts by letters: those of the first arguments,
    and, last, of the result."""

    names: tuple[str, ...]
    arguments: int = 1
    """How many arguments have a layout."""
    may_be_wanted: bool = True
    """Whether the user may say in which layout it computes."""
    in_blocks: bool = True
    """Whether it computes where axes lie in blocks."""

    def __call__(self, call: Call, layouts: Sequence[Layout]) -> Decision | None:
        orders = [data_order(layouts)] * len(self.names)
        for position, layout in enumerate(layouts[: self.arguments]):
            if isinstance(layout, tuple):
                orders[position] = layout
        both = zip(self.names, orders, strict=True)
        attrs = {name: renamed(infer.attribute(call, name), order) for name, order in both}
        return self.decision(call, orders, attrs)

    def decision(
        self, call: Call, orders: Sequence[Order], attrs: Mapping[str, object]
    ) -> Decision | None:
        """What comes of the orders and the texts of the layouts that the attributes name; None
        where a tensor is no whole number of blocks."""
        infos = [*map(info_of, call.args[: self.arguments]), call.struct_info]
        if not all(map(whole_blocks, infos, orders)):
            return None
        rest = [initial_of(arg) for arg in call.args[self.arguments :]]
        return Decision([*orders[: self.arguments], *rest], orders[-1], attrs)
