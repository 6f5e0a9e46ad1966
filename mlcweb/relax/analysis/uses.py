"""What becomes of values: definitions, uses, purity, and dropping what is not used."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import children, walk
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import definable_tir_vars_in_struct_info
from mlcweb.relax.analysis.variables import bound_vars, symbolic_vars_used, used_vars
from mlcweb.relax.normalize import all_same
from mlcweb.relax.struct_info import FuncStructInfo
from mlcweb.tir.expr import Var as PrimVar
from mlcweb.tir.function import PrimFunc

RESET_ITEM = "vm.builtin.tuple_reset_item"
"""The function by which a program takes a field out of a list that it was called with."""


def _bindings(node: Node) -> list[E.Binding]:
    return [part for part in walk(node) if isinstance(part, E.Binding)]


def get_var2val(func: E.Function) -> dict[E.Var, E.Value]:
    """The value of every variable that a function binds."""
    return {binding.var: binding.value for binding in _bindings(func)}


def name_to_binding(func: E.Function) -> dict[str, list[E.Binding]]:
    """The bindings of a function by the name of their variable."""
    by_name: dict[str, list[E.Binding]] = {}
    for binding in _bindings(func):
        by_name.setdefault(binding.var.name_hint, []).append(binding)
    return by_name


def udchain(dfb: E.BindingBlock) -> dict[E.Var, list[E.Var]]:
    """For each variable of a block, the variables whose bindings use it."""
    chain: dict[E.Var, dict[E.Var, None]] = {}
    for binding in dfb.bindings:
        var, value = binding.var, binding.value
        chain.setdefault(var, {})
        for used in used_vars(value):
            chain.setdefault(used, {})[var] = None
    return {var: list(users) for var, users in chain.items()}


def is_impure_call(call: E.Call, functions: IRModule | None = None) -> bool:
    """Whether a call may have side effects.

    A function of TensorIR that is called by itself writes into its arguments.
    Of the functions of a module that is not given, and of external functions, it is known only
    what the call's struct info says.
    """
    if isinstance(call.op, Op):
        return not call.op.pure
    if isinstance(call.op, GlobalVar):
        func = functions.functions.get(call.op) if functions is not None else None
        return isinstance(func, PrimFunc) or (isinstance(func, E.Function) and not func.is_pure)
    info = call.op.struct_info if isinstance(call.op, E.Expr) else None
    return isinstance(info, FuncStructInfo) and not info.purity


def contains_impure_call(
    expr: E.Value, own_name: E.RelaxExpr | None = None, functions: IRModule | None = None
) -> bool:
    """Whether an expression calls something with side effects; calls of `own_name` do not count,
    nor do those inside of functions that are only defined here."""
    if isinstance(expr, E.Function):
        expr = expr.body
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, E.Function):
            continue
        if isinstance(node, E.Call) and node.op != own_name and is_impure_call(node, functions):
            return True
        stack.extend(children(node))
    return False


def remove_all_unused(func: E.ExprType, functions: IRModule | None = None) -> E.ExprType:
    """A function (or other expression) without the bindings that nothing uses and that have no
    side effects. Blocks that become empty are dropped."""
    if isinstance(func, E.Function):
        body = _Pruning(functions).sequence(func.body)
        return func if body is func.body else replace(func, body=body)
    return _Pruning(functions).value(func)


def _lets_go(value: E.Value) -> bool:
    """Whether a value is a call that is there for the memory that it frees."""
    if not isinstance(value, E.Call) or not value.args:
        return False
    func = value.args[0]
    return isinstance(func, E.ExternFunc) and func.global_symbol == RESET_ITEM


class _Pruning:
    """Goes backwards through a body, with the variables that what follows needs."""

    def __init__(self, functions: IRModule | None) -> None:
        self.functions = functions
        self.needed: set[E.Var] = set()
        self.extents: set[PrimVar] = set()

    def sequence(self, seq: E.SeqExpr) -> E.SeqExpr:
        self._need(seq.body)
        blocks = []
        for block in reversed(seq.blocks):
            kept = self._block(block)
            if kept is block or kept.bindings:
                blocks.append(kept)
        blocks.reverse()
        return seq if all_same(blocks, seq.blocks) else replace(seq, blocks=tuple(blocks))

    def _block(self, block: E.BindingBlock) -> E.BindingBlock:
        kept = []
        for binding in reversed(block.bindings):
            new = self._binding(binding)
            if new is not None:
                kept.append(new)
        kept.reverse()
        same = all_same(kept, block.bindings)
        return block if same else replace(block, bindings=tuple(kept))

    def _binding(self, binding: E.Binding) -> E.Binding | None:
        defines = (
            definable_tir_vars_in_struct_info(binding.struct_info)
            if isinstance(binding, E.MatchCast)
            else ()
        )
        if (
            binding.var not in self.needed
            and not any(var in self.extents for var in defines)
            and not contains_impure_call(binding.value, functions=self.functions)
            and not _lets_go(binding.value)
        ):
            return None
        value = self.value(binding.value)
        self._need(value)
        if isinstance(binding, E.MatchCast):
            self.extents.update(dims.prim_vars(binding.struct_info))
        return binding if value is binding.value else replace(binding, value=value)

    def value(self, value: Any) -> Any:
        """A value with the bodies inside of it pruned."""
        if isinstance(value, E.If):
            true, false = self.sequence(value.true_branch), self.sequence(value.false_branch)
            if true is value.true_branch and false is value.false_branch:
                return value
            return E.If(value.cond, true, false, span=value.span)
        if isinstance(value, E.Function):
            body = self.sequence(value.body)
            return value if body is value.body else replace(value, body=body)
        return self.sequence(value) if isinstance(value, E.SeqExpr) else value

    def _need(self, value: E.Value) -> None:
        used = used_vars(value)
        if isinstance(value, (E.If, E.Function, E.SeqExpr)):
            inside = set(bound_vars(value))
            used = [var for var in used if var not in inside]
        self.needed.update(used)
        for var in used:
            if var.struct_info is not None:
                self.extents.update(dims.prim_vars(var.struct_info))
        self.extents.update(symbolic_vars_used(value))
