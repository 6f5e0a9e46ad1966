"""What operators do with tensors whose axes lie in another order: one rule for each family.

A rule is asked with the layouts that the arguments have, and decides those it wants, and that of
the result, with the attributes that say the same of it. Operators without a rule get what they were
written for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mlcweb.relax import expr as E
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.expr import constant_int
from mlcweb.relax.op.index import slice_arguments
from mlcweb.relax.struct_info import TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.layout.order import Layout, Order, initial_of, renumbered


@dataclass
class Decision:
    """The layouts of the arguments and of the result of a call, and what changes of it."""

    arguments: list[Layout]
    result: Layout
    attrs: dict[str, object] = field(default_factory=dict)
    replaced: dict[int, E.Expr] = field(default_factory=dict)
    """Arguments that become another expression, by their place."""


Rule: TypeAlias = Callable[[E.Call, Sequence[Layout]], "Decision | None"]
"""What to do with a call whose arguments have these layouts; None to leave it."""

RULES: dict[str, Rule] = {}
"""By the names of operators, without `relax.`"""


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def data_order(layouts: Sequence[Layout]) -> Order:
    """The order of the first argument, a tensor."""
    first = layouts[0]
    assert isinstance(first, tuple)
    return first


def as_data(call: E.Call, layouts: Sequence[Layout], **attrs: object) -> Decision:
    """The result lies as the first argument; the other arguments stay."""
    rest = [initial_of(arg) for arg in call.args[1:]]
    return Decision([layouts[0], *rest], layouts[0], attrs)


def attribute(call: E.Call, name: str) -> object:
    assert call.attrs is not None
    return call.attrs[name]


def axis_attribute(call: E.Call, name: str = "axis") -> int:
    axis = attribute(call, name)
    assert isinstance(axis, int)
    return axis


def axes_attribute(call: E.Call, name: str, rank: int) -> list[int] | None:
    """The axes that an attribute names, counted from the front; None if it names none."""
    axes = attribute(call, name)
    if axes is None:
        return None
    assert isinstance(axes, (list, tuple))
    return [int(axis) % rank for axis in axes]


@rule(
    "abs", "acos", "acosh", "asin", "asinh", "astype", "atan", "atanh", "bitwise_not", "ceil",
    "cos", "cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not",
    "negative", "nn.gelu", "nn.gelu_tanh", "nn.relu", "nn.selu", "nn.silu", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
def _unary(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    return as_data(call, layouts)


@rule(
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal", "floor_divide",
    "floor_mod", "greater", "greater_equal", "left_shift", "less", "less_equal", "log_add_exp",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply",
    "not_equal", "power", "right_shift", "subtract",
)  # fmt: skip
def _binary(call: E.Call, layouts: Sequence[Layout]) -> Decision | None:
    """The operand of fewer axes decides, the first of equals; numbers fit any layout."""
    first, second = layouts
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        return None
    if not first or not second:
        return Decision([first, second], first or second)
    few, many = (first, second) if len(first) <= len(second) else (second, first)
    new = len(many) - len(few)
    result = (*range(new), *(axis + new for axis in few))
    wanted: list[Layout] = [few if len(each) == len(few) else result for each in (first, second)]
    return Decision(wanted, result)


@rule("ewise_fma", "gather_elements")
def _together(call: E.Call, layouts: Sequence[Layout]) -> Decision | None:
    """Arguments of one rank all lie as the first that was converted."""
    known = [layout for layout in layouts if isinstance(layout, tuple)]
    if len({len(order) for order in known}) != 1 or len(known) < len(layouts):
        return None
    order = next((each for each in known if each != tuple(sorted(each))), known[0])
    if call.attrs is None or "axis" not in call.attrs:
        return Decision([order for _ in layouts], order)
    axis = order.index(axis_attribute(call) % len(order))
    return Decision([order for _ in layouts], order, {"axis": axis})


@rule("sum", "mean", "max", "min", "prod", "variance", "std")
def _reduction(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    order = data_order(layouts)
    axes = axes_attribute(call, "axis", len(order))
    gone = list(range(len(order))) if axes is None else axes
    places = sorted(order.index(axis) for axis in gone)
    kept = [axis for axis in order if axis not in gone]
    result = order if attribute(call, "keepdims") else renumbered(order, kept)
    return Decision([order], result, {"axis": places})


@rule("permute_dims")
def _permute_dims(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    order = data_order(layouts)
    axes = axes_attribute(call, "axes", len(order)) or list(reversed(range(len(order))))
    places = [order.index(axis) for axis in axes]
    return Decision([order], tuple(range(len(order))), {"axes": places})


@rule("expand_dims")
def _expand_dims(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    """New axes stay at their places, and those there were around them."""
    order = data_order(layouts)
    axes = attribute(call, "axis")
    assert isinstance(axes, list)
    rank = len(order) + len(axes)
    new = {axis % rank for axis in axes}
    old = [axis for axis in range(rank) if axis not in new]
    rest = iter(order)
    return Decision([order], tuple(i if i in new else old[next(rest)] for i in range(rank)))


@rule("squeeze")
def _squeeze(call: E.Call, layouts: Sequence[Layout]) -> Decision | None:
    order = data_order(layouts)
    axes = axes_attribute(call, "axis", len(order))
    if axes is None:
        info = call.args[0].struct_info if isinstance(call.args[0], E.Expr) else None
        values = info.values if isinstance(info, TensorStructInfo) else None
        if values is None:
            return None
        axes = [axis for axis, extent in enumerate(values) if constant_int(extent) == 1]
    kept = [axis for axis in order if axis not in axes]
    places = sorted(order.index(axis) for axis in axes)
    return Decision([order], renumbered(order, kept), {"axis": places})


@rule("concat")
def _concat(call: E.Call, layouts: Sequence[Layout]) -> Decision | None:
    fields = layouts[0]
    if not isinstance(fields, list) or not isinstance(fields[0], tuple):
        return None
    axis, order = attribute(call, "axis"), fields[0]
    if not isinstance(axis, int):
        return None
    together: Layout = [order for _ in fields]
    return Decision([together], order, {"axis": order.index(axis % len(order))})


@rule("split")
def _split(call: E.Call, layouts: Sequence[Layout]) -> Decision | None:
    if not isinstance(call.struct_info, TupleStructInfo):
        return None
    order, axis = data_order(layouts), axis_attribute(call)
    parts: Layout = [order for _ in call.struct_info.fields]
    return Decision([order], parts, {"axis": order.index(axis % len(order))})


@rule("flip", "nn.softmax", "nn.prelu", "repeat")
def _along_axis(call: E.Call, layouts: Sequence[Layout]) -> Decision | None:
    if attribute(call, "axis") is None:
        return None  # the flat tensor: the order of its elements matters
    order = data_order(layouts)
    return as_data(call, layouts, axis=order.index(axis_attribute(call) % len(order)))


@rule("tile")
def _tile(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    """Axes that are new stand before all others."""
    order, repeats = data_order(layouts), attribute(call, "repeats")
    assert isinstance(repeats, list)
    whole = [1] * (len(order) - len(repeats)) + repeats
    new = len(whole) - len(order)
    result = (*range(new), *(axis + new for axis in order))
    return Decision([order], result, {"repeats": [whole[axis] for axis in result]})


@rule("strided_slice")
def _strided_slice(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    order = data_order(layouts)
    places = [order.index(axis % len(order)) for axis in slice_arguments(call)[0]]
    decision = as_data(call, layouts)
    decision.replaced[1] = E.Tuple([E.PrimValue(place) for place in places])
    return decision


@rule("nn.batch_norm")
def _batch_norm(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    order = data_order(layouts)
    decision = as_data(call, layouts, axis=order.index(axis_attribute(call) % len(order)))
    decision.result = [order, *(initial_of(arg) for arg in call.args[3:])]
    return decision


@rule("nn.dropout")
def _dropout(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    return Decision([layouts[0]], [layouts[0], layouts[0]])


@rule("nn.layer_norm", "nn.rms_norm", "nn.group_norm", "nn.instance_norm")
def _normalization(call: E.Call, layouts: Sequence[Layout]) -> Decision:
    order = data_order(layouts)
    axes = axes_attribute(call, "axes", len(order)) or []
    attrs: dict[str, object] = {"axes": [order.index(axis) for axis in axes]}
    if call.attrs is not None and "channel_axis" in call.attrs:
        channel = axis_attribute(call, "channel_axis")
        attrs["channel_axis"] = order.index(channel % len(order))
    return as_data(call, layouts, **attrs)


def changed_attrs(call: E.Call, changes: dict[str, object]) -> Attrs | None:
    """The attributes of a call with some of them changed."""
    if call.attrs is None or not changes:
        return call.attrs
    return Attrs({name: changes.get(name, value) for name, value in call.attrs.items()})
