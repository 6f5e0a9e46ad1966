"""Normalisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reducers import sum as reduce_sum
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import reduction, shapes, tags
from mlcweb.topi.elementwise import cast, sqrt
from mlcweb.topi.shapes import Axes
from mlcweb.topi.transform import moved, reshape

Affine = Callable[[PrimExpr, Sequence[PrimExpr]], PrimExpr]
"""What becomes of a normalised value at an index."""


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
    """(data - mean) / sqrt(variance + epsilon) gamma + beta along `axis` (Ioffe and Szegedy, "Batch
    Normalization", 2015).

    In training with the moments of the data, else with the moving ones.

    Returns: the result, and the moving mean and variance; in training moved by `momentum` towards
        the moments of the data.
    """
    place = shapes.axis_of("batch_norm", axis, data.ndim)
    one = arithmetic.const(1, data.shape[place].dtype)
    shape = [extent if i == place else one for i, extent in enumerate(data.shape)]
    mean, spread = moving_mean, moving_var
    if training:
        others = [i for i in range(data.ndim) if i != place]
        mean, spread = reduction.mean(data, others), reduction.variance(data, others)
    centred = data - reshape(mean, shape)
    deviation = sqrt(reshape(spread, shape) + epsilon)
    result = centred / deviation
    if scale:
        result = result * reshape(gamma, shape)
    if center:
        result = result + reshape(beta, shape)
    if not training:
        return [result, _same(moving_mean), _same(moving_var)]
    return [result, _moved(moving_mean, mean, momentum), _moved(moving_var, spread, momentum)]


def _moved(old: Tensor, new: Tensor, momentum: float) -> Tensor:
    return old * (1.0 - momentum) + new * momentum


def _same(x: Tensor) -> Tensor:
    return x * 1.0


def layer_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    axis: Axes,
    epsilon: float = 1e-5,
) -> Tensor:
    """(data - mean) / sqrt(variance + epsilon) gamma + beta, with mean and variance over `axis`
    (Ba et al., "Layer Normalization", 2016). The axes of gamma and beta are those, in this order.
    """
    order = shapes.axes_in_order("layer_norm", axis, data.ndim)
    return _normalized(data, sorted(order), epsilon, _affine(gamma, beta, order), "T_layer_norm")


def rms_norm(data: Tensor, weight: Tensor, axis: Axes, epsilon: float = 1e-5) -> Tensor:
    """data / sqrt(mean(data²) + epsilon) weight over `axis` (Zhang and Sennrich, "Root Mean Square
    Layer Normalization", 2019)."""
    order = shapes.axes_in_order("rms_norm", axis, data.ndim)
    places = sorted(order)
    wide = "float32" if data.dtype == "float16" else data.dtype
    values, scale = cast(data, wide), cast(weight, wide)
    count = _count(data, places)
    total = reduction.sum(values * values, places)
    factor = compute(
        total.shape,
        lambda *index: _inverse_root(total(*index) / count, epsilon),
        "rsqrt",
        varargs_names=shapes.axis_names(total.ndim),
    )

    def element(*index: PrimExpr) -> PrimExpr:
        outside = [i for place, i in enumerate(index) if place not in places]
        return factor(*outside) * values(*index) * scale(*(index[place] for place in order))

    return cast(moved(data.shape, element, "T_rms_norm"), data.dtype)


def group_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
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
    each = channels // groups
    split = reshape(data, [*data.shape[:place], groups, each, *data.shape[place + 1 :]])
    inner = [place + 1, *(a + (a > place) for a in shapes.axes_of("group_norm", axes, data.ndim))]
    scale, shift = (
        None if parameter is None else reshape(parameter, [groups, each])
        for parameter in (gamma, beta)
    )
    affine = _affine(scale, shift, [place, place + 1])
    return reshape(_normalized(split, inner, epsilon, affine, "T_group_norm"), data.shape)


def instance_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    channel_axis: int,
    axis: Sequence[int],
    epsilon: float = 1e-5,
) -> Tensor:
    """Every channel of every image normalised by itself over `axis`."""
    place = shapes.axis_of("instance_norm", channel_axis, data.ndim)
    places = shapes.axes_of("instance_norm", axis, data.ndim)
    return _normalized(data, places, epsilon, _affine(gamma, beta, [place]), "T_instance_norm")


def _affine(gamma: Tensor | None, beta: Tensor | None, places: Sequence[int]) -> Affine:
    """value gamma + beta, with the indices at `places`; each is left out where it is None."""

    def affine(value: PrimExpr, index: Sequence[PrimExpr]) -> PrimExpr:
        inside = [index[place] for place in places]
        if gamma is not None:
            value = value * gamma(*inside)
        return value if beta is None else value + beta(*inside)

    return affine


def _normalized(
    data: Tensor,
    places: list[int],
    epsilon: float,
    affine: Affine,
    name: str,
) -> Tensor:
    """affine((data - mean) / sqrt(variance + epsilon), index), with the moments over `places`.

    The variance is that of the differences, in a second pass over the data: the difference of the
    mean square and the squared mean, in one pass, would lose digits. Those of float16 are float32.
    """
    count = _count(data, places)
    source = data.op.name
    total = _summed(data, places, f"{source}_sum", lambda value, _: value)
    mean = compute(
        total.shape,
        lambda *index: total(*index) / count,
        f"{source}_mean",
        varargs_names=shapes.axis_names(total.ndim),
    )

    def squared(value: PrimExpr, index: Sequence[PrimExpr]) -> PrimExpr:
        difference = value - mean(*index)
        return difference * difference

    spread = _summed(data, places, f"{source}_var_sum", squared)

    def element(*index: PrimExpr) -> PrimExpr:
        outside = [i for place, i in enumerate(index) if place not in places]
        factor = _inverse_root(spread(*outside) / count, epsilon)
        normal = (_wide(data(*index), data.dtype) - mean(*outside)) * factor
        return affine(arithmetic.cast(data.dtype, normal), index)

    return moved(data.shape, element, name)


def _count(data: Tensor, places: list[int]) -> PrimExpr:
    """How many elements are summed over `places`."""
    return shapes.size([_wide(data.shape[i], data.dtype) for i in places])


def _summed(
    data: Tensor, places: list[int], name: str, term: Callable[..., PrimExpr]
) -> Tensor:  # fmt: skip
    """The sums over `places` of `term(value, index)`, with the index of the sum."""
    rest = [extent for i, extent in enumerate(data.shape) if i not in places]
    iterators = {i: reduce_axis((0, data.shape[i]), f"k{i}") for i in places}

    def element(*index: PrimExpr) -> PrimExpr:
        left = iter(index)
        place = [iterators[i].var if i in iterators else next(left) for i in range(data.ndim)]
        value = _wide(data(*place), data.dtype)
        return reduce_sum(term(value, index), list(iterators.values()))

    names = shapes.axis_names(len(rest))
    return compute(rest, element, name, tag=tags.COMM_REDUCE, varargs_names=names)


def _inverse_root(variance: PrimExpr, epsilon: float) -> PrimExpr:
    shifted = variance + arithmetic.const(epsilon, variance.dtype)
    return intrinsics.unary_functions["rsqrt"](shifted)


def _wide(value: PrimExpr, dtype: str) -> PrimExpr:
    """A value in the type in which values of `dtype` are summed: float32 for float16, which cannot
    count beyond 2048."""
    return arithmetic.cast("float32" if dtype == "float16" else dtype, value)
