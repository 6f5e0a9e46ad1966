"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, constant_int
from mlcweb.relax.op import infer, layout
from mlcweb.relax.op.legalize import attribute, by, topi
from mlcweb.relax.op.registry import FOLLOW, Legalize, call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo


def _infos(call: Call, context: Context) -> list[TensorStructInfo]:
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


def _infer_batch_norm(call: Call, context: Context) -> StructInfo:
    infos = _infos(call, context)
    data = infos[0]
    if data.ndim != -1:
        axis = infer.normalized_axis(call, infer.attribute(call, "axis"), data.ndim)
        _check_parameters(call, infos, [axis])
    return TupleStructInfo([data, infos[3], infos[4]])


def _layout_batch_norm(call: Call, layouts: Sequence[layout.Layout]) -> layout.Decision:
    order = layout.data_order(layouts)
    decision = layout.as_data(call, layouts, axis=layout.moved(call, "axis", order))
    decision.result = [order, *map(layout.initial_of, call.args[3:])]
    return decision


@operator(
    "relax.nn.batch_norm", "data", "gamma", "beta", "moving_mean", "moving_var",
    infer=_infer_batch_norm,
    legalize=by("nn.batch_norm", "axis", "epsilon", "center", "scale", "training", "momentum"),
    layout=_layout_batch_norm,
)  # fmt: skip
def batch_norm(
    data: ExprLike, gamma: ExprLike, beta: ExprLike, moving_mean: ExprLike, moving_var: ExprLike,
    axis: int, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
    momentum: float = 0.1, training: bool = True,
) -> Call:  # fmt: skip
    """(data - mean) / sqrt(variance + epsilon) gamma + beta, per position along `axis`.

    In training with the moments of the data, else with the moving ones. Gives a tuple of the
    result and the new moving mean and variance.
    """
    attrs = {"epsilon": epsilon, "center": center, "scale": scale, "momentum": momentum}
    tensors = (data, gamma, beta, moving_mean, moving_var)
    return call(batch_norm, *tensors, axis=whole(axis), **attrs, training=training)


def _axes(axes: int | Sequence[int]) -> list[int]:
    return [axes] if isinstance(axes, int) else [whole(axis) for axis in axes]


def _infer_over_axes(call: Call, context: Context) -> StructInfo:
    infos = _infos(call, context)
    if infos[0].ndim != -1:
        axes = infer.normalized_axes(call, infer.attribute(call, "axes"), infos[0].ndim, "axes")
        _check_parameters(call, infos, axes)
    return infos[0]


def _layout_over_axes(call: Call, layouts: Sequence[layout.Layout]) -> layout.Decision | None:
    order = layout.data_order(layouts)
    blocks = layout.blocks_of(order)
    axes = layout.axes_of(call, "axes", len(order) - len(blocks)) or []
    attrs: dict[str, object] = {"axes": [order.index(axis) for axis in axes]}
    channels = "channel_axis" in (call.attrs or {})
    if any(channels or block.axis in axes for block in blocks):
        return None
    if channels:
        attrs["channel_axis"] = layout.moved(call, "channel_axis", order)
    return layout.as_data(call, layouts, **attrs)


def _legalize_normalization(name: str, *attributes: str) -> Legalize:
    """Normalisations per element: without `scale` there is no gamma, without `center` no beta."""

    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        data, gamma, beta = call.args
        return builder.call_te(
            getattr(topi.nn, name),
            data,
            gamma if attribute(call, "scale") else None,
            beta if attribute(call, "center") else None,
            *(attribute(call, key) for key in attributes),
        )

    return legalize


@operator(
    "relax.nn.layer_norm", "data", "gamma", "beta",
    infer=_infer_over_axes, legalize=_legalize_normalization("layer_norm", "axes", "epsilon"),
    layout=layout.InBlocks(_layout_over_axes), precision=FOLLOW,
)  # fmt: skip
def layer_norm(
    data: ExprLike, gamma: ExprLike, beta: ExprLike, axes: int | Sequence[int],
    epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Call:  # fmt: skip
    """(data - mean) / sqrt(variance + epsilon) gamma + beta, with the moments over `axes`."""
    attrs = {"axes": _axes(axes), "epsilon": epsilon, "center": center, "scale": scale}
    return call(layer_norm, data, gamma, beta, **attrs)


@operator(
    "relax.nn.rms_norm", "data", "weight",
    infer=_infer_over_axes, legalize=by("nn.rms_norm", "axes", "epsilon"),
    layout=layout.InBlocks(_layout_over_axes), precision=FOLLOW,
)  # fmt: skip
def rms_norm(
    data: ExprLike, weight: ExprLike, axes: int | Sequence[int] = -1, epsilon: float = 1e-5
) -> Call:
    """data / sqrt(mean(data²) + epsilon) weight, with the mean over `axes`."""
    return call(rms_norm, data, weight, axes=_axes(axes), epsilon=epsilon)


def _infer_per_channel(call: Call, context: Context) -> StructInfo:
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


@operator(
    "relax.nn.group_norm", "data", "gamma", "beta",
    infer=_infer_per_channel,
    legalize=_legalize_normalization("group_norm", "num_groups", "channel_axis", "axes", "epsilon"),
    layout=layout.InBlocks(_layout_over_axes), precision=FOLLOW,
)  # fmt: skip
def group_norm(
    data: ExprLike, gamma: ExprLike, beta: ExprLike, num_groups: int, channel_axis: int,
    axes: int | Sequence[int], epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Call:  # fmt: skip
    """`layer_norm` of groups of channels, over them and `axes`; gamma and beta per channel."""
    attrs = {"axes": _axes(axes), "epsilon": epsilon, "center": center, "scale": scale}
    places = {"num_groups": whole(num_groups), "channel_axis": whole(channel_axis)}
    return call(group_norm, data, gamma, beta, **places, **attrs)


@operator(
    "relax.nn.instance_norm", "data", "gamma", "beta",
    infer=_infer_per_channel,
    legalize=_legalize_normalization("instance_norm", "channel_axis", "axes", "epsilon"),
    layout=layout.InBlocks(_layout_over_axes), precision=FOLLOW,
)  # fmt: skip
def instance_norm(
    data: ExprLike, gamma: ExprLike, beta: ExprLike, channel_axis: int,
    axes: int | Sequence[int], epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Call:  # fmt: skip
    """Every channel of every image normalised by itself, over `axes`."""
    attrs = {"axes": _axes(axes), "epsilon": epsilon, "center": center, "scale": scale}
    return call(instance_norm, data, gamma, beta, channel_axis=whole(channel_axis), **attrs)
