"""CanonicalizeBindings: variables that only rename another, or take a known field, go away."""

from __future__ import annotations

from mlcweb.ir.module import GlobalVar, IRModule
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
from mlcweb.relax.binding import Refinement, Substitution
from mlcweb.relax.deduction import with_known_result
from mlcweb.relax.normalize import all_same
from mlcweb.relax.transform.dataflow_blocks import with_local_variables
from mlcweb.relax.transform.registration import map_functions, pass_of
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar

PASS = BaseCheckResult.PASS


def CanonicalizeBindings() -> Pass:
    """Use what a variable stands for in its place: `b = a`, a field of a tuple that is built in
    sight, a match_cast that says nothing new. Extents that a match_cast defines are replaced by
    those that its value is known to have. Where a dataflow block's result renames a variable of the
    block, that variable becomes the result."""
    return pass_of("CanonicalizeBindings", canonicalize, 1)


def canonicalize(mod: IRModule) -> IRModule:
    return map_functions(mod, _canonical)


def _canonical(var: GlobalVar, func: E.Function) -> E.Function:
    body = _Canonical().rewrite(_KnownExtents(func).rewrite(func.body))
    return func if body is func.body else with_known_result(replace(func, body=body))


class _KnownExtents(Refinement):
    """Replaces the extents that a match_cast defines by those that its value has."""

    def __init__(self, func: E.Function) -> None:
        super().__init__({}, {})
        self.known: dict[PrimVar, PrimExpr] = {}
        self.values = self.known
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
        outside = dict(self.known)
        new = self.rewrite(branch)
        self.known.clear()
        self.known.update(outside)
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
                self.known[var] = extents[var]
            self.defined.add(var)
        return super().match_cast(binding)


class _Canonical(Mutator):
    def __init__(self) -> None:
        self.stands_for: dict[E.Var, E.Var] = {}
        self.tuples: dict[E.Var, E.Tuple] = {}

    @on(E.Var, E.DataflowVar)
    def variable(self, var: E.Var) -> E.Expr:
        return self.stands_for.get(var, var)

    @on(E.Function)
    def function(self, func: E.Function) -> Node:
        body = self.rewrite(func.body)
        return func if body is func.body else replace(func, body=body)

    @on(E.TupleGetItem)
    def field(self, value: E.TupleGetItem) -> E.RelaxExpr:
        inside = self.rewrite(value.tuple_value)
        known = inside if isinstance(inside, E.Tuple) else self.tuples.get(inside)
        if known is not None:
            return known.fields[value.index]
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
        return with_local_variables(new)

    def block(self, block: E.BindingBlock) -> E.BindingBlock:
        new = [self.binding(binding) for binding in block.bindings]
        bindings = self.results_first([binding for binding in new if binding is not None])
        return (
            block
            if all_same(bindings, block.bindings)
            else replace(block, bindings=tuple(bindings))
        )

    def binding(self, binding: E.Binding) -> E.Binding | None:
        """A binding in canonical form; None where another variable stands for what it binds."""
        value = self.rewrite(binding.value)
        if isinstance(binding, E.MatchCast):
            known = getattr(value, "struct_info", None)
            if known is None or struct_info_base_check(binding.struct_info, known) != PASS:
                return binding if value is binding.value else replace(binding, value=value)
        if isinstance(value, E.Var) and self.may_stand_for(value, binding.var):
            self.stands_for[binding.var] = value
            return None
        if isinstance(value, E.Tuple):
            self.tuples[binding.var] = value
        if value is binding.value and isinstance(binding, E.VarBinding):
            return binding
        return E.VarBinding(binding.var, value, span=binding.span)

    def results_first(self, bindings: list[E.Binding]) -> list[E.Binding]:
        """Bind a result where the variable that it renames was bound, if it is one of the block."""
        renamed: dict[E.Var, E.Var] = {}
        rest = []
        for binding in bindings:
            value = binding.value
            if (
                isinstance(value, E.DataflowVar)
                and value not in renamed
                and value.struct_info == binding.var.struct_info
            ):
                renamed[value] = binding.var
            else:
                rest.append(binding)
        if not renamed:
            return bindings
        self.stands_for.update(renamed)
        for old, new in renamed.items():
            if old in self.tuples:
                self.tuples[new] = self.tuples[old]
        rename = Substitution(renamed)
        return [
            replace(
                binding,
                var=renamed.get(binding.var, binding.var),
                value=rename.rewrite(binding.value),
            )
            for binding in rest
        ]

    def may_stand_for(self, value: E.Var, var: E.Var) -> bool:
        """Whether a value can be used wherever a variable is."""
        if isinstance(value, E.DataflowVar) and not isinstance(var, E.DataflowVar):
            return False
        return value is var or value.struct_info == var.struct_info
