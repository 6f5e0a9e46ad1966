"""Sorting along an axis."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.expr import Call
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, extent


def _sorted_axis(call: Call, info: TensorStructInfo) -> int | None:
    """The axis that is sorted along, counted from the front; None while the rank is not known."""
    if info.ndim == -1:
        return None
    return infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)


def _infer_sort(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    _sorted_axis(call, info)
    return info


def _infer_argsort(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    _sorted_axis(call, info)
    dtype = infer.dtype_or(call, "int32")
    return TensorStructInfo(info.shape, dtype, ndim=info.ndim)


_SORT = register("relax.sort", ("x",), _infer_sort)
_ARGSORT = register("relax.argsort", ("data",), _infer_argsort)


def sort(x: Any, axis: int = -1, descending: bool = False) -> Call:
    """The elements along an axis in the order of their values."""
    return call(_SORT, x, axis=int(axis), descending=bool(descending))


def argsort(data: Any, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Call:
    """Positions along an axis in the order of the elements there; of equal ones the first comes
    first."""
    return call(_ARGSORT, data, axis=int(axis), descending=bool(descending), dtype=str(dtype))


def _infer_topk(call: Call, context: Any) -> StructInfo:
    info, k = infer.tensor(call, 0, context), infer.attribute(call, "k")
    kind = infer.attribute(call, "ret_type")
    if kind not in ("both", "values", "indices"):
        raise infer.shape_error(
            call, f'ret_type must be "both", "values" or "indices", not {kind!r}'
        )
    place = _sorted_axis(call, info)
    shape = None if info.values is None else list(info.values)
    if shape is not None and place is not None and k >= 1:
        known = getattr(shape[place], "value", None)
        if known is None or k < known:
            shape[place] = extent(k)
    values = TensorStructInfo(shape, info.dtype, ndim=info.ndim)
    indices = TensorStructInfo(shape, infer.attribute(call, "dtype"), ndim=info.ndim)
    if kind == "both":
        return TupleStructInfo([values, indices])
    return values if kind == "values" else indices


_TOPK = register("relax.topk", ("data",), _infer_topk)


def topk(
    data: Any,
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
        _TOPK, data, k=int(k), axis=int(axis), ret_type=ret_type, largest=bool(largest),
        dtype=str(dtype),
    )  # fmt: skip
