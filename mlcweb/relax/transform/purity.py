"""RemovePurityChecking: functions that need no longer show that they have no side effects."""

from __future__ import annotations

from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.closure import invoke_closure
from mlcweb.relax.transform.registration import functionwise, is_primitive

FORCE_PURE = "relax.force_pure"


def RemovePurityChecking() -> Pass:
    """Mark pure functions as "relax.force_pure", those inside of others included, and make of pure
    calls of external functions and closures plain calls."""
    return functionwise("RemovePurityChecking", lambda func: _PlainCalls().visit_expr(func))


@mutator
class _PlainCalls(PyExprMutator):
    def visit_function_(self, func: E.Function) -> E.Value:
        if is_primitive(func) or func.attrs.get(FORCE_PURE):
            return func
        new = super().visit_function_(func)
        if func.is_pure and isinstance(new, E.Function):
            return new.with_attr(FORCE_PURE, True)
        return new

    def visit_call_(self, call: E.Call) -> E.Expr:
        call = self.visit_expr_post_order(call)
        name = E.called_operator(call)
        if name in ("relax.call_pure_packed", "relax.call_inplace_packed"):
            attrs = call.attrs if name == "relax.call_pure_packed" else None
            return E.Call(call.args[0], call.args[1:], attrs, call.sinfo_args, span=call.span)
        if name == "relax.invoke_pure_closure":
            return invoke_closure(call.args[0], call.args[1], call.sinfo_args)
        return call
