"""What operators do with half precision: products and convolutions take it always, some follow
their arguments, and all others are left as they were written."""

from __future__ import annotations

from mlcweb.ir.op import Op
from mlcweb.relax import expr as E
from mlcweb.relax.op.elementwise import astype
from mlcweb.relax.op.registry import ALWAYS, NEVER, MixedPrecisionPolicy
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

HALF = "float16"
FLOATS = ("float16", "float32")
"""The types of elements that are converted into each other."""

_MAX_HALF = 65504


def policy_of(call: E.Call) -> MixedPrecisionPolicy:
    """What is done with a call. Products of other types than FLOATS are left alone."""
    policy = call.op.get_attr("TMixedPrecisionPolicy") if isinstance(call.op, Op) else None
    if policy is None or (policy is ALWAYS and not all(map(_float, (*call.args, call)))):
        return NEVER
    return policy


def _float(value: E.RelaxExpr) -> bool:
    info = value.struct_info if isinstance(value, E.Expr) else None
    return not isinstance(info, TensorStructInfo) or info.dtype in FLOATS


def in_half(info: StructInfo) -> StructInfo:
    """What is known of a value when all its floats are in half precision."""
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo(list(map(in_half, info.fields)))
    if isinstance(info, TensorStructInfo) and info.dtype in FLOATS:
        return TensorStructInfo(info.shape, HALF, info.vdevice, info.ndim)
    return info


def converted(value: E.Value, target: StructInfo) -> E.Value:
    """A value with its floats in the types of elements of a struct info."""
    info = value.struct_info if isinstance(value, E.Expr) else None
    if info is None or not _differs(info, target):
        return value
    if isinstance(target, TensorStructInfo):
        return astype(value, target.dtype)
    assert isinstance(target, TupleStructInfo)
    parts: list[E.RelaxExpr] = []
    for index, field in enumerate(target.fields):
        part = value.fields[index] if isinstance(value, E.Tuple) else E.TupleGetItem(value, index)
        parts.append(converted(part, field) if isinstance(part, E.Expr) else part)
    return E.Tuple(parts)


def _differs(info: StructInfo, target: StructInfo) -> bool:
    """Whether some tensor of floats is wanted in another type."""
    if isinstance(info, TupleStructInfo) and isinstance(target, TupleStructInfo):
        return any(map(_differs, info.fields, target.fields))
    if not isinstance(info, TensorStructInfo) or not isinstance(target, TensorStructInfo):
        return False
    return info.dtype in FLOATS and info.dtype != target.dtype


def fits_half(value: E.RelaxExpr) -> bool:
    """Whether a value is in half precision, or is a constant that can be."""
    if isinstance(value, E.Tuple):
        return all(map(fits_half, value.fields))
    info = value.struct_info if isinstance(value, E.Expr) else None
    if isinstance(value, E.Constant) and not _half(info):
        array = value.data.numpy()
        return array.dtype == "float32" and bool((abs(array) <= _MAX_HALF).all())
    return _half(info)


def _half(info: StructInfo | None) -> bool:
    if isinstance(info, TupleStructInfo):
        return all(map(_half, info.fields))
    return not isinstance(info, TensorStructInfo) or info.dtype == HALF
