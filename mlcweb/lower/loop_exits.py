"""What leaves loops or the function (`break`, `continue`, `return`), as flags that say what not to
do, so that everything runs to its end.

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

_BREAK, _CONTINUE, _RETURN = OPS["break_loop"], OPS["continue_loop"], OPS["ret"]
_IN_ORDER = (S.ForKind.SERIAL, S.ForKind.UNROLLED)


@lowering_pass("LowerLoopExits", needed=True)
def lower_loop_exits(func: PrimFunc) -> PrimFunc:
    """The function without `T.break_loop()`, `T.continue_loop()`, and returns of no value.

    Raises:
        DiagnosticError: `break` or `return` leaves a loop whose iterations have no order, or there
            is no loop around `break` or `continue`.
    """
    return func.with_body(_LoopExits().function(func.body))


def has_loop_exits(func: PrimFunc) -> bool:
    """Whether a function has what `lower_loop_exits` replaces."""
    return any(map(_is_exit, walk(func.body)))


def _is_exit(node: Node) -> bool:
    if not isinstance(node, E.Call):
        return False
    return node.op in (_BREAK, _CONTINUE) or (node.op == _RETURN and not node.args)


def leaves_loop(body: Node) -> bool:
    """Whether a statement leaves the loop around it, its iteration, or the function."""
    return next(_exits_of(body), None) is not None


def _exits_of(body: Node, is_inside: bool = False) -> Iterator[E.Call]:
    """The exits of the loop that has a body; of loops inside it only returns."""
    if isinstance(body, E.Call) and _is_exit(body):
        if not is_inside or body.op == _RETURN:
            yield body
        return
    is_inside = is_inside or isinstance(body, (S.For, S.While))
    for child in children(body):
        yield from _exits_of(child, is_inside)


class _LoopExits(Mutator):
    def __init__(self) -> None:
        self.flags: list[tuple[Buffer, ...]] = []
        """Of the function and each loop around, the innermost last, what says whether an iteration
        goes on, and, where the loop is left, whether it does."""

    def function(self, body: S.Stmt) -> S.Stmt:
        """The body of a function; what it returns from at its end needs no flag."""
        body = _without_last_return(body)
        if not any(call.op == _RETURN for call in _exits_of(body)):
            return self.rewrite(body)
        going = _flag("going")
        self.flags.append((going,))
        return S.AllocBuffer(going, S.sequence(_set(going, True), self.rewrite(body)))

    @on(S.For, S.While)
    def loop(self, loop: Any) -> S.Stmt:
        ops = {call.op for call in _exits_of(loop.body)}
        names = ("going",) if ops == {_CONTINUE} else ("going", "running") if ops else ()
        self.flags.append(tuple(map(_flag, names)))
        new = self.rewrite_children(loop)
        flags = self.flags.pop()
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
                f"{'break' if _BREAK in ops else 'return'} leaves a loop that runs in order, and "
                f"not one that is {new.kind.name}",
                loop.span,
            )
        return S.AllocBuffer(running[0], S.sequence(_set(running[0], True), new))

    @on(S.Evaluate)
    def exit(self, evaluate: S.Evaluate) -> S.Stmt:
        call = evaluate.value
        if not (isinstance(call, E.Call) and _is_exit(call)):
            return evaluate
        if call.op == _RETURN:
            return S.sequence(*(_set(flag, False) for flags in self.flags for flag in flags))
        innermost = self.flags[-1] if self.flags else ()
        if not innermost:
            raise DiagnosticError("There is no loop around that could be left", evaluate.span)
        return S.sequence(*(_set(flag, False) for flag in innermost[: 1 + (call.op == _BREAK)]))

    @on(S.SeqStmt)
    def sequence(self, statements: S.SeqStmt) -> S.Stmt:
        for position, statement in enumerate(statements.seq[:-1], 1):
            if leaves_loop(statement):
                rest = self.rewrite(S.sequence(*statements.seq[position:]))
                first = map(self.rewrite, statements.seq[:position])
                goes_on = E.BufferLoad(self.flags[-1][0], (const(0),))
                return S.sequence(*first, S.IfThenElse(goes_on, rest))
        return self.rewrite_children(statements)


def _without_last_return(body: S.Stmt) -> S.Stmt:
    """The body without returns that nothing follows."""
    if isinstance(body, S.Evaluate):
        is_return = _is_exit(body.value) and body.value.op == _RETURN  # type: ignore[attr-defined]
        return S.Evaluate(const(0)) if is_return else body
    if isinstance(body, S.SeqStmt):
        return S.sequence(*body.seq[:-1], _without_last_return(body.seq[-1]))
    if isinstance(body, S.IfThenElse):
        otherwise = body.else_case and _without_last_return(body.else_case)
        then = _without_last_return(body.then_case)
        return replace(body, then_case=then, else_case=otherwise)
    if isinstance(body, (S.LetStmt, S.AllocBuffer, S.DeclBuffer, S.AssertStmt, S.AttrStmt)):
        return replace(body, body=_without_last_return(body.body))
    return body


def _flag(name: str) -> Buffer:
    return decl_buffer((1,), "bool", name, scope="local")


def _set(flag: Buffer, value: bool) -> S.Stmt:
    return S.BufferStore(flag, const(value), (const(0),))
