"""Calls of functions of TensorIR that say by what their gradient is computed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mlcweb.ir.dialect import takes_newer_keywords
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.emit_te import Formula
from mlcweb.relax.expr import Call, Expr, ExprLike, Tuple, Var, convert_to_expr
from mlcweb.relax.op import infer
from mlcweb.relax.op.base import OutInfo, argument_tuple, inline_arguments, written
from mlcweb.relax.op.grad import no_grad, register_gradient
from mlcweb.relax.op.infer import attribute
from mlcweb.relax.op.registry import operator

TE_GRADIENTS: dict[str, Formula] = {}
"""What `register_te_gradient` has registered, by name."""


def without_gradient(call: Call) -> Call:
    """The plain `call_tir` that such a call makes."""
    return Call(Op.get("relax.call_tir"), call.args, None, call.sinfo_args, span=call.span)


@operator(
    "relax.call_tir_with_grad",
    "func",
    "args",
    infer=infer.sinfo_args,
    legalize=lambda builder, call: without_gradient(call),
    normalize=inline_arguments,
)
@takes_newer_keywords
def call_tir_with_grad(
    gvar: GlobalVar, args: ExprLike, out_sinfo: OutInfo, te_grad_name: str,
    te_grad_kwargs: Mapping[str, object] | None = None, tir_vars: ExprLike | None = None,
) -> Call:  # fmt: skip
    """As `call_tir`, with a gradient.

    Args:
        te_grad_name: what `relax.training.utils.register_te_gradient` has registered: a function
            of the gradient of the result and the arguments, which gives those of the arguments.
        te_grad_kwargs: more arguments for it.
    """
    last = () if tir_vars is None else (convert_to_expr(tir_vars),)
    op = Op.get("relax.call_tir_with_grad")
    attrs = Attrs({"te_grad_name": te_grad_name, "te_grad_kwargs": dict(te_grad_kwargs or {})})
    return Call(op, (gvar, argument_tuple(args), *last), attrs, (written(op, out_sinfo, None),))


@register_gradient("relax.call_tir_with_grad")
def _gradient(var: Var, call: Call, gradient: Var, builder: BlockBuilder) -> list[Expr]:
    name, arguments = attribute(call, "te_grad_name"), call.args[1]
    function = TE_GRADIENTS.get(name)
    if function is None:
        raise DiagnosticError(
            f'Nothing is registered as the gradient "{name}" of {call.args[0]}; register it by '
            f'relax.training.utils.register_te_gradient("{name}")'
        )
    fields = arguments.fields if isinstance(arguments, Tuple) else [arguments]
    options = attribute(call, "te_grad_kwargs")
    hint = re.sub(r"\W", "_", name)
    partials = builder.emit_te(function, gradient, *fields, **options, primfunc_name_hint=hint)
    return [no_grad(gradient), partials if len(fields) > 1 else Tuple([partials])]
