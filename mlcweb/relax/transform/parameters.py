"""BundleModelParams and UpdateParamStructInfo: functions with other parameters."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.dialect import also_named
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.uses import RESET_ITEM
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.base import call_pure_packed
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo
from mlcweb.relax.transform.registration import functionwise
from mlcweb.tir.expr import IntImm

NUM_INPUT = "num_input"
"""The attribute that says how many parameters are inputs; those after them are weights."""


def input_count(func: E.Function) -> int:
    """How many parameters of a function are inputs.

    Raises: DiagnosticError if it has not that many.
    """
    count = int(func.attrs[NUM_INPUT])
    if not 0 <= count <= len(func.params):
        raise DiagnosticError(
            f'The attribute "{NUM_INPUT}" is {count}, but the function has {len(func.params)} '
            "parameter(s)"
        )
    return count


def BundleModelParams(param_tuple_name: str | None = None) -> Pass:
    """Make one tuple of the weights of each function that says by the attribute "num_input" how
    many of its first parameters are inputs. The tuple is called `param_tuple_name`, or
    `model_params`."""
    name = param_tuple_name or "model_params"
    return functionwise("BundleModelParams", lambda func: bundle_params(func, name))


def bundle_params(
    func: E.Function, name: str = "model_params", consume: bool = False
) -> E.Function:
    """The function with one tuple of its weights. With `consume` it takes each weight once, and
    then out of the tuple, so that nothing holds it longer than it is needed."""
    if NUM_INPUT not in func.attrs:
        return func
    count = input_count(func)
    inputs, weights = func.params[:count], func.params[count:]
    whole = E.Var(name, TupleStructInfo([weight.struct_info for weight in weights]))
    fields = _Fields({weight: (whole, i) for i, weight in enumerate(weights)}, consume)
    body = fields.visit_expr(func.body)
    return E.Function(
        (*inputs, whole), body, func.ret_struct_info, func.is_pure, func.attrs, span=func.span
    )


@mutator
class _Fields(PyExprMutator):
    """Takes a field of a tuple at each use of a variable."""

    def __init__(self, places: dict[E.Var, tuple[E.Var, int]], consume: bool) -> None:
        super().__init__()
        self.places = places
        self.consume = consume
        self.taken: dict[E.Var, E.Var] = {}

    def visit_var_(self, var: E.Var) -> E.Value:
        if var not in self.places:
            return super().visit_var_(var)
        whole, index = self.places[var]
        if var in self.taken:
            return self.builder_.emit(self.taken[var], var.name_hint)
        field = self.builder_.emit(E.TupleGetItem(whole, index), var.name_hint)
        if self.consume:
            self.taken[var] = field
            place = E.PrimValue(IntImm("int32", index))
            reset = call_pure_packed(RESET_ITEM, whole, place, sinfo_args=TupleStructInfo(()))
            self.builder_.emit(reset, "_")
        return field


@also_named(ty_func="sinfo_func")
def UpdateParamStructInfo(sinfo_func: Callable[[E.Var], StructInfo | None]) -> Pass:
    """Give parameters other struct infos: what `sinfo_func(param)` gives, where that is not None.
    What follows from them is deduced anew."""

    def change(func: E.Function) -> E.Function:
        changes = _Parameters(sinfo_func)
        return changes.visit_expr(func)

    return functionwise("UpdateParamStructInfo", change)


UpdateParamType = UpdateParamStructInfo
"""Its name since 2026."""


@mutator
class _Parameters(PyExprMutator):
    def __init__(self, info_for: Callable[[E.Var], StructInfo | None]) -> None:
        super().__init__()
        self.info_for = info_for

    def visit_function_(self, func: E.Function) -> E.Function:
        for param in func.params:
            info = self.info_for(param)
            if info is not None and info is not param.struct_info:
                self.set_var_remap(param, E.Var(param.name_hint, info, span=param.span))
        params = [self.get_var_remap(param) for param in func.params]
        body = self.visit_with_new_scope(func.body)
        return E.Function(params, body, None, func.is_pure, func.attrs, span=func.span)
