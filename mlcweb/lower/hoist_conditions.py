"""The passes that move conditions out of loops that do not change them (loop unswitching).

`for i: if n > 2: A` becomes `if n > 2: for i: A`; with an `else`, a loop is on each side. A
condition moves out of a loop whose body is that condition alone, or has it inside of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Flag
from typing import Any

from mlcweb.analysis.queries import verify_ssa
from mlcweb.arith import Analyzer, conjuncts
from mlcweb.ir.node import replace
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import Mutator, Replacement, find_nodes, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.options import HOIST_EXPRESSION, HOIST_IF_THEN_ELSE, configured
from mlcweb.lower.simplify import Simplification
from mlcweb.lower.statement_simplifier import is_nothing
from mlcweb.lower.stmt_simplify import stmt_simplify
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, logical_not, may_trap
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt_functor import renew_defs
from mlcweb.tir.substitute import reads_memory, variables_in

MAX_HOISTED = 32
"""So many conditions move in one function: each one doubles what is inside of its loop."""


class HoistedConditionals(Flag):
    """What `HoistExpression` moves out of loops: conditions of `if`, of `T.if_then_else`, the parts
    of a conjunction each by itself, and conditions that use the index of launched threads (or move
    out of the launch)."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = IfElseStmt | IfElseExpr | BooleanExpression | UsingBlockVar


class HoistedLetBindings(Flag):
    """Which variables it moves: those that a condition needs, all, and those inside of
    expressions."""

    Never = 0
    RequiredByConditional = 1
    Bind = 2
    LetStmt = Bind
    LetExpr = 4
    All = RequiredByConditional | Bind | LetExpr


@dataclass(frozen=True, slots=True)
class HoistExpressionConfig:
    """The values of a `HoistedConditionals` and a `HoistedLetBindings`. Unless it is said, nothing
    depends on the index of launched threads, or leaves the launch."""

    hoisted_conditionals: int = (HoistedConditionals.All & ~HoistedConditionals.UsingBlockVar).value
    hoisted_let_bindings: int = HoistedLetBindings.All.value


@dataclass(frozen=True, slots=True)
class HoistIfThenElseConfig:
    """Whether conditions move out of launches of threads. The second name is that of TVM until
    2025."""

    support_block_scope_hoisting: bool = False
    support_block_scope_hosting: bool = False


@lowering_pass("HoistIfThenElse")
def hoist_if_then_else(func: PrimFunc) -> PrimFunc:
    """Move the conditions of `if` statements out of loops, and, if the option "tir.HoistIfThenElse"
    says so, out of launches of threads."""
    config = configured(HOIST_IF_THEN_ELSE, HoistIfThenElseConfig)
    conditionals = HoistedConditionals.IfElseStmt
    if config.support_block_scope_hoisting or config.support_block_scope_hosting:
        conditionals |= HoistedConditionals.UsingBlockVar
    return _Hoisting(conditionals, HoistedLetBindings.Never).run(func)


def hoist_out_of_loops(func: PrimFunc) -> PrimFunc:
    """Move the conditions of `if` statements out of loops."""
    return _Hoisting(HoistedConditionals.IfElseStmt, HoistedLetBindings.Never).run(func)


@lowering_pass("HoistExpression")
def hoist_expression(func: PrimFunc) -> PrimFunc:
    """Move conditions out of loops, and variables whose values a loop does not change; the option
    "tir.HoistExpression" says which."""
    config = configured(HOIST_EXPRESSION, HoistExpressionConfig)
    return _Hoisting(
        HoistedConditionals(config.hoisted_conditionals),
        HoistedLetBindings(config.hoisted_let_bindings),
    ).run(func)


Nest = S.For | S.AttrStmt
"""A loop, or a launch of threads, out of which things move."""


