"""What the tables of lowerings are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcweb.ir.op import register_op_attr
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import scalar
from mlcweb.tir.arithmetic import const

Legalize = Callable[[BlockBuilder, E.Call], Any]
"""Gives the expression that stands for a call."""


def enter(table: Mapping[str, Legalize]) -> None:
    """Enter lowerings of operators, by their names without `relax.`."""
    for name, legalize in table.items():
        register_op_attr(f"relax.{name}", "FLegalize", legalize)


def by(
    function: Callable[..., Any], *attributes: str, hint: str | None = None, **fixed: Any
) -> Legalize:
    """A call of what the tensor expression `function` makes of the arguments, then the named
    attributes by position, then what is `fixed`. `hint` is the name, else that of `function`."""
    name = hint or function.__name__

    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        values = [attribute(call, key) for key in attributes]
        return builder.call_te(function, *call.args, *values, primfunc_name_hint=name, **fixed)

    return legalize


def attribute(call: E.Call, name: str) -> Any:
    """An attribute of a call; None where an element type is left open."""
    assert call.attrs is not None
    value = call.attrs[name]
    return None if value == "void" else value


def known(builder: BlockBuilder, value: Any) -> Any:
    """The struct info of an argument, or of the call's result."""
    return builder.context.struct_info(value)


def number(value: Any) -> Any:
    """The literal that a scalar constant is; other expressions as they are."""
    if not isinstance(value, E.Constant):
        return value
    literal = scalar(value.data)
    return value if literal is None else const(literal, str(value.data.dtype))


def fields(builder: BlockBuilder, value: Any) -> list[Any]:
    """The fields of a tuple; those of a variable are bound."""
    if isinstance(value, E.Tuple):
        return list(value.fields)
    count = len(known(builder, value).fields)
    return [builder.emit(E.TupleGetItem(value, i)) for i in range(count)]
