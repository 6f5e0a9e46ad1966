"""Operators that put elements by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.relax import dims
from mlcweb.relax.expr import Call, Expr, PrimValue
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo


def _infer_scatter(call: Call, context: Any) -> StructInfo:
    info, indices, updates = infer.tensors(call, context)
    infer.need_integer(call, 1, indices)
    if info.dtype and updates.dtype and info.dtype != updates.dtype:
        raise infer.dtype_error(
            call, f"updates must be {info.dtype} as data is, not {updates.dtype}"
        )
    return info


def _infer_scatter_elements(call: Call, context: Any) -> StructInfo:
    info, indices, updates = infer.tensors(call, context)
    if info.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)
    for index, other in ((1, indices), (2, updates)):
        if -1 not in (info.ndim, other.ndim) and info.ndim != other.ndim:
            both = f"{infer.described(call, 0, info)} and {infer.described(call, index, other)}"
            raise infer.shape_error(call, f"{both} must have the same rank")
    if indices.values is not None and updates.values is not None:
        if any(map(dims.differ, indices.values, updates.values)):
            both = f"{infer.described(call, 1, indices)} and {infer.described(call, 2, updates)}"
            raise infer.shape_error(call, f"{both} must have the same shape")
    return _infer_scatter(call, context)


def _scatter(name: str, deduce: Any) -> Callable[..., Call]:
    op = register(f"relax.{name}", ("data", "indices", "updates"), deduce)
    return lambda data, indices, updates, **attrs: call(op, data, indices, updates, **attrs)


_scatter_elements = _scatter("scatter_elements", _infer_scatter_elements)
_scatter_nd = _scatter("scatter_nd", _infer_scatter)


def scatter_elements(
    data: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "update"
) -> Call:
    """`data` with out[indices[i][j]][j] = updates[i][j] for axis 0, and so on.

    `reduction` says what becomes of the old value: "update" replaces it, "add", "mul", "min" and
    "max" combine both, "mean" averages.
    """
    return _scatter_elements(data, indices, updates, axis=int(axis), reduction=reduction)


def scatter_nd(data: Any, indices: Any, updates: Any, reduction: str = "update") -> Call:
    """`data` with the slices at the positions that the last axis of `indices` holds updated."""
    return _scatter_nd(data, indices, updates, reduction=reduction)


def _infer_index_put(call: Call, context: Any) -> StructInfo:
    data, values = infer.tensor(call, 0, context), infer.tensor(call, 2, context)
    if data.dtype and values.dtype and data.dtype != values.dtype:
        raise infer.dtype_error(call, f"values must be {data.dtype} as data is, not {values.dtype}")
    where = context.struct_info(call.args[1])
    indices = where.fields if isinstance(where, TupleStructInfo) else (where,)
    for number, info in enumerate(indices):
        if not isinstance(info, TensorStructInfo):
            raise infer.dtype_error(call, f"indices[{number}] must be a tensor, but it is {info}")
        infer.need_integer(call, 1, info)
    if data.ndim != -1 and len(indices) > data.ndim:
        raise infer.shape_error(
            call, f"{len(indices)} indices for {infer.described(call, 0, data)}"
        )
    return data


_INDEX_PUT = register("relax.index_put", ("data", "indices", "values"), _infer_index_put)


def index_put(data: Any, indices: Any, values: Any, accumulate: bool = False) -> Call:
    """`data` with `data[indices] = values`, or added if `accumulate`. `indices` are tensors of
    integers for the first axes, broadcast; one stands for itself."""
    return call(_INDEX_PUT, data, indices, values, accumulate=bool(accumulate))


def _infer_slice_scatter(call: Call, context: Any) -> StructInfo:
    data, source = infer.tensor(call, 0, context), infer.tensor(call, 1, context)
    if data.dtype and source.dtype and data.dtype != source.dtype:
        raise infer.dtype_error(call, f"src must be {data.dtype} as the tensor, not {source.dtype}")
    if data.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), data.ndim)
        if source.ndim not in (-1, data.ndim):
            both = f"{infer.described(call, 0, data)} and {infer.described(call, 1, source)}"
            raise infer.shape_error(call, f"{both} must have the same rank")
    return data


_SLICE_SCATTER = register(
    "relax.slice_scatter", ("input_tensor", "src", "start", "end", "step"), _infer_slice_scatter
)


def slice_scatter(
    input_tensor: Any, src: Any, start: Any, end: Any, step: Any = 1, axis: int = 0
) -> Call:
    """A tensor with the slices start, start + step, … before end along an axis taken from `src`."""
    bounds = [v if isinstance(v, Expr) else PrimValue(v) for v in (start, end, step)]
    return call(_SLICE_SCATTER, input_tensor, src, *bounds, axis=int(axis))
