"""Lowering of operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb import te, topi
from mlcweb.arith.index_map import IndexMap
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import Legalize, attribute, by, enter, fields, known
from mlcweb.tir import arithmetic, intrinsics, logic
from mlcweb.topi import shapes


def _to_result_shape(builder: BlockBuilder, call: E.Call) -> Any:
    """Reshapings: the shape is the deduced one."""
    shape = known(builder, call).values
    return builder.call_te(topi.reshape, call.args[0], list(shape), primfunc_name_hint="reshape")


def _expand_dims(builder: BlockBuilder, call: E.Call) -> Any:
    axes = {a % known(builder, call).ndim for a in attribute(call, "axis")}

    def expand_dims(x: te.Tensor) -> te.Tensor:
        rest = iter(x.shape)
        one = arithmetic.const(1, "int64")
        shape = [one if i in axes else next(rest) for i in range(x.ndim + len(axes))]

        def element(*index: Any) -> Any:
            return x(*(i for place, i in enumerate(index) if place not in axes))

        return te.compute(shape, element, "expand_dims")

    return builder.call_te(expand_dims, call.args[0])


def _squeeze(builder: BlockBuilder, call: E.Call) -> Any:
    values, axis = known(builder, call.args[0]).values, attribute(call, "axis")
    if axis is not None:
        places = [a % len(values) for a in axis]
        axis = [a for a in places if shapes.constant(values[a]) in (1, None)]
    return builder.call_te(topi.squeeze, call.args[0], axis)


def _joined(function: Any) -> Legalize:
    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        parts = fields(builder, call.args[0])
        return builder.call_te(function, parts, attribute(call, "axis") or 0)

    return legalize


def _meshgrid(builder: BlockBuilder, call: E.Call) -> Any:
    parts = fields(builder, call.args[0])
    return builder.call_te(topi.meshgrid, parts, attribute(call, "indexing"))


def _split(builder: BlockBuilder, call: E.Call) -> Any:
    given, axis = attribute(call, "indices_or_sections"), attribute(call, "axis")
    infos = known(builder, call).fields
    if len(infos) == 1:
        same = builder.call_te(topi.identity, call.args[0], primfunc_name_hint="split")
        return E.Tuple([builder.emit(same)])
    return builder.call_te(topi.split, call.args[0], given, axis)


def _repeat(x: te.Tensor, repeats: int, axis: int | None) -> te.Tensor:
    if axis is None:
        x, axis = topi.reshape(x, (shapes.size(x.shape),)), 0
    return topi.repeat(x, repeats, axis)


def _layout_transform(builder: BlockBuilder, call: E.Call) -> Any:
    index_map: IndexMap = attribute(call, "index_map")
    pad_value = attribute(call, "pad_value")

    def te_layout_transform(x: te.Tensor) -> te.Tensor:
        inverse, padding = index_map.non_surjective_inverse(x.shape)

        def element(*index: Any) -> Any:
            value = x(*inverse.map_indices(index))
            outside = _substituted(padding, inverse, index)
            if arithmetic.constant_value(outside) == 0:
                return value
            fill = arithmetic.const(pad_value or 0, x.dtype)
            return intrinsics.if_then_else(logic.all(arithmetic.logical_not(outside)), value, fill)

        return te.compute(index_map.map_shape(x.shape), element, "te_layout_transform")

    return builder.call_te(te_layout_transform, call.args[0])


def _substituted(condition: Any, inverse: IndexMap, index: Sequence[Any]) -> Any:
    moved = IndexMap(inverse.initial_indices, (condition,)).map_indices(index)
    return moved[0]


enter({
    "permute_dims": by(topi.transpose, "axes"),
    "reshape": _to_result_shape,
    "flatten": _to_result_shape,
    "nn.batch_flatten": _to_result_shape,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "broadcast_to": by(topi.broadcast_to),
    "tile": by(topi.tile, "repeats"),
    "repeat": by(_repeat, "repeats", "axis", hint="repeat"),
    "flip": by(topi.flip, "axis"),
    "concat": _joined(topi.concatenate),
    "stack": _joined(topi.stack),
    "split": _split,
    "meshgrid": _meshgrid,
    "layout_transform": _layout_transform,
    "reverse_sequence": by(topi.reverse_sequence, "seq_axis", "batch_axis"),
})  # fmt: skip
