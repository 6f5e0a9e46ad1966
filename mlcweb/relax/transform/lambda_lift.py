"""LambdaLift: functions inside of functions become functions of the module."""

from __future__ import annotations

from itertools import chain, count

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import free_symbolic_vars, free_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.closure import invoke_closure, invoke_pure_closure, make_closure
from mlcweb.relax.struct_info import FuncStructInfo, ObjectStructInfo, PrimStructInfo
from mlcweb.relax.transform.registration import pass_of
from mlcweb.relax.utils import with_own_extents


def LambdaLift() -> Pass:
    """Make each function that is defined inside of another a private function of the module.

    What it takes from around it, variables and extents, become its last parameters; the definition
    becomes a `make_closure` that gives them, and calls of it `invoke_pure_closure`
    (`invoke_closure` where it has side effects). A function that takes nothing from around it is
    called by its name.
    """
    return pass_of("LambdaLift", lift_functions)


def lift_functions(mod: IRModule) -> IRModule:
    lifter = _Lifter(mod)
    for var, func in mod.functions.items():
        if isinstance(func, E.Function):
            lifter.name = var.name_hint
            new = lifter.visit_expr(func)
            if new is not func:
                lifter.builder_.update_func(var, new)
    return lifter.builder_.get()


@mutator
class _Lifter(PyExprMutator):
    """Lifts the functions inside of the function `name`."""

    name: str

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.plain: dict[E.Var, GlobalVar] = {}
        """Functions that take nothing from around them."""
        self.own: dict[E.Var, tuple[GlobalVar, list[E.Var]]] = {}
        """Functions being lifted, with the parameters that they take from around them."""
        self.closures: dict[E.Var, FuncStructInfo] = {}

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        if isinstance(binding.value, E.Function):
            self.lift(binding.var, binding.value)
            return
        super().visit_var_binding_(binding)
        info = self.get_var_remap(binding.var).struct_info
        if isinstance(info, FuncStructInfo):  # a closure that a call gives
            self.closures[binding.var] = info

    def unused_name(self, name: str) -> str:
        """The name, or the first of `name_0`, `name_1`, … that no function of the module has."""
        taken = {var.name_hint for var in self.builder_.get().functions}
        numbered = (f"{name}_{number}" for number in count())
        return next(free for free in chain([name], numbered) if free not in taken)

    def lift(self, var: E.Var, func: E.Function) -> None:
        builder = self.builder_
        target = GlobalVar(self.unused_name(f"{self.name}_{var.name_hint}"))
        free = [used for used in free_vars(func) if used is not var and used not in self.plain]
        outer = [self.get_var_remap(used) for used in free]
        params = [E.Var(used.name_hint, used.struct_info) for used in outer]
        extents = free_symbolic_vars(replace(func, params=(*func.params, *params)))
        params += [E.Var(extent.name, PrimStructInfo(value=extent)) for extent in extents]
        if not params:
            self.plain[var] = target
            # What calls the function inside of itself asks for its type.
            builder.update_func(target, func)
            lifted = self.visit_expr(func).without_attr("global_symbol")
            builder.update_func(target, with_own_extents(lifted))
            return
        self.own[var] = target, params
        signature = (*func.params, *params)
        builder.update_func(target, E.Function(signature, func.body, func.ret_struct_info))
        inside = self.visit_expr(func)
        del self.own[var]
        renamed = dict(zip(outer, params, strict=False))
        lifted = E.Function(
            (*inside.params, *params),
            Substitution(renamed).rewrite(inside.body),
            None,
            inside.is_pure,
            inside.attrs,
            span=func.span,
        )
        lifted = with_own_extents(lifted.without_attr("global_symbol"))
        builder.update_func(target, lifted)
        captured = [*outer, *map(E.PrimValue, extents)]
        self.closures[var] = func.struct_info
        self.emit_rebound(var, var, make_closure(target, E.Tuple(captured)))

    def visit_function_(self, func: E.Function) -> E.Function:
        new = self.visit_expr_post_order(func)
        result = new.body.body
        if not isinstance(result, GlobalVar):
            return new
        return replace(new, ret_struct_info=self.builder_.context.struct_info(result))

    def visit_call_(self, call: E.Call) -> E.Expr:
        callee = call.op
        if isinstance(callee, E.Var) and callee in self.own:
            target, params = self.own[callee]
            return E.Call(target, (*map(self.visit_expr, call.args), *params), call.attrs)
        new = self.visit_expr_post_order(call)
        if isinstance(new.op, Op) or not isinstance(callee, E.Var) or callee in self.plain:
            return new
        info = self.closures.get(callee, callee.struct_info)
        new_info = self.builder_.context.struct_info(new.op)
        if not isinstance(info, FuncStructInfo) or not isinstance(new_info, ObjectStructInfo):
            return new  # a parameter of a function is called as it is
        invoke = invoke_pure_closure if info.purity else invoke_closure
        return invoke(new.op, E.Tuple(new.args), call.struct_info)

    def visit_var_(self, var: E.Var) -> E.Value:
        return self.plain.get(var) or super().visit_var_(var)

    def visit_dataflow_var_(self, var: E.DataflowVar) -> E.Value:
        return self.plain.get(var) or super().visit_dataflow_var_(var)
