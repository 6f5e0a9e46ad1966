"""BindParams and BindSymbolicVars: functions with some of their parameters or extents given."""

from __future__ import annotations

from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.binding import bind_params, bind_symbolic_vars
from mlcweb.relax.transform.registration import pass_of


def _function(mod: IRModule, name: str) -> E.Function:
    func = mod[name]
    if not isinstance(func, E.Function):
        raise TypeError(f'"{name}" is a function of TensorIR, not of the graph level')
    return func


def BindParams(func_name: str, params: E.ByParameter) -> Pass:
    """Make parameters of the function `func_name` constants. The keys are parameters or their
    names, the values arrays."""

    def transform(mod: IRModule) -> IRModule:
        new = mod.copy()
        new[func_name] = bind_params(_function(mod, func_name), params)
        return new

    return pass_of("BindParams", transform)


def BindSymbolicVars(binding_map: E.ByExtent, func_name: str | None = None) -> Pass:
    """Give symbolic extents (by variable or name) values, in one function or, without a name, in
    all functions with a global symbol."""

    def transform(mod: IRModule) -> IRModule:
        new = mod.copy()
        for var, func in mod.functions.items():
            public = isinstance(func, E.Function) and "global_symbol" in func.attrs
            if var.name_hint == func_name or (func_name is None and public):
                new[var] = bind_symbolic_vars(_function(mod, var.name_hint), binding_map)
        if func_name is not None:
            new.get_global_var(func_name)
        return new

    return pass_of("BindSymbolicVars", transform)
