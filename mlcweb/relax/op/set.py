"""Operators whose results are as large as the elements say, which nobody knows before a run."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.expr import Call, Expr, PrimValue
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo


def _infer_nonzero(call: Call, context: Any) -> StructInfo:
    infer.tensor(call, 0, context)
    return TensorStructInfo(None, "int64", ndim=2)


_NONZERO = register("relax.nonzero", ("x",), _infer_nonzero)


def nonzero(x: Any) -> Call:
    """The places of the elements that are not zero: a row for each axis, a column for each."""
    return call(_NONZERO, x)


def _number(call: Call, index: int) -> int:
    value = getattr(getattr(call.args[index], "value", None), "value", None)
    if value is None:
        raise infer.dtype_error(
            call, f"{infer.argument_name(call, index)} must be a constant, not {call.args[index]}"
        )
    return int(value)


def _infer_unique(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    ndim = 1
    if len(call.args) > 5:
        ndim = info.ndim
        if ndim != -1:
            infer.normalized_axis(call, _number(call, 5), ndim)
    fields: list[StructInfo] = [TensorStructInfo(None, info.dtype, ndim=ndim)]
    fields += [TensorStructInfo(None, "int64", ndim=1) for i in (2, 3, 4) if _number(call, i)]
    return fields[0] if len(fields) == 1 else TupleStructInfo(fields)


_UNIQUE = register(
    "relax.unique",
    ("x", "sorted", "return_index", "return_inverse", "return_counts", "axis"),
    _infer_unique,
)


def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Call:
    """The different elements of a tensor, or its different slices along `axis`: in ascending order,
    or if not `sorted` as they come.

    Returns: those; with the options a tuple which also has where each is first, which of them each
    element is, and how often each is there.
    """
    options = (sorted, return_index, return_inverse, return_counts)
    given = [value if isinstance(value, Expr) else PrimValue(bool(value)) for value in options]
    if axis is not None:
        given.append(PrimValue(int(axis)))
    return call(_UNIQUE, x, *given)
