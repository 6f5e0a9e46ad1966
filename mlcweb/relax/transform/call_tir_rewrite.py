"""CallTIRRewrite: results of functions of TensorIR in tensors that the program allocates."""

from __future__ import annotations

from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.builtin import alloc_tensor
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.registration import unfused_pass


def CallTIRRewrite() -> Pass:
    """Make of `call_tir` and `call_dps_packed` an allocation (`R.builtin.alloc_tensor`) for each
    result and a call that writes into it.

    Calls in dataflow blocks (run ToNonDataflow before), those with symbolic arguments of their own
    (`tir_vars`) and those in place stay as they are; the virtual machine runs them so, too.
    """
    return unfused_pass("CallTIRRewrite", lambda func, mod: _Allocating().visit_expr(func))


@mutator
class _Allocating(PyExprMutator):
    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        if E.called_operator(new) not in ("relax.call_tir", "relax.call_dps_packed"):
            return new
        if not isinstance(new, E.Call) or len(new.args) != 2:
            return new
        if self.builder_.current_block_is_dataflow():
            return new
        results = _tensors(new.sinfo_args[0])
        inputs = self.bound_value(new.args[1])
        if results is None or not isinstance(inputs, E.Tuple):
            return new
        emit = self.builder_.emit
        allocated = [emit(_allocation(info), "alloc") for info in results]
        emit(E.Call(new.args[0], [*inputs.fields, *allocated]), "_")
        return allocated[0] if len(results) == 1 else E.Tuple(allocated)


def _tensors(info: StructInfo) -> list[TensorStructInfo] | None:
    """The results of a call, if the shapes of all are known."""
    fields: list[TensorStructInfo] = []
    for field in info.fields if isinstance(info, TupleStructInfo) else (info,):
        if not isinstance(field, TensorStructInfo) or field.values is None or not field.dtype:
            return None
        fields.append(field)
    return fields


def _allocation(info: TensorStructInfo) -> E.Call:
    assert info.values is not None
    shape, dtype = E.ShapeExpr(info.values), E.DataTypeImm(info.dtype)
    return alloc_tensor(shape, dtype, E.PrimValue(0), E.StringImm("global"), sinfo_args=info)
