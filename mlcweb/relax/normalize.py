"""A-normal form: the arguments of a call are variables, constants or tuples of them.

What stands in for a larger argument is a new variable, bound in the block that is being built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, overload

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax.deduction import with_known_result
from mlcweb.tir.function import PrimFunc

if TYPE_CHECKING:
    from mlcweb.relax.block_builder import BlockBuilder

LEAVES = (
    E.Var, E.DataflowVar, E.Constant, E.ShapeExpr, E.PrimValue, E.StringImm, E.DataTypeImm,
    E.ExternFunc, GlobalVar, Op, PrimFunc,
)  # fmt: skip


def is_leaf(value: E.RelaxExpr) -> bool:
    """Whether an expression may be an argument as it is; tuples of leaves may, too."""
    if isinstance(value, E.Tuple):
        return all(map(is_leaf, value.fields))
    return isinstance(value, LEAVES)


def normalized_by_operator(builder: BlockBuilder, call: E.Call) -> E.Call:
    """The call in the form that its operator asks for, by its attribute FNormalize."""
    rule = call.op.get_attr("FNormalize") if isinstance(call.op, Op) else None
    if rule is None:
        return call
    new = rule(builder, call)
    return call if new is call or structural_equal(new, call) else new


class Normalizer:
    """Brings expressions into normal form; new bindings go to the builder's current block."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder
        self.typed: dict[E.Var, E.Var] = {}
        """Stands for variables of which nothing is said: the same, with what they are bound to."""

    @overload
    def __call__(self, value: E.Value) -> E.Value: ...
    @overload
    def __call__(self, value: E.RelaxExpr) -> E.RelaxExpr: ...
    def __call__(self, value: E.RelaxExpr) -> E.RelaxExpr:
        """The expression with its parts in normal form, and its struct info deduced."""
        handler = _HANDLERS.get(type(value))
        new = value if handler is None else handler(self, value)
        if isinstance(new, E.Call) and self.builder.normalizes_operators:
            asked_for = normalized_by_operator(self.builder, new)
            new = new if asked_for is new else _call(self, asked_for)
        if isinstance(new, E.Call) and new.struct_info_ is None:
            try:
                E.remember(new, self.builder.context.call(new))
            except DiagnosticError as error:
                raise error.located(new.span) from None
        return new

    @overload
    def argument(self, value: E.Value) -> E.Value: ...
    @overload
    def argument(self, value: E.RelaxExpr) -> E.RelaxExpr: ...
    def argument(self, value: E.RelaxExpr) -> E.RelaxExpr:
        """What stands for an expression where only leaves are allowed."""
        if is_leaf(value):
            return self(value)
        bound = self.builder._block.arguments
        if value not in bound:
            new = self(value)
            if is_leaf(new):
                return new
            bound[value] = self.builder.emit(new)
        return bound[value]

    def arguments(self, values: tuple[E.RelaxExpr, ...]) -> tuple[E.RelaxExpr, ...]:
        new = tuple(self.argument(value) for value in values)
        return values if all_same(new, values) else new

    def sequence(self, value: E.Value) -> E.SeqExpr:
        """A body, in scopes of its own."""
        seq = E.as_seq(value)
        builder = self.builder
        blocks = [self.block(block) for block in seq.blocks]
        builder._begin_binding_block()
        body = self.argument(seq.body)
        last = builder._end_block()
        kept = [block for block in (*blocks, last) if block.bindings]
        flat = merged(kept)
        if body is seq.body and all_same(flat, seq.blocks):
            return seq
        return E.SeqExpr(flat, body, span=seq.span)

    def block(self, block: E.BindingBlock) -> E.BindingBlock:
        builder = self.builder
        begin = (
            builder._begin_dataflow_block
            if isinstance(block, E.DataflowBlock)
            else builder._begin_binding_block
        )
        begin()
        for binding in block.bindings:
            self.binding(binding)
        new = builder._end_block()
        return block if all_same(new.bindings, block.bindings) else new

    def binding(self, binding: E.Binding) -> None:
        """Emit a binding in normal form."""
        value = binding.value
        new = self(value) if isinstance(binding, E.VarBinding) else self.argument(value)
        if new is not value:
            binding = replace(binding, value=new)
        if (var := binding.var).struct_info is None:
            info = binding.struct_info if isinstance(binding, E.MatchCast) else None
            typed = replace(var, struct_info=info or self.builder.context.struct_info(new))
            self.typed[var] = typed
            binding = replace(binding, var=typed)
        self.builder.emit_normalized(binding)


