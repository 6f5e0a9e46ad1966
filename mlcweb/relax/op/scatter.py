"""Operators that put elements by index."""

from __future__ import annotations

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, PrimValue
from mlcweb.relax.op import infer
from mlcweb.relax.op.index import last_axis_first
from mlcweb.relax.op.legalize import attribute, by, fields_of, te, topi
from mlcweb.relax.op.registry import call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo


def _infer_scatter(call: Call, context: Context) -> StructInfo:
    info, indices, updates = infer.tensors(call, context)
    infer.need_integer(call, 1, indices)
    if info.dtype and updates.dtype and info.dtype != updates.dtype:
        raise infer.dtype_error(
            call, f"updates must be {info.dtype} as data is, not {updates.dtype}"
        )
    return info


def _infer_scatter_elements(call: Call, context: Context) -> StructInfo:
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


@operator(
    "relax.scatter_elements", "data", "indices", "updates",
    infer=_infer_scatter_elements, legalize=by("scatter_elements", "axis", "reduction"),
)  # fmt: skip
def scatter_elements(
    data: ExprLike, indices: ExprLike, updates: ExprLike, axis: int = 0, reduction: str = "update"
) -> Call:
    """`data` with out[indices[i][j]][j] = updates[i][j] for axis 0, and so on.

    `reduction` says what becomes of the old value: "update" replaces it, "add", "mul", "min" and
    "max" combine both, "mean" averages.
    """
    return call(scatter_elements, data, indices, updates, axis=whole(axis), reduction=reduction)


def _scatter_nd(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, reduction: str
) -> te.Tensor:
    return topi.scatter_nd(data, last_axis_first(indices), updates, reduction)


@operator(
    "relax.scatter_nd", "data", "indices", "updates",
    infer=_infer_scatter, legalize=by(_scatter_nd, "reduction", hint="scatter_nd"),
)  # fmt: skip
def scatter_nd(
    data: ExprLike, indices: ExprLike, updates: ExprLike, reduction: str = "update"
) -> Call:
    """`data` with the slices at the positions that the last axis of `indices` holds updated."""
    return call(scatter_nd, data, indices, updates, reduction=reduction)


def _infer_index_put(call: Call, context: Context) -> StructInfo:
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


def _legalize_index_put(builder: BlockBuilder, call: Call) -> Expr:
    data, where, values = call.args
    tensors = isinstance(builder.context.struct_info(where), TensorStructInfo)
    indices = [where] if tensors else fields_of(builder, where)
    return builder.call_te(topi.index_put, data, indices, values, attribute(call, "accumulate"))


@operator(
    "relax.index_put", "data", "indices", "values",
    infer=_infer_index_put, legalize=_legalize_index_put,
)  # fmt: skip
def index_put(
    data: ExprLike, indices: ExprLike, values: ExprLike, accumulate: bool = False
) -> Call:
    """`data` with `data[indices] = values`, or added if `accumulate`. `indices` are tensors of
    integers for the first axes, broadcast; one stands for itself."""
    return call(index_put, data, indices, values, accumulate=bool(accumulate))


def _infer_slice_scatter(call: Call, context: Context) -> StructInfo:
    data, source = infer.tensor(call, 0, context), infer.tensor(call, 1, context)
    if data.dtype and source.dtype and data.dtype != source.dtype:
        raise infer.dtype_error(call, f"src must be {data.dtype} as the tensor, not {source.dtype}")
    if data.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), data.ndim)
        if source.ndim not in (-1, data.ndim):
            both = f"{infer.described(call, 0, data)} and {infer.described(call, 1, source)}"
            raise infer.shape_error(call, f"{both} must have the same rank")
    return data


def _legalize_slice_scatter(builder: BlockBuilder, call: Call) -> Expr:
    data, source, *bounds = call.args
    values = [bound.value if isinstance(bound, PrimValue) else bound for bound in bounds]
    return builder.call_te(topi.slice_scatter, data, source, *values, attribute(call, "axis"))


@operator(
    "relax.slice_scatter", "input_tensor", "src", "start", "end", "step",
    infer=_infer_slice_scatter, legalize=_legalize_slice_scatter,
)  # fmt: skip
def slice_scatter(
    input_tensor: ExprLike,
    src: ExprLike,
    start: ExprLike,
    end: ExprLike,
    step: ExprLike = 1,
    axis: int = 0,
) -> Call:
    """A tensor with the slices start, start + step, … before end along an axis taken from `src`."""
    return call(slice_scatter, input_tensor, src, start, end, step, axis=whole(axis))
