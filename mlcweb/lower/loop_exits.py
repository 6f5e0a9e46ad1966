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
from typing import Any, TypeGuard

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, children, find_nodes, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, logical_and
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.builtins import OPS
from mlcweb.tir.contents import calls_in
from mlcweb.tir.function import PrimFunc

_BREAK, _CONTINUE = OPS["break_loop"], OPS["continue_loop"]
_RETURN, _THREAD_RETURN = _RETURNS = OPS["ret"], OPS["thread_return"]
_IN_ORDER = (S.ForKind.SERIAL, S.ForKind.UNROLLED)


@lowering_pass("LowerLoopExits", needed=True)
def lower_loop_exits(func: PrimFunc) -> PrimFunc:
    """The function without `T.break_loop()`, `T.continue_loop()`, `T.thread_return()`, and
    returns of no value.

    Raises:
        DiagnosticError: `break` or `return` leaves a loop whose iterations have no order, there is
            no loop around `break` or `continue`, or a thread would leave the kernel for good before
            others of its loops.
    """
    return func.with_body(_LoopExits().function(func.body))


def has_loop_exits(func: PrimFunc) -> bool:
    """Whether a function has what `lower_loop_exits` replaces."""
    return any(map(_is_exit, calls_in(func.body)))


def _is_exit(node: Node) -> bool:
    if not isinstance(node, E.Call):
        return False
    if node.op == _RETURN:
        return not node.args
    return node.op in (_BREAK, _CONTINUE, _THREAD_RETURN)


def leaves_loop(body: Node) -> bool:
    """Whether a statement leaves the loop around it, its iteration, or the function."""
    return next(_exits_of(body), None) is not None


def _exits_of(body: Node, is_inside: bool = False) -> Iterator[E.Call]:
    """The exits of the loop that has a body; of loops inside it only returns, and of those over
    threads only returns from the function."""
    if isinstance(body, E.Call) and _is_exit(body):
        if not is_inside or body.op in _RETURNS:
            yield body
        return
    if _is_over_threads(body):
        exits = _exits_of(body.body, is_inside=True)
        yield from (call for call in exits if call.op == _RETURN)
        return
    is_inside = is_inside or isinstance(body, (S.For, S.While))
    for child in children(body):
        yield from _exits_of(child, is_inside)


class _LoopExits(Mutator):
    def __init__(self) -> None:
        self.flags: list[tuple[Buffer, ...]] = []
        """Of the function and each loop around, the innermost last, what says whether an iteration
        goes on, and, where the loop is left, whether it does."""
        self.in_kernel = False

    def function(self, body: S.Stmt) -> S.Stmt:
        """The body of a function, or what a thread runs of a kernel; what is returned from at its
        end needs no flag."""
        body = _without_last_return(body)
        if not any(call.op in _RETURNS for call in _exits_of(body)):
            return self.rewrite(body)
        going = _flag("going")
        self.flags.append((going,))
        new = S.AllocBuffer(going, S.sequence(_set(going, True), self.rewrite(body)))
        self.flags.pop()
        return new

    def over_threads(self, loop: S.For) -> S.For:
        """A loop over threads, which each leave for themselves."""
        around = self.flags, self.in_kernel
        self.flags, self.in_kernel = [], True
        body = self.function(loop.body)
        self.flags, self.in_kernel = around
        return loop if body is loop.body else replace(loop, body=body)

    @on(S.For, S.While)
    def loop(self, loop: Any) -> S.Stmt:
        ops = {call.op for call in _exits_of(loop.body)}
        if _is_over_threads(loop) and ops <= {_THREAD_RETURN}:
            return self.over_threads(loop)
        self.check_nothing_follows(loop)
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

    def check_nothing_follows(self, statement: S.Stmt) -> None:
        """A DiagnosticError for a part of a kernel in whose loops over threads some of them leave
        it, before they have run what follows."""
        for loop in find_nodes(statement, S.For) if self.in_kernel else ():
            left = (call for call in find_nodes(loop, E.Call) if call.op == _THREAD_RETURN)
            if _is_over_threads(loop) and (call := next(left, None)) is not None:
                raise DiagnosticError(
                    "A thread leaves the kernel here, and other parts of it follow; guard what it "
                    "does in this one by a condition",
                    call.span,
                )

    @on(S.Evaluate)
    def exit(self, evaluate: S.Evaluate) -> S.Stmt:
        call = evaluate.value
        if not (isinstance(call, E.Call) and _is_exit(call)):
            return evaluate
        if call.op in _RETURNS:
            return S.sequence(*(_set(flag, False) for flags in self.flags for flag in flags))
        innermost = self.flags[-1] if self.flags else ()
        if not innermost:
            raise DiagnosticError("There is no loop around that could be left", evaluate.span)
        return S.sequence(*(_set(flag, False) for flag in innermost[: 1 + (call.op == _BREAK)]))

    @on(S.SeqStmt)
    def sequence(self, statements: S.SeqStmt) -> S.Stmt:
        for position, statement in enumerate(statements.seq[:-1], 1):
            self.check_nothing_follows(statement)
            if leaves_loop(statement):
                rest = self.rewrite(S.sequence(*statements.seq[position:]))
                first = map(self.rewrite, statements.seq[:position])
                goes_on = E.BufferLoad(self.flags[-1][0], (const(0),))
                return S.sequence(*first, S.IfThenElse(goes_on, rest))
        return self.rewrite_children(statements)


def _is_over_threads(node: Node) -> TypeGuard[S.For]:
    return isinstance(node, S.For) and node.thread_binding is not None


def _without_last_return(body: S.Stmt) -> S.Stmt:
    """The body without returns that nothing follows. What follows a condition under which it is
    left stands under the opposite one."""
    if isinstance(body, S.Evaluate):
        return S.Evaluate(const(0)) if _is_return(body) else body
    if isinstance(body, S.SeqStmt):
        for position, part in enumerate(body.seq[:-1]):
            if isinstance(part, S.IfThenElse) and _is_return(S.in_order(part.then_case)[-1]):
                others = () if part.else_case is None else (part.else_case,)
                rest = S.sequence(*others, *body.seq[position + 1 :])
                part = replace(part, else_case=rest)
                return S.sequence(*body.seq[:position], _without_last_return(part))
        return S.sequence(*body.seq[:-1], _without_last_return(body.seq[-1]))
    if isinstance(body, S.IfThenElse):
        otherwise = body.else_case and _without_last_return(body.else_case)
        then = _without_last_return(body.then_case)
        if otherwise is not None and _is_return(body.then_case):
            return replace(
                body, condition=E.Not(body.condition), then_case=otherwise, else_case=None
            )
        return replace(body, then_case=then, else_case=otherwise)
    if isinstance(body, (S.LetStmt, S.AllocBuffer, S.DeclBuffer, S.AssertStmt, S.AttrStmt)):
        return replace(body, body=_without_last_return(body.body))
    return body


def _is_return(statement: S.Stmt) -> bool:
    call = statement.value if isinstance(statement, S.Evaluate) else None
    return isinstance(call, E.Call) and _is_exit(call) and call.op in _RETURNS


def _flag(name: str) -> Buffer:
    return decl_buffer((1,), "bool", name, scope="local")


def _set(flag: Buffer, value: bool) -> S.Stmt:
    return S.BufferStore(flag, const(value), (const(0),))
