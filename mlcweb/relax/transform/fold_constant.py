"""FoldConstant: compute what follows from constants alone, once and for all.

Running functions is the business of layers above; `mlcweb.providers` says who does it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import remove_all_unused
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import ArrayData, HostArray, contents
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.registration import CALL_TIR, called_tir, map_unfused, pass_of
from mlcweb.tir.expr import IntImm
from mlcweb.tir.function import PrimFunc

Compiled = Callable[
    [Sequence[ArrayData], Sequence[tuple[tuple[int, ...], str]]], Sequence[ArrayData]
]
"""Runs a function on arrays; makes the results, of which shape and element type are given."""

Evaluator = Callable[[PrimFunc], Compiled]
"""Makes a function ready to run."""

_TENSOR_TO_SHAPE = Op.get("relax.tensor_to_shape")

MAX_CREATED = 1024
"""Elements of a result without inputs, such as zeros, beyond which it stays a call: a constant of
it would only take room."""


def FoldConstant() -> Pass:
    """Replace calls of functions of TensorIR, and in dataflow blocks those of operators that lower
    to one, by what they give where all inputs are constants, and drop what nothing uses."""
    return pass_of("FoldConstant", fold_constants)


def fold_constants(mod: IRModule) -> IRModule:
    ready: dict[PrimFunc, Compiled] = {}

    def folded(func: E.Function) -> E.Function:
        return remove_all_unused(_Folding(mod, ready).visit_expr(func), mod)

    return map_unfused(mod, folded)


class _Folding(PyExprMutator):
    def __init__(self, mod: IRModule, ready: dict[PrimFunc, Compiled]) -> None:
        super().__init__(mod)
        self.mod = mod
        self.ready = ready

    def _constant_of(self, var: E.Var) -> E.Expr:
        var = self.get_var_remap(var)
        value = self.lookup_binding(var)
        return value if isinstance(value, (E.Constant, E.ShapeExpr)) else var

    def visit_var_(self, var: E.Var) -> E.Expr:
        return self._constant_of(var)

    def visit_dataflow_var_(self, var: E.DataflowVar) -> E.Expr:
        return self._constant_of(var)

    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> E.Value:
        inside = self.visit_expr(value.tuple_value)
        whole = self.bound_value(inside)
        if isinstance(whole, E.Tuple):
            field = whole.fields[value.index]
            if isinstance(field, E.Constant):
                return field
        return super().visit_tuple_getitem_(value)

    def visit_call_(self, call: E.Call) -> E.Expr:
        call = self.visit_expr_post_order(call)
        if not isinstance(call.op, Op):
            return call
        if call.op == CALL_TIR:
            return self.folded(call, self.mod) or call
        if not self.builder_.current_block_is_dataflow():
            return call
        if call.op == _TENSOR_TO_SHAPE and isinstance(source := call.args[0], E.Constant):
            return E.ShapeExpr(map(int, HostArray(*contents(source.data)).elements()))
        return self.folded_operator(call, call.op) or call

    def folded_operator(self, call: E.Call, op: Op) -> E.Expr | None:
        """What a call of an operator gives, by way of the function that it lowers to."""
        legalize = op.get_attr("FLegalize")
        if legalize is None or not op.pure or static_infos(call.struct_info) is None:
            return None
        if not all(map(_is_constant, call.args)):
            return None
        builder = BlockBuilder(self.mod)
        builder._begin_binding_block()
        lowered = legalize(builder, call)
        is_call_tir = isinstance(lowered, E.Call) and lowered.op == CALL_TIR
        return self.folded(lowered, builder.get()) if is_call_tir else None

    def folded(self, call: E.Call, mod: IRModule) -> E.Expr | None:
        """What a `call_tir` gives, as a constant or a tuple of constants; None where it stays."""
        func, results = called_tir(mod, call), static_infos(call.struct_info)
        arguments = call.args[1]
        if func is None or results is None or len(call.args) > 2:
            return None
        if not isinstance(arguments, E.Tuple):
            return None
        inputs = [value.data for value in arguments.fields if isinstance(value, E.Constant)]
        if len(inputs) < len(arguments.fields):
            return None
        if not inputs and sum(math.prod(shape) for shape, _ in results) > MAX_CREATED:
            return None
        types = [str(data.dtype) for data in inputs] + [dtype for _, dtype in results]
        if "bfloat16" in types or (evaluator := _evaluator()) is None:
            return None
        if func not in self.ready:
            self.ready[func] = evaluator(func)
        arrays = self.ready[func](inputs, results)
        constants = [E.Constant(data) for data in arrays]
        single = isinstance(call.struct_info, TensorStructInfo)
        return constants[0] if single else E.Tuple(constants)


def _evaluator() -> Evaluator | None:
    """What runs functions; None where that cannot be loaded, for want of NumPy."""
    try:
        return provided(__name__, "evaluator")
    except ModuleNotFoundError:
        return None


def _is_constant(value: E.RelaxExpr) -> bool:
    if isinstance(value, E.Tuple):
        return all(map(_is_constant, value.fields))
    if isinstance(value, E.ShapeExpr):
        return all(isinstance(extent, IntImm) for extent in value.values)
    return isinstance(value, (E.Constant, E.PrimValue, E.StringImm, E.DataTypeImm))


def static_infos(info: StructInfo) -> list[tuple[tuple[int, ...], str]] | None:
    """Shapes and element types of a tensor or a tuple of tensors; None where they are not known."""
    parts = info.fields if isinstance(info, TupleStructInfo) else (info,)
    result = []
    for part in parts:
        if not isinstance(part, TensorStructInfo) or part.values is None or not part.dtype:
            return None
        shape = tuple(extent.value for extent in part.values if isinstance(extent, IntImm))
        if len(shape) < len(part.values):
            return None
        result.append((shape, part.dtype))
    return result
