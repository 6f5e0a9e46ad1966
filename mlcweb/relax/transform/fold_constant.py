"""FoldConstant: compute what follows from constants alone, once and for all.

Running functions is the business of layers above; `mlcweb.providers` says who does it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import remove_all_unused
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.registration import is_primitive, map_functions, pass_of
from mlcweb.tir.expr import IntImm
from mlcweb.tir.function import PrimFunc

Compiled = Callable[[Sequence[Any], Sequence[tuple[tuple[int, ...], str]]], list[Any]]
"""Runs a function on arrays; makes the results, of which shape and element type are given."""

Evaluator = Callable[[PrimFunc], Compiled]
"""Makes a function ready to run."""

MAX_CREATED = 1024
"""Elements of a result without inputs, such as zeros, beyond which it stays a call: a constant of
it would only take room."""


def FoldConstant() -> Pass:
    """Replace calls of functions of TensorIR, and of operators that lower to one, by what they
    give where all inputs are constants, and drop what this leaves unused."""
    return pass_of("FoldConstant", fold_constants)


def fold_constants(mod: IRModule) -> IRModule:
    ready: dict[PrimFunc, Compiled] = {}

    def change(var: GlobalVar, func: E.Function) -> E.Function:
        if is_primitive(func):
            return func
        new = _Folding(mod, ready).visit_expr(func)
        return func if new is func else remove_all_unused(new, mod)

    return map_functions(mod, change)


class _Folding(PyExprMutator):
    def __init__(self, mod: IRModule, ready: dict[PrimFunc, Compiled]) -> None:
        super().__init__(mod)
        self.mod = mod
        self.ready = ready

    def _constant_of(self, var: E.Var) -> Any:
        var = self.get_var_remap(var)
        value = self.lookup_binding(var)
        return value if isinstance(value, E.Constant) else var

    def visit_var_(self, var: E.Var) -> Any:
        return self._constant_of(var)

    def visit_dataflow_var_(self, var: E.Var) -> Any:
        return self._constant_of(var)

    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> Any:
        inside = self.visit_expr(value.tuple_value)
        known = self.lookup_binding(inside) if isinstance(inside, E.Var) else inside
        if isinstance(known, E.Tuple) and isinstance(known.fields[value.index], E.Constant):
            return known.fields[value.index]
        return super().visit_tuple_getitem_(value)

    def visit_call_(self, call: E.Call) -> Any:
        call = super().visit_call_(call)
        if not isinstance(call.op, Op):
            return call
        if call.op.name == "relax.call_tir":
            return self.folded(call, self.mod) or call
        return self.folded_operator(call) or call

    def folded_operator(self, call: E.Call) -> Any:
        """What a call of an operator gives, by way of the function that it lowers to."""
        legalize = call.op.get_attr("FLegalize")
        info = call.struct_info
        if legalize is None or not call.op.pure or static_infos(info) is None:
            return None
        if not all(map(_is_constant, call.args)):
            return None
        builder = BlockBuilder(self.mod)
        builder._begin_binding_block()
        lowered = legalize(builder, call)
        is_call_tir = isinstance(lowered, E.Call) and lowered.op == Op.get("relax.call_tir")
        return self.folded(lowered, builder.get()) if is_call_tir else None

    def folded(self, call: E.Call, mod: IRModule) -> Any:
        """What a `call_tir` gives, as a constant or a tuple of constants; None where it stays."""
        func, results = mod.functions.get(call.args[0]), static_infos(call.struct_info)
        inputs = call.args[1].fields if isinstance(call.args[1], E.Tuple) else None
        if not isinstance(func, PrimFunc) or results is None or inputs is None:
            return None
        if len(call.args) > 2 or not all(isinstance(value, E.Constant) for value in inputs):
            return None
        if not inputs and sum(math.prod(shape) for shape, _ in results) > MAX_CREATED:
            return None
        types = [str(value.data.dtype) for value in inputs] + [dtype for _, dtype in results]
        if "bfloat16" in types or (evaluator := _evaluator()) is None:
            return None
        if func not in self.ready:
            self.ready[func] = evaluator(func)
        made = self.ready[func]([value.data for value in inputs], results)
        constants = [E.Constant(data) for data in made]
        single = isinstance(call.struct_info, TensorStructInfo)
        return constants[0] if single else E.Tuple(constants)


def _evaluator() -> Evaluator | None:
    """What runs functions; None where that cannot be loaded, for want of NumPy."""
    try:
        return provided(__name__, "evaluator")
    except ModuleNotFoundError:
        return None


def _is_constant(value: E.Expr | GlobalVar) -> bool:
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
        values = part.values if isinstance(part, TensorStructInfo) else None
        if values is None or not all(isinstance(extent, IntImm) for extent in values):
            return None
        assert isinstance(part, TensorStructInfo)
        if not part.dtype:
            return None
        result.append((tuple(extent.value for extent in values), part.dtype))  # type: ignore[attr-defined]
    return result
