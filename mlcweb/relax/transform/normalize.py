"""Normalize, NormalizeGlobalVar and AttachGlobalSymbol: forms that other passes expect."""

from __future__ import annotations

from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder, NameSupply
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.transform.registration import map_functions, pass_of
from mlcweb.tir.function import PrimFunc


def Normalize() -> Pass:
    """Bring functions into A-normal form: the arguments of calls become variables."""
    return pass_of("Normalize", normalize)


def normalize(mod: IRModule) -> IRModule:
    builder = BlockBuilder(mod)

    def change(var: GlobalVar, func: E.Function) -> E.Function:
        new = builder.normalize(func)
        assert isinstance(new, E.Function)
        return new

    return map_functions(mod, change)


def AttachGlobalSymbol() -> Pass:
    """Make every function public, under the name by which the module knows it. The module's
    attribute "system_lib_prefix" begins the names of its functions of TensorIR."""
    return pass_of("AttachGlobalSymbol", attach_global_symbols)


def attach_global_symbols(mod: IRModule) -> IRModule:
    prefix = mod.attrs.get("system_lib_prefix") or ""
    functions: dict[GlobalVar, BaseFunc] = {}
    for var, func in mod.functions.items():
        if isinstance(func, (E.Function, PrimFunc)):
            name = prefix + var.name_hint if isinstance(func, PrimFunc) else var.name_hint
            func = func.with_attr("global_symbol", name)
        functions[var] = func
    return normalize_global_vars(mod.with_functions(functions))


def NormalizeGlobalVar() -> Pass:
    """Let the module know each public function by its global symbol; a private function that has
    this name takes another."""
    return pass_of("NormalizeGlobalVar", normalize_global_vars)


def normalize_global_vars(mod: IRModule) -> IRModule:
    renamed: dict[GlobalVar, GlobalVar] = {}
    for var, func in mod.functions.items():
        if "global_symbol" in func.attrs:
            renamed[var] = GlobalVar(func.attrs["global_symbol"])
    names = NameSupply([var.name_hint for var in renamed.values()])
    for var in mod.functions:
        if var not in renamed:
            renamed[var] = GlobalVar(names.fresh(var.name_hint))
    if all(new == old for old, new in renamed.items()):
        return mod
    functions: dict[GlobalVar, BaseFunc] = {
        renamed[var]: func for var, func in mod.functions.items()
    }
    calls = RenamedFunctions(IRModule(functions), renamed)
    new = mod.with_functions(functions)
    return map_functions(new, lambda _, func: calls.visit_expr(func))


class RenamedFunctions(PyExprMutator):
    """Calls functions by other names."""

    def __init__(self, mod: IRModule, renamed: dict[GlobalVar, GlobalVar]) -> None:
        super().__init__(mod)
        self.renamed = renamed

    def visit_global_var_(self, var: GlobalVar) -> GlobalVar:
        return self.renamed.get(var, var)
