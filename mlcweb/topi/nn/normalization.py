"""Normalisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reducers import sum as reduce_sum
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes, tags
from mlcweb.topi.broadcast import add, divide, multiply, subtract
from mlcweb.topi.elementwise import sqrt
from mlcweb.topi.transform import reshape


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    training: bool = False,
    momentum: float = 0.1,
) -> list[Tensor]:
    """Inference: (data - mean) / sqrt(variance + epsilon) gamma + beta along `axis`.

    Returns: the result, and the moving mean and variance as they were (Ioffe and Szegedy, "Batch
        Normalization", 2015).
    """
    if training:
        raise DiagnosticError("batch_norm: only inference is supported (training=False)")
    place = shapes.axis_of("batch_norm", axis, data.ndim)
    one = arithmetic.const(1, data.shape[place].dtype)
    shape = [extent if i == place else one for i, extent in enumerate(data.shape)]
    centred = subtract(data, reshape(moving_mean, shape))
    deviation = sqrt(add(reshape(moving_var, shape), epsilon))
    result = divide(centred, deviation)
    if scale:
        result = multiply(result, reshape(gamma, shape))
    if center:
        result = add(result, reshape(beta, shape))
    return [result, _same(moving_mean), _same(moving_var)]


def _same(x: Tensor) -> Tensor:
    return multiply(x, 1.0)


def layer_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor | None,
    axis: Any,
    epsilon: float = 1e-5,
) -> Tensor:
    """(data - mean) / sqrt(variance + epsilon) gamma + beta, with mean and variance over `axis`
    (Ba et al., "Layer Normalization", 2016)."""
    places = shapes.axes_of("layer_norm", axis, data.ndim)

    def affine(value: PrimExpr, index: Sequence[PrimExpr]) -> PrimExpr:
        inside = [index[place] for place in places]
        value = value * gamma(*inside)
        return value if beta is None else value + beta(*inside)

    return _normalized(data, places, epsilon, affine, "T_layer_norm")


def rms_norm(data: Tensor, weight: Tensor, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """data / sqrt(mean(data²) + epsilon) weight over `axis` (Zhang and Sennrich, "Root Mean Square
    Layer Normalization", 2019)."""
    places = shapes.axes_of("rms_norm", axis, data.ndim)
    rest = [extent for i, extent in enumerate(data.shape) if i not in places]
    names = [f"ax{i}" for i in range(len(rest))]
    count = arithmetic.cast(data.dtype, shapes.size([data.shape[i] for i in places]))
    iterators = {i: reduce_axis((0, data.shape[i]), f"k{i}") for i in places}

    def squares(*index: PrimExpr) -> Any:
        left = iter(index)
        place = [iterators[i].var if i in iterators else next(left) for i in range(data.ndim)]
        return reduce_sum(data(*place) * data(*place), list(iterators.values()))

    total = compute(rest, squares, "T_multiply_red", tag=tags.COMM_REDUCE, varargs_names=names)
    factor = compute(
        rest,
        lambda *index: _inverse_root(arithmetic.divide(total(*index), count), epsilon),
        "rsqrt",
        varargs_names=names,
    )

    def element(*index: PrimExpr) -> Any:
        outside = [i for place, i in enumerate(index) if place not in places]
        return factor(*outside) * data(*index) * weight(*(index[place] for place in places))

    return compute(
        data.shape,
        element,
        "T_rms_norm",
        tag=tags.INJECTIVE,
        varargs_names=[f"ax{i}" for i in range(data.ndim)],
    )


def group_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> Tensor:
    """`layer_norm` of groups of channels, over them and `axes`; gamma and beta per channel (Wu and
    He, "Group Normalization", 2018)."""
    place = shapes.axis_of("group_norm", channel_axis, data.ndim)
    channels = data.shape[place]
    groups = arithmetic.const(num_groups, channels.dtype)
    each = arithmetic.floordiv(channels, groups)
    split = reshape(data, [*data.shape[:place], groups, each, *data.shape[place + 1 :]])
    inner = [place + 1, *(a + (a > place) for a in shapes.axes_of("group_norm", axes, data.ndim))]
    scale, shift = reshape(gamma, [groups, each]), reshape(beta, [groups, each])

    def affine(value: PrimExpr, index: Sequence[PrimExpr]) -> PrimExpr:
        channel = index[place : place + 2]
        return value * scale(*channel) + shift(*channel)

    return reshape(_normalized(split, inner, epsilon, affine, "T_group_norm"), data.shape)


def instance_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    channel_axis: int,
    axis: Sequence[int],
    epsilon: float = 1e-5,
) -> Tensor:
    """Every channel of every image normalised by itself over `axis`."""
    place = shapes.axis_of("instance_norm", channel_axis, data.ndim)

    def affine(value: PrimExpr, index: Sequence[PrimExpr]) -> PrimExpr:
        return value * gamma(index[place]) + beta(index[place])

    places = shapes.axes_of("instance_norm", axis, data.ndim)
    return _normalized(data, places, epsilon, affine, "T_instance_norm")


def _normalized(
    data: Tensor,
    places: list[int],
    epsilon: float,
    affine: Callable[[PrimExpr, Sequence[PrimExpr]], PrimExpr],
    name: str,
) -> Tensor:
    """affine((data - mean) / sqrt(variance + epsilon), index), with the moments over `places`.

    The variance is that of the differences, in a second pass over the data: the difference of the
    mean square and the squared mean, in one pass, would lose digits.
    """
    rest = [extent for i, extent in enumerate(data.shape) if i not in places]
    names = [f"ax{i}" for i in range(len(rest))]
    count = arithmetic.cast(data.dtype, shapes.size([data.shape[i] for i in places]))
    source = data.op.name

    def summed(suffix: str, term: Callable[..., PrimExpr]) -> Tensor:
        iterators = {i: reduce_axis((0, data.shape[i]), f"k{i}") for i in places}

        def element(*index: PrimExpr) -> Any:
            left = iter(index)
            place = [iterators[i].var if i in iterators else next(left) for i in range(data.ndim)]
            return reduce_sum(term(data(*place), index), list(iterators.values()))

        return compute(
            rest, element, f"{source}_{suffix}", tag=tags.COMM_REDUCE, varargs_names=names
        )

    total = summed("sum", lambda value, _: value)
    mean = compute(
        rest,
        lambda *index: arithmetic.divide(total(*index), count),
        f"{source}_mean",
        varargs_names=names,
    )

    def squared(value: PrimExpr, index: Sequence[PrimExpr]) -> PrimExpr:
        difference = value - mean(*index)
        return difference * difference

    spread = summed("var_sum", squared)

    def element(*index: PrimExpr) -> Any:
        outside = [i for place, i in enumerate(index) if place not in places]
        factor = _inverse_root(arithmetic.divide(spread(*outside), count), epsilon)
        return affine((data(*index) - mean(*outside)) * factor, index)

    return compute(
        data.shape,
        element,
        name,
        tag=tags.INJECTIVE,
        varargs_names=[f"ax{i}" for i in range(data.ndim)],
    )


def _inverse_root(variance: PrimExpr, epsilon: float) -> PrimExpr:
    shifted = variance + arithmetic.const(epsilon, variance.dtype)
    return intrinsics.unary_functions["rsqrt"](shifted)
