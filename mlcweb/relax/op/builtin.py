"""Builtins of the graph level, `R.builtin.…`: what lowering makes of calls of TensorIR."""

from __future__ import annotations

from mlcweb.ir.op import Op
from mlcweb.relax.expr import Call, ExprLike, convert_to_expr
from mlcweb.relax.op import infer
from mlcweb.relax.op.base import InfoArgs, given_sinfo_args
from mlcweb.relax.op.legalize import first_argument, keep
from mlcweb.relax.op.registry import as_dtype, as_shape, call, operator
from mlcweb.relax.struct_info import ShapeLike


@operator(
    "relax.builtin.alloc_tensor", "shape", "dtype", "runtime_device_index", "storage_scope",
    infer=infer.allocated, legalize=keep, allocates=True,
)  # fmt: skip
def alloc_tensor(
    shape: ShapeLike,
    dtype: ExprLike,
    runtime_device_index: ExprLike = 0,
    storage_scope: ExprLike = "global",
    *,
    sinfo_args: InfoArgs = None,
    ty_args: InfoArgs = None,
) -> Call:
    """A new tensor, whose memory is planned later."""
    arguments = (as_shape(shape), as_dtype(dtype), runtime_device_index, storage_scope)
    infos = given_sinfo_args(sinfo_args if ty_args is None else ty_args)
    return Call(
        Op.get("relax.builtin.alloc_tensor"),
        [convert_to_expr(arg) for arg in arguments],
        None,
        infos,
    )


@operator("relax.builtin.stop_lift_params", "x", infer=infer.same, legalize=first_argument)
def stop_lift_params(x: ExprLike) -> Call:
    """The same tensor, but LiftTransformParams leaves in the function what is computed of it."""
    return call(stop_lift_params, x)
