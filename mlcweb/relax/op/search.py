"""Choosing elements, and finding where they are."""

from __future__ import annotations

from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import Number
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, const
from mlcweb.relax.op import infer
from mlcweb.relax.op.create import full_like
from mlcweb.relax.op.legalize import attribute, by, dtype_of, topi
from mlcweb.relax.op.registry import builder, call, operator, whole
from mlcweb.relax.op.statistical import infer_reduction
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo


def _infer_where(call: Call, context: Context) -> StructInfo:
    condition, x1, x2 = infer.tensors(call, context)
    if condition.dtype not in ("", "bool"):
        raise infer.dtype_error(call, f"condition must be bool, not {condition.dtype}")
    if x1.dtype and x2.dtype and x1.dtype != x2.dtype:
        raise infer.dtype_error(
            call, f"x1 and x2 must have one element type; they have {x1.dtype} and {x2.dtype}"
        )
    dtype = x1.dtype if x1.dtype and x2.dtype else ""
    return infer.broadcast(call, [condition, x1, x2], dtype, through_variables=False)


@operator("relax.where", infer=_infer_where, legalize=by("where"))
def where(condition: ExprLike, x1: ExprLike, x2: ExprLike) -> Call:
    """Elements of `x1` where the bool `condition` holds, of `x2` elsewhere; all are broadcast."""
    return call(where, condition, x1, x2)


@builder("relax.masked_fill")
def masked_fill(x: Expr, mask: Expr, value: Expr | Number) -> Call:
    """`x` with `value` where the bool `mask` holds, as calls of `where` and `full_like`."""
    dtype = getattr(x.struct_info, "dtype", None)
    number = value if isinstance(value, Expr) else const(value, dtype or None)
    return where(mask, full_like(x, number), x)


def _infer_position(call: Call, context: Context) -> StructInfo:
    return infer_reduction(call, context, "int64")


def _position(name: str, what: str):
    @operator(f"relax.{name}", "x", infer=_infer_position, legalize=by(name, "axis", "keepdims"))
    def build(x: ExprLike, axis: int | None = None, keepdims: bool = False) -> Call:
        return call(build, x, axis=None if axis is None else whole(axis), keepdims=keepdims)

    build.__doc__ = f"Where the first of the {what} elements is, as int64; in the flat tensor " \
        "without `axis`."  # fmt: skip
    return build


argmax = _position("argmax", "greatest")
argmin = _position("argmin", "least")


def _infer_bucketize(call: Call, context: Context) -> StructInfo:
    info, boundaries = infer.tensors(call, context)
    infer.need_rank(call, 1, boundaries, 1, "a sorted vector")
    dtype = "int32" if infer.attribute(call, "out_int32") else "int64"
    return TensorStructInfo(info.shape, dtype, ndim=info.ndim)


def _legalize_bucketize(builder: BlockBuilder, call: Call) -> Expr:
    values, boundaries = call.args
    dtype = dtype_of(builder, call)
    # A boundary counts that lies before an element, and if `right` one that is equal to it.
    return builder.call_te(
        topi.searchsorted, boundaries, values, attribute(call, "right"), dtype,
        primfunc_name_hint="bucketize",
    )  # fmt: skip


@operator(
    "relax.bucketize", "input_tensor", "boundaries",
    infer=_infer_bucketize, legalize=_legalize_bucketize, dispatched="DispatchSortScan",
)  # fmt: skip
def bucketize(
    input_tensor: ExprLike, boundaries: ExprLike, out_int32: bool = False, right: bool = False
) -> Call:
    """How many of the ascending `boundaries` lie before each element; if `right`, those that are
    equal to it count as well."""
    return call(bucketize, input_tensor, boundaries, out_int32=bool(out_int32), right=bool(right))
