"""How the passes of the graph level are made of plain functions of modules and of functions."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.transform import FunctionalPass, ModulePass, PassContext, PassInfo
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import remove_all_unused
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.normalize import all_same
from mlcweb.tir.function import PrimFunc

CALL_TIR = Op.get("relax.call_tir")


def pass_of(name: str, transform: Callable[[IRModule], IRModule], opt_level: int = 0) -> ModulePass:
    """The pass `name` that does what a function of modules does."""
    return ModulePass(lambda mod, ctx: transform(mod), PassInfo(opt_level, name))


def map_functions(mod: IRModule, change: Callable[[GlobalVar, E.Function], E.Function]) -> IRModule:
    """The module with each function of the graph level changed; itself where none is."""
    changed: dict[GlobalVar, BaseFunc] = {}
    for var, func in mod.functions.items():
        if isinstance(func, E.Function):
            new = change(var, func)
            if new is not func:
                changed[var] = new
    if not changed:
        return mod
    return mod.with_functions({**mod.functions, **changed})


def map_bodies(mod: IRModule, rewrite: Callable[[E.SeqExpr], E.SeqExpr]) -> IRModule:
    """The module with the body of each function of the graph level rewritten."""
    return map_functions(mod, lambda _, func: with_body(func, rewrite(func.body)))


def with_body(func: E.Function, body: E.SeqExpr) -> E.Function:
    return func if body is func.body else replace(func, body=body)


def map_unfused(mod: IRModule, change: Callable[[E.Function], E.Function]) -> IRModule:
    """The module with each function of the graph level but fused operators changed."""
    return map_functions(mod, lambda _, func: func if is_primitive(func) else change(func))


def unfused_pass(name: str, change: Callable[[E.Function, IRModule], E.Function]) -> ModulePass:
    """The pass `name` that changes each function of the graph level but fused operators."""
    return pass_of(name, lambda mod: map_unfused(mod, lambda func: change(func, mod)))


def pruned(func: E.Function, rewriting: PyExprMutator, mod: IRModule) -> E.Function:
    """A function rewritten, without what that leaves unused; itself where nothing changes."""
    new = rewriting.visit_expr(func)
    return func if new is func else remove_all_unused(new, mod)


def rewritten_by(mod: IRModule, rewriting: PyExprMutator) -> IRModule:
    """The module with each function of the graph level but fused operators rewritten, and with the
    functions that were added to the builder on the way; itself where nothing changes."""
    changed = map_unfused(mod, rewriting.visit_expr)
    if changed is mod:
        return mod
    return mod.with_functions({**rewriting.builder_.get().functions, **changed.functions})


def called_tir(mod: IRModule, value: E.RelaxExpr) -> PrimFunc | None:
    """The function of TensorIR that a `call_tir` calls; None of any other value."""
    if not (isinstance(value, E.Call) and value.op == CALL_TIR):
        return None
    callee = value.args[0]
    func = mod.functions.get(callee) if isinstance(callee, GlobalVar) else None
    return func if isinstance(func, PrimFunc) else None


def functionwise(name: str, change: Callable[[E.Function], E.Function]) -> ModulePass:
    """The pass `name` that changes each function of the graph level by itself."""
    return pass_of(name, lambda mod: map_functions(mod, lambda _, func: change(func)))


def is_primitive(func: BaseFunc) -> bool:
    """Whether a function stands for one fused operator, or is meant for another compiler."""
    return bool(func.attrs.get("Primitive")) or "Codegen" in func.attrs


class FunctionPass(FunctionalPass):
    """A pass made of `transform(func, mod, ctx) -> func`, run on each function of the graph level
    that is no fused operator."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        def change(var: GlobalVar, func: E.Function) -> E.Function:
            if is_primitive(func):
                return func
            new = self.transform(func, mod, ctx)
            if not isinstance(new, E.Function):
                raise TVMError(f"The pass {self.name} gave no relax.Function but {new!r}")
            return new

        return map_functions(mod, change)


function_pass = FunctionPass.decorator


class DataflowBlockPass(FunctionalPass):
    """A pass made of `transform(block, mod, ctx) -> block`, run on each dataflow block."""

    worker_method = "transform_dataflowblock"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        def block(old: E.BindingBlock) -> E.BindingBlock:
            if not isinstance(old, E.DataflowBlock):
                return old
            new = self.transform(old, mod, ctx)
            if not isinstance(new, E.DataflowBlock):
                raise TVMError(f"The pass {self.name} gave no DataflowBlock but {new!r}")
            return new

        def change(var: GlobalVar, func: E.Function) -> E.Function:
            blocks = tuple(map(block, func.body.blocks))
            if all_same(blocks, func.body.blocks):
                return func
            return replace(func, body=replace(func.body, blocks=blocks))

        return map_functions(mod, change)


dataflowblock_pass = DataflowBlockPass.decorator
