"""Sorting along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import attribute, dtype_of, shape_of, te, topi
from mlcweb.relax.op.registry import call, operator, whole
from mlcweb.relax.op.statistical import infer_reduction
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, extent
from mlcweb.tir.expr import PrimExpr


def _sorted_axis(call: Call, info: TensorStructInfo) -> int | None:
    """The axis that is sorted along, counted from the front; None while the rank is not known."""
    if info.ndim == -1:
        return None
    return infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)


def _infer_sort(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    _sorted_axis(call, info)
    return info


def _infer_argsort(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    _sorted_axis(call, info)
    dtype = infer.dtype_or(call, "int32")
    return TensorStructInfo(info.shape, dtype, ndim=info.ndim)


def _legalize_sort(builder: BlockBuilder, call: Call) -> Expr:
    axis, descending = attribute(call, "axis"), attribute(call, "descending")
    return builder.call_te(topi.sort, call.args[0], axis, not descending)


@operator(
    "relax.sort", "x",
    infer=_infer_sort, legalize=_legalize_sort, dispatched="DispatchSortScan",
)  # fmt: skip
def sort(x: ExprLike, axis: int = -1, descending: bool = False) -> Call:
    """The elements along an axis in the order of their values."""
    return call(sort, x, axis=whole(axis), descending=bool(descending))


def _legalize_argsort(builder: BlockBuilder, call: Call) -> Expr:
    axis, ascending = attribute(call, "axis"), not attribute(call, "descending")
    dtype = dtype_of(builder, call)
    return builder.call_te(topi.argsort, call.args[0], axis=axis, is_ascend=ascending, dtype=dtype)


@operator(
    "relax.argsort", "data",
    infer=_infer_argsort, legalize=_legalize_argsort, dispatched="DispatchSortScan",
)  # fmt: skip
def argsort(data: ExprLike, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Call:
    """Positions along an axis in the order of the elements there; of equal ones the first comes
    first."""
    return call(argsort, data, axis=whole(axis), descending=bool(descending), dtype=str(dtype))


def _infer_topk(call: Call, context: Context) -> StructInfo:
    info, k = infer.tensor(call, 0, context), infer.attribute(call, "k")
    kind = infer.attribute(call, "ret_type")
    if kind not in ("both", "values", "indices"):
        raise infer.shape_error(
            call, f'ret_type must be "both", "values" or "indices", not {kind!r}'
        )
    place = _sorted_axis(call, info)
    shape = None if info.values is None else list(info.values)
    if shape is not None and place is not None and k >= 1:
        count = getattr(shape[place], "value", None)
        if count is None or k < count:
            shape[place] = extent(k)
    values = TensorStructInfo(shape, info.dtype, ndim=info.ndim)
    indices = TensorStructInfo(shape, infer.attribute(call, "dtype"), ndim=info.ndim)
    if kind == "both":
        return TupleStructInfo([values, indices])
    return values if kind == "values" else indices


def _legalize_topk(builder: BlockBuilder, call: Call) -> Expr:
    k, axis = attribute(call, "k"), attribute(call, "axis")
    extent = constant_int(shape_of(builder, call.args[0])[axis])
    if extent is not None:
        k = min(k, extent)
    return builder.call_te(
        topi.topk,
        call.args[0],
        k,
        axis,
        attribute(call, "ret_type"),
        not attribute(call, "largest"),
        attribute(call, "dtype"),
    )


@operator(
    "relax.topk", "data",
    infer=_infer_topk, legalize=_legalize_topk, dispatched="DispatchSortScan",
)  # fmt: skip
def topk(
    data: ExprLike,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
) -> Call:
    """The `k` greatest elements along an axis (the least ones, if not `largest`), the first first.

    Args:
        k: how many; all of them where it is less than 1, or more than there are.
        ret_type: "both" gives a tuple of the elements and their positions, "values" and "indices"
            one of them.
        dtype: of the positions.
    """
    return call(
        topk, data, k=whole(k), axis=whole(axis), ret_type=ret_type, largest=bool(largest),
        dtype=str(dtype),
    )  # fmt: skip


def _infer_median(call: Call, context: Context) -> StructInfo:
    """Along one axis also where it is, as int64."""
    values, axis = infer_reduction(call, context), infer.attribute(call, "axis")
    if axis is None or len(axis) != 1:
        return values
    assert isinstance(values, TensorStructInfo)
    return TupleStructInfo([values, TensorStructInfo(values.shape, "int64", ndim=values.ndim)])


def _legalize_median(builder: BlockBuilder, call: Call) -> Expr:
    info = builder.context.struct_info(call)
    values = info.fields[0] if isinstance(info, TupleStructInfo) else info
    assert isinstance(values, TensorStructInfo)
    whole = values.values or ()

    def median(x: te.Tensor) -> te.Tensor | list[te.Tensor]:
        axes = attribute(call, "axis")
        gone = [axis % x.ndim for axis in (range(x.ndim) if axes is None else axes)]
        place = gone[0] if len(gone) == 1 else x.ndim - len(gone)
        if len(gone) != 1:  # as one axis, the last
            kept = [axis for axis in range(x.ndim) if axis not in gone]
            count = dims.product([x.shape[axis] for axis in gone])
            shape = [*(x.shape[axis] for axis in kept), count]
            x = topi.reshape(topi.transpose(x, [*kept, *gone]), shape)
        order = topi.argsort(x, axis=place, dtype="int64")
        middle = (x.shape[place] - 1) // 2
        position = topi.take(order, middle, place)

        def element(*index: PrimExpr) -> PrimExpr:
            return x(*index[:place], position(*index), *index[place:])

        results = [te.compute(position.shape, element, "median"), position]
        if attribute(call, "keepdims"):
            results = [topi.reshape(tensor, whole) for tensor in results]
        return results if isinstance(info, TupleStructInfo) else results[0]

    return builder.call_te(median, call.args[0], primfunc_name_hint="median")


@operator("relax.median", "x", infer=_infer_median, legalize=_legalize_median)
def median(x: ExprLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
    """The middle element in order over axes, all without `axis`, the lower one of two; along one
    axis a tuple with its position there, as int64."""
    axes = [axis] if isinstance(axis, int) else axis
    return call(
        median,
        x,
        axis=None if axes is None else [whole(a) for a in axes],
        keepdims=bool(keepdims),
    )
