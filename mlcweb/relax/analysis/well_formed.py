"""Whether functions are what they have to be: scopes, normal form, purity."""

from __future__ import annotations

from mlcweb.ir.dialect import also_named
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import definable_tir_vars_in_struct_info
from mlcweb.relax.analysis.uses import contains_impure_call
from mlcweb.relax.normalize import is_leaf
from mlcweb.relax.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from mlcweb.tir.expr import Var as PrimVar


@also_named(check_ty="check_struct_info")
def well_formed(obj: IRModule | BaseFunc, check_struct_info: bool = True) -> bool:
    """Whether a module or function is well-formed."""
    try:
        check_well_formed(obj, check_struct_info)
    except DiagnosticError:
        return False
    return True


@also_named(check_ty="check_struct_info")
def check_well_formed(obj: IRModule | BaseFunc, check_struct_info: bool = True) -> None:
    """Raise a DiagnosticError that says what is wrong with a module or function, if anything is."""
    if isinstance(obj, IRModule):
        for var, func in obj.functions.items():
            symbol = func.attrs.get("global_symbol", var.name_hint)
            if symbol != var.name_hint:
                raise DiagnosticError(
                    f'The global_symbol of a function is its name in the module: "{symbol}" is not '
                    f'"{var.name_hint}"',
                    func.span,
                )
            if isinstance(func, E.Function):
                _Check(obj, check_struct_info).function(func)
    elif isinstance(obj, E.Function):
        _Check(None, check_struct_info).function(obj)


class _Check:
    def __init__(self, module: IRModule | None, check_struct_info: bool) -> None:
        self.module = module
        self.check_struct_info = check_struct_info
        self.defined: set[E.Var] = set()
        self.visible: set[E.Var | PrimVar] = set()

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
            if dataflow and contains_impure_call(
                E.SeqExpr([block], E.Tuple(())), None, self.module
            ):
                raise DiagnosticError("A dataflow block has no side effects", block.span)
            for binding in block.bindings:
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
            self.uses(value.cond)
            for branch in (value.true_branch, value.false_branch):
                outside = set(self.visible)
                self.sequence(branch)
                self.visible = outside
        elif isinstance(value, E.SeqExpr):
            self.sequence(value)
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
        elif isinstance(value, E.TupleGetItem):
            parts = [value.tuple_value]
        else:
            parts = [value]
        for part in parts:
            if not is_leaf(part):
                raise DiagnosticError(f"{part} in {value} is not in normal form", value.span)
            self.uses(part)

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
            raise DiagnosticError(f"The variable {value} is used {where}", value.span)
        elif isinstance(value, (E.ShapeExpr, E.PrimValue)):
            parts = value.values if isinstance(value, E.ShapeExpr) else (value.value,)
            for part in parts:
                for var in dims.prim_vars(part):
                    if isinstance(var, PrimVar) and var not in self.visible:
                        raise DiagnosticError(f"The extent {var} is not defined", value.span)
