"""Operators that gradients are made of, `relax.op.grad`, and `register_gradient`.

How the gradient of each operator is computed is in `gradients.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, overload

from mlcweb.ir.op import Op
from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, Var, const
from mlcweb.relax.op import infer
from mlcweb.relax.op.create import arange
from mlcweb.relax.op.elementwise import astype, equal, not_equal
from mlcweb.relax.op.index import take
from mlcweb.relax.op.infer import attribute, info_of, shape_of
from mlcweb.relax.op.legalize import first_argument
from mlcweb.relax.op.linear_algebra import matmul
from mlcweb.relax.op.manipulate import expand_dims, permute_dims, reshape
from mlcweb.relax.op.registry import call, operator
from mlcweb.relax.op.statistical import sum as total
from mlcweb.relax.struct_info import StructInfo
from mlcweb.tir.expr import PrimExpr

Gradient: TypeAlias = Callable[[Var, Call, Var, BlockBuilder], Sequence[Expr]]
"""Of a variable, the call that it is bound to and the gradient of the variable: the gradient of
each argument. `no_grad(argument)` says that there is none."""

Rule = TypeVar("Rule", bound=Gradient)

GRADIENT = "FPrimalGradient"
"""The attribute of an operator that holds its gradient."""


@overload
def register_gradient(op_name: str, fgradient: Rule, level: int = 10) -> Rule: ...


@overload
def register_gradient(op_name: str, *, level: int = 10) -> Callable[[Rule], Rule]: ...


def register_gradient(
    op_name: str, fgradient: Rule | None = None, level: int = 10
) -> Rule | Callable[[Rule], Rule]:
    """Say how the gradient of an operator is computed; also as a decorator.

    Args:
        op_name: such as "relax.exp".
        fgradient: `fgradient(var, call, gradient, builder)` gives the gradient of each argument.
        level: accepted as in TVM; what is registered last holds.
    """

    def register(function: Rule) -> Rule:
        Op.get(op_name).set_attr(GRADIENT, function)
        return function

    return register(fgradient) if fgradient is not None else register


@operator("relax.grad.no_grad", infer=infer.same, legalize=first_argument, differentiable=False)
def no_grad(input: ExprLike) -> Call:
    """Its argument, as a constant for gradients."""
    return call(no_grad, input)


@operator("relax.grad.start_checkpoint", infer=infer.same, legalize=first_argument)
def start_checkpoint(input: ExprLike) -> Call:
    """Its argument, at which a part begins whose values may be computed again for gradients."""
    return call(start_checkpoint, input)


@operator("relax.grad.end_checkpoint", infer=infer.same, legalize=first_argument)
def end_checkpoint(input: ExprLike) -> Call:
    """Its argument, at which a part ends whose values may be computed again for gradients."""
    return call(end_checkpoint, input)


def _second(call: Call, context: Context) -> StructInfo:
    return infer.tensor(call, 1, context)


def _arguments(builder: BlockBuilder, call: Call) -> list[Expr]:
    values = (builder.normalize(arg) for arg in call.args)
    return [value for value in values if isinstance(value, Expr)]


def _one_hot(positions: Expr, depth: PrimExpr, dtype: str) -> Expr:
    """For each position a row in which its element is 1 and the others are 0."""
    numbers = arange(0, depth, dtype=getattr(positions.struct_info, "dtype", None))
    return astype(equal(expand_dims(positions, -1), numbers), dtype)


def _legalize_nll_loss(builder: BlockBuilder, call: Call) -> Expr:
    gradient, predictions, targets = _arguments(builder, call)[:3]
    info, extents = info_of(predictions), shape_of(predictions)
    dtype, axis = info.dtype, 0 if info.ndim == 1 else 1
    if len(call.args) > 3:
        weights = builder.emit(take(call.args[3], targets, axis=0))
    else:
        weights = builder.emit(astype(equal(targets, targets), dtype))
    ignored = const(attribute(call, "ignore_index"), info_of(targets).dtype)
    weights = builder.emit(weights * astype(not_equal(targets, ignored), dtype))
    scaled: Expr = -gradient * weights
    if attribute(call, "reduction") == "mean":
        scaled = scaled / total(weights)
    places: Expr = _one_hot(targets, extents[axis], dtype)
    if axis == 1 and info.ndim > 2:  # the classes are the second dimension
        places = permute_dims(places, [0, info.ndim - 1, *range(1, info.ndim - 1)])
    return expand_dims(scaled, axis) * places


@operator(
    "relax.grad.nll_loss_backward", "output_grad", "predictions", "targets", "weights",
    infer=_second, legalize=_legalize_nll_loss,
)  # fmt: skip
def nll_loss_backward(
    output_grad: ExprLike,
    predictions: ExprLike,
    targets: ExprLike,
    weights: ExprLike | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Call:
    """The gradient of `nn.nll_loss` for its predictions."""
    last = () if weights is None else (weights,)
    return call(
        nll_loss_backward, output_grad, predictions, targets, *last,
        reduction=reduction, ignore_index=ignore_index,
    )  # fmt: skip


def _legalize_take(builder: BlockBuilder, call: Call) -> Expr:
    gradient, data, indices = _arguments(builder, call)
    whole, positions = shape_of(data), shape_of(indices)
    shape, axis = list(whole), attribute(call, "axis")
    if axis is None:
        shape, axis = [dims.product(shape)], 0
    rows = _one_hot(reshape(indices, [-1]), shape[axis], info_of(data).dtype)
    # The dimensions of the indices stand where the axis was; they come first, as one.
    count = len(positions)
    inside = list(range(axis, axis + count))
    rest = [place for place in range(info_of(gradient).ndim) if place not in inside]
    moved = reshape(permute_dims(gradient, [*inside, *rest]), [dims.product(positions), -1])
    summed = matmul(permute_dims(rows, [1, 0]), moved)
    others = [extent for place, extent in enumerate(shape) if place != axis]
    back = list(range(1, len(shape)))
    back.insert(axis, 0)
    return reshape(permute_dims(reshape(summed, [shape[axis], *others]), back), whole)


@operator(
    "relax.grad.take_backward", "output_grad", "x", "indices",
    infer=_second, legalize=_legalize_take,
)  # fmt: skip
def take_backward(
    output_grad: ExprLike, x: ExprLike, indices: ExprLike, axis: int | None = None, mode: str = ""
) -> Call:
    """The gradient of `take` for its data: each row is the sum over where it was taken."""
    return call(take_backward, output_grad, x, indices, axis=axis, mode=mode)
