"""FuseOpsByPattern: group the calls that match patterns of `relax.dpl`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.dpl.match import extract
from mlcweb.relax.dpl.pattern import CallPattern, DFPattern, TupleGetItemPattern
from mlcweb.relax.transform.grouping import Unit, with_grouped_functions
from mlcweb.relax.transform.normalize import RenamedFunctions
from mlcweb.relax.transform.registration import is_primitive, map_functions, pass_of


@dataclass(slots=True)
class PatternCheckContext:
    """A match, as a check sees it.

    Attributes:
        matched_expr: the call that the whole pattern matched.
        annotated_expr: what the named parts of the pattern matched.
        matched_bindings: the variables of the matched calls, and their values.
        var_usages: for each variable of the function, the variables whose values use it.
        value_to_bound_var: the variable of each value before and at the match.
    """

    matched_expr: E.Value
    annotated_expr: dict[str, E.RelaxExpr | None]
    matched_bindings: dict[E.Var, E.Value]
    var_usages: dict[E.Var, list[E.Var]]
    value_to_bound_var: dict[E.RelaxExpr, E.Var]


@dataclass(slots=True)
class FusionPattern:
    """A pattern of calls to be fused, by name.

    Attributes:
        annotation_patterns: parts of the pattern by the names under which `check` sees them.
        check: tells of a match whether it is to be fused; None: always.
        attrs_getter: gives attributes for the new function from what the named parts matched.
    """

    name: str
    pattern: DFPattern
    annotation_patterns: Mapping[str, DFPattern] = field(default_factory=dict)
    check: Callable[[PatternCheckContext], bool] | None = None
    attrs_getter: Callable[[dict[str, E.RelaxExpr | None]], Mapping[str, object]] | None = None


def FuseOpsByPattern(
    patterns: Sequence[FusionPattern | tuple[Any, ...]],
    bind_constants: bool = True,
    annotate_codegen: bool = False,
    entry_functions: Sequence[str] | None = None,
) -> Pass:
    """Group what matches patterns into functions with the attribute "Composite", a pattern's name.

    Args:
        patterns: each a FusionPattern, or a tuple of its fields: (name, pattern), then the
            patterns of annotated parts by name, a check, and a getter of attributes. Earlier ones
            come first.
        bind_constants: whether constants stay in the new functions; else they become parameters.
        annotate_codegen: whether to wrap each new function in one with the attribute "Codegen",
            the part of the pattern's name before the first point.
        entry_functions: names of the functions to look at; None: all.
    """
    listed = [p if isinstance(p, FusionPattern) else FusionPattern(*p) for p in patterns]

    def transform(mod: IRModule) -> IRModule:
        for fusion in listed:
            mod = _grouped(mod, fusion, bind_constants, entry_functions)
        return with_codegen_functions(mod) if annotate_codegen else mod

    return pass_of("FuseOpsByPattern", transform)


def _grouped(
    mod: IRModule,
    pattern: FusionPattern,
    bind_constants: bool,
    entry_functions: Sequence[str] | None,
) -> IRModule:
    units: dict[E.Var, Unit] = {}
    for var, func in mod.functions.items():
        is_entry = entry_functions is None or var.name_hint in entry_functions
        if is_entry and isinstance(func, E.Function):
            if not is_primitive(func) and "Composite" not in func.attrs:
                _Matching(pattern, func, units).run()
    return with_grouped_functions(mod, units, lift_constants=not bind_constants)


class _Matching:
    """Finds the matches of a pattern in a function, in the order of the text."""

    def __init__(self, pattern: FusionPattern, func: E.Function, units: dict[E.Var, Unit]) -> None:
        self.pattern = pattern
        self.func = func
        self.units = units
        self.values: dict[E.Var, E.Value] = {}
        self.holders: dict[E.RelaxExpr, E.Var] = {}
        self.usages: dict[E.Var, list[E.Var]] | None = None

    def run(self) -> None:
        for block in self.func.body.blocks:
            own: dict[E.Var, E.Value] = {}
            for binding in block.bindings:
                if not isinstance(binding, E.VarBinding):
                    continue
                self.values[binding.var] = own[binding.var] = binding.value
                self.holders.setdefault(binding.value, binding.var)
                if isinstance(block, E.DataflowBlock) and isinstance(binding.value, E.Call):
                    self.match(binding, own)

    def match(self, binding: E.VarBinding, own: Mapping[E.Var, E.Value]) -> None:
        parts = extract(self.pattern.pattern, binding.value, self.values)
        if parts is None:
            return
        matched = {binding.var: binding.value}
        for part, value in parts.items():
            if not isinstance(part, (CallPattern, TupleGetItemPattern)):
                continue
            if isinstance(value, E.Expr) and value in self.holders:
                matched[self.holders[value]] = value
        if any(var in self.units or var not in own for var in matched):
            return
        named = {name: parts.get(p) for name, p in self.pattern.annotation_patterns.items()}
        if self.pattern.check is not None:
            context = PatternCheckContext(
                binding.value, named, matched, self.var_usages(), dict(self.holders)
            )
            if not self.pattern.check(context):
                return
        getter = self.pattern.attrs_getter
        unit = Unit({"Composite": self.pattern.name, **(getter(named) if getter else {})})
        self.units.update(dict.fromkeys(matched, unit))

    def var_usages(self) -> dict[E.Var, list[E.Var]]:
        if self.usages is None:
            self.usages = {}
            for block in self.func.body.blocks:
                for binding in block.bindings:
                    self.usages.setdefault(binding.var, [])
                    for var in used_vars(binding.value):
                        self.usages.setdefault(var, []).append(binding.var)
        return self.usages


def with_codegen_functions(mod: IRModule) -> IRModule:
    """Each function with the attribute "Composite" becomes a local function of a public one that
    names, as its attribute "Codegen", the compiler it is meant for."""
    renamed: dict[GlobalVar, GlobalVar] = {}
    wrapped: dict[GlobalVar, BaseFunc] = {}
    for var, func in mod.functions.items():
        if isinstance(func, E.Function) and "Composite" in func.attrs:
            compiler = func.attrs["Composite"].split(".")[0]
            renamed[var] = GlobalVar(f"{var.name_hint}_{compiler}")
            wrapped[renamed[var]] = _wrapped(func, compiler, renamed[var].name_hint)
    if not wrapped:
        return mod
    rest = {var: func for var, func in mod.functions.items() if var not in renamed}
    calls = RenamedFunctions(IRModule({**mod.functions, **wrapped}), renamed)
    rest_mod = map_functions(mod.with_functions(rest), lambda _, func: calls.visit_expr(func))
    return mod.with_functions({**rest_mod.functions, **wrapped})


def _wrapped(func: E.Function, compiler: str, name: str) -> E.Function:
    inner_params = {param: E.Var(param.name_hint, param.struct_info) for param in func.params}
    body = Substitution(inner_params).rewrite(func.body)
    attrs = {key: value for key, value in func.attrs.items() if key != "Primitive"}
    inner = E.Function(tuple(inner_params.values()), body, None, True, attrs)
    local = E.Var("local_func", inner.struct_info)
    call = E.Call(local, func.params)
    output = E.Var("output", call.struct_info)
    block = E.BindingBlock([E.VarBinding(local, inner), E.VarBinding(output, call)])
    outer = {"Codegen": compiler, "global_symbol": name}
    return E.Function(func.params, E.SeqExpr([block], output), None, True, outer)
