"""The bodies of functions in place of their calls: inline_functions, InlinePrivateFunctions."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import remove_all_unused
from mlcweb.relax.analysis.recursion import callees, reached
from mlcweb.relax.binding import Substitution, bind_params
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.transform.canonicalize import canonical
from mlcweb.relax.transform.registration import is_primitive, pass_of
from mlcweb.relax.utils import copy_with_new_vars


def InlinePrivateFunctions() -> Pass:
    """Write the bodies of private functions in place of their calls, and drop those functions that
    nothing calls any more. Functions that call themselves, directly or through others, and fused
    operators stay."""
    return pass_of("InlinePrivateFunctions", inline_private)


def inline_private(mod: IRModule) -> IRModule:
    graphs = {var: func for var, func in mod.functions.items() if isinstance(func, E.Function)}
    called = callees(mod)
    recursive = {var for var in graphs if var in reached(var, called)}
    private = {
        var
        for var, func in graphs.items()
        if "global_symbol" not in func.attrs and not is_primitive(func) and var not in recursive
    }
    inliner = _Inliner(mod, {var: graphs[var] for var in private})
    functions = dict(mod.functions)
    for var, func in graphs.items():
        if var not in private:
            functions[var] = inliner.inlined_into(func)
    used = {
        node
        for var, func in functions.items()
        if var not in private and isinstance(func, E.Function)
        for node in walk(func)
        if isinstance(node, GlobalVar)
    }
    for var in private:
        if var in used:  # as a value
            functions[var] = inliner.inlined(var)
        elif any(var in each for each in called.values()):
            del functions[var]
    return mod.with_functions(functions)


def inline_functions(func: E.Function, function_map: E.ByName) -> E.Function:
    """`func` with the bodies of functions, by name, in place of their calls.

    Raises:
        DiagnosticError: one of the functions calls itself, directly or through others.
        ValueError: a call has more or fewer arguments than its function has parameters.
    """
    mod = IRModule(function_map)
    called = callees(mod)
    for var in called:
        if var in reached(var, called):
            raise DiagnosticError(f'"{var.name_hint}" calls itself, and cannot be inlined')
    graphs = {var: each for var, each in mod.functions.items() if isinstance(each, E.Function)}
    return _Inliner(mod, graphs).inlined_into(func)


E.Function.inline_functions = inline_functions


@mutator
class _Inliner(PyExprMutator):
    def __init__(self, mod: IRModule, private: dict[GlobalVar, E.Function]) -> None:
        super().__init__(mod)
        self.private = private
        self.done: dict[GlobalVar, E.Function] = {}

    def inlined_into(self, func: E.Function) -> E.Function:
        """A function with what it calls written into it, without names that only rename others and
        values that this leaves unused."""
        new = self.visit_expr(func)
        return func if new is func else remove_all_unused(canonical(new), self.builder_.get())

    def inlined(self, var: GlobalVar) -> E.Function:
        """A private function with those that it calls written into it."""
        if var not in self.done:
            inner = _Inliner(self.builder_.get(), self.private)
            inner.done = self.done
            self.done[var] = inner.inlined_into(self.private[var])
        return self.done[var]

    def private_callee(self, call: E.Call) -> E.Function | None:
        """A copy of the private function that a call calls; None where it calls anything else."""
        if isinstance(call.op, GlobalVar) and call.op in self.private:
            return copy_with_new_vars(self.inlined(call.op))
        return None

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        call = binding.value
        func = self.private_callee(call) if isinstance(call, E.Call) else None
        if func is None or not isinstance(call, E.Call):
            super().visit_var_binding_(binding)
            return
        args = [arg for arg in map(self.visit_expr, call.args) if isinstance(arg, E.Expr)]
        body = bind_params(func, dict(zip(func.params, args, strict=True))).body
        bindings = [inner for block in body.blocks for inner in block.bindings]
        own = _as_in_block(bindings, self.builder_.current_block_is_dataflow())
        result = body.body
        if isinstance(result, E.Var) and any(inner.var is result for inner in bindings):
            # What the body gives takes the place of the call's variable.
            own[result] = replace(binding.var, struct_info=result.struct_info)
            self.set_var_remap(binding.var, own[result])
        renamed = Substitution(own)
        for inner in bindings:
            self.builder_.emit_normalized(renamed.rewrite(inner))
        if result not in own:
            super().visit_var_binding_(E.VarBinding(binding.var, renamed.rewrite(result)))


def _as_in_block(bindings: list[E.Binding], dataflow: bool) -> dict[E.Var, E.Var]:
    """The variables of bindings as those of a block."""
    kind = E.DataflowVar if dataflow else E.Var
    return {inner.var: kind(inner.var.name_hint, inner.var.struct_info) for inner in bindings}
