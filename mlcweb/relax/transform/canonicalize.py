"""CanonicalizeBindings: variables that only rename another, or take a known field, go away."""

from __future__ import annotations

from mlcweb.ir.module import IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import (
    BaseCheckResult,
    definable_tir_vars_in_struct_info,
    struct_info_base_check,
    unify,
)
from mlcweb.relax.binding import Refinement, Substitution, refined
from mlcweb.relax.deduction import with_known_result
from mlcweb.relax.normalize import all_same
from mlcweb.relax.transform.dataflow_blocks import with_local_variables
from mlcweb.relax.transform.registration import map_functions, pass_of, with_body
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar

PASS = BaseCheckResult.PASS


def CanonicalizeBindings() -> Pass:
    """Use what a variable stands for in its place: `b = a`, a constant, a field of a tuple that is
    built in sight, a match_cast that says nothing new. Extents that a match_cast defines are
    replaced by those that its value is known to have. Where a dataflow block's result renames a
    variable of the block, that variable becomes the result."""
    return pass_of("CanonicalizeBindings", canonicalize, 1)


def canonicalize(mod: IRModule) -> IRModule:
    return map_functions(mod, lambda _, func: canonical(func))


def canonical(func: E.Function) -> E.Function:
    body = _Canonical().rewrite(_KnownExtents(func).rewrite(func.body))
    return func if body is func.body else with_known_result(replace(func, body=body))


class _KnownExtents(Refinement):
    """Replaces the extents that a match_cast defines by those that its value has."""

    def __init__(self, func: E.Function) -> None:
        super().__init__({}, {})
        self.extents: dict[PrimVar, PrimExpr] = {}
        self.values = self.extents
        self.defined = {
            var
            for param in func.params
            if param.struct_info is not None
            for var in definable_tir_vars_in_struct_info(param.struct_info)
        }

    @on(E.If)
    def branches(self, value: E.If) -> Node:
        cond = self.rewrite(value.cond)
        parts = [self.branch(part) for part in (value.true_branch, value.false_branch)]
        same = all_same((cond, *parts), (value.cond, value.true_branch, value.false_branch))
        return value if same else E.If(cond, *parts, span=value.span)

    def branch(self, branch: E.SeqExpr) -> E.SeqExpr:
        outside = dict(self.extents)
        new = self.rewrite(branch)
        self.extents.clear()
        self.extents.update(outside)
        return new

    @on(E.Function)
    def function(self, func: E.Function) -> Node:
        return func

    @on(E.MatchCast)
    def match_cast(self, binding: E.MatchCast) -> Node:
        value, expected = self.rewrite(binding.value), self.rewrite(binding.struct_info)
        actual = getattr(value, "struct_info", None)
        extents: dict[PrimVar, PrimExpr] = {}
        if actual is not None and unify(expected, actual, extents) == BaseCheckResult.FAIL_L0:
            if expected is not binding.struct_info:
                raise ValueError(
                    f"MatchCast statements must be consistent: {binding.var} is cast to "
                    f"{binding.struct_info}, which here is {expected}, from {actual}"
                )
        for var in definable_tir_vars_in_struct_info(expected):
            if var in extents and var not in self.defined:
                self.extents[var] = extents[var]
            self.defined.add(var)
        return super().match_cast(binding)


class _Canonical(Mutator):
    def __init__(self) -> None:
        self.stands_for: dict[E.Var, E.Var] = {}
        self.tuples: dict[E.Var, E.Tuple] = {}
        self.constants: dict[E.Var, E.Constant] = {}
        self.local: set[E.Var] = set()
        """What the block at hand has bound so far."""
        self.used_outside: set[E.Var] = set()
        """Variables that a constant replaced outside of their block; they stay results of it."""
        self.results: dict[E.Var, E.Var] = {}
        """Variables of the dataflow block at hand, and the first result that renames each."""

    @on(E.Var, E.DataflowVar)
    def variable(self, var: E.Var) -> E.Expr:
        var = self.stands_for.get(var, var)
        constant = self.constants.get(var)
        if constant is None:
            return var
        if var not in self.local:
            self.used_outside.add(var)
        return constant

    @on(E.Function)
    def function(self, func: E.Function) -> Node:
        return with_body(func, self.rewrite(func.body))

    @on(E.TupleGetItem)
    def field(self, value: E.TupleGetItem) -> E.RelaxExpr:
        inside = self.rewrite(value.tuple_value)
        tuple_value = inside if isinstance(inside, E.Tuple) else self.tuples.get(inside)
        if tuple_value is not None:
            return tuple_value.fields[value.index]
        return value if inside is value.tuple_value else E.TupleGetItem(inside, value.index)

    @on(E.SeqExpr)
    def sequence(self, seq: E.SeqExpr) -> Node:
        blocks = []
        for block in seq.blocks:
            new = self.block(block)
            if new is block or new.bindings:
                blocks.append(new)
        body = self.rewrite(seq.body)
        new = (
            seq
            if all_same(blocks, seq.blocks) and body is seq.body
            else E.SeqExpr(blocks, body, span=seq.span)
        )
        return with_local_variables(new, self.used_outside)

    def block(self, block: E.BindingBlock) -> E.BindingBlock:
        outside = self.results, self.local
        self.results, self.local = {}, set()
        new = [self.binding(binding) for binding in block.bindings]
        bindings = self.results_first([binding for binding in new if binding is not None])
        self.results, self.local = outside
        return (
            block
            if all_same(bindings, block.bindings)
            else replace(block, bindings=tuple(bindings))
        )

    def binding(self, binding: E.Binding) -> E.Binding | None:
        """A binding in canonical form; None where another variable stands for what it binds."""
        self.local.add(binding.var)
        bound = binding.value
        is_alias = isinstance(bound, E.Var)
        value = self.stands_for.get(bound, bound) if is_alias else self.rewrite(bound)
        if isinstance(binding, E.MatchCast):
            info = getattr(value, "struct_info", None)
            if info is None or struct_info_base_check(binding.struct_info, info) != PASS:
                return binding if value is binding.value else replace(binding, value=value)
        if isinstance(value, E.Var) and self.renames(binding.var, value):
            return None
        if isinstance(value, E.Tuple):
            self.tuples[binding.var] = value
        if isinstance(value, E.Constant):
            self.constants[binding.var] = value
        if value is bound and isinstance(binding, E.VarBinding):
            return binding
        var = self.stands_for[binding.var] = refined(binding.var, value)
        return E.VarBinding(var, value, span=binding.span)

    def renames(self, var: E.Var, value: E.Var) -> bool:
        """Whether another variable is used in place of `var`, to which `value` is bound, or will
        be: a result of the dataflow block takes the place of the variable that it renames."""
        if value is not var and value.struct_info != var.struct_info:
            return False
        if not isinstance(value, E.DataflowVar) or isinstance(var, E.DataflowVar):
            self.stands_for[var] = value
        elif value in self.results:
            self.stands_for[var] = self.results[value]
        else:
            self.results[value] = self.stands_for[value] = var
            self.constants.pop(value, None)
            if value in self.tuples:
                self.tuples[var] = self.tuples[value]
        return True

    def results_first(self, bindings: list[E.Binding]) -> list[E.Binding]:
        """Bind a result where the variable of the block that it renames was bound."""
        renamed = self.results
        if not renamed:
            return bindings
        rename = Substitution(renamed)
        return [
            replace(
                binding,
                var=renamed.get(binding.var, binding.var),
                value=rename.rewrite(binding.value),
            )
            for binding in bindings
        ]
