"""The layouts that the reader wants of operators whose attributes name them by letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.op import Op
from mlcweb.relax.expr import Call
from mlcweb.relax.op import infer
from mlcweb.relax.op.layout import Block, Decision, Lettered, Order
from mlcweb.tir.data_layout import Layout

DesiredLayouts = Mapping[str, Sequence[str]]
"""Layouts of data, weight and result (default: that of the data), by names of operators."""


def _rule(name: str) -> Lettered | None:
    """The rule of an operator for which a layout may be wanted."""
    rule = Op.get(name).get_attr("FRelaxInferLayout") if name in Op.list_op_names() else None
    return rule if isinstance(rule, Lettered) and rule.may_be_wanted else None


def check_wanted(desired: DesiredLayouts) -> None:
    """Raises: DiagnosticError for operators or counts of layouts for which there is no meaning."""
    for name, layouts in desired.items():
        rule = _rule(name)
        if rule is None:
            raise DiagnosticError(
                f"ConvertLayout: there is no layout to want for {name}. Layouts are wanted for "
                f"{', '.join(filter(_rule, Op.list_op_names()))}; other operators follow what they "
                "are given"
            )
        most = len(rule.names)
        if not rule.arguments <= len(layouts) <= most or isinstance(layouts, str):
            raise DiagnosticError(
                f"ConvertLayout: {name} needs {rule.arguments} to {most} layouts, for "
                f"{', '.join(rule.names)}, not {layouts!r}"
            )


def decide(call: Call, rule: Lettered, layouts: Sequence[str]) -> Decision | None:
    """That an operator computes in these layouts, which `check_wanted` accepts; None where its
    tensors are no whole numbers of blocks."""
    letters = [*layouts, *[layouts[0]] * (len(rule.names) - len(layouts))]
    attrs = dict(zip(rule.names, letters, strict=True))
    name = infer.op_of(call).name
    orders = [_order(name, infer.attribute(call, each), target) for each, target in attrs.items()]
    return rule.decision(call, orders, attrs)


def _order(name: str, here: str, target: str) -> Order:
    """The order of a tensor whose axes `here` names, when it lies as `target`."""
    names = _names(Layout(here))
    try:
        layout = Layout(target)
        order = [_axis(names, axis, layout.factors) for axis in _names(layout)]
    except ValueError:
        order = []
    if sorted(axis for axis in order if isinstance(axis, int)) != list(range(len(names))):
        raise DiagnosticError(
            f'ConvertLayout: {name} lies as "{here}"; an order of these letters is wanted, '
            f'not "{target}"'
        )
    return tuple(order)


def _names(layout: Layout) -> list[str]:
    return [layout[position] for position in range(len(layout))]


def _axis(names: list[str], name: str, factors: Mapping[str, int]) -> int | Block:
    """The axis of a tensor with axes of these names that a layout calls `name`.

    Raises: ValueError if there is none.
    """
    letter = name[-1].upper()
    if name in names or name != f"{factors.get(letter)}{letter.lower()}":
        return names.index(name)
    return Block(names.index(letter), factors[letter])
