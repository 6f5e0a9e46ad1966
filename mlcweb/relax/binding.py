"""Functions with some of their parameters, or symbolic extents, given."""

from __future__ import annotations

from collections.abc import Mapping

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, NodeType, on
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import FAIL_L0, is_base_of, unify
from mlcweb.relax.analysis.variables import free_symbolic_vars, symbolic_vars_used
from mlcweb.relax.constant_data import host_array
from mlcweb.relax.struct_info import StructInfo, extent
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


class Substitution(Mutator):
    """Replaces variables and symbolic extents. Variables whose struct info changes are renewed."""

    def __init__(
        self,
        variables: Mapping[E.Var, E.RelaxExpr],
        values: Mapping[PrimVar, PrimExpr] | None = None,
    ) -> None:
        self.variables: dict[E.Var, E.RelaxExpr] = dict(variables)
        self.values = values or {}

    def rewrite(self, node: NodeType) -> NodeType:
        if isinstance(node, (PrimExpr, StructInfo)):
            return dims.substitute_extents(node, self.values)
        return super().rewrite(node)

    @on(E.Var, E.DataflowVar)
    def variable(self, var: E.Var) -> E.RelaxExpr:
        return self.variables.get(var, var)

    def definition(self, var: E.Var) -> E.Var:
        """What stands for a variable where it is defined."""
        if var.struct_info is not None and var not in self.variables:
            info = self.rewrite(var.struct_info)
            if info is not var.struct_info:
                self.variables[var] = replace(var, struct_info=info)
        replacement = self.variables.get(var, var)
        return replacement if isinstance(replacement, E.Var) else var

    @on(E.VarBinding)
    def binding(self, binding: E.VarBinding) -> Node:
        var = self.definition(binding.var) if isinstance(binding.value, E.Function) else None
        value = self.rewrite(binding.value)
        var = var or self.definition(binding.var)
        same = var is binding.var and value is binding.value
        return binding if same else E.VarBinding(var, value, span=binding.span)

    @on(E.MatchCast)
    def match_cast(self, binding: E.MatchCast) -> Node:
        value, info = self.rewrite(binding.value), self.rewrite(binding.struct_info)
        var = self.definition(binding.var)
        same = var is binding.var and value is binding.value and info is binding.struct_info
        return binding if same else E.MatchCast(var, value, info, span=binding.span)

    @on(E.Function)
    def function(self, func: E.Function) -> Node:
        params = tuple(self.definition(param) for param in func.params)
        body = self.rewrite(func.body)
        ret = self.rewrite(func.ret_struct_info)
        return replace(func, params=params, body=body, ret_struct_info=ret)


class Refinement(Substitution):
    """A substitution after which more may be known of the variables whose values it changes."""

    @on(E.VarBinding)
    def binding(self, binding: E.VarBinding) -> Node:
        new = super().binding(binding)
        var = new.var if new is binding else refined(new.var, new.value)
        if var is new.var:
            return new
        self.variables[binding.var] = var
        return replace(new, var=var)


def refined(var: E.Var, value: E.Value) -> E.Var:
    """`var`, or one in its place that says more, where more is known of the value bound to it."""
    old = var.struct_info
    if old is None or isinstance(value, E.Function):
        return var
    if isinstance(value, E.Call) and isinstance(value.op, GlobalVar):
        return var  # only the module knows what it gives
    info = value.struct_info
    return var if info == old or not is_base_of(old, info) else replace(var, struct_info=info)


def bind_params(func: E.Function, binding_map: E.ByParameter) -> E.Function:
    """`func` with parameters replaced by values: expressions, arrays or numbers.

    The keys are parameters or their names. Symbolic extents that the values determine are replaced
    as well. Raises: DiagnosticError for an unknown name, or a value that does not fit.
    """
    bound: dict[E.Var, E.Expr] = {}
    values: dict[PrimVar, PrimExpr] = {}
    for key, value in binding_map.items():
        param = _parameter(func, key)
        value = value if isinstance(value, E.Expr) else E.Constant(host_array(value))
        _unify(param, value, values)
        bound[param] = value
    rest = [param for param in func.params if param not in bound]
    new = Refinement(bound, values).rewrite(replace(func, params=tuple(rest)))
    return E.Function(new.params, new.body, None, func.is_pure, func.attrs, span=func.span)


def _parameter(func: E.Function, key: E.Var | str) -> E.Var:
    for param in func.params:
        if param is key or (isinstance(key, str) and param.name_hint == key):
            return param
    names = ", ".join(param.name_hint for param in func.params)
    raise DiagnosticError(f'The function has no parameter "{key}"; it has {names}')


def _unify(param: E.Var, value: E.Expr, values: dict[PrimVar, PrimExpr]) -> None:
    info = param.struct_info
    if info is not None and unify(info, value.struct_info, values) == FAIL_L0:
        raise DiagnosticError(
            f'The value for the parameter "{param.name_hint}" is {value.struct_info}, not a {info}'
        )


def bind_symbolic_vars(func: E.Function, binding_map: E.ByExtent) -> E.Function:
    """`func` with symbolic extents (by variable or name) replaced by integers or expressions.

    Raises:
        DiagnosticError: a name that no extent has, or several have; an extent that is given twice;
            an expression with an extent that no parameter of the new function defines.
    """
    there = symbolic_vars_used(func)
    values: dict[PrimVar, PrimExpr] = {}
    for key, value in binding_map.items():
        symbols = [var for var in there if var is key or (isinstance(key, str) and var.name == key)]
        if not symbols:
            names = ", ".join(var.name for var in there) or "none"
            raise DiagnosticError(f'The function has no symbolic extent "{key}"; it has {names}')
        if len(symbols) > 1:
            raise DiagnosticError(
                f'{len(symbols)} symbolic extents are named "{key}": give variables'
            )
        if symbols[0] in values:
            raise DiagnosticError(f'The symbolic extent "{symbols[0].name}" is given twice')
        values[symbols[0]] = extent(value)
    new = Substitution({}, values).rewrite(func)
    before = free_symbolic_vars(func)
    for var in free_symbolic_vars(new):
        if var not in before:
            raise DiagnosticError(f'No parameter defines the extent "{var.name}" after the change')
    return new


E.Function.bind_params = bind_params
E.Function.bind_symbolic_vars = bind_symbolic_vars
