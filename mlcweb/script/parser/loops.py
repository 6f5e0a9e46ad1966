"""Reads loops: their variables, ranges and bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.script import constructs as C
from mlcweb.script.parser.accesses import describe
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Range
from mlcweb.tir.builtins import BUILTINS, call_builtin

if TYPE_CHECKING:
    from mlcweb.script.parser.statements import StatementParser


def _for(self: StatementParser, node: ast.For) -> None:
    if node.orelse:
        raise self.error("A loop of a script has no `else`", node.orelse[0])
    loops = self.evaluator.value(node.iter)
    if isinstance(loops, C.MetaVar):
        for item in loops:
            self.bind_target(node.target, item, node.iter)
            self.statements(node.body)
        return
    if not isinstance(loops, C.Loops):
        raise self.error(
            "A loop runs over range(…), T.grid(…), T.serial(…), T.parallel(…), T.vectorized(…), "
            f"T.unroll(…) or T.thread_binding(…), not over {describe(loops)}; to read its "
            "statements once for each value, write `for … in T.meta_var(…)`",
            node.iter,
        )
    names, several = _loop_names(self, node.target, len(loops.domains))
    span = self.evaluator.span(node)
    variables: list[E.Var] = []
    domains: list[Range] = []
    self.scopes.push()
    for (name, target), domain in zip(names, loops.domains, strict=True):
        var = E.Var(name, domain.extent.dtype, span=self.evaluator.span(target))
        if any(known.name == name for known in variables):
            raise self.error(f'Two loops have the variable "{name}"', target)
        variables.append(var)
        value: E.PrimExpr = var
        if loops.step != 1:
            value = arithmetic.add(domain.min, arithmetic.multiply(var, loops.step))
            domain = Range(arithmetic.const(0, var.dtype), domain.extent)
        domains.append(domain)
        self.loops[var] = domain
        self.scopes.bind(name, value, f"the variable of the loop at line {span.line}")
    for name, those in several.items():
        self.scopes.bind(name, tuple(variables[those]))
    statement = self.body(node.body, "The loop", node)
    self.scopes.pop()
    for var, domain in zip(reversed(variables), reversed(domains), strict=True):
        thread = None
        if loops.thread is not None:
            thread_var = E.Var("", var.dtype)
            thread = S.IterVar(None, thread_var, S.IterType.THREAD_INDEX, loops.thread)
        statement = S.For(
            var, domain.min, domain.extent, loops.kind, statement, thread, loops.annotations,
            span=span,
        )  # fmt: skip
    self.emit(statement)


def _loop_names(
    self: StatementParser, target: ast.expr, count: int
) -> tuple[list[tuple[str, ast.expr]], dict[str, slice]]:
    """The names of loop variables, each with its place, and the names that stand for several of
    them: `for *outer, k in T.grid(…)`, or one name for a whole grid."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    grid = parts == [target] and count != 1
    rest = count - sum(not isinstance(part, ast.Starred) for part in parts) + grid
    names: list[tuple[str, ast.expr]] = []
    several = {}
    for part in parts:
        name = part.value if isinstance(part, ast.Starred) else part
        if not isinstance(name, ast.Name):
            raise self.error("A loop variable is a name", part)
        if name is part and not grid:
            names.append((name.id, part))
        else:
            several[name.id] = slice(len(names), len(names) + rest)
            names += [(f"{name.id}_{number}", part) for number in range(rest)]
    if len(names) != count:
        raise self.error(f"{len(parts)} loop variable(s) for {count} extent(s)", target)
    return names, several


def _jump(self: StatementParser, node: ast.Break | ast.Continue) -> None:
    name = "break_loop" if isinstance(node, ast.Break) else "continue_loop"
    self.emit(S.Evaluate(call_builtin(BUILTINS[name]), span=self.evaluator.span(node)))


def _while(self: StatementParser, node: ast.While) -> None:
    if node.orelse:
        raise self.error("A loop of a script has no `else`", node.orelse[0])
    condition = self.evaluator.expression(node.test)
    body = self.body(node.body, "The loop", node)
    self.emit(S.While(condition, body, span=self.evaluator.span(node)))


LOOPS: dict[type, Callable[[StatementParser, Any], None]] = {
    ast.For: _for,
    ast.While: _while,
    ast.Break: _jump,
    ast.Continue: _jump,
}
"""How to read what makes or ends a loop."""
