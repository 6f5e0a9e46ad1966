"""CanonicalizeBindings: variables that only rename another, or take a known field, go away."""

from __future__ import annotations

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import BaseCheckResult, struct_info_base_check
from mlcweb.relax.binding import Substitution
from mlcweb.relax.normalize import all_same
from mlcweb.relax.transform.dataflow_blocks import with_local_variables
from mlcweb.relax.transform.registration import map_functions, pass_of

PASS = BaseCheckResult.PASS


def CanonicalizeBindings() -> Pass:
    """Use what a variable stands for in its place: `b = a`, a field of a tuple that is built in
    sight, a match_cast that says nothing new. Where a dataflow block's result renames a variable
    of the block, that variable becomes the result."""
    return pass_of("CanonicalizeBindings", canonicalize, 1)


def canonicalize(mod: IRModule) -> IRModule:
    return map_functions(mod, _canonical)


def _canonical(var: GlobalVar, func: E.Function) -> E.Function:
    body = _Canonical().rewrite(func.body)
    return func if body is func.body else replace(func, body=body)


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
