"""Threads that statements launch (`T.launch_thread`), as loops that are bound to them, and back."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, cast, const, is_const_int
from mlcweb.tir.buffer import Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute


def launch_as_loop(statement: S.AttrStmt) -> S.For:
    """The loop over the threads that a statement launches."""
    axis, kind = statement.node, S.ForKind.THREAD_BINDING
    low, extent = const(0, axis.var.dtype), cast(axis.var.dtype, statement.value)
    return S.For(axis.var, low, extent, kind, statement.body, axis, span=statement.span)


def loop_as_launch(loop: S.For) -> S.AttrStmt:
    """The statement that launches the threads of a loop that is bound to some. Their indices begin
    at 0."""
    assert loop.thread_binding is not None
    tag, var, body = loop.thread_binding.thread_tag, loop.loop_var, loop.body
    if not is_const_int(loop.min, 0):
        body = substitute(body, {var: add(var, loop.min)})
    domain = Range(const(0, var.dtype), loop.extent)
    axis = S.IterVar(domain, var, S.IterType.THREAD_INDEX, tag, span=loop.span)
    return S.AttrStmt(axis, S.launch_key(tag), loop.extent, body, span=loop.span)


def with_launches_as_loops(
    run: Callable[[PrimFunc], PrimFunc],
) -> Callable[[PrimFunc], PrimFunc]:
    """A pass that knows threads as loops, for functions that launch them as well."""

    def new(func: PrimFunc) -> PrimFunc:
        loops = _Loops()
        func = run(func.with_body(loops.rewrite(func.body)))
        return func.with_body(_Launches(loops.axes).rewrite(func.body)) if loops.axes else func

    return new


class _Loops(Mutator):
    def __init__(self) -> None:
        self.axes: dict[E.Var, S.AttrStmt] = {}

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        new = self.rewrite_children(statement)
        if not S.is_launch(new):
            return new
        self.axes[new.node.var] = statement
        return launch_as_loop(new)


class _Launches(Mutator):
    def __init__(self, axes: dict[E.Var, S.AttrStmt]) -> None:
        self.axes = axes

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        new = self.rewrite_children(loop)
        launch = self.axes.get(loop.loop_var)
        return new if launch is None else replace(launch, value=new.extent, body=new.body)
