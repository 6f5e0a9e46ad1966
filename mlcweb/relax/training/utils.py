"""AppendLoss: a model and its loss as one function. Gradients of functions of TensorIR."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, overload

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.binding import Substitution
from mlcweb.relax.emit_te import Formula
from mlcweb.relax.normalize import merged
from mlcweb.relax.op.te_grad import TE_GRADIENTS
from mlcweb.relax.transform.dataflow_blocks import with_local_variables
from mlcweb.relax.transform.registration import pass_of
from mlcweb.relax.utils import copy_with_new_vars

Gradient = TypeVar("Gradient", bound=Formula)


@overload
def register_te_gradient(te_grad_name: str, te_grad_func: Gradient) -> Gradient: ...


@overload
def register_te_gradient(te_grad_name: str) -> Callable[[Gradient], Gradient]: ...


def register_te_gradient(
    te_grad_name: str, te_grad_func: Gradient | None = None
) -> Gradient | Callable[[Gradient], Gradient]:
    """Register the gradient that calls of functions of TensorIR name (`call_tir_with_grad`); also
    as a decorator.

    Args:
        te_grad_func: a function of tensors of `te`, the gradient of the result and the arguments,
            that gives the gradient of each argument.
    """

    def register(function: Gradient) -> Gradient:
        TE_GRADIENTS[te_grad_name] = function
        return function

    return register if te_grad_func is None else register(te_grad_func)


def AppendLoss(
    func_name: str,
    loss_function: E.Function,
    num_backbone_outputs: int = 1,
    new_func_name: str | None = None,
) -> Pass:
    """Add `{func_name}_loss`, which gives what `loss_function` makes of the results of `func_name`
    and of further parameters, the targets.

    The first `num_backbone_outputs` results of the model are the loss's first arguments; results
    after them are given back after the loss.
    """

    def transform(mod: IRModule) -> IRModule:
        func = mod[func_name]
        if not isinstance(func, E.Function):
            raise DiagnosticError(f'AppendLoss: "{func_name}" is no function of the graph level')
        name = new_func_name or f"{func_name}_loss"
        new = mod.copy()
        new[name] = appended(func, loss_function, num_backbone_outputs).with_attr(
            "global_symbol", name
        )
        return new

    return pass_of("AppendLoss", transform)


def appended(func: E.Function, loss: E.Function, count: int) -> E.Function:
    model, loss = copy_with_new_vars(func), copy_with_new_vars(loss)
    result = model.body.body
    results = list(result.fields) if isinstance(result, E.Tuple) else [result]
    if not 0 < count <= min(len(results), len(loss.params)):
        raise DiagnosticError(
            f"AppendLoss: the loss takes {count} result(s) of the model, which gives "
            f"{len(results)}; the loss has {len(loss.params)} parameter(s)"
        )
    taken = dict(zip(loss.params, results[:count], strict=False))
    body = Substitution(taken).rewrite(loss.body)
    rest = results[count:]
    result = E.Tuple((body.body, *rest)) if rest else body.body
    whole = E.SeqExpr(merged([*model.body.blocks, *body.blocks]), result)
    params = (*model.params, *loss.params[count:])
    return E.Function(params, with_local_variables(whole), None, model.is_pure)
