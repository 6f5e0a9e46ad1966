"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.relax import dims
from mlcweb.relax.expr import Call, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo


def _infos(call: Call, context: Any) -> list[TensorStructInfo]:
    infos = infer.tensors(call, context)
    infer.common_dtype(call, infos)
    infer.need_float(call, 0, infos[0])
    return infos


def _check_parameters(call: Call, infos: Sequence[TensorStructInfo], axes: Sequence[int]) -> None:
    """The parameters of a normalisation have the extents of the data on `axes`."""
    data = infos[0]
    for index, info in enumerate(infos[1:], start=1):
        if info.ndim not in (-1, len(axes)):
            raise infer.shape_error(
                call,
                f"{infer.described(call, index, info)} must have {len(axes)} dimension(s), those "
                f"of the axes {list(axes)} of data",
            )
        if data.values is None or info.values is None:
            continue
        for axis, extent in zip(axes, info.values, strict=True):
            if dims.differ(data.values[axis], extent):
                both = f"{infer.described(call, 0, data)} and {infer.described(call, index, info)}"
                raise infer.shape_error(
                    call,
                    f"{both} do not fit: axis {axis} of data is {infer.text(data.values[axis])}",
                )


def _infer_batch_norm(call: Call, context: Any) -> StructInfo:
    infos = _infos(call, context)
    data = infos[0]
    if data.ndim != -1:
        axis = infer.normalized_axis(call, infer.attribute(call, "axis"), data.ndim)
        _check_parameters(call, infos, [axis])
    return TupleStructInfo([data, infos[3], infos[4]])


_BATCH_NORM = register(
    "relax.nn.batch_norm", ("data", "gamma", "beta", "moving_mean", "moving_var"), _infer_batch_norm
)


def batch_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    axis: int,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    momentum: float = 0.1,
    training: bool = True,
) -> Call:
    """(data - mean) / sqrt(variance + epsilon) gamma + beta, per position along `axis`.

    In training with the moments of the data, else with the moving ones. Gives a tuple of the
    result and the new moving mean and variance.
    """
    return call(
        _BATCH_NORM,
        data,
        gamma,
        beta,
        moving_mean,
        moving_var,
        axis=int(axis),
        epsilon=epsilon,
        center=center,
        scale=scale,
        momentum=momentum,
        training=training,
    )


def _axes(axes: int | Sequence[int]) -> list[int]:
    return [axes] if isinstance(axes, int) else [int(axis) for axis in axes]


def _infer_over_axes(call: Call, context: Any) -> StructInfo:
    infos = _infos(call, context)
    if infos[0].ndim != -1:
        axes = infer.normalized_axes(call, infer.attribute(call, "axes"), infos[0].ndim, "axes")
        _check_parameters(call, infos, axes)
    return infos[0]


_LAYER_NORM = register("relax.nn.layer_norm", ("data", "gamma", "beta"), _infer_over_axes)
_RMS_NORM = register("relax.nn.rms_norm", ("data", "weight"), _infer_over_axes)


def layer_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    axes: int | Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """(data - mean) / sqrt(variance + epsilon) gamma + beta, with the moments over `axes`."""
    return call(
        _LAYER_NORM,
        data,
        gamma,
        beta,
        axes=_axes(axes),
        epsilon=epsilon,
        center=center,
        scale=scale,
    )


def rms_norm(data: Any, weight: Any, axes: int | Sequence[int] = -1, epsilon: float = 1e-5) -> Call:
    """data / sqrt(mean(data²) + epsilon) weight, with the mean over `axes`."""
    return call(_RMS_NORM, data, weight, axes=_axes(axes), epsilon=epsilon)


def _infer_per_channel(call: Call, context: Any) -> StructInfo:
    infos = _infos(call, context)
    data = infos[0]
    if data.ndim == -1:
        return data
    channel = infer.normalized_axis(
        call, infer.attribute(call, "channel_axis"), data.ndim, "channel_axis"
    )
    axes = infer.normalized_axes(call, infer.attribute(call, "axes"), data.ndim, "axes")
    if channel in axes:
        raise infer.shape_error(call, f"axes {axes} must not have the channel_axis {channel}")
    _check_parameters(call, infos, [channel])
    count = None if data.values is None else constant_int(data.values[channel])
    groups = (call.attrs or {}).get("num_groups", 1)
    if count is not None and (groups < 1 or count % groups):
        raise infer.shape_error(
            call, f"the {count} channels of {infer.described(call, 0, data)} are no {groups} groups"
        )
    return data


_GROUP_NORM = register("relax.nn.group_norm", ("data", "gamma", "beta"), _infer_per_channel)
_INSTANCE_NORM = register("relax.nn.instance_norm", ("data", "gamma", "beta"), _infer_per_channel)


def group_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    num_groups: int,
    channel_axis: int,
    axes: int | Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """`layer_norm` of groups of channels, over them and `axes`; gamma and beta per channel."""
    return call(
        _GROUP_NORM,
        data,
        gamma,
        beta,
        num_groups=int(num_groups),
        channel_axis=int(channel_axis),
        axes=_axes(axes),
        epsilon=epsilon,
        center=center,
        scale=scale,
    )


def instance_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    channel_axis: int,
    axes: int | Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Every channel of every image normalised by itself, over `axes`."""
    return call(
        _INSTANCE_NORM,
        data,
        gamma,
        beta,
        channel_axis=int(channel_axis),
        axes=_axes(axes),
        epsilon=epsilon,
        center=center,
        scale=scale,
    )
