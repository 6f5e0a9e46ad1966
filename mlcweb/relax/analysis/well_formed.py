"""Whether functions are what they have to be: scopes, normal form, purity."""

from __future__ import annotations

import logging

from mlcweb.ir.dialect import also_named
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.op import Op
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import definable_tir_vars_in_struct_info
from mlcweb.relax.analysis.uses import contains_impure_call
from mlcweb.relax.analysis.variables import defined_symbolic_vars
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.normalize import is_leaf, normalized_by_operator
from mlcweb.relax.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute

_log = logging.getLogger("mlcweb")


@also_named(check_ty="check_struct_info")
def well_formed(obj: IRModule | BaseFunc, check_struct_info: bool = True) -> bool:
    """Whether a module or function is well-formed. A warning of the log says what is wrong."""
    try:
        refuse_ill_formed(obj, check_struct_info)
    except DiagnosticError as error:
        _log.warning("This IR is not well formed: %s", error)
        return False
    return True


check_well_formed = well_formed
"""The name of TVM 0.27, whose own `well_formed` raises an error instead of giving False."""


def refuse_ill_formed(obj: IRModule | BaseFunc, check_struct_info: bool = True) -> None:
    """Raise a DiagnosticError that says what is wrong with a module or function, if anything is."""
    if isinstance(obj, IRModule):
        owners: dict[E.Var | PrimVar, GlobalVar] = {}
        for var, func in obj.functions.items():
            symbol = func.attrs.get("global_symbol", var.name_hint)
            if symbol != var.name_hint:
                raise DiagnosticError(
                    f'The global_symbol of a function is its name in the module: "{symbol}" is not '
                    f'"{var.name_hint}"',
                    func.span,
                )
            if isinstance(func, E.Function):
                check = _Check(obj, check_struct_info)
                check.function(func)
                for own in (*check.defined, *defined_symbolic_vars(func)):
                    if owners.setdefault(own, var) != var:
                        raise DiagnosticError(
                            f"{own} is a variable of two functions, {owners[own].name_hint} and "
                            f"{var.name_hint}",
                            func.span,
                        )
    elif isinstance(obj, E.Function):
        _Check(None, check_struct_info).function(obj)


def _may_be(buffer: Buffer, info: StructInfo | None, values: dict[PrimVar, PrimExpr]) -> bool:
    """Whether a tensor of which this is known may be passed for a buffer. Symbolic extents of the
    buffer that have no value yet take, and add to `values`, those of the tensor."""
    if not isinstance(info, TensorStructInfo):
        return info is None or isinstance(info, ObjectStructInfo)
    if info.dtype and info.dtype != buffer.dtype:
        return False
    if info.ndim not in (-1, len(buffer.shape)):
        return False
    for own, extent in zip(buffer.shape, info.values or (), strict=False):
        if isinstance(own, PrimVar) and own not in values:
            values[own] = extent.astype(own.dtype)
        elif dims.differ(substitute(own, values), extent.astype(own.dtype)):
            return False
    return True


