"""Turning groups of bindings into functions of their own, and calls of these.

Fusing by rules and fusing by patterns differ in the groups that they find; what becomes of a group
is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import free_symbolic_vars, used_vars
from mlcweb.relax.block_builder import BlockBuilder, NameSupply
from mlcweb.relax.dpl.order import in_order_of_use
from mlcweb.relax.normalize import all_same
from mlcweb.relax.struct_info import ShapeStructInfo
from mlcweb.relax.utils import with_own_extents


@dataclass(slots=True, eq=False)
class Unit:
    """Bindings of a dataflow block that become one call. `attrs` are for the new function."""

    attrs: Mapping[str, object] = field(default_factory=dict)
    bindings: list[E.VarBinding] = field(default_factory=list)


def with_grouped_functions(
    mod: IRModule,
    units: Mapping[E.Var, Unit],
    lift_constants: bool = True,
) -> IRModule:
    """The module in which each unit of bindings is a call of a new function.

    Args:
        units: the unit of each variable that is to be computed by a new function.
        lift_constants: whether constants become parameters of the new functions.
    """
    builder = BlockBuilder(mod)
    for var, func in mod.functions.items():
        if isinstance(func, E.Function):
            new = _GroupedBlocks(builder, units, lift_constants).function(func)
            if new is not func:
                builder.update_func(var, new)
    return IRModule(builder.get().functions, mod.attrs)


class _GroupedBlocks:
    def __init__(
        self, builder: BlockBuilder, units: Mapping[E.Var, Unit], lift_constants: bool
    ) -> None:
        self.builder = builder
        self.units = units
        self.lift_constants = lift_constants

    def function(self, func: E.Function) -> E.Function:
        blocks = tuple(
            self.block(block) if isinstance(block, E.DataflowBlock) else block
            for block in func.body.blocks
        )
        if all_same(blocks, func.body.blocks):
            return func
        return replace(func, body=replace(func.body, blocks=blocks))

    def block(self, block: E.DataflowBlock) -> E.DataflowBlock:
        parts: list[Unit | E.Binding] = []
        for binding in block.bindings:
            unit = self.units.get(binding.var)
            if unit is None or not isinstance(binding, E.VarBinding):
                parts.append(binding)
                continue
            unit.bindings.append(binding)
            if len(unit.bindings) == 1:
                parts.append(unit)
        if not any(isinstance(part, Unit) for part in parts):
            return block
        place = {id(binding): index for index, binding in enumerate(block.bindings)}
        members = sorted(map(_members, parts), key=lambda bindings: place[id(bindings[-1])])
        bindings: list[E.Binding] = []
        for index in in_order_of_use(members):
            unit = self.units.get(members[index][0].var)
            bindings.extend(members[index] if unit is None else self.call(unit, block))
        return E.DataflowBlock(bindings, span=block.span)

    def call(self, unit: Unit, block: E.DataflowBlock) -> list[E.Binding]:
        """The bindings that stand for a unit of a block: a call, and the fields of its result if
        several."""
        results = results_of(unit, block)
        grouped = grouped_function(unit, results, self.lift_constants)
        name = grouped.name
        if "Codegen" in unit.attrs:
            name = f"{self.builder.unique_function_name(name)}_{unit.attrs['Codegen']}"
        name = self.builder.add_func(grouped.func, name)
        call = E.Call(name, grouped.arguments)
        E.remember(call, self.builder.context.call(call))
        if len(results) == 1:
            return [E.VarBinding(results[0], call)]
        whole = E.DataflowVar(self.builder.get_unique_name("lv"), call.struct_info)
        places = {var: place for place, var in enumerate(results)}
        fields = [
            E.VarBinding(var, E.TupleGetItem(whole, places[var]))
            for var in (binding.var for binding in unit.bindings)
            if var in places
        ]
        return [E.VarBinding(whole, call), *fields]


def _members(part: Unit | E.Binding) -> Sequence[E.Binding]:
    return part.bindings if isinstance(part, Unit) else (part,)


def results_of(unit: Unit, block: E.DataflowBlock) -> list[E.Var]:
    """The variables of a unit that are used outside of it: first those that leave the block, then
    the others in the order in which the block uses them; the last variable if there is none."""
    own = {binding.var: None for binding in unit.bindings}
    others = [binding for binding in block.bindings if binding.var not in own]
    leaving = [var for var in own if not isinstance(var, E.DataflowVar)]
    used = [var for binding in others for var in used_vars(binding.value) if var in own]
    return list(dict.fromkeys([*leaving, *used])) or [unit.bindings[-1].var]


@dataclass(slots=True)
class GroupedFunction:
    """A function made of a unit: its name, and the arguments with which it is called."""

    func: E.Function
    name: str
    arguments: list[E.Expr]


class _OwnNames(Mutator):
    """Rewrites values to be in terms of parameters, which are made as they are met."""

    def __init__(self, lift_constants: bool) -> None:
        self.lift_constants = lift_constants
        self.own: dict[E.Var, E.Var] = {}
        self.params: dict[E.Expr, E.Var] = {}
        self.names = NameSupply()
        self.constants = 0

    def parameter(self, value: E.Expr, name: str) -> E.Var:
        if value not in self.params:
            self.params[value] = E.Var(self.names.fresh(name), value.struct_info)
        return self.params[value]

    @on(E.Var, E.DataflowVar)
    def variable(self, var: E.Var) -> E.Var:
        return self.own[var] if var in self.own else self.parameter(var, var.name_hint)

    @on(E.Constant)
    def constant(self, value: E.Constant) -> E.Expr:
        if not self.lift_constants:
            return value
        if value not in self.params:
            self.constants += 1
        return self.parameter(value, f"param_{self.constants - 1}")


def grouped_function(unit: Unit, results: Sequence[E.Var], lift_constants: bool) -> GroupedFunction:
    """The function that computes a unit, in terms of variables of its own."""
    rename = _OwnNames(lift_constants)
    results_names = NameSupply()
    bindings = []
    for binding in unit.bindings:
        value = rename.rewrite(binding.value)
        info = binding.var.struct_info
        if binding.var in results:
            var: E.Var = E.Var(results_names.fresh("gv"), info)
        else:
            var = E.DataflowVar(binding.var.name_hint, info)
        rename.own[binding.var] = var
        bindings.append(E.VarBinding(var, value))
    outputs = [rename.own[var] for var in results]
    body = E.SeqExpr(
        [E.DataflowBlock(bindings)], outputs[0] if len(outputs) == 1 else E.Tuple(outputs)
    )
    params, arguments = list(rename.params.values()), list(rename.params)
    attrs = dict(unit.attrs) if "Codegen" in unit.attrs else {**unit.attrs, "Primitive": 1}
    func = E.Function(params, body, None, True, attrs)
    unknown = free_symbolic_vars(func)
    if unknown:
        params.append(E.Var("tir_vars", ShapeStructInfo(unknown)))
        arguments.append(E.ShapeExpr(unknown))
        func = E.Function(params, body, None, True, attrs)
    return GroupedFunction(with_own_extents(func), function_name(unit.bindings), arguments)


def function_name(bindings: Sequence[E.VarBinding]) -> str:
    """`fused_` and the names of the operators or functions that are called."""
    names = []
    for binding in bindings:
        call = binding.value
        if not isinstance(call, E.Call):
            continue
        callee = call.op
        if isinstance(callee, Op) and callee.name == "relax.call_tir":
            callee = call.args[0]
        if isinstance(callee, GlobalVar):
            names.append(callee.name_hint.removeprefix("fused_"))
        elif isinstance(callee, Op):
            names.append(callee.name.replace(".", "_"))
    return "_".join(["fused", *names])
