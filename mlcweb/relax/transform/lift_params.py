"""LiftTransformParams: what a model computes of its weights alone, as a function of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.structural import structural_equal, structural_hash
from mlcweb.ir.transform import Pass, PassContext
from mlcweb.lower.options import CONSUME_PARAMS
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import contains_impure_call, free_symbolic_vars, used_vars
from mlcweb.relax.analysis.struct_info import definable_tir_vars_in_struct_info
from mlcweb.relax.analysis.variables import symbolic_vars_used
from mlcweb.relax.binding import Substitution
from mlcweb.relax.struct_info import ShapeStructInfo
from mlcweb.relax.transform.canonicalize import canonical
from mlcweb.relax.transform.parameters import NUM_INPUT, bundle_params, input_count
from mlcweb.relax.transform.registration import pass_of
from mlcweb.relax.utils import copy_with_new_vars
from mlcweb.tir.expr import Var as PrimVar

TRANSFORM = "transform_params"
"""How the names of the functions that transform weights end."""


def LiftTransformParams(shared_transform: bool | Sequence[str] = False) -> Pass:
    """Move what is computed of weights alone out of each function that says by the attribute
    "num_input" how many of its first parameters are inputs.

    The function `f` takes what it needs of the results as its weights, and `f_transform_params`
    computes them of a tuple of the old weights, once for many calls. With the option
    "relax.lift_transform_params.consume_params" of the `PassContext` it takes each weight out of
    the list that it is called with, so that no more weights are in memory than are needed.

    Args:
        shared_transform: whether all functions, or those of some names, have one transformation,
            `transform_params`, of the weights that they have in common. It computes what all of
            them compute, and each of them takes all of its results.

    Raises: DiagnosticError: functions that shall have one transformation have other weights, or a
        function that is named says nothing of "num_input".
    """
    return pass_of("LiftTransformParams", lambda mod: lift_transform_params(mod, shared_transform))


def lift_transform_params(mod: IRModule, shared: bool | Sequence[str] = False) -> IRModule:
    parts = {var: _Part.of(func, mod) for var, func in _targets(mod, shared)}
    functions = dict(mod.functions)
    transforms: dict[str, E.Function] = {}
    if shared is not False:
        same, extents, lifted = _in_common(parts)
        parts = {
            var: _Part(part.func, part.inputs, part.weights, lifted[var])
            for var, part in parts.items()
        }
        needed = {same[each] for part in parts.values() for each in part.needed()}
        first = next(iter(parts.values()))
        outputs = [var for var in first.results() if same[var] is var and var in needed]
        own = {
            var: [[each for each in part.results() if same[each] is out] for out in outputs]
            for var, part in parts.items()
        }
        lost = {extents[var][e] for var, part in parts.items() for e in part.lost(own[var])}
        shape = [extent for extent in first.extents() if extent in lost]
        for var, part in parts.items():
            own_extents = {like: extent for extent, like in extents[var].items()}
            functions[var] = part.rest(own[var], [own_extents[extent] for extent in shape])
        transform = first.transform(outputs, shape)
        transforms[TRANSFORM] = transform.with_attr("global_symbol", TRANSFORM)
    else:
        for var, part in parts.items():
            outputs = part.needed()
            alone = [[output] for output in outputs]
            shape = part.lost(alone)
            functions[var] = part.rest(alone, shape)
            name = f"{var.name_hint}_{TRANSFORM}"
            transform = part.transform(outputs, shape)
            public = "global_symbol" in part.func.attrs
            transforms[name] = transform.with_attr("global_symbol", name) if public else transform
    earlier = {var.name_hint: (var, func) for var, func in mod.functions.items()}
    for name, transform in transforms.items():
        var, before = earlier.get(name, (GlobalVar(name), None))
        both = isinstance(before, E.Function)
        functions[var] = _one_after_the_other(before, transform) if both else transform
    return mod.with_functions(functions)


def _one_after_the_other(first: E.Function, then: E.Function) -> E.Function:
    """The transformation that gives what `first` gives to `then`."""
    (weights,) = then.params
    rest = Substitution({weights: first.body.body}).rewrite(then.body)
    body = E.SeqExpr([*first.body.blocks, *rest.blocks], rest.body)
    return canonical(E.Function(first.params, body, None, True, then.attrs))


def _targets(mod: IRModule, shared: bool | Sequence[str]) -> list[tuple[GlobalVar, E.Function]]:
    """The functions with weights to transform, which are no transformations themselves."""
    targets = [
        (var, func)
        for var, func in mod.functions.items()
        if isinstance(func, E.Function) and NUM_INPUT in func.attrs
        if not var.name_hint.endswith(TRANSFORM)
    ]
    if shared is False:
        return targets
    if shared is not True and shared:
        by_name = {var.name_hint: (var, func) for var, func in targets}
        for name in shared:
            if name not in by_name:
                raise DiagnosticError(
                    f'LiftTransformParams: the module has no function "{name}" with the attribute '
                    f'"{NUM_INPUT}"; it has {", ".join(by_name) or "none"}'
                )
        return [by_name[name] for name in shared]
    if not targets:
        raise DiagnosticError(
            f'LiftTransformParams: no function says by the attribute "{NUM_INPUT}" how many of its '
            "parameters are inputs"
        )
    return sorted(targets, key=lambda target: target[0].name_hint)


@dataclass(frozen=True, slots=True)
class _Part:
    """A function, and the bindings that are to be lifted out of it."""

    func: E.Function
    inputs: Sequence[E.Var]
    weights: Sequence[E.Var]
    lifted: Sequence[E.Binding]

    @staticmethod
    def of(func: E.Function, mod: IRModule) -> _Part:
        count = input_count(func)
        inputs, weights = func.params[:count], func.params[count:]
        return _Part(func, inputs, weights, _liftable(func, inputs, weights, mod))

    def results(self) -> list[E.Var]:
        """What a transformation can give: weights as they are, and what is lifted."""
        return [*self.weights, *(binding.var for binding in self.lifted)]

    def needed(self) -> list[E.Var]:
        """Those of them that what is left of the function needs."""
        used = set(used_vars(self.body()))
        return [var for var in self.results() if var in used]

    def body(self) -> E.SeqExpr:
        """What is left of the function's body."""
        body = self.func.body
        marks = {
            binding.var: stopped
            for block in body.blocks
            for binding in block.bindings
            if (stopped := _stopped(binding.value)) is not None
        }
        gone = {binding.var for binding in self.lifted} | set(marks)
        blocks = [
            replace(block, bindings=tuple(each for each in block.bindings if each.var not in gone))
            for block in body.blocks
        ]
        left = E.SeqExpr([block for block in blocks if block.bindings], body.body)
        return Substitution(marks).rewrite(left)

    def extents(self) -> list[PrimVar]:
        """The symbolic extents that the weights define."""
        return [*dict.fromkeys(extent for weight in self.weights for extent in _defined(weight))]

    def lost(self, outputs: Sequence[Sequence[E.Var]]) -> list[PrimVar]:
        """Those of them that what is left needs, and neither its inputs nor the outputs define."""
        undefined = set(free_symbolic_vars(self.rest(outputs, ())))
        return [extent for extent in self.extents() if extent in undefined]

    def rest(self, outputs: Sequence[Sequence[E.Var]], shape: Sequence[PrimVar]) -> E.Function:
        """What is left of the function. It takes the outputs of the transformation, each of which
        stands for some of its variables, after some extents if there are any."""
        params: list[E.Var] = []
        if shape:
            params.append(E.Var("vars_from_compile_time_params", ShapeStructInfo(shape)))
        values: dict[E.Var, E.RelaxExpr] = {}
        for first, *others in outputs:
            is_weight = first in self.weights
            params.append(first if is_weight else E.Var(first.name_hint, first.struct_info))
            values.update(dict.fromkeys((first, *others), params[-1]))
        func = self.func
        return E.Function(
            (*self.inputs, *params),
            Substitution(values).rewrite(self.body()),
            func.ret_struct_info,
            func.is_pure,
            func.attrs,
            span=func.span,
        )

    def transform(self, outputs: Sequence[E.Var], shape: Sequence[PrimVar]) -> E.Function:
        """The function that computes outputs of a tuple of the weights, after some extents if there
        are any."""
        result = E.Tuple((E.ShapeExpr(shape), *outputs) if shape else outputs)
        whole = E.Var("output_tuple", result.struct_info)
        inside = {
            binding.var: E.DataflowVar(binding.var.name_hint, binding.var.struct_info)
            for binding in self.lifted
        }
        block = E.DataflowBlock((*self.lifted, E.VarBinding(whole, result)))
        body = E.SeqExpr([Substitution(inside).rewrite(block)], whole)
        transform = E.Function(self.weights, body, None, True, {NUM_INPUT: 0})
        consume = bool(PassContext.current().config.get(CONSUME_PARAMS))
        return copy_with_new_vars(bundle_params(transform, consume=consume))


