"""Parts of which lowerings are made: `legalize=by("sum", "axis", "keepdims")` is a call of the
function that `topi.sum` makes of the arguments and the named attributes.

LegalizeOps lowers a call only when the shapes and element types of its arguments and its result
are known, so lowerings need not ask.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import scalar
from mlcweb.relax.emit_te import Formula
from mlcweb.relax.expr import Call, Constant, Expr, RelaxExpr, Tuple, TupleGetItem
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import Legalize
from mlcweb.relax.struct_info import ShapeStructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.tir.arithmetic import const
from mlcweb.tir.expr import PrimExpr

if TYPE_CHECKING:
    from mlcweb import te, topi
else:

    class _Lazy:
        """A package that is imported when something lowers: most programs need no TOPI."""

        def __init__(self, name: str) -> None:
            self.name = name

        def __getattr__(self, attribute: str) -> object:
            import mlcweb.topi

            return getattr(getattr(mlcweb, self.name), attribute)

    te, topi = _Lazy("te"), _Lazy("topi")


def by(function: str | Formula, *attributes: str, hint: str | None = None) -> Legalize:
    """A call of what a tensor expression makes of the arguments, then the named attributes by
    position.

    Args:
        function: the tensor expression, or its name in `topi`.
        hint: the name of what it makes; that of the function by default.
    """

    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        expression = attrgetter(function)(topi) if isinstance(function, str) else function
        values = [attribute(call, key) for key in attributes]
        name = hint or expression.__name__
        return builder.call_te(expression, *call.args, *values, primfunc_name_hint=name)

    return legalize


def first_argument(builder: BlockBuilder, call: Call) -> Expr:
    """The lowering of what gives its first argument, a tensor."""
    value = call.args[0]
    assert isinstance(value, Expr)
    return value


def keep(builder: BlockBuilder, call: Call) -> Expr:
    """The lowering of what the virtual machine runs as it is."""
    return call


def to_result_shape(builder: BlockBuilder, call: Call) -> Expr:
    """The lowering of reshapings: the shape is the deduced one."""
    shape = shape_of(builder, call)
    return builder.call_te(topi.reshape, call.args[0], shape, primfunc_name_hint="reshape")


def attribute(call: Call, name: str) -> Any:
    """An attribute of a call; None where an element type is left open."""
    value = infer.attribute(call, name)
    return None if value == "void" else value


def shape_of(builder: BlockBuilder, value: RelaxExpr) -> list[PrimExpr]:
    """The extents of a tensor, or of a shape."""
    info = builder.context.struct_info(value)
    assert isinstance(info, (TensorStructInfo, ShapeStructInfo))
    values = info.known_values if isinstance(info, TensorStructInfo) else info.values
    assert values is not None
    return list(values)


def dtype_of(builder: BlockBuilder, value: Expr) -> str:
    """The element type of a tensor."""
    info = builder.context.struct_info(value)
    assert isinstance(info, TensorStructInfo)
    return info.dtype


def fields_of(builder: BlockBuilder, value: RelaxExpr) -> list[RelaxExpr]:
    """The fields of a tuple; those of a variable are bound."""
    if isinstance(value, Tuple):
        return list(value.fields)
    info = builder.context.struct_info(value)
    assert isinstance(value, Expr) and isinstance(info, TupleStructInfo)
    return [builder.emit(TupleGetItem(value, i)) for i in range(len(info.fields))]


def number(value: RelaxExpr) -> RelaxExpr | PrimExpr:
    """The literal that a scalar constant is; other expressions as they are."""
    if not isinstance(value, Constant):
        return value
    literal = scalar(value.data)
    return value if literal is None else const(literal, str(value.data.dtype))


def reordered(tensor: te.Tensor, layout: str, target: str) -> te.Tensor:
    """A tensor in another layout."""
    return tensor if layout == target else topi.layout_transform(tensor, layout, target)
