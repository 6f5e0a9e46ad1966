"""Calls that write into their arguments instead of into new tensors."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.dialect import takes_newer_keywords
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op
from mlcweb.relax import dims
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, ExternFunc, convert_to_expr
from mlcweb.relax.op import infer
from mlcweb.relax.op.base import (
    InfoArgs,
    OutInfo,
    argument_tuple,
    given_sinfo_args,
    inline_arguments,
    written,
)  # fmt: skip
from mlcweb.relax.op.legalize import keep
from mlcweb.relax.op.registry import as_shape, operator, whole
from mlcweb.relax.struct_info import ShapeLike, StructInfo, TupleStructInfo
from mlcweb.tir.expr import PrimExpr


def _infer_call_tir_inplace(call: Call, context: Context) -> StructInfo:
    result = infer.sinfo_args(call, context)
    results = result.fields if isinstance(result, TupleStructInfo) else (result,)
    arguments = context.struct_info(call.args[1])
    places = infer.attribute(call, "inplace_indices")
    if len(places) != len(results):
        raise infer.shape_error(
            call, f"inplace_indices {list(places)} must name a place for each of {len(results)} "
            "result(s): that of an argument, or -1"
        )  # fmt: skip
    if all(place == -1 for place in places):
        raise infer.shape_error(call, "no result is written into an argument; use call_tir")
    inputs = arguments.fields if isinstance(arguments, TupleStructInfo) else (arguments,)
    chosen = [place for place in places if place != -1]
    if len(set(chosen)) != len(chosen) or any(not 0 <= place < len(inputs) for place in chosen):
        raise infer.shape_error(
            call, f"inplace_indices {list(places)} must be different ones of {len(inputs)} "
            "argument(s), or -1"
        )  # fmt: skip
    for place, info in zip(places, results, strict=True):
        if place != -1 and not dims.same_tensors(inputs[place], info):
            raise infer.shape_error(
                call,
                f"the argument {place} is {inputs[place]}; the result that is written into it is "
                f"{info}",
            )
    return result


@operator(
    "relax.call_tir_inplace", "func", "args",
    infer=_infer_call_tir_inplace, legalize=keep, normalize=inline_arguments,
)  # fmt: skip
@takes_newer_keywords
def call_tir_inplace(
    gvar: GlobalVar, args: ExprLike, inplace_indices: int | Sequence[int],
    out_sinfo: OutInfo | None = None,
    tir_vars: ShapeLike | PrimExpr | None = None,
) -> Call:  # fmt: skip
    """As `call_tir`, but of results that are written into arguments.

    Args:
        inplace_indices: for each result the argument that it is written into, by number; or -1 for
            a new tensor. What was in the argument is gone: nothing may read it later. The function
            has no parameters for results that are arguments.
        out_sinfo: what is written, as in `call_tir`.
    """
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    extents = [tir_vars] if isinstance(tir_vars, PrimExpr) else tir_vars
    last = () if extents is None else (as_shape(extents),)
    op = Op.get("relax.call_tir_inplace")
    info = written(op, out_sinfo, None)
    attrs = Attrs({"inplace_indices": [whole(place) for place in places]})
    return Call(op, (gvar, argument_tuple(args), *last), attrs, (info,))


@operator("relax.call_inplace_packed", "func", "args", infer=infer.sinfo_args, legalize=keep)
@takes_newer_keywords
def call_inplace_packed(
    func: Expr | str,
    *args: ExprLike,
    inplace_indices: int | Sequence[int],
    sinfo_args: InfoArgs = None,
) -> Call:
    """A call of an external function that changes some of its arguments, which are nobody else's,
    and has no other effect.

    Args:
        inplace_indices: what it gives: for each result the argument that it is, or -1.
        sinfo_args: the struct info of what it gives.
    """
    func = ExternFunc(func) if isinstance(func, str) else func
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    attrs = Attrs({"inplace_indices": [whole(place) for place in places]})
    arguments = [convert_to_expr(arg) for arg in (func, *args)]
    return Call(Op.get("relax.call_inplace_packed"), arguments, attrs, given_sinfo_args(sinfo_args))
