"""ExpandTupleArguments: fields as parameters, in place of tuples."""

from __future__ import annotations

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.binding import Substitution
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo
from mlcweb.relax.transform.canonicalize import canonicalize
from mlcweb.relax.transform.dead_code import eliminate_dead_code
from mlcweb.relax.transform.registration import pass_of
from mlcweb.relax.transform.unused_values import private_callees, with_calls_changed


def ExpandTupleArguments() -> Pass:
    """Let private functions take the fields of tuples, where all uses of the function are calls,
    and clean up: as CanonicalizeBindings and DeadCodeElimination do."""
    return pass_of("ExpandTupleArguments", expand_tuples)


def expand_tuples(mod: IRModule) -> IRModule:
    new: dict[GlobalVar, E.Function] = {}
    for var, func in private_callees(mod).items():
        if any(isinstance(param.struct_info, TupleStructInfo) for param in func.params):
            new[var] = _with_fields(func)

    def change(mutator: PyExprMutator, call: E.Call, callee: GlobalVar) -> E.Value:
        args = [field for arg in call.args for field in _fields(mutator, arg)]
        return E.Call(callee, args, call.attrs, call.sinfo_args, span=call.span)

    return eliminate_dead_code(canonicalize(with_calls_changed(mod, new, change)))


def _with_fields(func: E.Function) -> E.Function:
    params: list[E.Var] = []
    values: dict[E.Var, E.Expr] = {}

    def field(name: str, info: StructInfo | None) -> E.Expr:
        if not isinstance(info, TupleStructInfo):
            params.append(E.Var(name, info))
            return params[-1]
        return E.Tuple([field(f"{name}_{i}", each) for i, each in enumerate(info.fields)])

    for param in func.params:
        if isinstance(param.struct_info, TupleStructInfo):
            values[param] = field(param.name_hint, param.struct_info)
        else:
            params.append(param)
    body = Substitution(values).rewrite(func.body)
    return E.Function(params, body, func.ret_struct_info, func.is_pure, func.attrs, span=func.span)


def _fields(mutator: PyExprMutator, arg: E.RelaxExpr) -> list[E.RelaxExpr]:
    """The fields of an argument, and theirs, in order."""
    if not isinstance(arg, E.Expr) or not isinstance(arg.struct_info, TupleStructInfo):
        return [arg]
    count = len(arg.struct_info.fields)
    value = mutator.bound_value(arg)
    if isinstance(value, E.Tuple):
        parts = list(value.fields)
    else:
        parts = [mutator.builder_.emit(E.TupleGetItem(arg, index)) for index in range(count)]
    return [field for part in parts for field in _fields(mutator, part)]
