"""Operators that gradients are told by, and gradients of operators: `relax.op.grad`."""

from __future__ import annotations

from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, operator


def _identity(builder: object, call: Call) -> object:
    return call.args[0]


@operator("relax.grad.no_grad", infer=infer.same, legalize=_identity)  # type: ignore[arg-type]
def no_grad(input: ExprLike) -> Call:
    """Its argument, as a constant for gradients."""
    return call(no_grad, input)


@operator("relax.grad.start_checkpoint", infer=infer.same, legalize=_identity)  # type: ignore[arg-type]
def start_checkpoint(input: ExprLike) -> Call:
    """Its argument, at which a part begins whose values are computed again for gradients."""
    return call(start_checkpoint, input)


@operator("relax.grad.end_checkpoint", infer=infer.same, legalize=_identity)  # type: ignore[arg-type]
def end_checkpoint(input: ExprLike) -> Call:
    """Its argument, at which a part ends whose values are computed again for gradients."""
    return call(end_checkpoint, input)
