"""ComputePrimValue: numbers in graphs that are computed from extents become calls of functions."""

from __future__ import annotations

from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.transform.registration import pass_of, rewritten_by
from mlcweb.tir.expr import Call, IntImm, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Evaluate
from mlcweb.tir.substitute import substitute


def ComputePrimValue() -> Pass:
    """Let each number that is computed from symbolic extents, as `R.prim_value(n * n)`, be what a
    function of TensorIR gives, `compute_symbolic_expr`, which takes these extents."""
    return pass_of("ComputePrimValue", lambda mod: rewritten_by(mod, _Computing(mod)))


@mutator
class _Computing(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)

    def visit_prim_value_(self, value: E.PrimValue) -> E.Value:
        extents = list(dict.fromkeys(dims.prim_vars(value.value)))
        if not extents or isinstance(value.value, (Var, IntImm)):
            return value
        dtype = value.value.dtype
        params = {extent: Var(extent.name, extent.dtype) for extent in extents}
        func = PrimFunc(
            tuple(params.values()),
            Evaluate(Call(dtype, Op.get("tir.ret"), (substitute(value.value, params),))),
            dtype,
            attrs={"tir.is_host_func": True},
        )
        callee = self.builder_.add_func(func, "compute_symbolic_expr")
        return E.Call(callee, [E.PrimValue(extent) for extent in extents])