class _Hoisting(Mutator):
    def __init__(self, conditionals: HoistedConditionals, bindings: HoistedLetBindings) -> None:
        self.conditionals = conditionals
        self.bindings = bindings
        self.launched: set[E.Var] = set()
        self.moved: set[S.Stmt] = set()
        self.left = MAX_HOISTED

    def run(self, func: PrimFunc) -> PrimFunc:
        """The simplified function, the copies of loops with variables of their own."""
        new = func.with_body(self.rewrite(func.body))
        return stmt_simplify(new if verify_ssa(new) else renew_defs(new))

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        return self.hoisted(self.rewrite_children(loop))

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if not isinstance(statement.node, S.IterVar):
            return self.rewrite_children(statement)
        self.launched.add(statement.node.var)
        new = self.rewrite_children(statement)
        across = HoistedConditionals.UsingBlockVar in self.conditionals
        return self.hoisted(new) if across else new

    def hoisted(self, nest: Nest) -> S.Stmt:
        """A loop, inside of the variables and conditions that are in it and that it does not
        change."""
        body = nest.body
        if isinstance(body, S.LetStmt) and _is_fixed(body.value, nest) and self.moves(body):
            return replace(body, body=self.hoisted(replace(nest, body=body.body)))
        let = self.inner_let(nest)
        if let is not None:
            inner = self.hoisted(replace(nest, body=_Opening(let).rewrite(body)))
            return S.LetStmt(let.var, let.value, inner, span=let.span)
        across = HoistedConditionals.UsingBlockVar in self.conditionals
        for condition in self.conditions(body):
            may_move = across or not variables_in(condition) & self.launched
            if self.left and may_move and _is_fixed(condition, nest):
                self.left -= 1
                return self.chosen(nest, condition)
        return nest

    def moves(self, let: S.LetStmt) -> bool:
        """Whether a variable is one of those that are moved."""
        if HoistedLetBindings.Bind in self.bindings:
            return True
        needed = HoistedLetBindings.RequiredByConditional in self.bindings
        return needed and any(let.var in variables_in(each) for each in self.conditions(let.body))

    def inner_let(self, nest: Nest) -> E.Let | None:
        """A variable of an expression in a loop around a single statement, which it does not
        change."""
        if HoistedLetBindings.LetExpr not in self.bindings:
            return None
        if not isinstance(nest.body, (S.BufferStore, S.Evaluate)):
            return None
        lets = [*find_nodes(nest.body, E.Let)]
        inner = {let.var for let in lets}
        free = (let for let in lets if not inner & variables_in(let.value))
        return next((let for let in free if _is_fixed(let.value, nest)), None)

    def chosen(self, nest: Nest, condition: E.PrimExpr) -> S.Stmt:
        """The loop with a condition around it, which decides it inside."""
        yes, no = (self.decided(nest, condition, holds) for holds in (True, False))
        condition = Analyzer().simplify(condition)
        if is_nothing(yes):
            new = S.IfThenElse(logical_not(condition), no, span=nest.span)
        else:
            new = S.IfThenElse(condition, yes, None if is_nothing(no) else no, span=nest.span)
        self.moved.add(new)
        return new

    def decided(self, nest: Nest, condition: E.PrimExpr, holds: bool) -> S.Stmt:
        """The loop where a condition is known to hold, or not to hold."""
        value, simplification = const(holds), Simplification()

        def decision(node: Any) -> E.PrimExpr | None:
            same = isinstance(node, E.PrimExpr) and structural_equal(node, condition)
            return value if same else None

        with simplification.assuming(condition if holds else logical_not(condition)):
            new = simplification.rewrite(Replacement(decision).rewrite(nest))
        return self.hoisted(new) if isinstance(new, Nest) else new

    def conditions(self, body: S.Stmt) -> Iterator[E.PrimExpr]:
        """What could move out of a loop with this body, the first choice first."""
        if isinstance(body, S.IfThenElse):
            if HoistedConditionals.IfElseStmt in self.conditionals or body in self.moved:
                yield from self.parts(body.condition)
            yield from self.conditions(body.then_case)
            if body.else_case is not None:
                yield from self.conditions(body.else_case)
        elif isinstance(body, S.LetStmt):
            inside = self.conditions(body.body)
            yield from (each for each in inside if body.var not in variables_in(each))
        elif isinstance(body, S.AttrStmt) and not isinstance(body.node, S.IterVar):
            yield from self.conditions(body.body)
        elif isinstance(body, (S.BufferStore, S.Evaluate)):
            if HoistedConditionals.IfElseExpr in self.conditionals:
                for node in find_nodes(body, E.Call):
                    if operator_name(node) == "if_then_else":
                        yield from self.parts(node.args[0])

    def parts(self, condition: E.PrimExpr) -> Iterable[E.PrimExpr]:
        split = HoistedConditionals.BooleanExpression in self.conditionals
        return conjuncts(condition) if split else [condition]


class _Opening(Mutator):
    """Puts what a variable of an expression is for in place of its definition."""

    def __init__(self, let: E.Let) -> None:
        self.let = let

    @on(E.Let)
    def definition(self, let: E.Let) -> E.PrimExpr:
        return let.body if let is self.let else let.rewritten(self)


def _is_fixed(value: E.PrimExpr, nest: Nest) -> bool:
    """Whether a value can as well be computed before a loop, even one that has no iteration."""
    var = nest.loop_var if isinstance(nest, S.For) else nest.node.var
    if var in variables_in(value) or reads_memory(value) or may_trap(value):
        return False
    return not isinstance(value, E.IntImm)
