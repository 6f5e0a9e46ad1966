"""FastMathTransform: exp, tanh, erf and softmax by polynomials."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.legalize import te, topi
from mlcweb.relax.transform.registration import pass_of


def FastMathTransform() -> Pass:
    """Lower exp, tanh, erf and softmax to their approximations (`topi.fast_exp` and so on), which
    are quicker, and less exact."""
    return pass_of("FastMathTransform", _transformed)


def _transformed(mod: IRModule) -> IRModule:
    rewriter = _FastMath(mod)
    for var, func in mod.functions.items():
        if isinstance(func, E.Function):
            rewriter.builder_.update_func(var, rewriter.visit_expr(func))
    return rewriter.builder_.get()


@mutator
class _FastMath(PyExprMutator):
    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        if not isinstance(new, E.Call) or not isinstance(new.op, Op):
            return new
        fast = _approximation(new.op.name)
        if fast is None:
            return new
        axis = (new.attrs["axis"],) if new.attrs is not None and "axis" in new.attrs else ()
        return self.builder_.call_te(fast, new.args[0], *axis)


def _approximation(name: str) -> Callable[..., te.Tensor] | None:
    """What topi has of an operator under a name with "fast_"."""
    package, _, operator = name.removeprefix("relax.").rpartition(".")
    home = topi.nn if package == "nn" else topi
    return None if package not in ("", "nn") else getattr(home, f"fast_{operator}", None)