class _Check:
    def __init__(self, module: IRModule | None, check_struct_info: bool) -> None:
        self.module = module
        self.check_struct_info = check_struct_info
        self.defined: set[E.Var] = set()
        self.visible: set[E.Var | PrimVar] = set()
        self.builder = BlockBuilder()

    def define(self, var: E.Var) -> None:
        if var in self.defined:
            raise DiagnosticError(f"The variable {var} is defined twice", var.span)
        if var.struct_info is None and self.check_struct_info:
            raise DiagnosticError(f"Nothing is known of the variable {var}", var.span)
        self.defined.add(var)
        self.visible.add(var)

    def function(self, func: E.Function) -> None:
        outside = set(self.visible)
        for param in func.params:
            if isinstance(param, E.DataflowVar):
                raise DiagnosticError(f"The parameter {param} is a DataflowVar", param.span)
            self.define(param)
            if param.struct_info is not None:
                self.visible.update(definable_tir_vars_in_struct_info(param.struct_info))
        for param in func.params:
            if param.struct_info is not None:
                self.extents(param.struct_info, param)
        self.sequence(func.body)
        if func.attrs.get("relax.force_pure") and not func.is_pure:
            raise DiagnosticError("A function with relax.force_pure has no pure=False", func.span)
        impure = contains_impure_call(func, functions=self.module)
        if func.is_pure and impure and not func.attrs.get("relax.force_pure"):
            raise DiagnosticError(
                "A function with side effects must say so: @R.function(pure=False)", func.span
            )
        self.visible = outside

    def extents(self, info: StructInfo, at: E.Expr) -> None:
        for var in dims.prim_vars(info):
            if var not in self.visible:
                raise DiagnosticError(f"The extent {var} is not defined at {at}", at.span)

    def sequence(self, seq: E.SeqExpr) -> None:
        for block in seq.blocks:
            dataflow = isinstance(block, E.DataflowBlock)
            for binding in block.bindings:
                if dataflow and contains_impure_call(binding.value, None, self.module):
                    raise DiagnosticError(
                        f"A dataflow block has no side effects; {binding.value} has some",
                        binding.span,
                    )
                self.binding(binding, dataflow)
            self.visible -= {
                binding.var for binding in block.bindings if isinstance(binding.var, E.DataflowVar)
            }
        if not is_leaf(seq.body):
            raise DiagnosticError(f"The result {seq.body} is not in normal form", seq.body.span)
        self.uses(seq.body)

    def binding(self, binding: E.Binding, dataflow: bool) -> None:
        if isinstance(binding.var, E.DataflowVar) and not dataflow:
            raise DiagnosticError(
                f"The DataflowVar {binding.var} is bound outside of a dataflow block", binding.span
            )
        value = binding.value
        if isinstance(value, E.Function):
            self.define(binding.var)
            self.function(value)
            return
        if isinstance(value, E.If):
            if dataflow:
                raise DiagnosticError("A dataflow block has no branches", value.span)
            if not is_leaf(value.cond):
                raise DiagnosticError(
                    f"The condition {value.cond} is not in normal form", value.span
                )
            self.uses(value.cond)
            for branch in (value.true_branch, value.false_branch):
                outside = set(self.visible)
                self.sequence(branch)
                self.visible = outside
        elif isinstance(value, E.SeqExpr):
            raise DiagnosticError(f"{binding.var} is bound to a sequence", binding.span)
        else:
            self.parts(value)
        if isinstance(binding, E.MatchCast):
            self.visible.update(definable_tir_vars_in_struct_info(binding.struct_info))
            self.extents(binding.struct_info, binding.var)
        elif isinstance(binding.var.struct_info, (TensorStructInfo, ShapeStructInfo)):
            self.extents(binding.var.struct_info, binding.var)
        self.define(binding.var)

    def parts(self, value: E.Value) -> None:
        if isinstance(value, E.Call):
            parts = [*value.args, *([value.op] if isinstance(value.op, E.Expr) else ())]
            if isinstance(value.op, GlobalVar):
                self.global_var(value.op, value)
            if normalized_by_operator(self.builder, value) is not value:
                raise DiagnosticError(
                    f"{value} is not in the form that its operator asks for: "
                    "relax.transform.Normalize gives it",
                    value.span,
                )
            self.called_tir(value)
        elif isinstance(value, E.TupleGetItem):
            parts = [value.tuple_value]
        else:
            parts = [value]
        for part in parts:
            if not is_leaf(part):
                raise DiagnosticError(f"{part} in {value} is not in normal form", value.span)
            self.uses(part)

    def called_tir(self, call: E.Call) -> None:
        """Refuse a `call_tir` whose arguments and results surely do not fit its function's."""
        names = E.called_operator(call).startswith("relax.call_tir")
        callee = call.args[0] if names else None
        if self.module is None or not isinstance(callee, GlobalVar):
            return
        func, args = self.module.functions.get(callee), call.args[1]
        if not isinstance(func, PrimFunc) or not isinstance(args, E.Tuple):
            return
        actual = [getattr(arg, "struct_info", None) for arg in args.fields]
        for info in call.sinfo_args:
            actual += info.fields if isinstance(info, TupleStructInfo) else [info]
        buffers = [func.buffer_map.get(param) for param in func.params]
        expected = [buffer for buffer in buffers if buffer is not None]
        if call.op == Op.get("relax.call_tir_inplace") or len(expected) < len(buffers):
            expected = expected[: len(args.fields)]
        elif len(expected) != len(actual):
            raise DiagnosticError(
                f"{callee.name_hint} takes {len(expected)} tensors, of arguments and results; the "
                f"call has {len(actual)}",
                call.span,
            )
        values: dict[PrimVar, PrimExpr] = {}
        for number, (buffer, info) in enumerate(zip(expected, actual, strict=False)):
            if not _may_be(buffer, info, values):
                raise DiagnosticError(
                    f"Tensor {number} of {callee.name_hint} is {buffer.name}, of shape "
                    f"{list(buffer.shape)} and dtype {buffer.dtype}; the call has {info}",
                    call.span,
                )

    def global_var(self, var: GlobalVar, at: E.Value) -> None:
        if self.module is not None and var not in self.module.functions:
            raise DiagnosticError(f'The module has no function "{var.name_hint}"', at.span)

    def uses(self, value: E.RelaxExpr) -> None:
        if isinstance(value, E.Tuple):
            for field in value.fields:
                self.uses(field)
        elif isinstance(value, GlobalVar):
            self.global_var(value, value)
        elif isinstance(value, E.Var) and value not in self.visible:
            where = "where it is not seen" if value in self.defined else "but not defined"
            if value in self.defined and isinstance(value, E.DataflowVar):
                where = f"outside of its dataflow block; end that with R.output({value})"
            raise DiagnosticError(f"The variable {value} is used {where}", value.span)
        elif isinstance(value, (E.ShapeExpr, E.PrimValue)):
            parts = value.values if isinstance(value, E.ShapeExpr) else (value.value,)
            for part in parts:
                for var in dims.prim_vars(part):
                    if isinstance(var, PrimVar) and var not in self.visible:
                        raise DiagnosticError(f"The extent {var} is not defined", value.span)
