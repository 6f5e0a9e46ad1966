"""Nests of loops around the statements that are emitted inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mlcweb.script import constructs as C
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Range

if TYPE_CHECKING:
    from mlcweb.script.ir_builder.statements import StatementBuilder


@contextmanager
def loop_nest(
    self: StatementBuilder,
    loops: C.Loops,
    names: Sequence[str],
    nodes: Sequence[Any],
    node: Any,
    several: Mapping[str, slice] | None = None,
) -> Iterator[list[E.Var]]:
    """The loops, by their variables' names; `nodes` say where the names stand. Each name of
    `several` stands for a few of the variables."""
    span = self.span(node)
    origin = f"the variable of the loop at line {span.line}" if span else ""
    variables: list[E.Var] = []
    domains: list[Range] = []
    self.scopes.push()
    for name, at, domain in zip(names, nodes, loops.domains, strict=True):
        var = E.Var(name, domain.extent.dtype, span=self.span(at))
        variables.append(var)
        value: E.PrimExpr = var
        if loops.step != 1:
            value = arithmetic.add(arithmetic.multiply(var, loops.step), domain.min)
            domain = Range(arithmetic.const(0, var.dtype), domain.extent)
        domains.append(domain)
        self.loops[var] = domain
        self.scopes.bind(name, value, origin)
    for name, those in (several or {}).items():
        self.scopes.bind(name, tuple(variables[those]))
    with self.indented() as inside:
        yield variables
    statement = self.some(inside, "The loop", node)
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
