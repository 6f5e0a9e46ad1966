"""RewriteDataflowReshape: calls of functions that only reshape become `reshape`."""

from __future__ import annotations

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.reshape_pattern import has_reshape_pattern
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.manipulate import reshape
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.transform.registration import CALL_TIR, map_functions, pass_of
from mlcweb.tir.function import PrimFunc


def RewriteDataflowReshape() -> Pass:
    """Make `R.reshape` of each `call_tir` in a dataflow block whose function only gives a tensor
    another shape."""
    return pass_of("RewriteDataflowReshape", rewrite_reshapes)


def rewrite_reshapes(mod: IRModule) -> IRModule:
    reshapes = {
        var
        for var, func in mod.functions.items()
        if isinstance(func, PrimFunc) and has_reshape_pattern(func)
    }
    rewriter = _Reshapes(mod, reshapes)
    return map_functions(mod, lambda _, func: rewriter.visit_expr(func))


@mutator
class _Reshapes(PyExprMutator):
    def __init__(self, mod: IRModule, reshapes: set[GlobalVar]) -> None:
        super().__init__(mod)
        self.reshapes = reshapes

    def visit_call_(self, call: E.Call) -> E.Expr:
        call = self.visit_expr_post_order(call)
        if call.op != CALL_TIR or call.args[0] not in self.reshapes:
            return call
        tensors, info = call.args[1], call.sinfo_args[0]
        if not self.builder_.current_block_is_dataflow() or len(call.args) > 2:
            return call
        if not isinstance(tensors, E.Tuple) or len(tensors) != 1:
            return call
        (data,) = tensors.fields
        if not isinstance(data, E.Expr):
            return call
        data_info = data.struct_info
        if not isinstance(data_info, TensorStructInfo) or not isinstance(info, TensorStructInfo):
            return call
        if data_info.dtype != info.dtype or info.shape is None:
            return call
        return reshape(data, info.shape)