def all_same(a: Sequence[object], b: Sequence[object]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(a) == len(b) and all(map(is_, a, b))


def merged(blocks: Sequence[E.BindingBlock]) -> list[E.BindingBlock]:
    """The blocks that have bindings, with sequences that variables are bound to spelled out;
    neighbours of one kind become one block.

    Raises:
        DiagnosticError: a plain block inside of a dataflow block uses a variable of it.
    """
    result: list[E.BindingBlock] = []
    for block in chain.from_iterable(map(_flat, blocks)):
        if not block.bindings:
            continue
        if result and type(result[-1]) is type(block):
            before = result.pop()
            block = type(block)((*before.bindings, *block.bindings), span=before.span)
        result.append(block)
    return result


def _flat(block: E.BindingBlock) -> list[E.BindingBlock]:
    """A block as blocks without a binding whose value is a sequence: the sequence's own blocks come
    before what follows of the block."""
    if not any(isinstance(binding.value, E.SeqExpr) for binding in block.bindings):
        return [block]
    result: list[E.BindingBlock] = []
    local: set[E.Var] = set()
    for binding in block.bindings:
        if isinstance(binding.value, E.SeqExpr):
            for inner in chain.from_iterable(map(_flat, binding.value.blocks)):
                if not isinstance(inner, E.DataflowBlock):
                    _check_visible(inner, local)
                result.append(inner)
            binding = replace(binding, value=binding.value.body)
        if isinstance(binding.var, E.DataflowVar):
            local.add(binding.var)
        result.append(type(block)((binding,), span=block.span))
    return result


def _check_visible(block: E.BindingBlock, local: set[E.Var]) -> None:
    for binding in block.bindings:
        for var in walk(binding.value):
            if isinstance(var, E.DataflowVar) and var in local:
                raise DiagnosticError(
                    f"Malformed AST: {binding.var} is bound outside of a dataflow block and uses "
                    f"{var}, which is not seen there",
                    binding.span,
                )


def _call(self: Normalizer, call: E.Call) -> E.Call:
    op = call.op if isinstance(call.op, (Op, GlobalVar)) else self.argument(call.op)
    args = self.arguments(call.args)
    if op is call.op and args is call.args:
        return call
    return E.Call(op, args, call.attrs, call.sinfo_args, span=call.span)


def _tuple(self: Normalizer, value: E.Tuple) -> E.Tuple:
    fields = self.arguments(value.fields)
    return value if fields is value.fields else E.Tuple(fields, span=value.span)


def _field(self: Normalizer, value: E.TupleGetItem) -> E.TupleGetItem:
    inside = self.argument(value.tuple_value)
    return value if inside is value.tuple_value else replace(value, tuple_value=inside)


def _if(self: Normalizer, value: E.If) -> E.If:
    cond = self.argument(value.cond)
    true, false = self.sequence(value.true_branch), self.sequence(value.false_branch)
    if all_same((cond, true, false), (value.cond, value.true_branch, value.false_branch)):
        return value
    return E.If(cond, true, false, span=value.span)


def _function(self: Normalizer, func: E.Function) -> E.Function:
    body = self.sequence(func.body)
    return func if body is func.body else with_known_result(replace(func, body=body))


def _var(self: Normalizer, var: E.Var) -> E.Var:
    return self.typed.get(var, var)


_HANDLERS: dict[type, Callable[..., E.Expr]] = {
    E.Call: _call,
    E.Tuple: _tuple,
    E.TupleGetItem: _field,
    E.If: _if,
    E.SeqExpr: Normalizer.sequence,
    E.Function: _function,
    E.Var: _var,
    E.DataflowVar: _var,
}
