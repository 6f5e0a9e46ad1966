"""RemoveUnusedParameters and RemoveUnusedOutputs: shorter signatures of private functions."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import free_symbolic_vars, remove_all_unused, used_vars
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.struct_info import TupleStructInfo
from mlcweb.relax.transform.canonicalize import canonicalize
from mlcweb.relax.transform.dead_code import eliminate_dead_code
from mlcweb.relax.transform.registration import map_functions, pass_of, pruned

Change = Callable[[PyExprMutator, E.Call, GlobalVar], E.Value]
"""What stands for a call of a function whose signature has changed."""


def RemoveUnusedParameters() -> Pass:
    """Drop parameters of private functions that their bodies do not use, where all uses of the
    function are calls of it. A parameter that alone tells a symbolic extent stays."""
    return pass_of("RemoveUnusedParameters", remove_unused_parameters)


def RemoveUnusedOutputs() -> Pass:
    """Drop fields of the tuples that private functions give and that no caller takes, and clean up:
    as CanonicalizeBindings and DeadCodeElimination do."""
    return pass_of("RemoveUnusedOutputs", remove_unused_outputs)


def private_callees(mod: IRModule) -> dict[GlobalVar, E.Function]:
    """The private functions of which all uses are calls."""
    callees = {
        var: func
        for var, func in mod.functions.items()
        if isinstance(func, E.Function) and "global_symbol" not in func.attrs
    }
    for func in mod.functions.values():
        if isinstance(func, E.Function):
            for node in walk(func.body):
                for part in _values_in(node):
                    callees.pop(part, None)
    return callees


def _values_in(node: Node) -> list[GlobalVar]:
    """Functions of the module that a node uses as values."""
    if isinstance(node, E.Call):  # a call_tir names a function of TensorIR, which is none of these
        parts = node.args
    elif isinstance(node, E.Tuple):
        parts = node.fields
    else:
        parts = (node.value,) if isinstance(node, E.VarBinding) else ()
    return [part for part in parts if isinstance(part, GlobalVar)]


def remove_unused_parameters(mod: IRModule) -> IRModule:
    new: dict[GlobalVar, E.Function] = {}
    kept: dict[GlobalVar, list[int]] = {}
    for var, func in private_callees(mod).items():
        used = set(used_vars(func.body))
        places = [i for i, param in enumerate(func.params) if param in used]
        if len(places) == len(func.params):
            continue
        shorter = _with_params(func, places)
        if free_symbolic_vars(shorter):
            continue
        new[var], kept[var] = shorter, places

    def change(mutator: PyExprMutator, call: E.Call, callee: GlobalVar) -> E.Value:
        return E.Call(call.op, [call.args[i] for i in kept[callee]], call.attrs, call.sinfo_args)

    return with_calls_changed(mod, new, change)


def _with_params(func: E.Function, places: list[int]) -> E.Function:
    params = [func.params[i] for i in places]
    return E.Function(params, func.body, None, func.is_pure, func.attrs, span=func.span)


def remove_unused_outputs(mod: IRModule) -> IRModule:
    new: dict[GlobalVar, E.Function] = {}
    kept: dict[GlobalVar, list[int]] = {}
    callees = private_callees(mod)
    taken = _fields_taken(mod, set(callees))
    for var, func in callees.items():
        result = func.body.body
        if not isinstance(result, E.Tuple) or not 0 < len(taken[var]) < len(result.fields):
            continue
        places = sorted(taken[var])
        fields = [result.fields[i] for i in places]
        body = fields[0] if len(fields) == 1 else E.Tuple(fields)
        shorter = E.Function(
            func.params, replace(func.body, body=body), None, func.is_pure, func.attrs
        )
        new[var], kept[var] = remove_all_unused(shorter, mod), places

    def change(mutator: PyExprMutator, call: E.Call, callee: GlobalVar) -> E.Value:
        places = kept[callee]
        result = mutator.builder_.emit(E.Call(call.op, call.args, call.attrs, call.sinfo_args))
        parts = {place: E.TupleGetItem(result, i) for i, place in enumerate(places)}
        if len(places) == 1:
            parts = {places[0]: result}
        count = max(places) + 1
        return E.Tuple([parts.get(i, parts[places[0]]) for i in range(count)])

    return eliminate_dead_code(canonicalize(with_calls_changed(mod, new, change)))


def _fields_taken(mod: IRModule, callees: set[GlobalVar]) -> dict[GlobalVar, set[int]]:
    """The fields of each function's result that callers take; all where the whole is used."""
    taken: dict[GlobalVar, set[int]] = {var: set() for var in callees}
    for func in mod.functions.values():
        if not isinstance(func, E.Function):
            continue
        results: dict[E.Var, GlobalVar] = {}
        for node in walk(func.body):
            if isinstance(node, E.VarBinding) and isinstance(node.value, E.Call):
                if isinstance(node.value.op, GlobalVar) and node.value.op in callees:
                    results[node.var] = node.value.op
        whole = _used_whole(func, results)
        for var, callee in results.items():
            info = var.struct_info
            if var in whole and isinstance(info, TupleStructInfo):
                taken[callee].update(range(len(info.fields)))
        for node in walk(func.body):
            if isinstance(node, E.TupleGetItem) and isinstance(node.tuple_value, E.Var):
                if node.tuple_value in results:
                    taken[results[node.tuple_value]].add(node.index)
    return taken


def _used_whole(func: E.Function, results: dict[E.Var, GlobalVar]) -> set[E.Var]:
    """The results that are used otherwise than by taking a field."""
    count: dict[E.Value, int] = {}
    for node in walk(func.body):
        if isinstance(node, E.Var):
            count[node] = count.get(node, 0) + 1
        elif isinstance(node, E.TupleGetItem):
            count[node.tuple_value] = count.get(node.tuple_value, 0) - 1
    return {var for var in results if count.get(var, 0) > 0}


def with_calls_changed(mod: IRModule, new: dict[GlobalVar, E.Function], change: Change) -> IRModule:
    if not new:
        return mod
    replaced = mod.with_functions({**mod.functions, **new})
    calls = _ChangedCalls(replaced, set(new), change)
    return map_functions(replaced, lambda _, func: pruned(func, calls, replaced))


class _ChangedCalls(PyExprMutator):
    def __init__(self, mod: IRModule, changed: set[GlobalVar], change: Change) -> None:
        super().__init__(mod)
        self.changed = changed
        self.change = change

    def visit_call_(self, call: E.Call) -> E.Value:
        call = self.visit_expr_post_order(call)
        if isinstance(call.op, GlobalVar) and call.op in self.changed:
            return self.change(self, call, call.op)
        return call
