"""LiftTransformParams: what a model computes of its weights alone, as a function of its own."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass, PassContext
from mlcweb.lower.options import CONSUME_PARAMS
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import contains_impure_call, used_vars
from mlcweb.relax.analysis.variables import symbolic_vars_used
from mlcweb.relax.binding import Substitution
from mlcweb.relax.transform.parameters import NUM_INPUT, bundle_params, input_count
from mlcweb.relax.transform.registration import pass_of
from mlcweb.relax.utils import copy_with_new_vars


def LiftTransformParams(shared_transform: bool | list[str] = False) -> Pass:
    """Move what is computed of weights alone out of each function that says by the attribute
    "num_input" how many of its first parameters are inputs.

    The function `f` takes what it needs of the results as its weights, and `f_transform_params`
    computes them of a tuple of the old weights, once for many calls. With the option
    "relax.lift_transform_params.consume_params" of the `PassContext` it takes each weight out of
    the list that it is called with, so that no more weights are in memory than are needed.

    Raises: DiagnosticError: for `shared_transform`, one such function for several others.
    """
    if shared_transform:
        raise DiagnosticError(
            "LiftTransformParams: shared_transform is not here; each function gets a "
            "transformation of its own with shared_transform=False"
        )
    return pass_of("LiftTransformParams", lift_transform_params)


def lift_transform_params(mod: IRModule) -> IRModule:
    functions = dict(mod.functions)
    for var, func in mod.functions.items():
        if isinstance(func, E.Function) and NUM_INPUT in func.attrs:
            functions[var], transform = _split(func, mod)
            name = f"{var.name_hint}_transform_params"
            if "global_symbol" in func.attrs:
                transform = transform.with_attr("global_symbol", name)
            functions[GlobalVar(name)] = transform
    return mod.with_functions(functions)


def _split(func: E.Function, mod: IRModule) -> tuple[E.Function, E.Function]:
    """What is left of a function, and the function that transforms its weights."""
    count = input_count(func)
    inputs, weights = func.params[:count], func.params[count:]
    lifted = _liftable(func, inputs, weights, mod)
    moved = {binding.var for binding in lifted}
    marks = {
        binding.var: stopped
        for block in func.body.blocks
        for binding in block.bindings
        if (stopped := _stopped(binding.value)) is not None
    }
    gone = moved | set(marks)
    blocks = [
        replace(block, bindings=tuple(each for each in block.bindings if each.var not in gone))
        for block in func.body.blocks
    ]
    body = E.SeqExpr([block for block in blocks if block.bindings], func.body.body)
    body = Substitution(marks).rewrite(body)
    needed = set(used_vars(body))
    passed = [weight for weight in weights if weight in needed]
    results = [binding.var for binding in lifted if binding.var in needed]
    params = {var: E.Var(var.name_hint, var.struct_info) for var in results}
    rest = E.Function(
        (*inputs, *passed, *params.values()),
        Substitution(params).rewrite(body),
        func.ret_struct_info,
        func.is_pure,
        func.attrs,
        span=func.span,
    )
    outputs = E.Tuple((*passed, *results))
    whole = E.Var("output_tuple", outputs.struct_info)
    inside = {var: E.DataflowVar(var.name_hint, var.struct_info) for var in moved}
    block = E.DataflowBlock((*lifted, E.VarBinding(whole, outputs)))
    transform = E.Function(
        weights, E.SeqExpr([Substitution(inside).rewrite(block)], whole), None, True, {NUM_INPUT: 0}
    )
    consume = bool(PassContext.current().config.get(CONSUME_PARAMS))
    return rest, copy_with_new_vars(bundle_params(transform, consume=consume))


def _liftable(
    func: E.Function, inputs: Sequence[E.Var], weights: Sequence[E.Var], mod: IRModule
) -> list[E.Binding]:
    """The bindings of dataflow blocks that depend on weights alone."""
    available = set(weights)
    of_inputs = {e for var in inputs if var.struct_info for e in dims.prim_vars(var.struct_info)}
    lifted: list[E.Binding] = []
    for block in func.body.blocks:
        if not isinstance(block, E.DataflowBlock):
            continue
        for binding in block.bindings:
            used = used_vars(binding.value)
            if (
                used
                and _stopped(binding.value) is None
                and available.issuperset(used)
                and isinstance(binding, E.VarBinding)
                and of_inputs.isdisjoint(symbolic_vars_used(binding.value))
                and not contains_impure_call(binding.value, functions=mod)
            ):
                lifted.append(binding)
                available.add(binding.var)
    return lifted


def _stopped(value: E.Value) -> E.Var | None:
    """The variable of which a value is the mark that what is computed of it is not lifted."""
    if isinstance(value, E.Call) and value.op is Op.get("relax.builtin.stop_lift_params"):
        (stopped,) = value.args
        return stopped if isinstance(stopped, E.Var) else None
    return None
