"""Rewriting what patterns match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Replacement
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import contains_impure_call, remove_all_unused, used_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.dpl.context import PatternContext
from mlcweb.relax.dpl.match import Bound, extract
from mlcweb.relax.dpl.order import in_order_of_use
from mlcweb.relax.dpl.pattern import (
    CallPattern,
    DFPattern,
    TupleGetItemPattern,
    TuplePattern,
)  # fmt: skip
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.normalize import all_same

_COMPUTED = E.Call, E.TupleGetItem, E.Tuple

Rewriter = Callable[[E.RelaxExpr, dict[DFPattern, E.RelaxExpr]], E.RelaxExpr]


def rewrite_call(pattern: DFPattern, rewriter: Rewriter, func: E.Function) -> E.Function:
    """`func` with what matches a pattern rewritten, and what that leaves unused dropped.

    The fields of a tuple pattern may also be values that stand by themselves, if nothing has used
    them by the time that all are there. A match has no side effects between its parts.

    Args:
        rewriter: `(expr, matchings) -> expr`, where `matchings` says which value each part of the
            pattern stands for: an expression, also where a variable is bound to it. To leave an
            expression as it is, return it.
    """
    return rewritten_once(pattern, rewriter, func, None)


def rewritten_once(
    pattern: DFPattern, rewriter: Rewriter, func: E.Function, mod: IRModule | None
) -> E.Function:
    """As `rewrite_call`, for a function of a module."""
    new = _Rewriting(pattern, rewriter, mod).visit_expr(func)
    if isinstance(pattern, TuplePattern):
        new = _ImplicitTuples(pattern, rewriter, mod).visit_expr(new)
    return func if new is func else remove_all_unused(new, mod)


class _Matching(PyExprMutator):
    """Knows, at each binding, the values before it that a match may include."""

    def __init__(self, pattern: DFPattern, rewriter: Rewriter, mod: IRModule | None) -> None:
        super().__init__(mod)
        self.pattern = pattern
        self.rewriter = rewriter
        self.mod = mod
        self.values: dict[E.Var, E.Value] = {}
        self.holders: dict[E.Value, E.Var] = {}

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        super().visit_var_binding_(binding)
        var = self.get_var_remap(binding.var)
        value = self.lookup_binding(var)
        assert value is not None
        if contains_impure_call(value, functions=self.mod):
            self.values.clear()
        self.values[var] = value
        if isinstance(value, _COMPUTED):
            self.holders.setdefault(value, var)

    def holder(self, value: object) -> E.Var | None:
        """The variable that a value is bound to."""
        return self.holders.get(value) if isinstance(value, _COMPUTED) else None

    def made_of(self, expr: E.Value, bound: Bound) -> E.Value:
        """What the rewriter makes of an expression. A sequence gives its bindings up to here."""
        new = self.rewriter(expr, dict(bound))
        if not isinstance(new, E.Expr):
            raise TVMError(f"A rewriter returns an expression, not {new!r}")
        if new is not expr:  # values that are computed already are not computed again
            new = Replacement(self.holder).rewrite(new)
        return self.inlined(new) if isinstance(new, E.SeqExpr) else new

    def inlined(self, seq: E.SeqExpr) -> E.Value:
        """What a sequence gives, after its bindings, which are emitted here."""
        definitions: dict[E.Var, E.RelaxExpr] = {}
        result: E.Value = seq.body
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        if bindings and bindings[-1].var is result and isinstance(bindings[-1], E.VarBinding):
            result = bindings.pop().value
        for binding in bindings:
            value = Substitution(definitions, {}).rewrite(binding.value)
            name = binding.var.name_hint
            definitions[binding.var] = (
                self.builder_.match_cast(value, binding.struct_info, name)
                if isinstance(binding, E.MatchCast)
                else self.builder_.emit(value, name)
            )
        return Substitution(definitions, {}).rewrite(result)


class _Rewriting(_Matching):
    """Rewrites what the whole pattern matches."""

    def rewritten(self, expr: E.Value) -> E.Value:
        matches = extract(self.pattern, expr, self.values)
        return expr if matches is None else self.made_of(expr, matches)

    def visit_call_(self, call: E.Call) -> E.Value:
        return self.rewritten(super().visit_call_(call))

    def visit_tuple_(self, value: E.Tuple) -> E.Value:
        return self.rewritten(super().visit_tuple_(value))

    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> E.Value:
        return self.rewritten(super().visit_tuple_getitem_(value))


class _ImplicitTuples(_Matching):
    """Rewrites values that together are what the fields of a tuple pattern match."""

    pattern: TuplePattern

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        super().visit_var_binding_(binding)
        var = self.get_var_remap(binding.var)
        for fields in self.candidates(var):
            values = E.Tuple([self.values[field] for field in fields])
            matches = extract(self.pattern, values, self.values)
            if matches is None or not self.unused(fields, matches):
                continue
            new = self.made_of(values, matches)
            if new is not values:
                self.replace(fields, new)
                return

    def candidates(self, last: E.Var) -> Iterator[tuple[E.Var, ...]]:
        """Variables for the fields, the last of which is the one just bound; late ones first."""
        fitting = [
            [
                var
                for var in reversed(self.values)
                if not isinstance(self.values[var], E.Var)
                and extract(field, self.values[var], self.values) is not None
            ]
            for field in self.pattern.fields
        ]
        for backwards in product(*reversed(fitting)):
            if last in backwards and len(set(backwards)) == len(backwards):
                yield backwards[::-1]

    def unused(self, fields: Sequence[E.Var], bound: Bound) -> bool:
        """Whether nothing but the match itself uses the fields so far."""
        inside = {
            self.holder(value)
            for part, value in bound.items()
            if isinstance(part, (CallPattern, TupleGetItemPattern))
        }
        return not any(
            field in used_vars(value)
            for var, value in self.values.items()
            if var not in inside
            for field in fields
        )

    def replace(self, fields: Sequence[E.Var], new: E.Value) -> None:
        if not isinstance(new, E.Tuple):
            whole = self.builder_.emit(new)
            new = E.Tuple([E.TupleGetItem(whole, index) for index in range(len(fields))])
        for old, value in self.in_order(dict(zip(fields, new.fields, strict=True))):
            del self.values[old]
            if isinstance(value, E.Var) and isinstance(value, type(old)):
                self.set_var_remap(old, value)
                continue
            assert isinstance(value, E.Expr)
            var = replace(old, struct_info=self.builder_.context.struct_info(value))
            self.builder_.emit_normalized(E.VarBinding(var, value))
            self.set_var_remap(old, var)

    def in_order(self, values: dict[E.Var, E.RelaxExpr]) -> list[tuple[E.Var, E.RelaxExpr]]:
        """Values for variables, in the order in which these are bound."""
        return [(var, values[var]) for var in self.values if var in values]


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
            bound = ctx.match_dfb(block)
            if bound is None:
                break
            values = {binding.var: binding.value for binding in block.bindings}
            new = _replaced(block, rewriter(bound, values))
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
