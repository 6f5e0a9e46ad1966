"""MergeCompositeFunctions: functions for external compilers out of composite functions.

The groups are those of TVM: a call joins the groups of its arguments that go to the same compiler,
unless one of its other arguments depends on such a group, which would make a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.transform.dead_code import reachable
from mlcweb.relax.transform.grouping import Unit, with_grouped_functions
from mlcweb.relax.transform.registration import is_primitive, pass_of
from mlcweb.relax.utils import copy_with_new_vars


def MergeCompositeFunctions() -> Pass:
    """Make functions with the attribute "Codegen", each of the calls of composite functions that
    one external compiler can take together. The composite functions become local ones of it."""
    return pass_of("MergeCompositeFunctions", merge_composite_functions)


def compiler_of(func: BaseFunc) -> str:
    """The compiler that a composite function is for: what is before the point in its name."""
    compiler, point, _ = str(func.attrs["Composite"]).partition(".")
    if not point:
        raise TVMError(
            f'A composite function is named compiler.pattern, as "dnnl.conv2d", not "{compiler}"'
        )
    return compiler


def merge_composite_functions(mod: IRModule) -> IRModule:
    units: dict[E.Var, Unit] = {}
    entries: list[GlobalVar] = []
    for var, func in mod.functions.items():
        if isinstance(func, E.Function) and not _is_part(func):
            _Grouping(mod).group(func, units)
        if "global_symbol" in func.attrs:
            entries.append(var)
    grouped = with_grouped_functions(mod, units)
    composites = {var: func for var, func in grouped.functions.items() if var not in mod.functions}
    functions = {var: _with_local_composites(mod, var, func) for var, func in composites.items()}
    new = grouped.with_functions({**grouped.functions, **functions})
    return reachable(new, [*entries, *composites])


def _is_part(func: BaseFunc) -> bool:
    return is_primitive(func) or "Composite" in func.attrs or "Codegen" in func.attrs


@dataclass(slots=True, eq=False)
class _Group:
    """Calls for one compiler (or anything else, one by one), and the groups that it depends on."""

    compiler: str | None = None
    members: list[E.Var] = field(default_factory=list)
    needs: set[_Group] = field(default_factory=set)


class _Grouping:
    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.groups: dict[E.Var, _Group] = {}

    def group(self, func: E.Function, units: dict[E.Var, Unit]) -> None:
        """Add the groups of a function to `units`."""
        for block in func.body.blocks:
            for binding in block.bindings:
                self.groups[binding.var] = self.of(binding, isinstance(block, E.DataflowBlock))
        for each in dict.fromkeys(self.groups.values()):
            if each.compiler is not None:
                units.update(dict.fromkeys(each.members, Unit({"Codegen": each.compiler})))

    def of(self, binding: E.Binding, dataflow: bool) -> _Group:
        value = binding.value
        if isinstance(binding, E.VarBinding) and isinstance(value, E.Var) and dataflow:
            group = self.groups.get(value, _Group())
            group.members.append(binding.var)
            return group
        used = [self.groups[var] for var in used_vars(value) if var in self.groups]
        compiler = self.compiler(value) if dataflow else None
        needed = {need for each in used for need in each.needs}
        joined = [
            each
            for each in dict.fromkeys(used)
            if compiler is not None and each.compiler == compiler and each not in needed
        ]
        group = joined[0] if joined else _Group(compiler)
        for other in joined[1:]:
            self.merge(other, group)
        group.members.append(binding.var)
        for each in used:
            if each is not group and each not in joined:
                group.needs |= {each, *each.needs}
        return group

    def merge(self, old: _Group, new: _Group) -> None:
        new.members += old.members
        new.needs |= old.needs
        for var in old.members:
            self.groups[var] = new
        for each in self.groups.values():
            if old in each.needs:
                each.needs = each.needs - {old} | {new}

    def compiler(self, value: E.Value) -> str | None:
        """The compiler for a call of a composite function; None for anything else."""
        if not isinstance(value, E.Call) or not isinstance(value.op, GlobalVar):
            return None
        func = self.mod.functions[value.op]
        return compiler_of(func) if "Composite" in func.attrs else None


def _with_local_composites(mod: IRModule, name: GlobalVar, func: BaseFunc) -> E.Function:
    """A function of calls of composite functions, with these inside of it. It is public, so that
    a compiler can know it by its name."""
    assert isinstance(func, E.Function)
    own: dict[E.Var, E.RelaxExpr] = {}
    local: dict[GlobalVar, E.Var] = {}
    bindings: list[E.Binding] = []
    for block in func.body.blocks:
        for binding in block.bindings:
            value = Substitution(own).rewrite(binding.value)
            if isinstance(value, E.Call) and isinstance(value.op, GlobalVar):
                callee = value.op
                if callee not in local:
                    composite = copy_with_new_vars(_composite(mod, callee))
                    local[callee] = E.Var("local_func", composite.struct_info)
                    bindings.append(E.VarBinding(local[callee], composite))
                value = E.Call(local[callee], value.args)
            var = E.Var(binding.var.name_hint, binding.var.struct_info)
            own[binding.var] = var
            bindings.append(E.VarBinding(var, value))
    result = Substitution(own).rewrite(func.body.body)
    body = E.SeqExpr([E.BindingBlock(bindings)], result)
    return E.Function(
        func.params, body, None, True, {**func.attrs, "global_symbol": name.name_hint}
    )


def _composite(mod: IRModule, name: GlobalVar) -> E.Function:
    func = mod.functions[name]
    assert isinstance(func, E.Function)
    return func.without_attr("Primitive")
