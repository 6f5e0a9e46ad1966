"""LowerAllocTensor: each tensor that a program allocates in a storage of its own."""

from __future__ import annotations

from mlcweb.ir.transform import Pass
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.memory import alloc_storage, alloc_tensor
from mlcweb.relax.transform.registration import unfused_pass
from mlcweb.tir.dtype import size_in_bytes


def LowerAllocTensor() -> Pass:
    """Make of each `R.builtin.alloc_tensor` of known type a storage of as many bytes
    (`R.memory.alloc_storage`) and a tensor in it. StaticPlanBlockMemory, before it, has tensors
    share storages."""
    return unfused_pass("LowerAllocTensor", lambda func, mod: _Lowering().visit_expr(func))


@mutator
class _Lowering(PyExprMutator):
    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        if E.called_operator(new) != "relax.builtin.alloc_tensor" or not isinstance(new, E.Call):
            return new
        shape, dtype, device, scope = new.args
        if not isinstance(shape, E.ShapeExpr) or not isinstance(dtype, E.DataTypeImm):
            return new
        size = dims.product([*shape.values, E.ShapeExpr([size_in_bytes(dtype.value)]).values[0]])
        allocation = alloc_storage(E.ShapeExpr([size]), device, scope, E.DataTypeImm("uint8"))
        storage = self.builder_.emit(allocation, "storage")
        return alloc_tensor(storage, E.PrimValue(0), shape, dtype, device)