def _in_common(
    parts: Mapping[GlobalVar, _Part],
) -> tuple[
    dict[E.Var, E.Var], dict[GlobalVar, dict[PrimVar, PrimVar]], dict[GlobalVar, list[E.Binding]]
]:
    """For the weights of functions and what is lifted out of them, the variable that is the same in
    the first function that has it; so for extents, by function; and the bindings that all functions
    have."""
    (name, first), *_ = parts.items()
    same: dict[E.Var, E.Var] = {}
    holders: dict[E.Var, set[GlobalVar]] = {}
    values: dict[int, list[tuple[E.Value, E.Var]]] = {}
    same_extents: dict[GlobalVar, dict[PrimVar, PrimVar]] = {var: {} for var in parts}
    for var, part in parts.items():
        if len(part.weights) != len(first.weights):
            raise _other_weights(name, first, var, part)
        extents = same_extents[var]
        for weight, like in zip(part.weights, first.weights, strict=True):
            assert weight.struct_info is not None and like.struct_info is not None
            pairs = zip(_defined(weight), _defined(like), strict=False)
            extents.update((extent, other) for extent, other in pairs if extent not in extents)
            info = dims.substitute_extents(weight.struct_info, extents)
            if not structural_equal(info, like.struct_info):
                raise _other_weights(name, first, var, part)
            same[weight] = like
        for binding in part.lifted:
            value = Substitution(same, extents).rewrite(binding.value)
            entries = values.setdefault(structural_hash(value), [])
            equal = (held for each, held in entries if structural_equal(each, value))
            unified = next(equal, None)
            if unified is None:
                unified = binding.var
                entries.append((value, unified))
            same[binding.var] = unified
            holders.setdefault(unified, set()).add(var)
    lifted = {
        var: [each for each in part.lifted if len(holders[same[each.var]]) == len(parts)]
        for var, part in parts.items()
    }
    return same, same_extents, lifted


def _defined(weight: E.Var) -> list[PrimVar]:
    assert weight.struct_info is not None
    return definable_tir_vars_in_struct_info(weight.struct_info)


def _other_weights(
    name: GlobalVar, first: _Part, other_name: GlobalVar, other: _Part
) -> DiagnosticError:
    def told(var: GlobalVar, part: _Part) -> str:
        return f'"{var.name_hint}" has {", ".join(str(w.struct_info) for w in part.weights)}'

    return DiagnosticError(
        "LiftTransformParams: functions with one transformation have the same weights, but "
        f"{told(name, first)}, and {told(other_name, other)}"
    )


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
