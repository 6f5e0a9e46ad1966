"""Lowering of operators that pick elements, or put them, by index."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax import expr as E
from mlcweb.relax import struct_info as S
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.op.index import slice_arguments
from mlcweb.relax.transform.legalize.common import attribute, by, enter, fields, known, number


def _strided_slice(builder: BlockBuilder, call: E.Call) -> Any:
    axes, *bounds = slice_arguments(call)
    return builder.call_te(
        topi.strided_slice,
        call.args[0],
        *bounds,
        axes,
        attribute(call, "assume_inbound"),
        primfunc_name_hint="strided_slice",
    )


def _take(builder: BlockBuilder, call: E.Call) -> Any:
    axis, mode = attribute(call, "axis"), attribute(call, "mode")
    return builder.call_te(topi.take, *call.args, 0 if axis is None else axis, mode=mode)


def _gather_elements(builder: BlockBuilder, call: E.Call) -> Any:
    data, indices = call.args
    return builder.call_te(topi.gather, data, attribute(call, "axis"), indices)


def _last_axis_first(indices: te.Tensor) -> te.Tensor:
    return topi.transpose(indices, [indices.ndim - 1, *range(indices.ndim - 1)])


def _gather_nd(data: te.Tensor, indices: te.Tensor, batch_dims: int) -> te.Tensor:
    return topi.gather_nd(data, _last_axis_first(indices), batch_dims)


def _scatter_nd(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, reduction: str
) -> te.Tensor:
    return topi.scatter_nd(data, _last_axis_first(indices), updates, reduction)


def _index_tensor(builder: BlockBuilder, call: E.Call) -> Any:
    indices = fields(builder, call.args[1])
    return builder.call_te(topi.index_tensor, call.args[0], indices)


def _one_hot(builder: BlockBuilder, call: E.Call) -> Any:
    indices, on, off = call.args
    dtype = known(builder, call).dtype
    depth, axis = attribute(call, "depth"), attribute(call, "axis")
    return builder.call_te(topi.one_hot, indices, number(on), number(off), depth, axis, dtype)


def _bucketize(builder: BlockBuilder, call: E.Call) -> Any:
    values, boundaries = call.args
    dtype = known(builder, call).dtype
    # A boundary counts that lies before an element, and if `right` one that is equal to it.
    return builder.call_te(
        topi.searchsorted, boundaries, values, attribute(call, "right"), dtype,
        primfunc_name_hint="bucketize",
    )  # fmt: skip


def _index_put(builder: BlockBuilder, call: E.Call) -> Any:
    data, where, values = call.args
    tensors = isinstance(known(builder, where), S.TensorStructInfo)
    indices = [where] if tensors else fields(builder, where)
    return builder.call_te(topi.index_put, data, indices, values, attribute(call, "accumulate"))


def _slice_scatter(builder: BlockBuilder, call: E.Call) -> Any:
    data, source, *bounds = call.args
    values = [bound.value if isinstance(bound, E.PrimValue) else bound for bound in bounds]
    return builder.call_te(topi.slice_scatter, data, source, *values, attribute(call, "axis"))


enter({
    "take": _take,
    "strided_slice": _strided_slice,
    "gather_elements": _gather_elements,
    "gather_nd": by(_gather_nd, "batch_dims", hint="te_gather_nd"),
    "scatter_elements": by(topi.scatter_elements, "axis", "reduction"),
    "scatter_nd": by(_scatter_nd, "reduction", hint="scatter_nd"),
    "index_tensor": _index_tensor,
    "one_hot": _one_hot,
    "bucketize": _bucketize,
    "index_put": _index_put,
    "slice_scatter": _slice_scatter,
})  # fmt: skip
