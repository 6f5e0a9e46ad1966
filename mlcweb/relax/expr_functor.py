"""Walking and rewriting functions of the graph level, with TVM's method names.

A subclass defines methods for the nodes it cares about: `visit_call_`, `visit_var_binding_`, …
What it does not define walks through. Inside, `visit_expr`, `visit_binding`, `visit_binding_block`
and `visit_var_def` find the method for a node.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.normalize import all_same, merged
from mlcweb.relax.struct_info import StructInfo
from mlcweb.tir.functor import checked_subclass

Class = TypeVar("Class", bound=type)

METHODS: dict[type, str] = {
    E.Call: "visit_call_",
    E.Var: "visit_var_",
    E.DataflowVar: "visit_dataflow_var_",
    E.Constant: "visit_constant_",
    E.Tuple: "visit_tuple_",
    E.TupleGetItem: "visit_tuple_getitem_",
    E.ShapeExpr: "visit_shape_expr_",
    E.ExternFunc: "visit_extern_func_",
    GlobalVar: "visit_global_var_",
    E.Function: "visit_function_",
    E.SeqExpr: "visit_seq_expr_",
    E.If: "visit_if_",
    Op: "visit_op_",
    E.PrimValue: "visit_prim_value_",
    E.StringImm: "visit_string_imm_",
    E.DataTypeImm: "visit_data_type_imm_",
}
BINDING_METHODS: dict[type, str] = {
    E.VarBinding: "visit_var_binding_",
    E.MatchCast: "visit_match_cast_",
}
BLOCK_METHODS: dict[type, str] = {
    E.BindingBlock: "visit_binding_block_",
    E.DataflowBlock: "visit_dataflow_block_",
}
DEFINITION_METHODS: dict[type, str] = {
    E.Var: "visit_var_def_",
    E.DataflowVar: "visit_dataflow_var_def_",
}


def visitor(cls: Class) -> Class:
    """Marks a subclass of `PyExprVisitor`, as TVM asks for."""
    return _decorated(cls, PyExprVisitor)


def mutator(cls: Class) -> Class:
    """Marks a subclass of `PyExprMutator`, as TVM asks for."""
    return _decorated(cls, PyExprMutator)


def _decorated(cls: Class, base: type) -> Class:
    checked_subclass(cls, base)._cls = cls  # TVM wraps the class; subclasses name its own so
    return cls


class ExprFunctor:
    """Finds the method for a node."""

    def visit_expr(self, expr: E.RelaxExpr) -> Any:
        """Visit an expression by the method for its class."""
        name = METHODS.get(type(expr))
        return self.visit_expr_fallback_(expr) if name is None else getattr(self, name)(expr)

    def visit_binding(self, binding: E.Binding) -> object:
        return getattr(self, BINDING_METHODS[type(binding)])(binding)

    def visit_binding_block(self, block: E.BindingBlock) -> Any:
        return getattr(self, BLOCK_METHODS[type(block)])(block)

    def visit_var_def(self, var: E.Var) -> Any:
        return getattr(self, DEFINITION_METHODS[type(var)])(var)

    def visit_expr_fallback_(self, expr: Any) -> Any:
        """Expressions without parts, and those of classes without a method, such as scalars."""
        return expr

    visit_var_ = visit_dataflow_var_ = visit_var_def_ = visit_dataflow_var_def_ = (
        visit_expr_fallback_
    )
    visit_constant_ = visit_shape_expr_ = visit_extern_func_ = visit_expr_fallback_
    visit_global_var_ = visit_op_ = visit_prim_value_ = visit_expr_fallback_
    visit_string_imm_ = visit_data_type_imm_ = visit_expr_fallback_


class PyExprVisitor(ExprFunctor):
    """Walks through an expression. Methods return nothing."""

    def visit_call_(self, call: E.Call) -> None:
        self.visit_expr(call.op)
        for arg in call.args:
            self.visit_expr(arg)

    def visit_tuple_(self, value: E.Tuple) -> None:
        for field in value.fields:
            self.visit_expr(field)

    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> None:
        self.visit_expr(value.tuple_value)

    def visit_if_(self, value: E.If) -> None:
        self.visit_expr(value.cond)
        self.visit_expr(value.true_branch)
        self.visit_expr(value.false_branch)

    def visit_function_(self, func: E.Function) -> None:
        for param in func.params:
            self.visit_var_def(param)
        self.visit_expr(func.body)

    def visit_seq_expr_(self, seq: E.SeqExpr) -> None:
        for block in seq.blocks:
            self.visit_binding_block(block)
        self.visit_expr(seq.body)

    def visit_binding_block_(self, block: E.BindingBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: E.DataflowBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: E.MatchCast) -> None:
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)


class PyExprMutator(ExprFunctor):
    """Rewrites an expression: each method returns what stands for its node.

    `builder_` holds the module and the blocks being rebuilt. What a method returns is brought into
    normal form, so that it may be a call inside a call. A variable whose value's struct info has
    changed is replaced by one that says so, everywhere.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._remapped: dict[E.Var, E.Var] = {}

    @overload
    def visit_expr(self, expr: E.Function) -> E.Function: ...
    @overload
    def visit_expr(self, expr: E.Value) -> E.Value: ...
    @overload
    def visit_expr(self, expr: E.RelaxExpr) -> E.RelaxExpr: ...
    def visit_expr(self, expr: E.RelaxExpr) -> E.RelaxExpr:
        """What stands for an expression, in normal form."""
        return self.builder_.normalize(ExprFunctor.visit_expr(self, expr))

    def visit_expr_post_order(self, expr: E.ExprType) -> E.ExprType:
        """The expression with its parts visited; the expression itself is not."""
        default = getattr(PyExprMutator, METHODS.get(type(expr), ""), None)
        return expr if default is None else default(self, expr)

    def visit_with_new_scope(self, expr: E.Value) -> E.Value:
        """Visit a body whose bindings are its own."""
        return self.visit_expr(expr)

    def lookup_binding(self, var: E.Var) -> E.Value | None:
        """The rewritten value of a variable; None where it has none, as parameters."""
        return self.builder_.lookup_binding(var)

    def bound_value(self, value: object) -> object:
        """What a variable is bound to, as far as that is known; other values as they are."""
        bound = self.lookup_binding(value) if isinstance(value, E.Var) else None
        return value if bound is None else bound

    def set_var_remap(self, old_var: E.Var, new_var: E.Var) -> None:
        """Let a variable stand for another from here on."""
        self._remapped[old_var] = new_var

    def get_var_remap(self, var: E.Var) -> E.Var:
        """The variable that stands for another, or itself."""
        return self._remapped.get(var, var)

    def with_struct_info(self, var: E.Var, struct_info: StructInfo) -> E.Var:
        """The variable, or a new one of the same name where the struct info is another."""
        if var.struct_info is struct_info or var.struct_info == struct_info:
            return var
        return replace(var, struct_info=struct_info)

    def visit_call_(self, call: E.Call) -> E.Value:
        # An operator has no normal form.
        op = self.visit_op_(call.op) if isinstance(call.op, Op) else self.visit_expr(call.op)
        args = [self.visit_expr(arg) for arg in call.args]
        if op is call.op and all_same(args, call.args):
            return call
        return E.Call(op, args, call.attrs, call.sinfo_args, span=call.span)

    def visit_tuple_(self, value: E.Tuple) -> E.Value:
        fields = [self.visit_expr(field) for field in value.fields]
        return value if all_same(fields, value.fields) else E.Tuple(fields, span=value.span)

    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> E.Value:
        inside = self.visit_expr(value.tuple_value)
        return value if inside is value.tuple_value else replace(value, tuple_value=inside)

    def visit_if_(self, value: E.If) -> E.Value:
        cond = self.visit_expr(value.cond)
        true = self.visit_with_new_scope(value.true_branch)
        false = self.visit_with_new_scope(value.false_branch)
        if all_same((cond, true, false), (value.cond, value.true_branch, value.false_branch)):
            return value
        return E.If(cond, true, false, span=value.span)

    def visit_function_(self, func: E.Function) -> E.Value:
        params = [self.visit_var_def(param) for param in func.params]
        for old, new in zip(func.params, params, strict=True):
            if new is not old:
                self.set_var_remap(old, new)
        body = self.visit_with_new_scope(func.body)
        if body is func.body and all_same(params, func.params):
            return func
        return E.Function(params, body, None, func.is_pure, func.attrs, span=func.span)

    def visit_seq_expr_(self, seq: E.SeqExpr) -> E.Value:
        blocks = [self.visit_binding_block(block) for block in seq.blocks]
        self.builder_._begin_binding_block()
        body = self.builder_._normalize.argument(self.visit_expr(seq.body))
        last = self.builder_._end_block()
        if body is seq.body and not last.bindings and all_same(blocks, seq.blocks):
            return seq
        return E.SeqExpr(merged([*blocks, last]), body, span=seq.span)

    def visit_binding_block_(self, block: E.BindingBlock) -> E.BindingBlock:
        self.builder_._begin_binding_block()
        return self._rebuilt(block)

    def visit_dataflow_block_(self, block: E.DataflowBlock) -> E.BindingBlock:
        self.builder_._begin_dataflow_block()
        return self._rebuilt(block)

    def _rebuilt(self, block: E.BindingBlock) -> E.BindingBlock:
        for binding in block.bindings:
            self.visit_binding(binding)
        new = self.builder_._end_block()
        return block if all_same(new.bindings, block.bindings) else new

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        value = self.visit_expr(binding.value)
        var = self.visit_var_def(binding.var)
        if var is binding.var and value is binding.value:
            self.builder_.emit_normalized(binding)
            return
        self.emit_rebound(binding.var, var, value)

    def emit_rebound(self, old: E.Var, var: E.Var, value: E.Value) -> None:
        """Emit `var = value`; where `old` is another variable, `var` stands for it from here on."""
        new = self.with_struct_info(var, self.builder_.context.struct_info(value))
        if new is not old:
            self.set_var_remap(old, new)
        self.builder_.emit_normalized(E.VarBinding(new, value))

    def visit_match_cast_(self, binding: E.MatchCast) -> None:
        value = self.builder_._normalize.argument(self.visit_expr(binding.value))
        var = self.visit_var_def(binding.var)
        if var is binding.var and value is binding.value:
            self.builder_.emit_normalized(binding)
            return
        if var is not binding.var:
            self.set_var_remap(binding.var, var)
        self.builder_.emit_normalized(E.MatchCast(var, value, binding.struct_info))

    def visit_var_(self, var: E.Var) -> E.Value:
        return self._remapped.get(var, var)

    def visit_dataflow_var_(self, var: E.DataflowVar) -> E.Value:
        return self._remapped.get(var, var)
