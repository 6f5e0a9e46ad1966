"""The gradients of operators, which `relax.transform.Gradient` chains.

Each function takes the variable that a call is bound to, the call, the gradient of the variable and
the builder, and gives the gradient of each argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.expr import Call, Expr, RelaxExpr, ShapeExpr, Tuple, Var, const, constant_int
from mlcweb.relax.op import create, elementwise, joining, linear_algebra, manipulate
from mlcweb.relax.op import statistical as reductions
from mlcweb.relax.op.grad import nll_loss_backward, no_grad, register_gradient, take_backward
from mlcweb.relax.op.infer import attribute, info_of, shape_of
from mlcweb.relax.op.search import where
from mlcweb.relax.struct_info import TensorStructInfo, TupleStructInfo
from mlcweb.tir.expr import PrimExpr

Parts = Callable[[Expr, Sequence[RelaxExpr], Expr], Sequence[Expr]]
"""Of a result, a call's arguments and the result's gradient: the gradients of the arguments."""


def _shape(expr: RelaxExpr) -> ShapeExpr:
    return ShapeExpr(shape_of(expr))


def _number(value: float, like: RelaxExpr) -> Expr:
    return const(value, info_of(like).dtype)


def _size(extent: PrimExpr) -> int:
    number = constant_int(extent)
    if number is None:
        raise DiagnosticError(f"Gradient: the extent {extent} must be known")
    return number


def _ready(builder: BlockBuilder, gradient: Expr) -> Expr:
    """The gradient with its arguments bound to variables."""
    ready = builder.normalize(gradient)
    assert isinstance(ready, Expr)
    return ready


def _fit(gradient: Expr, argument: RelaxExpr, result: Expr) -> Expr:
    """A gradient of a result's shape as one of the shape of an argument that was broadcast."""
    if dims.same_shape(shape_of(argument), shape_of(result)):
        return gradient
    return manipulate.collapse_sum_to(gradient, _shape(argument))


