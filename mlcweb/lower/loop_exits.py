"""Loops that `break` or `continue` leave, as loops that run to their end: flags say what not to do.

for i in range(n):              running[0] = True
    if A[i] < 0:                for i in range(n):
        break                       if running[0]:
    B[i] = A[i]                         going[0] = True
                                        if A[i] < 0:
                                            going[0] = False
                                            running[0] = False
                                        if going[0]:
                                            B[i] = A[i]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, children, on, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, logical_and
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.builtins import OPS
from mlcweb.tir.function import PrimFunc

_BREAK, _CONTINUE = OPS["break_loop"], OPS["continue_loop"]
_IN_ORDER = (S.ForKind.SERIAL, S.ForKind.UNROLLED)


@lowering_pass("LowerLoopExits", needed=True)
def lower_loop_exits(func: PrimFunc) -> PrimFunc:
    """The function without `T.break_loop()` and `T.continue_loop()`.

    Raises:
        DiagnosticError: `break` leaves a loop whose iterations have no order, or no loop is around.
    """
    return func.with_body(_LoopExits().rewrite(func.body))


def has_loop_exits(func: PrimFunc) -> bool:
    """Whether a function has `T.break_loop()` or `T.continue_loop()`."""
    return any(map(_is_exit, walk(func.body)))


def _is_exit(node: Node) -> bool:
    return isinstance(node, E.Call) and node.op in (_BREAK, _CONTINUE)


def leaves_loop(body: Node) -> bool:
    """Whether a statement leaves the loop around it, or its iteration."""
    return next(_exits_of(body), None) is not None


def _exits_of(body: Node) -> Iterator[E.Call]:
    """The exits of the loop that has a body; those of loops inside are their own."""
    if isinstance(body, E.Call) and _is_exit(body):
        yield body
    elif not isinstance(body, (S.For, S.While)):
        for child in children(body):
            yield from _exits_of(child)


class _LoopExits(Mutator):
    def __init__(self) -> None:
        self.flags: tuple[Buffer, ...] = ()
        """Of the loop around, what says whether an iteration goes on, and, where `break` leaves the
        loop, whether the loop does."""

    @on(S.For, S.While)
    def loop(self, loop: Any) -> S.Stmt:
        ops = {call.op for call in _exits_of(loop.body)}
        outer = self.flags
        names = ("going", "running") if _BREAK in ops else ("going",) if ops else ()
        self.flags = tuple(decl_buffer((1,), "bool", name, scope="local") for name in names)
        new = self.rewrite_children(loop)
        flags, self.flags = self.flags, outer
        if not flags:
            return new
        going, *running = flags
        body: S.Stmt = S.AllocBuffer(going, S.sequence(_set(going, True), new.body))
        if not running:
            return replace(new, body=body)
        runs = E.BufferLoad(running[0], (const(0),))
        if isinstance(new, S.While):
            new = replace(new, condition=logical_and(runs, new.condition), body=body)
        elif new.kind in _IN_ORDER:
            new = replace(new, body=S.IfThenElse(runs, body))
        else:
            raise DiagnosticError(
                f"break leaves a loop that runs in order, and not one that is {new.kind.name}",
                loop.span,
            )
        return S.AllocBuffer(running[0], S.sequence(_set(running[0], True), new))

    @on(S.Evaluate)
    def exit(self, evaluate: S.Evaluate) -> S.Stmt:
        if not _is_exit(evaluate.value):
            return evaluate
        if not self.flags:
            raise DiagnosticError("There is no loop around that could be left", evaluate.span)
        is_break = evaluate.value.op == _BREAK  # type: ignore[attr-defined]
        return S.sequence(*(_set(flag, False) for flag in self.flags[: 1 + is_break]))

    @on(S.SeqStmt)
    def sequence(self, statements: S.SeqStmt) -> S.Stmt:
        for position, statement in enumerate(statements.seq[:-1], 1):
            if leaves_loop(statement):
                rest = self.rewrite(S.sequence(*statements.seq[position:]))
                first = map(self.rewrite, statements.seq[:position])
                goes_on = E.BufferLoad(self.flags[0], (const(0),))
                return S.sequence(*first, S.IfThenElse(goes_on, rest))
        return self.rewrite_children(statements)


def _set(flag: Buffer, value: bool) -> S.Stmt:
    return S.BufferStore(flag, const(value), (const(0),))
