"""Choosing elements, and finding where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.relax.expr import Call, Expr, const
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register
from mlcweb.relax.op.statistical import infer_reduction
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo


def _infer_where(call: Call, context: Any) -> StructInfo:
    condition, x1, x2 = infer.tensors(call, context)
    if condition.dtype not in ("", "bool"):
        raise infer.dtype_error(call, f"condition must be bool, not {condition.dtype}")
    if x1.dtype and x2.dtype and x1.dtype != x2.dtype:
        raise infer.dtype_error(
            call, f"x1 and x2 must have one element type; they have {x1.dtype} and {x2.dtype}"
        )
    dtype = x1.dtype if x1.dtype and x2.dtype else ""
    return infer.broadcast(call, [condition, x1, x2], dtype)


_WHERE = register("relax.where", ("condition", "x1", "x2"), _infer_where)


def where(condition: Any, x1: Any, x2: Any) -> Call:
    """Elements of `x1` where the bool `condition` holds, of `x2` elsewhere; all are broadcast."""
    return call(_WHERE, condition, x1, x2)


def masked_fill(x: Any, mask: Any, value: Any) -> Call:
    """`x` with `value` where the bool `mask` holds, as calls of `where` and `full_like`."""
    from mlcweb.relax.op.create import full_like

    number = value if isinstance(value, Expr) else const(value, x.struct_info.dtype or None)
    return where(mask, full_like(x, number), x)


def _position(name: str, what: str) -> Callable[..., Call]:
    op = register(
        f"relax.{name}", ("x",), lambda call, context: infer_reduction(call, context, "int64")
    )

    def build(x: Any, axis: int | None = None, keepdims: bool = False) -> Call:
        return call(op, x, axis=None if axis is None else int(axis), keepdims=keepdims)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"Where the first of the {what} elements is, as int64; in the flat tensor " \
        "without `axis`."  # fmt: skip
    return build


argmax = _position("argmax", "greatest")
argmin = _position("argmin", "least")


def _infer_bucketize(call: Call, context: Any) -> StructInfo:
    info, boundaries = infer.tensors(call, context)
    infer.need_rank(call, 1, boundaries, 1, "a sorted vector")
    dtype = "int32" if infer.attribute(call, "out_int32") else "int64"
    return TensorStructInfo(info.shape, dtype, ndim=info.ndim)


_BUCKETIZE = register("relax.bucketize", ("input_tensor", "boundaries"), _infer_bucketize)


def bucketize(
    input_tensor: Any, boundaries: Any, out_int32: bool = False, right: bool = False
) -> Call:
    """How many of the ascending `boundaries` lie before each element; if `right`, those that are
    equal to it count as well."""
    return call(_BUCKETIZE, input_tensor, boundaries, out_int32=bool(out_int32), right=bool(right))
