"""Registering operators: a decorator on the function that builds calls, and all else follows.

    @operator("relax.hypot", infer=infer.elementwise_float, legalize=by(_hypot))
    def hypot(x1: ExprLike, x2: ExprLike) -> Call:
        \"\"\"The square root of x1² + x2².\"\"\"
        return call(hypot, x1, x2)

With that, `relax.op.hypot` and `R.hypot` build calls, scripts are parsed and printed, results are
deduced and LegalizeOps lowers calls. What the decorator is told is kept as attributes of the `Op`,
under the names of TVM: "FInferStructInfo", "FLegalize", "FRelaxInferLayout" and so on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from inspect import signature
from operator import index
from typing import SupportsIndex, TypeVar

from mlcweb.ir.op import Op, register_op
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import (
    Call,
    DataTypeImm,
    Expr,
    ExprLike,
    ShapeExpr,
    Value,
    Var,
    convert_to_expr,
)
from mlcweb.relax.op.layout import LayoutRule
from mlcweb.relax.struct_info import ShapeLike, StructInfo
from mlcweb.tir.dtype import full_name
from mlcweb.tir.expr import PrimExpr

Infer = Callable[[Call, Context], StructInfo]
"""Deduces what a call gives; raises `ShapeError` or `DTypeError`."""

Legalize = Callable[[BlockBuilder, Call], Value]
"""Gives the expression that a call is lowered to."""

Normalize = Callable[[BlockBuilder, Call], Call]
"""Gives a call in the form that its operator asks for."""

Builder = Callable[..., Expr]
Function = TypeVar("Function", bound=Builder)
T = TypeVar("T")

builders: dict[str, Builder] = {}
"""What builds calls, by the names that scripts know after `R.`: `add`, `nn.relu`."""


class MixedPrecisionPolicy(IntEnum):
    """What ToMixedPrecision does with calls of an operator. The numbers are TVM's."""

    ALWAYS = 0
    """They take half precision."""
    FOLLOW = 1
    """They take it where their arguments have it."""
    NEVER = 2
    """They stay as they are written."""


ALWAYS, FOLLOW, NEVER = MixedPrecisionPolicy


def operator(
    name: str,
    *arguments: str,
    infer: Infer,
    legalize: Legalize | None = None,
    normalize: Normalize | None = None,
    layout: LayoutRule | None = None,
    precision: MixedPrecisionPolicy = NEVER,
    pure: bool = True,
    allocates: bool = False,
    differentiable: bool = True,
    data_dependent: bool = False,
    dispatched: str = "",
) -> Callable[[Function], Function]:
    """Decorates the function that builds calls of an operator, and registers the operator.

    Args:
        name: "relax." and its name in scripts.
        arguments: the names of its arguments; by default all parameters of the function. The other
            parameters are attributes.
        infer: deduces what a call gives.
        legalize: gives what a call is lowered to; `keep` where the virtual machine runs it as it
            is. None: there is no lowering.
        normalize: gives a call in the form that passes may rely on.
        layout: what ConvertLayout does with calls; None: they get what they were written for.
        precision: what ToMixedPrecision does with calls.
        pure: calls may be moved or dropped.
        allocates: no two calls give the same, since each has memory of its own.
        differentiable: False where the gradient is zero for all arguments.
        data_dependent: the shape of the result depends on elements of the arguments; calls are
            lowered although it is not known.
        dispatched: the pass that may lower calls ahead of all others.
    """

    def decorate(build: Function) -> Function:
        op = register_op(name, pure, arguments or tuple(signature(build).parameters))
        op.set_attr("FInferStructInfo", infer)
        op.set_attr("FPurity", pure)
        op.set_attr("TAllocator", allocates)
        op.set_attr("FBuild", build)
        op.set_attr("TMixedPrecisionPolicy", precision)
        if legalize is not None:
            op.set_attr("FLegalize", legalize)
        if normalize is not None:
            op.set_attr("FNormalize", normalize)
        if layout is not None:
            op.set_attr("FRelaxInferLayout", layout)
        if data_dependent:
            op.set_attr("FDataDependent", True)
        if dispatched:
            op.set_attr("TDispatched", dispatched)
        if not differentiable:
            op.set_attr("FPrimalGradient", _no_gradients)
        build.op = op  # type: ignore[attr-defined]
        return builder(name)(build)

    return decorate


def may_write_in_place(*builds: Builder) -> None:
    """Of operators that write each element after they have read it: DataflowUseInplaceCalls may let
    them write over an argument."""
    for build in builds:
        build.op.set_attr("TInPlace", True)  # type: ignore[attr-defined]


def _no_gradients(var: Var, call: Call, gradient: Var, builder: BlockBuilder) -> list[Expr]:
    return [Call(Op.get("relax.grad.no_grad"), [arg]) for arg in call.args]


def builder(name: str) -> Callable[[Function], Function]:
    """Decorates a function that builds an expression of operators, to be known by a name: as
    `relax.op.linear` and `R.linear` for "relax.linear"."""

    def decorate(build: Function) -> Function:
        script_name = name.removeprefix("relax.")
        builders[script_name] = build
        namespace, _, short = f"{__package__}.{script_name}".rpartition(".")
        build.__name__ = build.__qualname__ = short
        if namespace in sys.modules:
            setattr(sys.modules[namespace], short, build)
        return build

    return decorate


_TYPE_ATTRIBUTES = {"dtype", "out_dtype"}


def call(target: Op | Builder, *args: ExprLike, **attrs: object) -> Call:
    """A call of an operator, given itself or by its builder. Tuples, strings and numbers become
    expressions; `attrs` are kept in the order in which they are to be printed, and types by their
    full names."""
    op = target if isinstance(target, Op) else getattr(target, "op")  # noqa: B009
    for name in _TYPE_ATTRIBUTES & attrs.keys():
        attrs[name] = full_name(attrs[name])
    return Call(op, [convert_to_expr(arg) for arg in args], Attrs(attrs) if attrs else None)


def as_shape(shape: ShapeLike) -> Expr:
    """A shape as an expression: of extents in a tuple or list, or an expression that gives one."""
    if isinstance(shape, Expr):
        return shape
    if isinstance(shape, (PrimExpr, int, str)):
        raise TypeError(f"A shape is a tuple or list of extents, ({shape},), not {shape} alone")
    return ShapeExpr(shape)


def as_dtype(dtype: Expr | tuple[()] | object) -> Expr | tuple[()]:
    """A type of elements as an expression, also of its name."""
    return dtype if isinstance(dtype, (Expr, tuple)) else DataTypeImm(full_name(dtype))


def whole(value: SupportsIndex) -> int:
    """A whole number; one with a fraction is refused, not cut off."""
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"A whole number is needed here, not {value!r}") from None


def several(value: T | Sequence[T], count: int) -> list[T]:
    """One value for each of `count` dimensions, where one is given for all."""
    items: list[T] = list(value) if isinstance(value, (tuple, list)) else [value]  # type: ignore
    return items * count if len(items) == 1 else items
