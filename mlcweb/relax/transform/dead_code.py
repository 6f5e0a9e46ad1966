"""DeadCodeElimination: drop bindings and functions that nothing uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import remove_all_unused
from mlcweb.relax.transform.registration import map_functions, pass_of
from mlcweb.tir.expr import Call


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> Pass:
    """Drop bindings without use and without side effects, and functions that no entry function
    calls, not even through others.

    Args:
        entry_functions: names of functions to keep. Those with a global symbol are kept as well,
            since others can call them.
    """
    kept = tuple(entry_functions or ())
    return pass_of("DeadCodeElimination", lambda mod: eliminate_dead_code(mod, kept), 1)


def eliminate_dead_code(mod: IRModule, entry_functions: Iterable[str] = ()) -> IRModule:
    entries = [mod.get_global_var(name) for name in entry_functions]
    for var, func in mod.functions.items():
        if "global_symbol" in func.attrs:
            entries.append(var)
    mod = reachable(mod, entries)
    mod = map_functions(mod, lambda _, func: remove_all_unused(func, mod))
    return reachable(mod, entries)


def reachable(mod: IRModule, entries: Iterable[GlobalVar]) -> IRModule:
    """The module without the functions that no entry function calls, not even through others."""
    reached: set[GlobalVar] = set()
    stack = list(entries)
    while stack:
        var = stack.pop()
        if var not in reached:
            reached.add(var)
            stack.extend(called(_function(mod, var)))
    if len(reached) == len(mod.functions):
        return mod
    return mod.with_functions({var: f for var, f in mod.functions.items() if var in reached})


def _function(mod: IRModule, var: GlobalVar) -> BaseFunc:
    if var not in mod.functions:
        raise DiagnosticError(f'The module has no function "{var.name_hint}", which is called')
    return mod.functions[var]


def called_by_graphs(mod: IRModule) -> set[GlobalVar]:
    """The functions of a module that its graph functions name."""
    graphs = (func for func in mod.functions.values() if isinstance(func, E.Function))
    return {var for func in graphs for var in called(func)}


def called(func: BaseFunc) -> list[GlobalVar]:
    """The functions of the module that a function names."""
    body = func.body if isinstance(func, E.Function) else getattr(func, "body", None)
    if body is None:
        return []
    # In TensorIR, the name of the function is no child of the call.
    named = (node.op if isinstance(node, Call) else node for node in walk(body))
    return [var for var in named if isinstance(var, GlobalVar)]


def collect_call_map(module: IRModule) -> dict[GlobalVar, list[GlobalVar]]:
    """The functions of a module, each with those that it names, in order of first use."""
    return {var: [*dict.fromkeys(called(func))] for var, func in module.functions.items()}
