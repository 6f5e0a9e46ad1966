"""Which functions of a module call each other, and what a function computes of its weights."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.variables import used_vars


def callees(mod: IRModule) -> dict[GlobalVar, list[GlobalVar]]:
    """For each graph function the graph functions of the module that its body names."""
    graphs = {var: func for var, func in mod.functions.items() if isinstance(func, E.Function)}
    named = {
        var: dict.fromkeys(n for n in walk(f.body) if isinstance(n, GlobalVar) and n in graphs)
        for var, f in graphs.items()
    }
    return {var: list(names) for var, names in named.items()}


def reached(start: GlobalVar, called: dict[GlobalVar, list[GlobalVar]]) -> set[GlobalVar]:
    """The functions that one calls, directly or through others."""
    reachable: set[GlobalVar] = set()
    waiting = [start]
    while waiting:
        for callee in called[waiting.pop()]:
            if callee not in reachable:
                reachable.add(callee)
                waiting.append(callee)
    return reachable


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """The groups of graph functions that call each other in a circle, or themselves, each by name;
    functions that share a circle are in one group."""
    called = callees(mod)
    reach = {var: reached(var, called) for var in called}
    groups: list[list[GlobalVar]] = []
    done: set[GlobalVar] = set()
    for var in called:
        if var in reach[var] and var not in done:
            group = [
                var,
                *(o for o in called if o is not var and o in reach[var] and var in reach[o]),
            ]
            done.update(group)
            groups.append(sorted(group, key=lambda each: each.name_hint))
    return groups


def computable_at_compile_time(func: E.Function) -> list[E.Var]:
    """The variables of a function that depend on its weights alone: the parameters after the
    first ones, as many as the attribute "num_input" says, and what is computed of them.

    Raises: DiagnosticError if the function has no such attribute.
    """
    if "num_input" not in func.attrs:
        raise DiagnosticError(
            "The function does not say how many of its parameters are inputs: give it the "
            'attribute "num_input"'
        )
    constants = dict.fromkeys(func.params[int(func.attrs["num_input"]) :])
    for block in func.body.blocks:
        for binding in block.bindings:
            used = used_vars(binding.value)
            if used and all(var in constants for var in used):
                constants[binding.var] = None
    return list(constants)
