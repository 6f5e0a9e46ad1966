"""Registering operators: one line per operator, from which everything else follows.

    FMA = register("relax.ewise_fma", ("x1", "x2", "x3"), infer.elementwise)

The deduction `infer(call, context)` gives the struct info of a call and raises `ShapeError` or
`DTypeError`; it is the operator's attribute "FInferStructInfo". How an operator is lowered is
entered elsewhere, as the attribute "FLegalize": a function of a BlockBuilder and a Call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.ir.op import Op, register_op
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.expr import Call, Expr, ShapeExpr, convert_to_expr
from mlcweb.relax.struct_info import StructInfo

Infer = Callable[[Call, Any], StructInfo]
"""Deduces what a call gives; the second argument is a `mlcweb.relax.deduction.Context`."""


def register(name: str, arguments: tuple[str, ...], infer: Infer, pure: bool = True) -> Op:
    """Register an operator and how the result of a call is deduced."""
    op = register_op(name, pure, arguments)
    op.set_attr("FInferStructInfo", infer)
    op.set_attr("FPurity", pure)
    return op


def call(op: Op, *args: Any, **attrs: Any) -> Call:
    """A call of an operator. Tuples, strings and numbers become expressions; `attrs` are kept in
    the order in which they are to be printed."""
    return Call(op, [convert_to_expr(arg) for arg in args], Attrs(attrs) if attrs else None)


def as_shape(shape: Any) -> Any:
    """A shape as an expression: extents in a tuple or list, one extent, or an expression."""
    if isinstance(shape, Expr):
        return shape
    return ShapeExpr(shape if isinstance(shape, (tuple, list)) else (shape,))


def several(value: Any, count: int) -> list[Any]:
    """One value for each of `count` dimensions, where one is given for all."""
    items = list(value) if isinstance(value, (tuple, list)) else [value]
    return items * count if len(items) == 1 else items
