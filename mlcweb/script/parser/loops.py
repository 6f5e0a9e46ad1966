"""Reads loops: their variables, ranges and bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.loops import loop_nest
from mlcweb.script.ir_builder.naming import describe
from mlcweb.tir import stmt as S
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
    seen: set[str] = set()
    for name, target in names:
        if name in seen:
            raise self.error(f'Two loops have the variable "{name}"', target)
        seen.add(name)
    ids, targets = [name for name, _ in names], [target for _, target in names]
    with loop_nest(self, loops, ids, targets, node, several):
        self.statements(node.body)


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
    self.emit(S.Evaluate(call_builtin(BUILTINS[name]), span=self.span(node)))


def _while(self: StatementParser, node: ast.While) -> None:
    if node.orelse:
        raise self.error("A loop of a script has no `else`", node.orelse[0])
    condition = self.evaluator.expression(node.test)
    body = self.body(node.body, "The loop", node)
    self.emit(S.While(condition, body, span=self.span(node)))


LOOPS: dict[type, Callable[[StatementParser, Any], None]] = {
    ast.For: _for,
    ast.While: _while,
    ast.Break: _jump,
    ast.Continue: _jump,
}
"""How to read what makes or ends a loop."""
