"""Operators whose results are as large as the elements say, which nobody knows before a run."""

from __future__ import annotations

from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, PrimValue
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import keep
from mlcweb.relax.op.registry import call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo


def _infer_nonzero(call: Call, context: Context) -> StructInfo:
    infer.tensor(call, 0, context)
    return TensorStructInfo(None, "int64", ndim=2)


@operator("relax.nonzero", infer=_infer_nonzero, legalize=keep)
def nonzero(x: ExprLike) -> Call:
    """The places of the elements that are not zero: a row for each axis, a column for each."""
    return call(nonzero, x)


def _number(call: Call, index: int) -> int:
    value = getattr(getattr(call.args[index], "value", None), "value", None)
    if value is None:
        raise infer.dtype_error(
            call, f"{infer.argument_name(call, index)} must be a constant, not {call.args[index]}"
        )
    return int(value)


def _infer_unique(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    ndim = 1
    if len(call.args) > 5:
        ndim = info.ndim
        if ndim != -1:
            infer.normalized_axis(call, _number(call, 5), ndim)
    fields: list[StructInfo] = [TensorStructInfo(None, info.dtype, ndim=ndim)]
    fields += [TensorStructInfo(None, "int64", ndim=1) for i in (2, 3, 4) if _number(call, i)]
    return fields[0] if len(fields) == 1 else TupleStructInfo(fields)


@operator("relax.unique", infer=_infer_unique, legalize=keep)
def unique(
    x: ExprLike,
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
    flags = [value if isinstance(value, Expr) else PrimValue(bool(value)) for value in options]
    if axis is not None:
        flags.append(PrimValue(int(axis)))
    return call(unique, x, *flags)
