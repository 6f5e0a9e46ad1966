"""Rewriting what patterns match."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import remove_all_unused, used_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.dpl.context import PatternContext
from mlcweb.relax.dpl.match import extract
from mlcweb.relax.dpl.order import in_order_of_use
from mlcweb.relax.dpl.pattern import DFPattern
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.normalize import all_same

Rewriter = Callable[[E.RelaxExpr, dict[DFPattern, E.RelaxExpr]], E.RelaxExpr]


def rewrite_call(pattern: DFPattern, rewriter: Rewriter, func: E.Function) -> E.Function:
    """`func` with what matches a pattern rewritten, and what that leaves unused dropped.

    Args:
        rewriter: `(expr, matchings) -> expr`, where `matchings` says what each part of the pattern
            stands for. To leave an expression as it is, return it.
    """
    new = _Rewriting(pattern, rewriter).visit_expr(func)
    return func if new is func else remove_all_unused(new)


class _Rewriting(PyExprMutator):
    def __init__(self, pattern: DFPattern, rewriter: Rewriter) -> None:
        super().__init__()
        self.pattern = pattern
        self.rewriter = rewriter
        self.values: dict[E.Var, E.Value] = {}
        self.holders: dict[int, E.Var] = {}

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        super().visit_var_binding_(binding)
        var = self.get_var_remap(binding.var)
        value = self.lookup_binding(var)
        assert value is not None
        self.values[var] = value
        if isinstance(value, (E.Call, E.TupleGetItem, E.Tuple)):
            self.holders.setdefault(id(value), var)

    def rewritten(self, expr: E.Value) -> E.Value:
        found = extract(self.pattern, expr, self.values)
        if found is None:
            return expr
        new = self.rewriter(
            expr, {part: self.holders.get(id(value), value) for part, value in found.items()}
        )
        if not isinstance(new, E.Expr):
            raise TVMError(f"A rewriter returns an expression, not {new!r}")
        return self.inlined(new) if isinstance(new, E.SeqExpr) else new

    def inlined(self, seq: E.SeqExpr) -> E.Value:
        """What a sequence gives, after its bindings, which are emitted here."""
        known: dict[E.Var, E.RelaxExpr] = {}
        result: E.Value = seq.body
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        if bindings and bindings[-1].var is result and isinstance(bindings[-1], E.VarBinding):
            result = bindings.pop().value
        for binding in bindings:
            value = Substitution(known, {}).rewrite(binding.value)
            name = binding.var.name_hint
            known[binding.var] = (
                self.builder_.match_cast(value, binding.struct_info, name)
                if isinstance(binding, E.MatchCast)
                else self.builder_.emit(value, name)
            )
        return Substitution(known, {}).rewrite(result)

    def visit_call_(self, call: E.Call) -> E.Value:
        return self.rewritten(super().visit_call_(call))

    def visit_tuple_(self, value: E.Tuple) -> E.Value:
        return self.rewritten(super().visit_tuple_(value))

    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> E.Value:
        return self.rewritten(super().visit_tuple_getitem_(value))


def rewrite_bindings(
    ctx: PatternContext,
    rewriter: Callable[[dict[DFPattern, E.Var], dict[E.Var, E.Value]], Mapping[E.Var, E.Value]],
    func: E.Function,
) -> E.Function:
    """`func` with the bindings that the patterns of a context match rewritten, until none matches
    or nothing changes.

    Args:
        rewriter: `(matchings, bindings) -> {variable: expression}`: the variables that the
            patterns stand for, and the value of each variable of the block.
    """
    mutator = _Normalizing()
    blocks: list[E.BindingBlock] = []
    for block in func.body.blocks:
        while isinstance(block, E.DataflowBlock):
            found = ctx.match_dfb(block)
            if found is None:
                break
            values = {binding.var: binding.value for binding in block.bindings}
            new = _replaced(block, rewriter(found, values))
            if new is block:
                break
            block = mutator.visit_binding_block(new)
        blocks.append(block)
    if all_same(blocks, func.body.blocks):
        return func
    body = E.SeqExpr(blocks, mutator.visit_expr(func.body.body))
    return remove_all_unused(replace(func, body=body))


class _Normalizing(PyExprMutator):
    """Gives calls inside of calls variables of their own; one for each call, however often a
    rewriter has used it."""

    def __init__(self) -> None:
        super().__init__()
        self.shared: dict[int, tuple[E.Call, E.Var]] = {}

    def visit_call_(self, call: E.Call) -> E.Value:
        args = [self.argument(arg) for arg in call.args]
        if all_same(args, call.args):
            return super().visit_call_(call)
        return super().visit_call_(E.Call(call.op, args, call.attrs, call.sinfo_args))

    def argument(self, value: E.RelaxExpr) -> E.RelaxExpr:
        if isinstance(value, E.Tuple):
            fields = [self.argument(item) for item in value.fields]
            return value if all_same(fields, value.fields) else E.Tuple(fields)
        if not isinstance(value, E.Call):
            return value
        if id(value) not in self.shared:  # the call is kept as well, so that its id stays its own
            self.shared[id(value)] = value, self.builder_.emit(self.visit_expr(value))
        return self.shared[id(value)][1]


def _replaced(block: E.DataflowBlock, changes: Mapping[E.Var, E.Value]) -> E.DataflowBlock:
    """A block with other values for some variables, without the bindings this leaves unused. New
    values may use what was bound later."""
    bindings = [
        E.VarBinding(binding.var, changes[binding.var], span=binding.span)
        if binding.var in changes and changes[binding.var] is not binding.value
        else binding
        for binding in block.bindings
    ]
    if all_same(bindings, block.bindings):
        return block
    needed: set[E.Var] = set()
    kept = []
    for binding in reversed(bindings):
        if not isinstance(binding.var, E.DataflowVar) or binding.var in needed:
            kept.append(binding)
            needed.update(used_vars(binding.value))
    kept.reverse()
    order = in_order_of_use([[binding] for binding in kept])
    return E.DataflowBlock([kept[place] for place in order], span=block.span)
