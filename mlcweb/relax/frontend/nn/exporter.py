"""Tracing: the methods of a model, called with placeholders, become functions of a module."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.frontend.nn import spec as S
from mlcweb.relax.frontend.nn.effects import Effect, IOEffect
from mlcweb.relax.frontend.nn.tensor import Extent, Parameter, Tensor, unwrapped
from mlcweb.relax.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar

Named = list[tuple[str, Parameter]]


def export(spec: S.ModuleSpec, debug: bool) -> tuple[IRModule, Named]:
    """The module of the methods, and the parameters in the order in which methods take them."""
    module = spec.module
    params = list(module.named_parameters())
    effects = list(module.named_effects())
    if debug:
        effects.insert(0, ("", IOEffect()))
    builder = BlockBuilder()
    if effects:
        _initial_effects(builder, effects)
    for name, method in zip(spec.method_names, spec.method_specs, strict=True):
        _Method(builder, method, params, effects).emit(name)
    mod = builder.finalize()
    for func in mod.functions.values():
        if isinstance(func, E.Function):
            refuse_ill_formed(func)
    return mod, params


def _initial_effects(builder: BlockBuilder, effects: list[tuple[str, Effect]]) -> None:
    with builder.function("_initialize_effect", []):
        with builder.dataflow():
            states = [var for name, effect in effects for var in effect.emit_init(name, builder)]
            result = builder.emit_output(builder.emit(E.Tuple(states)))
        builder.emit_func_output(result)


class _Method:
    """Traces one method into a function."""

    def __init__(
        self,
        builder: BlockBuilder,
        spec: S.MethodSpec,
        params: Named,
        effects: list[tuple[str, Effect]],
    ) -> None:
        self.builder = builder
        self.spec = spec
        self.params = params if spec.param_mode != "none" else []
        self.effects = effects if spec.effect_mode != "none" else []
        self.extents: dict[str, PrimVar] = {}
        """The symbolic extents of inputs, by name."""

    def emit(self, name: str) -> None:
        names, specs = self.spec.arg_names, self.spec.arg_specs
        inputs = [self.input(n, s) for n, s in zip(names, specs, strict=True)]
        states = [effect.create(name) for name, effect in self.effects]
        flat = [var for state in states for var in state]
        effects = self.bundled("packed_effects", flat, self.spec.effect_mode)
        weights = _variables(self.params)
        params = self.bundled("packed_params", weights, self.spec.param_mode)
        own = [*(var for var, _ in inputs), *effects]
        attrs = {"num_input": len(own)}
        before = [param._expr for _, param in self.params]
        with self.builder.function(name, [*own, *params], attrs):
            with self.builder.dataflow():
                effect_states = self.unbundled(flat, effects, self.spec.effect_mode)
                self.unbundle(weights, params, self.spec.param_mode)
                for (_, effect), state in zip(self.effects, states, strict=True):
                    effect.set_state([effect_states.pop(0) for _ in state])
                try:
                    args = [
                        self.argument(s, var, extent)
                        for s, (var, extent) in zip(specs, inputs, strict=True)
                    ]
                    result = unwrapped(self.spec.method(*args))
                finally:
                    IOEffect.current = None
                    for (_, param), expr in zip(self.params, before, strict=True):
                        param._expr = expr
                if self.effects:
                    after = [var for _, effect in self.effects for var in effect.finalize()]
                    result = E.Tuple((result, E.Tuple(after)))
                output = self.builder.emit_output(result)
            self.builder.emit_func_output(output)

    def shape(self, shape: Sequence[Extent]) -> list[int | PrimExpr]:
        """A shape of an input, with symbolic extents for names."""
        return [
            self.extents.setdefault(n, PrimVar(n, "int64")) if isinstance(n, str) else n
            for n in shape
        ]

    def input(self, name: str, spec: S.Argument) -> tuple[E.Var, PrimExpr | None]:
        """A parameter of the function; of an integer also the extent that it is."""
        if isinstance(spec, S.Int):
            extent = PrimVar(name, "int64")
            return E.Var(name, ShapeStructInfo([extent])), extent
        return E.Var(name, self.info(spec)), None

    def info(self, spec: S.Argument) -> StructInfo:
        if isinstance(spec, S.Tensor):
            return TensorStructInfo(self.shape(spec.shape), spec.dtype)
        if isinstance(spec, S.Tuple):
            return TupleStructInfo([self.info(each) for each in spec.elements])
        if isinstance(spec, S.Object):
            return ObjectStructInfo()
        raise TypeError(f"An element of a tuple is a tensor, not {spec!r}")

    def argument(self, spec: S.Argument, var: E.Var, extent: PrimExpr | None) -> object:
        """What the method takes for a parameter of the function."""
        if extent is not None:
            return extent
        if isinstance(spec, S.Tuple):
            fields = [
                self.argument(
                    each,
                    self.builder.emit(E.TupleGetItem(var, index), f"{spec.name}_{index}"),
                    None,
                )
                for index, each in enumerate(spec.elements)
            ]
            return fields if isinstance(spec.elements, list) else tuple(fields)
        if isinstance(spec, S.Object):
            return spec.object_type(_expr=var, _name=var.name_hint)
        return Tensor(_expr=var)

    def bundled(self, name: str, variables: list[E.Var], mode: str) -> list[E.Var]:
        """The parameters of the function for several values."""
        if mode != "packed":
            return variables
        return [E.Var(name, TupleStructInfo([var.struct_info for var in variables]))]

    def unbundled(self, variables: list[E.Var], params: list[E.Var], mode: str) -> list[E.Var]:
        """The values, each in a variable."""
        if mode != "packed":
            return list(params)
        return [
            self.builder.emit(E.TupleGetItem(params[0], index), var.name_hint)
            for index, var in enumerate(variables)
        ]

    def unbundle(self, weights: list[E.Var], params: list[E.Var], mode: str) -> None:
        """Let the parameters of the model stand for those of the function."""
        values = self.unbundled(weights, params, mode)
        for (_, param), value in zip(self.params, values, strict=True):
            param._expr = value


def _variables(params: Named) -> list[E.Var]:
    """New variables for parameters. Each makes its symbolic extents by itself: those of one name
    are one extent, which no other function of the module shares."""
    extents: dict[str, PrimVar] = {}
    return [
        E.Var(
            name,
            TensorStructInfo(
                [
                    extents.setdefault(n.name, PrimVar(n.name, "int64"))
                    if isinstance(n, PrimVar)
                    else n
                    for n in param.shape
                ],
                param.dtype,
            ),
        )
        for name, param in params
    ]