def _unary(name: str, part: Callable[[Expr, Expr, Expr], Expr]) -> None:
    def gradient(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
        argument = call.args[0]
        assert isinstance(argument, Expr)
        return [part(var, argument, grad)]

    register_gradient(name, gradient)


def _binary(name: str, parts: Parts) -> None:
    def gradient(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
        ready = [_ready(builder, part) for part in parts(var, call.args, grad)]
        return [_fit(part, arg, var) for part, arg in zip(ready, call.args, strict=True)]

    register_gradient(name, gradient)


def _power(z: Expr, args: Sequence[RelaxExpr], g: Expr) -> Sequence[Expr]:
    x, y = args
    lowered = elementwise.power(x, y - _number(1, y))
    return [g * y * lowered, g * z * elementwise.log(x)]


def _chosen(first: Callable[..., Expr], second: Callable[..., Expr]) -> Parts:
    """That of maximum and minimum: the gradient goes to what was chosen."""

    def parts(z: Expr, args: Sequence[RelaxExpr], g: Expr) -> Sequence[Expr]:
        zero = _number(0, g)
        return [where(first(*args), zero, g), where(second(*args), zero, g)]

    return parts


_binary("relax.add", lambda z, args, g: [g, g])
_binary("relax.subtract", lambda z, args, g: [g, -g])
_binary("relax.multiply", lambda z, args, g: [g * args[1], g * args[0]])
_binary("relax.divide", lambda z, args, g: [g / args[1], -g * z / args[1]])
_binary("relax.power", _power)
_binary("relax.maximum", _chosen(elementwise.less, elementwise.greater_equal))
_binary("relax.minimum", _chosen(elementwise.greater_equal, elementwise.less))

_unary("relax.negative", lambda y, x, g: -g)
_unary("relax.exp", lambda y, x, g: g * y)
_unary("relax.log", lambda y, x, g: g / x)
_unary("relax.sqrt", lambda y, x, g: _number(0.5, x) * g / y)
_unary("relax.sin", lambda y, x, g: g * elementwise.cos(x))
_unary("relax.cos", lambda y, x, g: -g * elementwise.sin(x))
_unary("relax.tanh", lambda y, x, g: g * (_number(1, x) - y * y))
_unary("relax.sigmoid", lambda y, x, g: g * y * (_number(1, x) - y))
_unary("relax.square", lambda y, x, g: _number(2, x) * x * g)
_unary("relax.erf", lambda y, x, g: g * _number(1.1283791670955126, x) * elementwise.exp(-(x * x)))
_unary("relax.rsqrt", lambda y, x, g: _number(-0.5, x) * g * y / x)
_unary("relax.astype", lambda y, x, g: elementwise.astype(g, info_of(x).dtype))
_unary("relax.reshape", lambda y, x, g: manipulate.reshape(g, _shape(x)))
_unary("relax.squeeze", lambda y, x, g: manipulate.reshape(g, _shape(x)))
_unary("relax.flatten", lambda y, x, g: manipulate.reshape(g, _shape(x)))
_unary("relax.broadcast_to", lambda y, x, g: manipulate.collapse_sum_to(g, _shape(x)))
_unary("relax.grad.start_checkpoint", lambda y, x, g: g)
_unary("relax.grad.end_checkpoint", lambda y, x, g: g)
_unary(
    "relax.nn.relu",
    lambda y, x, g: where(elementwise.less(x, _number(0, x)), _number(0, x), g),
)
_unary(
    "relax.abs",
    lambda y, x, g: g * where(elementwise.less(x, _number(0, x)), -_number(1, x), _number(1, x)),
)


# Reductions


def _axes(call: Call) -> list[int] | None:
    axis: int | Sequence[int] | None = attribute(call, "axis")
    return None if axis is None else [axis] if isinstance(axis, int) else list(axis)


def _kept(call: Call, grad: Expr) -> Expr:
    """The gradient of a reduction with the dimensions that were dropped."""
    axes = _axes(call)
    return grad if attribute(call, "keepdims") or not axes else manipulate.expand_dims(grad, axes)


def _count(call: Call) -> int:
    """How many elements each result is made of."""
    shape, axes = shape_of(call.args[0]), _axes(call)
    return math.prod(_size(shape[axis]) for axis in (range(len(shape)) if axes is None else axes))


@register_gradient("relax.sum")
def _sum(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    return [manipulate.broadcast_to(_kept(call, grad), _shape(call.args[0]))]


@register_gradient("relax.mean")
def _mean(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    part = grad / _number(float(_count(call)), grad)
    return [manipulate.broadcast_to(_kept(call, part), _shape(call.args[0]))]


@register_gradient("relax.variance")
def _variance(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    x, count = call.args[0], _count(call)
    own = _number(2 / count, x) * x
    mean = _number(2 / count / count, x) * reductions.sum(x, _axes(call), keepdims=True)
    return [_kept(call, grad) * (own - mean)]


@register_gradient("relax.cumsum")
def _cumsum(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    x = call.args[0]
    axis = attribute(call, "axis")
    whole = reductions.sum(grad, axis, keepdims=True)
    if axis is None:
        flat = whole - reductions.cumsum(grad) + manipulate.flatten(grad)
        result = manipulate.reshape(flat, _shape(x))
    else:
        result = whole - reductions.cumsum(grad, axis) + grad
    return [elementwise.astype(result, info_of(x).dtype) if attribute(call, "dtype") else result]


# Shapes


@register_gradient("relax.permute_dims")
def _permute_dims(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    axes: Sequence[int] | None = attribute(call, "axes")
    if not axes:
        return [manipulate.permute_dims(grad)]
    back = sorted(range(len(axes)), key=lambda place: axes[place] % len(axes))
    return [manipulate.permute_dims(grad, back)]


@register_gradient("relax.expand_dims")
def _expand_dims(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    return [manipulate.squeeze(grad, attribute(call, "axis"))]


@register_gradient("relax.concat")
def _concat(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    axis = attribute(call, "axis") or 0
    whole = call.args[0]
    parts = whole.struct_info if isinstance(whole, Expr) else None
    assert isinstance(parts, TupleStructInfo)
    infos = [info for info in parts.fields if isinstance(info, TensorStructInfo)]
    ends = list(accumulate(_size(info.values[axis]) for info in infos[:-1] if info.values))
    return [joining.split(grad, ends, axis) if ends else Tuple((grad,))]


@register_gradient("relax.split")
def _split(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    return [joining.concat(grad, attribute(call, "axis"))]


@register_gradient("relax.triu")
def _triu(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    return [create.triu(grad, call.args[1]), *map(no_grad, call.args[1:])]


@register_gradient("relax.where")
def _where(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    condition, first, second = call.args
    zero = _number(0, grad)
    return [
        no_grad(condition),
        _fit(where(condition, grad, zero), first, var),
        _fit(where(condition, zero, grad), second, var),
    ]


@register_gradient("relax.take")
def _take(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    x, indices = call.args
    return [take_backward(grad, x, indices, attribute(call, "axis")), no_grad(indices)]


# Linear algebra, and layers


def _transposed(x: RelaxExpr) -> Expr:
    ndim = info_of(x).ndim
    return manipulate.permute_dims(x, [*range(ndim - 2), ndim - 1, ndim - 2])


@register_gradient("relax.matmul")
def _matmul(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    a, b = call.args
    if info_of(a).ndim == 1 and info_of(b).ndim == 1:
        return [grad * b, grad * a]
    if info_of(a).ndim > 1 and info_of(b).ndim > 1:
        left = linear_algebra.matmul(grad, _transposed(b))
        right = linear_algebra.matmul(_transposed(a), grad)
        return [_of_shape(builder, left, a), _of_shape(builder, right, b)]
    # A vector is a matrix of one row on the left, of one column on the right.
    left_is_vector = info_of(a).ndim == 1
    axis = -2 if left_is_vector else -1
    wide = builder.emit(manipulate.expand_dims(grad, [axis]))
    if left_is_vector:
        row = builder.emit(manipulate.expand_dims(a, [0]))
        left = linear_algebra.matmul(wide, _transposed(b))
        right = linear_algebra.matmul(_transposed(row), wide)
        return [
            manipulate.collapse_sum_to(manipulate.squeeze(left, [-2]), _shape(a)),
            _of_shape(builder, right, b),
        ]
    column = builder.emit(manipulate.expand_dims(b, [1]))
    left = linear_algebra.matmul(wide, _transposed(column))
    right = linear_algebra.matmul(_transposed(a), wide)
    return [
        _of_shape(builder, left, a),
        manipulate.collapse_sum_to(manipulate.squeeze(right, [-1]), _shape(b)),
    ]


def _of_shape(builder: BlockBuilder, gradient: Expr, argument: RelaxExpr) -> Expr:
    """A gradient summed to the shape of an argument whose batches were broadcast."""
    ready = _ready(builder, gradient)
    return _fit(ready, argument, ready)


@register_gradient("relax.nn.silu")
def _silu(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    x = call.args[0]
    sigmoid = builder.emit(elementwise.sigmoid(x))
    return [grad * (sigmoid + var * (_number(1, x) - sigmoid))]


@register_gradient("relax.nn.softmax")
def _softmax(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    return [(grad - reductions.sum(grad * var, attribute(call, "axis"), keepdims=True)) * var]


@register_gradient("relax.nn.log_softmax")
def _log_softmax(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    whole = reductions.sum(grad, attribute(call, "axis"), keepdims=True)
    return [grad - whole * elementwise.exp(var)]


@register_gradient("relax.nn.cross_entropy_with_logits")
def _cross_entropy(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    x, y = call.args
    if info_of(x).ndim > 1:
        batch = float(_size(shape_of(x)[0]))
        grad = builder.emit(grad / _number(batch, x))
    return [-grad * y, -grad * x]


@register_gradient("relax.nn.nll_loss")
def _nll_loss(var: Var, call: Call, grad: Expr, builder: BlockBuilder) -> Sequence[Expr]:
    predictions, targets, *weights = call.args
    if attribute(call, "reduction") == "none" and info_of(predictions).ndim == 1:
        grad = manipulate.reshape(grad, [1])
    gradient = nll_loss_backward(
        grad, predictions, targets, *weights,
        reduction=attribute(call, "reduction"), ignore_index=attribute(call, "ignore_index"),
    )  # fmt: skip
    return [gradient, *map(no_grad, (targets, *weights))]
